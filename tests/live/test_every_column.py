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


def check(client, parameters, size=40, paths=LISTS, statuses=(200,)):
    failures = []
    for path in paths:
        for batch in batches(LISTS[path], size):
            if parameters(batch) is None:
                continue
            failures += failing(client, path, batch, parameters, statuses)
    assert failures == [], "\n".join(failures)


def names(items):
    return [name for name, _, _ in items]


def test_the_lists_of_cores_are_all_there():
    assert set(OF_CORES) <= set(LISTS)
    assert len(LISTS) > 30
    assert sum(len(LISTS[path]) for path in OF_CORES) > 1600


def test_as_columns(client):
    def parameters(items):
        return {"columns": ",".join(names(items)), "limit": "5"}

    check(client, parameters, 60)
    for path in OF_CORES:
        rows = client.rows(path, {"columns": ",".join(names(LISTS[path])), "limit": "1"})
        for row in rows:
            assert set(row) >= set(names(LISTS[path])), path


def test_as_filters_of_which_all_hold(client):
    """By parameter: conditions of a negative kind, which a core has to evaluate one by one."""

    def parameters(items):
        return [
            (f"{name}[{WORDS[op]}]", value)
            for name, kind, _ in items
            for op, value in OPERATORS[kind]
            if op in ("!=", "!~", "!~~", "!>=", "<=", ">", ">=") and value
        ]

    check(client, parameters)


def test_as_filters_of_which_none_holds(client):
    """By ``q``: an Or goes to a core as a whole, which evaluates each condition for each row."""

    def parameters(items):
        conditions = [
            f'`{name}` {op} "{value}"' for name, kind, _ in items for op, value in OPERATORS[kind]
        ]
        return {"q": " or ".join(conditions), "limit": "3"}

    check(client, parameters, 12)


def test_as_groups(client):
    def parameters(items):
        return {"columns": ",".join([*names(items), "count(*)"])}

    check(client, parameters)
    check(client, parameters, 1, ("/processinfo", "/contacts", "/hostgroups"))


def test_as_aggregates(client):
    def parameters(items):
        made = [f"{function}({name})" for name in names(items) for function in AGGREGATES]
        return {"columns": ",".join(made)}

    check(client, parameters, 20)
    check(client, parameters, 1, ("/processinfo",))


def test_as_aggregates_by_group(client):
    key = {path: LISTS[path][0][0] for path in OF_CORES}
    failures = []
    for path in OF_CORES:

        def parameters(items, path=path):
            made = [f"{one}({name})" for name in names(items) for one in ("sum", "min", "max")]
            return {"columns": ",".join([key[path], *made])}

        for batch in batches(LISTS[path], 40):
            failures += failing(client, path, batch, parameters)
    assert failures == [], "\n".join(failures)


def test_as_rows(client):
    for path in OF_CORES:
        lists = [item for item in LISTS[path] if item[2] == "list"]
        found = [
            failing(
                client,
                path,
                [item],
                lambda items: {"columns": f"to_rows({items[0][0]}) as e,count(*)"},
            )
            for item in lists
        ]
        assert not any(found), found


def test_as_sort_keys(client):
    for sign in ("", "-"):

        def parameters(items, sign=sign):
            return {"sort": ",".join(f"{sign}{name}" for name in names(items)), "limit": "3"}

        check(client, parameters)
        check(client, parameters, 1, ("/processinfo",))


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

            for batch in batches(LISTS[path], 40):
                failures += failing(client, target, batch, parameters)
    for target in STATISTICS:
        for name in client.rows(target):
            failures += failing(
                client, target, [(name, "", "")], lambda items: {"columns": items[0][0]}
            )
    assert failures == [], "\n".join(failures)


def test_errors_of_type_are_errors_of_the_client(client):
    for at in range(2):

        def parameters(items, at=at):
            (name, kind, _) = items[0]
            wrong = WRONG.get(kind)
            if wrong is None:
                return None
            op, value = wrong[at]
            return {f"{name}[{WORDS[op]}]": value, "limit": "1"}

        check(client, parameters, 1, ("/processinfo", "/hosts", "/contacts"), (200, 400))
