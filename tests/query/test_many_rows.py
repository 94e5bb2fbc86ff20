"""Queries of many rows: their texts are bounded, and others run in between."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from monrest.base.errors import BadRequest
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames
from monrest.query.finish import finish
from monrest.query.functions import Moment
from monrest.query.parse import parse_query
from monrest.query.plan import layout, plan
from monrest.query.stages import SitePart, absent_labels, forgotten
from monrest.query.steps import Budget, Steps
from tests.query.pipeline import EVERYBODY, HOSTS, NAEMON, NOW, host, run


def many_rows(params: str, row: Mapping[str, Any], count: int) -> tuple[Any, Any, SitePart]:
    """The query bound and planned, and ``count`` rows that read like ``row``."""
    pairs = tuple((n, v) for n, _, v in (part.partition("→") for part in params.split("&")))
    bound = bind(
        parse_query(pairs), ColumnNames(HOSTS, {}), EVERYBODY, Moment(NOW, ZoneInfo("UTC"))
    )
    shape = layout(bound, [NAEMON])
    made = plan(bound, shape, NAEMON, push_down=False)
    assert made is not None
    rows = [[row[name] for name, _ in shape.columns] for _ in range(count)]
    return bound, shape, SitePart(plan=made, rows=rows, constants={})


def turns(steps: Steps[Any]) -> int:
    """How many safe points there are."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration:
            return count
        count += 1


NESTED = "{}'x'{}".format("concat(" * 19, ",".join(["", *["lower(alias))"] * 19]))


@pytest.mark.parametrize(
    "params",
    [
        "columns→concat(concat(alias,alias),alias) as a",
        f"columns→{NESTED} as a",
        "columns→" + ",".join(f"upper(alias) as a{at}" for at in range(400)),
        "columns→concat(alias,'x') as a&sort→-a",
        "columns→concat(alias,name) as a,count(*) as n",
        "columns→max(fmt('%s%s', alias, alias)) as a",
    ],
)
def test_texts_made_of_many_rows_are_bounded_in_all(
    monkeypatch: pytest.MonkeyPatch, params: str
) -> None:
    rows = {"s1": [host(f"h{at}", 0, [], [], alias="ALIAS" * 20) for at in range(60)]}
    assert run(params, rows)
    monkeypatch.setattr(Budget, "begin", partialmethod(limited, Budget.begin, 5_000))
    with pytest.raises(BadRequest, match="at most 67108864 characters in one answer"):
        run(params, rows)
    assert run("columns→concat(alias,name) as a", {"s1": rows["s1"][:20]})


def limited(self: Budget, begin: Any, left: int) -> None:
    """The same budget with less to spend."""
    self.left = min(self.left, left)
    begin(self)


def test_looking_for_a_label_in_many_rows_lets_others_run() -> None:
    bound, shape, part = many_rows("nolabel→1", host("h", 0, [], [], perf_data="a=1"), 1000)
    assert turns(absent_labels(bound, shape, [part])) >= 1000 / 25


def test_rows_with_long_lists_are_taken_apart_in_several_turns() -> None:
    row = host("h", 0, [], [f"s{at}" for at in range(600)])
    bound, shape, part = many_rows("columns→to_rows(services) as s&limit→1", row, 10)
    assert turns(finish(bound, shape, [part])) >= 10


def test_groups_that_cores_counted_are_added_in_several_turns() -> None:
    pairs = (("columns", "count(*),avg(state),name"),)
    bound = bind(
        parse_query(pairs), ColumnNames(HOSTS, {}), EVERYBODY, Moment(NOW, ZoneInfo("UTC"))
    )
    shape = layout(bound, [NAEMON])
    made = plan(bound, shape, NAEMON)
    assert made is not None
    assert made.pushed.stats
    rows: list[Any] = [[f"h{at}", 2, 3] for at in range(2000)]
    steps = finish(bound, shape, [SitePart(plan=made, rows=rows, constants={})])
    assert turns(steps) >= 2 * 2000 / 500


def test_rows_are_let_go_in_turns():
    _, _, part = many_rows("columns→name", host("h", 0, [], []), 2100)
    assert turns(forgotten([part], part.rows)) == 0
    assert len(part.rows) == 2100
    assert turns(forgotten([part], None)) > 3
    assert part.rows == []
