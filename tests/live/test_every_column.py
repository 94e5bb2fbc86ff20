"""Every documented column of every list as column, filter, group, aggregate and sort key.

All is answered, whatever core is behind it, and no line is sent that a core might not survive
(``harness.recorder.problems``; the embedded core would end).
"""

import pytest
from harness.columns import (
    OF_CORES,
    OPERATORS,
    STATISTICS,
    WORDS,
    WRONG,
    batches,
    failing,
    listed,
)
from harness.recorder import problems

LISTS = listed()
AGGREGATES = ("count", "sum", "avg", "min", "max", "uniq")
HOST_LISTS = {"/hosts": "/hosts/stats", "/services": "/services/stats"}


@pytest.fixture(autouse=True)
def _clean_lines(recorder):
    mark = recorder.mark()
    yield
    requests = dict.fromkeys(recorder.since(mark))
    assert {one: found for one in requests if (found := problems(one))} == {}


@pytest.fixture
def check(client, bench):
    """Asks for all columns, as many at a time as one request takes; what fails is found by halves.

    Lists of the daemon itself are asked for with one kind of core.
    """
    lists = OF_CORES if bench.kind == "icinga2" else LISTS

    def check(parameters, size, paths=lists, statuses=(200,)):
        failures = [
            failure
            for path in paths
            for batch in batches(LISTS[path], size)
            if parameters(batch) is not None
            for failure in failing(client, path, batch, parameters, statuses)
        ]
        assert failures == [], "\n".join(failures)

    return check


def names(items):
    return [name for name, _, _ in items]


def test_the_lists_of_cores_are_all_there():
    assert set(OF_CORES) <= set(LISTS)
    assert len(LISTS) > 30
    assert sum(len(LISTS[path]) for path in OF_CORES) > 1600


def test_as_columns(client, check):
    def parameters(items):
        return {"columns": ",".join(names(items)), "limit": "5"}

    check(parameters, 400)
    for path in OF_CORES:
        rows = client.rows(path, {"columns": ",".join(names(LISTS[path])), "limit": "1"})
        for row in rows:
            assert set(row) >= set(names(LISTS[path])), path


def test_as_filters_of_which_all_hold(check):
    """By parameter: conditions of a negative kind, which a core has to evaluate one by one."""

    def parameters(items):
        return [
            (f"{name}[{WORDS[op]}]", value)
            for name, kind, _ in items
            for op, value in OPERATORS[kind]
            if op in ("!=", "!~", "!~~", "!>=", "<=", ">", ">=") and value
        ]

    check(parameters, 120)


def test_as_filters_of_which_none_holds(check):
    """By ``q``: an Or goes to a core as a whole, which evaluates each condition for each row."""

    def parameters(items):
        conditions = [
            f'`{name}` {op} "{value}"' for name, kind, _ in items for op, value in OPERATORS[kind]
        ]
        return {"q": " or ".join(conditions), "limit": "3"}

    check(parameters, 60)


def test_as_groups(check):
    def parameters(items):
        return {"columns": ",".join([*names(items), "count(*)"])}

    check(parameters, 400)
    check(parameters, 1, ("/processinfo", "/contacts", "/hostgroups"))


def test_as_aggregates(check):
    def parameters(items):
        made = [f"{function}({name})" for name in names(items) for function in AGGREGATES]
        return {"columns": ",".join(made)}

    check(parameters, 70)
    check(parameters, 1, ("/processinfo",))


def test_as_aggregates_by_group(check):
    for path in OF_CORES:

        def parameters(items, key=LISTS[path][0][0]):
            made = [f"{one}({name})" for name in names(items) for one in ("sum", "min", "max")]
            return {"columns": ",".join([key, *made])}

        check(parameters, 160, (path,))


def test_as_rows(check):
    def parameters(items):
        ((name, _, held),) = items
        return {"columns": f"to_rows({name}) as e,count(*)"} if held == "list" else None

    check(parameters, 1, OF_CORES)


def test_as_sort_keys(check):
    for sign in ("", "-"):

        def parameters(items, sign=sign):
            return {"sort": ",".join(f"{sign}{name}" for name in names(items)), "limit": "3"}

        check(parameters, 400)
        check(parameters, 1, ("/processinfo",))


def test_as_filters_of_statistics(client):
    failures = []
    for path in ("/hosts", "/services", "/contacts", "/processinfo"):
        for target in STATISTICS:
            if not target.startswith((path, "/checks" if path in HOST_LISTS else path)):
                continue

            def parameters(items):
                return [
                    (f"{name}[{word}]", value)
                    for name, kind, _ in items
                    for word, value in (("ne", dict(OPERATORS[kind])["!="]),)
                ]

            for batch in batches(LISTS[path], 400):
                failures += failing(client, target, batch, parameters)
    for target in STATISTICS:
        every = [(name, "", "") for name in client.rows(target)]
        failures += failing(
            client, target, every, lambda items: {"columns": ",".join(names(items))}
        )
    assert failures == [], "\n".join(failures)


def test_errors_of_type_are_errors_of_the_client(check):
    for at in range(2):

        def parameters(items, at=at):
            (name, kind, _) = items[0]
            wrong = WRONG.get(kind)
            if wrong is None:
                return None
            op, value = wrong[at]
            return {f"{name}[{WORDS[op]}]": value, "limit": "1"}

        check(parameters, 1, ("/processinfo", "/hosts", "/contacts"), (200, 400))
