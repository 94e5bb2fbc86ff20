"""Push-down never changes an answer: random queries both ways against the embedded core.

Every query runs twice over the same frozen core, once with everything pushed that the planner
allows and once with all of it evaluated here over whole tables; answers and refusals must be
equal to the last value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.api.endpoint import Context
from monrest.base.errors import RestError
from monrest.base.values import ADMIN, Document, Identity
from monrest.config import Config
from monrest.logs.ask import ask
from monrest.rows.columns import SCHEMAS
from monrest.rows.fetch import fetch
from tests.api import asking
from tests.examples import examples
from tests.fakes.context import NoLogCache
from tests.fakes.demo import demo_context

ADMINISTRATOR = Identity(user="admin", roles=frozenset({ADMIN}))

CHECKED = ["state", "has_been_checked", "current_attempt", "scheduled_downtime_depth"]
CHECKED += ["acknowledged"]
NUMBERS = {
    "hosts": CHECKED,
    "services": CHECKED,
    # Without those that grow with every request.
    "processinfo": ["host_checks", "service_checks", "forks", "neb_callbacks", "num_hosts"],
}
FLOATS = {
    "hosts": ["latency", "execution_time", "percent_state_change"],
    "services": ["latency", "execution_time", "percent_state_change"],
    "processinfo": ["host_checks_rate", "livechecks_rate", "neb_callbacks_rate"],
}
TIMES = {
    "hosts": ["last_check", "next_check", "last_state_change"],
    "services": ["last_check", "next_check", "last_state_change"],
    "processinfo": ["program_start", "last_log_rotation"],
}
TEXTS = {
    "processinfo": ["program_version", "livestatus_version"],
    "hosts": ["name", "alias", "address", "plugin_output", "display_name"],
    "services": ["host_name", "description", "plugin_output", "display_name", "host_alias"],
}
LISTS = {
    "hosts": [
        "groups",
        "contacts",
        "parents",
        "services",
        "contact_groups",
        "custom_variable_values",
        "custom_variable_names",
    ],
    "services": [
        "groups",
        "contacts",
        "host_groups",
        "contact_groups",
        "custom_variable_values",
        "host_custom_variable_values",
    ],
}
INTEGERS = st.one_of(
    st.integers(-1, 3), st.sampled_from([2**31 - 1, 2**31, 2**32, 2**32 + 1, -(2**32) - 1, 2**53])
)
WORDS = st.sampled_from(
    ["", "0", "1", "2", "web", "db", "host", "OK", "linux", "admin", "Disk", "PING", "ping", "http",
     "^w", "1$", "[a-z]+[0-9]", "a|b", "web01", "ü", "x{2}", "\\d", ".", " "]
)  # fmt: skip
_HOSTS = ["host-00003", "HOST-00003", "host-0001", "host-0000[0-4]", "^host-0001.$", "7$"]
_ALIASES = ["Demo host 1", "demo HOST 1", "host 1", "host 1$", "[13579]$"]
KNOWN = {
    "name": _HOSTS, "host_name": _HOSTS, "display_name": [*_HOSTS, "disk 01", "^(disk|load) "],
    "alias": _ALIASES, "host_alias": _ALIASES, "address": ["10.0.0.7", "10.0.0.1", "\\.1.$"],
    "description": ["disk 01", "Disk 01", "^(disk|load) ", "http", "0[0-2]$"],
    "plugin_output": ["CRITICAL", "critical", "^(OK|DISK)", "free space", "rta 1", "OK"],
    "groups": ["group-000", "disk", "^(disk|ping)$", "Disk", "i"], "host_groups": ["group-000"],
    "services": ["disk 01", "^http", "ping"], "contacts": ["admin", "^a"],
    "custom_variable_values": ["east", "r3", "2", ""], "custom_variable_names": ["NOTE", "RACK"],
    "host_custom_variable_values": ["east", "r3", "^r1.$", ""], "host_checks": ["0"],
    "program_version": ["demo$", "^1.5"], "contact_groups": ["admins", "^a"], "_DATACENTER": ["east", "EAST", "^e"],
    "_RACK": ["r3", "R3", "r1", "^r1.$", "r2"], "_HOSTRACK": ["r3", "R3", "r1", "^r1.$", "r2"],
    "_LEVEL": ["2", "1", "[12]", "0"],
}  # fmt: skip
"""What some of the embedded core's rows hold, whole, in part, in other case or as a pattern."""


def words(column: str) -> st.SearchStrategy[str]:
    """Any word, or one that some values of the column match."""
    known = KNOWN.get(column)
    return st.one_of(WORDS, st.sampled_from(known)) if known else WORDS


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    sites = [{"id": "a", "name": "Alpha"}, {"id": "b", "name": "Beta"}]
    size = {"hosts": 20, "services": 100}
    zone = Config().display.zone()
    with demo_context(tmp_path_factory.mktemp("core"), sites, size, zone=zone) as made:
        yield made


@st.composite
def conditions(draw: st.DrawFn, table: str) -> str:
    kinds = ["number", "float", "time", "text", "peer"]
    kinds += ["list", "variable"] if table in LISTS else []
    kind = draw(st.sampled_from(kinds))
    if kind == "number":
        op = draw(st.sampled_from(["=", "!=", ">", "<", ">=", "<="]))
        return f"{draw(st.sampled_from(NUMBERS[table]))} {op} {draw(INTEGERS)}"
    if kind == "float":
        op = draw(st.sampled_from([">", "<", ">=", "<=", "="]))
        value = draw(
            st.sampled_from(["0", "0.5", "0.15", "1", "-1", "0.1234567890123", "1m", "3.5e-1"])
        )
        return f'{draw(st.sampled_from(FLOATS[table]))} {op} "{value}"'
    if kind == "time":
        op = draw(st.sampled_from([">", "<", ">=", "<=", "="]))
        value = draw(st.sampled_from(["-1h", "now", "today", "-5m", "-2m", "+2m", "0", "-2d"]))
        return f'{draw(st.sampled_from(TIMES[table]))} {op} "{value}"'
    if kind == "variable":
        op = draw(st.sampled_from(["=", "!=", "~", "~~", ">", "!~"]))
        name = draw(st.sampled_from(["_DATACENTER", "_RACK", "_LEVEL", "_HOSTRACK", "_NOPE"]))
        return f'{name} {op} "{draw(words(name))}"'
    if kind == "peer":
        return f'peer_key = "{draw(st.sampled_from(["a", "b", "c"]))}"'
    names = TEXTS[table] if kind == "text" else LISTS[table]
    ops = ["=", "!=", "~", "!~", "~~", "!~~"] + (
        [">", "<"] if kind == "text" else [">=", "<=", "!>="]
    )
    name = draw(st.sampled_from(names))
    return f'{name} {draw(st.sampled_from(ops))} "{draw(words(name))}"'


def trees(table: str) -> st.SearchStrategy[str]:
    return st.recursive(
        conditions(table),
        lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda part: f"({part[0]} {part[1]} {part[2]})"
        ),
        max_leaves=5,
    )


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, tuple[tuple[str, str], ...]]:
    table = draw(st.sampled_from(["hosts", "services", "processinfo"]))
    pairs: list[tuple[str, str]] = []
    if draw(st.booleans()):
        pairs.append(("q", draw(trees(table))))
    numeric = NUMBERS[table] + TIMES[table] + FLOATS[table]
    plain = [*TEXTS[table], *numeric, *LISTS.get(table, [])[-2:], "peer_key", "groups"]
    shapes = ["all", "columns", "aggregate", "rows"] if table in LISTS else ["columns", "aggregate"]
    shape = draw(st.sampled_from(shapes))
    if shape == "columns":
        more = ["_RACK", "_LEVEL", "upper(alias) as u"] if table in LISTS else []
        chosen = draw(st.lists(st.sampled_from([*plain, *more]), min_size=1))
        pairs.append(("columns", ",".join(chosen)))
    elif shape == "aggregate":
        keys = draw(st.lists(st.sampled_from(plain[:-1]), max_size=2))
        numbers = st.sampled_from(numeric)
        functions = st.sampled_from(["count", "sum", "avg", "min", "max"])
        made = draw(st.lists(st.tuples(functions, numbers), min_size=1, max_size=3))
        pairs.append(("columns", ",".join([*keys, *(f"{f}({c})" for f, c in made)])))
    elif shape == "rows":
        pairs.append(("columns", "to_rows(groups) as g,count(*)"))
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from(plain[:-1]), min_size=1, max_size=2))
        pairs.append(("sort", ",".join(draw(st.sampled_from(["", "-"])) + key for key in keys)))
    if draw(st.booleans()):
        pairs.append(("limit", str(draw(st.integers(0, 12)))))
    if draw(st.booleans()):
        pairs.append(("offset", str(draw(st.integers(0, 5)))))
    if draw(st.booleans()):
        pairs.append(("backends", draw(st.sampled_from(["a", "b", "a,b"]))))
    return table, tuple(pairs)


async def answer(
    context: Context, table: str, pairs: tuple[tuple[str, str], ...], *, push: bool
) -> Any:
    request = asking.request(f"/{table}", *pairs, identity=ADMINISTRATOR)
    try:
        if push and SCHEMAS[table].merge == "logs":
            result = await ask(NoLogCache(), context, request, SCHEMAS[table])
        else:
            result = await (fetch if push else asking.fetched_whole)(
                context, request, SCHEMAS[table]
            )
    except RestError as error:
        return (error.code, error.message)
    if isinstance(result, Document):
        return result.value
    return [one.name for one in result.columns], result.rows


@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=queries())
async def test_pushed_and_local_answers_are_equal(
    context: Context, query: tuple[str, tuple[tuple[str, str], ...]]
) -> None:
    table, pairs = query
    pushed = await answer(context, table, pairs, push=True)
    assert pushed == await answer(context, table, pairs, push=False)
