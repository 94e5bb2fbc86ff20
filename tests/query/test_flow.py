"""Rows that are made one by one and rows through all stages are the same rows."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import Capabilities, Rows
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames, CoreColumn, DerivedColumn
from monrest.query.flow import SitePart, flow, straight
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.parse import parse_query
from monrest.query.plan import layout, plan
from monrest.query.stages import finish
from monrest.rows.columns.checkable_columns import HOSTS, SERVICES
from tests.query.pipeline import EVERYBODY, NO_CONTACT, NOW

CONSTANTS = {
    "peer_key": "s1", "peer_name": "S1", "peer_section": "Default", "program_start": 77,
    "peer_addr": "unix:/x", "now": int(NOW),
}  # fmt: skip
WORDS = st.sampled_from(["", "a!b", "x=1;2;3", "WORKER"])
OF_TYPE = {
    "string": WORDS,
    "int": st.integers(0, 3),
    "time": st.integers(0, 100),
    "float": st.sampled_from([0.0, 1.5]),
    "list": st.lists(WORDS | st.tuples(st.integers(), WORDS, WORDS).map(list), max_size=2),
    "dict": st.dictionaries(st.sampled_from(["WORKER", "Secret", "x"]), WORDS, max_size=3),
}


def copied(rows: list[Any]) -> list[Any]:
    return [[*row] for row in rows]


class InBatches:
    def __init__(self, rows: list[Any]):
        self.rows = rows

    def batches(self):
        yield from ([[*row]] for row in self.rows)


@given(
    st.sampled_from([HOSTS, SERVICES]),
    st.sampled_from([EVERYBODY, NO_CONTACT]),
    st.sampled_from(
        ["", "", "columns=state,peer_key,groups", "columns=peer_name", "offset=1&limit=2"]
    ),
    st.data(),
)
def test_the_same_rows_on_every_way(schema: Any, view: Any, params: str, data: st.DataObject):
    core_columns = [one for one in schema.columns.values() if isinstance(one, CoreColumn)]
    missing = data.draw(st.sets(st.sampled_from([one.name for one in core_columns]), max_size=4))
    missing -= {*schema.order}
    known = {one.name: one.core_type for one in core_columns if one.name not in missing}
    core = Capabilities(kind="naemon", tables={schema.table: known}, key="any")
    pairs = tuple(tuple(part.split("=")) for part in params.split("&") if part)
    bound = bind(parse_query(pairs), ColumnNames(schema, {}), view, Moment(NOW, ZoneInfo("UTC")))
    shape = layout(bound, [core])
    made = plan(bound, shape, core)
    assert made is not None
    row = st.tuples(*(OF_TYPE[kind] for _, kind in shape.columns)).map(list)
    rows = data.draw(st.lists(row, max_size=4))
    for at, (name, _) in enumerate(shape.columns):
        for number, one in enumerate(rows):
            one[at] = f"n{number}" if name in schema.order else one[at]

    def part() -> SitePart:
        return SitePart(plan=made, rows=copied(rows), constants=CONSTANTS)

    with Limit() as limit:
        staged = finish(bound, shape, [part()], limit)
    recipe = straight(bound, shape)
    assert isinstance(staged, Rows)
    assert recipe is not None
    few = list(flow(bound, recipe, [part()]))
    stored = SitePart(plan=made, rows=[], constants=CONSTANTS, stored=InBatches(rows))
    assert recipe.columns == staged.columns
    assert list(flow(bound, recipe, [stored])) == few == staged.rows
    names = [one.name for one in staged.columns]
    if not params:
        assert names == sorted(names)
    for found, values in zip(few, rows, strict=True) if not params else ():
        own = dict(zip(names, found, strict=True))
        given_ = dict(zip((name for name, _ in shape.columns), values, strict=True))
        for name, spec in schema.columns.items():
            if isinstance(spec, DerivedColumn) and name in own:
                sources = {**CONSTANTS, **given_}
                assert own[name] == spec.compute(*(sources[one] for one in spec.sources))
            elif name in own and not view.masks(name):
                assert own[name] == given_[name]
        assert {one: own[one] for one in CONSTANTS if one in own} == {
            one: CONSTANTS[one] for one in CONSTANTS if one in own
        }
    more = staged.expand, recipe.expand
    for expand in more:
        assert (expand is None) == (more[0] is None)
        for one in few if expand is not None and more[0] is not None else ():
            assert expand(one) == more[0](one)
