"""Push-down never changes an answer: every documented column, each operator, with values it has.

Each condition is asked twice over the same core, pushed down as the planner allows and evaluated
here over whole tables. ``make test-core`` does this on the core of the command line, with the
columns that are joined from other tables as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
from pytest_twisted import blockon
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from monrest.api.endpoint import Context
from monrest.base.errors import RestError
from monrest.base.values import ADMIN, Document, Identity, RestRequest
from monrest.config import Config, LmdConfig, SiteConfig
from monrest.demo.service import DemoCore
from monrest.logs.ask import ask
from monrest.query.column_names import CoreColumn, TableSchema
from monrest.rows.columns import SCHEMAS
from monrest.rows.fetch import fetch
from monrest.sites.registry import Registry
from tests.api.asking import fetched_whole
from tests.examples import some
from tests.fakes.clocks import Wall
from tests.fakes.context import NoLogCache, make_context
from tests.fakes.given_lmd import lmd_sites
from tests.fakes.standstill import Standstill
from tests.fakes.threads import threaded_memory

ADMINISTRATOR = Identity(user="admin", roles=frozenset({ADMIN}))
CORE = os.environ.get("MONREST_CORE", "")
TEXT_OPERATORS = ("=", "!=", "~", "!~", "~~", "!~~", ">", "<=")
NUMBER_OPERATORS = ("=", "!=", ">", "<", ">=", "<=")
LIST_OPERATORS = ("=", "!=", ">=", "<=", "~", "!~~")
Pairs: TypeAlias = tuple[tuple[str, str], ...]
JOINED = ("host_", "service_", "current_")
KEYS = {"services": "host_name,description", "logs": "time,lineno", "comments": "id",
        "downtimes": "id", "processinfo": "program_start"}  # fmt: skip


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    folder = tmp_path_factory.mktemp("core")
    standstill = Standstill()
    core = DemoCore(standstill, Wall(standstill), str(folder / "live"), seed=7, history_days=0)
    lmd = LmdConfig(address=CORE) if CORE and lmd_sites(CORE) else None
    sites = [SiteConfig(id="a", name="A", address=CORE or f"unix:{folder / 'live'}")]
    memory = threaded_memory(reactor)
    registry = Registry(reactor, () if lmd else sites, lmd=lmd, memory=memory)
    core.startService()
    registry.startService()
    blockon(Deferred.fromCoroutine(registry.settled()))
    yield make_context(standstill, sites=registry, zone=Config().display.zone())
    blockon(registry.stopService())
    blockon(core.stopService())


async def rows(context: Context, schema: TableSchema, *pairs: tuple[str, str], push: bool) -> Any:
    request = RestRequest(
        method="GET", path=f"/{schema.name}", segments=(schema.name,), parameters=pairs,
        identity=ADMINISTRATOR,
    )  # fmt: skip
    try:
        if push and schema.merge == "logs":
            result = await ask(NoLogCache(), context, request, schema)
        else:
            result = await (fetch if push else fetched_whole)(context, request, schema)
    except RestError as error:
        return (error.code, error.message, error.description)
    assert not isinstance(result, Document)
    return result.rows


async def both_ways(context: Context, schema: TableSchema, pairs: Pairs) -> tuple[Any, Any]:
    pushed = await rows(context, schema, *pairs, push=True)
    return pushed, await rows(context, schema, *pairs, push=False)


def columns(schema: TableSchema) -> Iterator[tuple[str, str]]:
    for name, spec in schema.columns.items():
        if not isinstance(spec, CoreColumn):
            continue
        if CORE or not name.startswith(JOINED) or name in ("host_name", "service_description"):
            yield name, spec.core_type


def operands(values: list[Any], core_type: str) -> list[tuple[str, str]]:
    """Operators with values that the column has, and with some that it has not."""
    found: dict[str, None] = {}
    for value in values:
        members = value if isinstance(value, list) else [value]
        found.update({str(one): None for one in members if isinstance(one, str | int | float)})
    texts = [text for text in found if text.isprintable()][: 4 if CORE else 1]
    if core_type in ("int", "time", "float"):
        return [(op, text) for op in NUMBER_OPERATORS for text in [*texts, "0", "4294967296"]]
    if core_type == "list":
        return [(op, text) for op in LIST_OPERATORS for text in [*texts, "zzz", ""]]
    if core_type == "string":
        return [
            (op, text)
            for op in TEXT_OPERATORS
            for text in [*texts, *[one.swapcase() for one in texts[:1]], "^.", ""]
        ]
    return []


@pytest.mark.parametrize("name", SCHEMAS)
async def test_each_column_by_each_operator(context: Context, name: str) -> None:
    schema = SCHEMAS[name]
    key = KEYS.get(name, "name")
    window = (("time[gt]", "-2d"), ("limit", "0")) if name == "logs" else ()
    window += (("time[lt]", "-1m"),) if name == "logs" else ()
    different: list[str] = []
    for column, core_type in columns(schema):
        found = await rows(context, schema, ("columns", column), *window, push=False)
        tried = operands([row[0] for row in found], core_type)
        for op, text in tried if CORE else some(tried, seed=column):
            pairs = (("columns", key), (f"{column}[{op}]", text), *window)
            pushed, local = await both_ways(context, schema, pairs)
            # A core that works may have changed meanwhile: what differs differs again.
            if pushed != local and await both_ways(context, schema, pairs) == (pushed, local):
                different.append(f"{column} {op} {text!r}: {pushed!r:.200} is not {local!r:.200}")
    assert different == [], "\n".join(different)
