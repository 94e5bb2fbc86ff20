"""A core may send anything in any column: every query answers all the same, in every format."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import pytest

from monrest.base.errors import RestError
from monrest.base.values import Capabilities, Document, Rows
from monrest.query.bind import bind
from monrest.query.column_names import EMPTY, ColumnNames, CoreColumn, TableSchema, View, Visibility
from monrest.query.flow import SitePart
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.lines import Lines
from monrest.query.parse import parse_query
from monrest.query.plan import layout, plan
from monrest.query.stages import absent_labels, finish
from monrest.render.formats import RenderOptions, render
from monrest.rows.columns import SCHEMAS
from monrest.sites.normalise import normaliser
from tests.examples import some
from tests.query.pipeline import HeldRows
from tests.table import each

LIES: tuple[Any, ...] = (
    "text", "rta=1ms", "", 7, -1, 0.5, 1e300, 2**70, True, None, [], [1, "a"], [["a"], [1, 2, "b"]],
    [None], {}, {"A": "b"}, {"A": [1], "": None}, [["A", "b"], "c"],
)  # fmt: skip
NOW = 1_795_242_791
EVERYBODY = View()
ANN = View(commands=False, variables=Visibility(patterns=("A*",)), contact="text", addresses=False)


def core(schema: TableSchema, kind: Any) -> Capabilities:
    types = {
        name: one.core_type for name, one in schema.columns.items() if isinstance(one, CoreColumn)
    }
    for one in schema.columns.values():
        if not isinstance(one, CoreColumn):
            types |= {name: types.get(name, "list") for name in one.sources}
    return Capabilities(kind=kind, tables={schema.table: types}, key=kind)


def queries(schema: TableSchema) -> list[dict[str, str]]:
    """What our own code does with columns: all of them, and one of every type."""
    by_type: dict[str, str] = {}
    for name, one in schema.columns.items():
        if isinstance(one, CoreColumn):
            by_type.setdefault(one.core_type, name)
    found: list[dict[str, str]] = [{}, {"columns": ",".join(schema.columns)}, {"_A": "b"}]
    for name in by_type.values():
        found += [
            {name: "a"}, {f"{name}[ne]": "1"}, {f"{name}[regex]": "a"}, {f"{name}[gte]": "1"},
            {f"{name}[lt]": "1"}, {f"{name}[notin]": "a"}, {f"{name}[gte]": ""}, {"sort": f"-{name}"},
            {"columns": f"{name},count(*) as n"},
            {"columns": f"sum({name}) as a,avg({name}) as b,min({name}) as c,max({name}) as d"},
            {"columns": f"upper({name}) as a,concat({name},'x') as b,date({name}) as c"},
            {"columns": f"{name} * 2 as a,duration({name}) as b,s({name},'a','b') as c"},
            {"columns": f"to_rows({name}) as a"},
        ]  # fmt: skip
    return found


def answered(
    schema: TableSchema,
    parameters: Mapping[str, str],
    rows: list[list[dict[str, Any]]],
    *,
    view: View,
    kind: str,
) -> Rows | Document:
    """The answer over rows of some sites, as they would be read from a core of this kind."""
    known = core(schema, kind)
    bound = bind(
        parse_query(tuple(parameters.items())),
        ColumnNames(schema, dict(known.tables[schema.table])),
        view,
        Moment(now=NOW, zone=UTC),
    )
    shape = layout(bound, [known])
    made = plan(bound, shape, known, push_down=False)
    assert made is not None
    change = normaliser(schema.table, made.pushed.columns, known, shape.columns)
    parts = []
    for number, mine in enumerate(rows):
        read = [[row[name] for name in made.pushed.columns] for row in mine]
        constants = {
            "peer_key": f"s{number}", "peer_name": "S", "peer_section": "X", "program_start": 1,
            "peer_addr": "", "now": NOW,
        }  # fmt: skip
        parts.append(
            SitePart(plan=made, rows=change(read) if change else read, constants=constants)
        )
    absent_labels(bound, shape, parts)
    with Limit() as limit:
        if schema.merge != "logs":
            return finish(bound, shape, parts, limit)
        lines = Lines(bound, shape, len(parts), HeldRows, limit)
        sites = [lines.site() for _ in parts]
        for site, part in zip(sites, parts, strict=True):
            site.take(part)
        return lines.answer(sites)


def honest(schema: TableSchema, kind: str) -> dict[str, Any]:
    types = core(schema, kind).tables[schema.table]
    return {name: EMPTY[core_type] for name, core_type in types.items()}  # type: ignore[index]  # words of core types


FORMATS = ("json", "wrapped_json", "csv", "text", "xls")


@each("kind", ["naemon", "icinga2"])
@each("name", SCHEMAS)
def test_lies_in_every_column(name: str, kind: str) -> None:
    schema = SCHEMAS[name]
    dice = random.Random(f"{name} {kind}")
    for view in (EVERYBODY, ANN):
        plain, further = queries(schema)[:3], queries(schema)[3:]
        for parameters in [*plain, *some(further, seed=f"{name} {kind} {view}")]:
            truth = honest(schema, kind)
            lying = [{one: dice.choice(LIES) for one in truth} for _ in range(5)]
            # The same name on both sites: groups are joined.
            lying[0] = lying[0] | {"name": "same"}
            true = truth | {"name": "same"}
            try:
                answer = answered(
                    schema, parameters, [[true, *lying], [true, *lying]], view=view, kind=kind
                )
            except RestError:
                continue
            picked = dice.choice(FORMATS if len(parameters) < 1 else FORMATS[:4])
            rendered = render(answer, RenderOptions(format=picked))
            assert b"".join(rendered.pieces) or picked == "csv"


@pytest.mark.parametrize("name", SCHEMAS)
def test_one_lie_at_a_time(name: str) -> None:
    """A lie that hides behind no other one, in the answer with all columns."""
    schema = SCHEMAS[name]
    honest_row = honest(schema, "naemon")
    for column in honest_row:
        rows = []
        for at, lie in enumerate(LIES):
            # Each with a truth of the same name, on both sites: groups are joined.
            truth = honest_row | {"name": f"same{at}"}
            rows += [truth, truth | {column: lie}]
        for view in (EVERYBODY, ANN):
            answer = answered(schema, {}, [rows, rows], view=view, kind="naemon")
            assert isinstance(answer, Rows)
            for row in answer.rows:
                if answer.expand is not None:
                    answer.expand(row)
