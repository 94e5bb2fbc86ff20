"""Log lines in batches: the answer is the same however they come, and wherever they wait."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.answer_file import AnswerFiles
from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities, Document, Row, Rows
from monrest.logs.ask import RowStore
from monrest.query import lines as module
from monrest.query.bind import Bound, bind
from monrest.query.column_names import PEER_COLUMNS, ColumnNames, View
from monrest.query.flow import SitePart
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.lines import Lines
from monrest.query.parse import parse_query
from monrest.query.plan import Layout, layout, plan
from monrest.query.scalars import text_of
from monrest.rows.columns import LOGS
from tests.examples import examples
from tests.query.pipeline import NOW, HeldRows

COLUMNS = ["time", "lineno", "class", "type", "state", "host_name", "message"]
NUMBERS = {"time", "lineno", "class", "state"}
CORE = Capabilities(
    kind="naemon",
    tables={"log": {name: "int" if name in NUMBERS else "string" for name in COLUMNS}},
    key="lines",
)
TEXTS = ["", "a", "b", "A", "10", "9", "ü", "\ud800", "x;y"]
Line = dict[str, Any]


@st.composite
def logs(draw: Any) -> list[Line]:
    """Lines of one site in the order of its log."""
    times = sorted(draw(st.lists(st.integers(1000, 1010), max_size=20)))
    return [
        {
            "time": time,
            "lineno": at,
            "class": draw(st.integers(0, 3)),
            "type": draw(st.sampled_from(TEXTS)),
            "state": draw(st.sampled_from([0, 1, 2])),
            "host_name": draw(st.sampled_from(TEXTS)),
            "message": f"[{time}] {at}",
        }
        for at, time in enumerate(times)
    ]


@st.composite
def questions(draw: Any) -> tuple[tuple[str, str], ...]:
    pairs = []
    shape = draw(st.sampled_from(["all", "columns", "groups", "one"]))
    if shape == "columns":
        items = [*COLUMNS, "peer_key", "upper(type)", "state+1", "date(time)"]
        pairs.append(("columns", ",".join(draw(st.lists(st.sampled_from(items), min_size=1)))))
    elif shape == "groups":
        keys = draw(
            st.lists(st.sampled_from(["type", "state", "peer_key"]), min_size=1, max_size=2)
        )
        made = "count(*),min(time),max(lineno),sum(class),avg(class)"
        pairs.append(("columns", f"{','.join(keys)},{made}"))
    elif shape == "one":
        pairs.append(("columns", "count(*),min(time),avg(class),max(state)"))
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from([*COLUMNS, "peer_key"]), min_size=1, max_size=3))
        signs = [draw(st.sampled_from(["", "-"])) for _ in keys]
        pairs.append(("sort", ",".join(map(str.__add__, signs, keys))))
    named = [name for name in ("limit", "offset") if draw(st.booleans())]
    pairs += [(name, str(draw(st.integers(0, 25)))) for name in named]
    if draw(st.booleans()):
        pairs.append(("state[ne]", "1"))
    return tuple(pairs)


def asked(pairs: tuple[tuple[str, str], ...]) -> tuple[Bound, Layout]:
    moment = Moment(now=NOW, zone=ZoneInfo("UTC"))
    bound = bind(parse_query(pairs), ColumnNames(LOGS, {}), View(), moment)
    return bound, layout(bound, [CORE])


def answered(
    pairs: tuple[tuple[str, str], ...],
    sites: list[list[list[Line]]],
    store: Callable[[], Any] = HeldRows,
) -> Any:
    """The answer when the lines of each site come in these batches."""
    bound, shape = asked(pairs)
    made = plan(bound, shape, CORE, push_down=False)
    assert made is not None
    limit = Limit()
    whole = Lines(bound, shape, len(sites), store, limit)
    taken = []
    for number, batches in enumerate(sites):
        taken.append(whole.site())
        constants = dict.fromkeys(PEER_COLUMNS, f"s{number}")
        for batch in batches:
            # A core tells its newest lines first.
            rows: list[Row] = [[line.get(name) for name, _ in shape.columns] for line in batch]
            part = SitePart(plan=made, rows=rows[::-1], constants=constants)
            with limit:
                taken[-1].take(part)
    with limit:
        result = whole.answer(taken)
    if isinstance(result, Document):
        return result.value
    assert isinstance(result, Rows)
    names = [column.name for column in result.columns]
    return names, [row[: len(names)] for row in result.rows]


def in_batches(log: list[Line], cuts: list[int]) -> list[list[Line]]:
    """The lines in batches that do not cut a second."""
    return [
        list(some)
        for _, some in groupby(log, lambda line: sum(line["time"] >= cut for cut in cuts))
    ]


FILES = AnswerFiles(Path(tempfile.gettempdir()))

CUTS = st.lists(st.integers(1000, 1010), max_size=4)


@settings(max_examples=examples(300), deadline=None)
@given(pairs=questions(), sites=st.lists(st.tuples(logs(), CUTS), min_size=1, max_size=3))
def test_batches_make_no_difference(pairs: Any, sites: Any) -> None:
    whole = answered(pairs, [[log] for log, _ in sites])
    batches = [in_batches(log, cuts) for log, cuts in sites]
    with pytest.MonkeyPatch.context() as patch:
        for few in (20_000, 7, 0):
            patch.setattr(module, "FEW", few)
            for store in (HeldRows, lambda: RowStore(FILES, 3)):
                found = answered(pairs, batches, store)
                assert shown(found) == shown(whole)


def shown(answer: Any) -> Any:
    """An answer as it is written: halves of surrogate pairs are not."""
    if isinstance(answer, dict):
        return answer
    names, rows = answer
    return names, [[text_of(value).encode("utf-8", "replace") for value in row] for row in rows]


@settings(max_examples=examples(200), deadline=None)
@given(pairs=questions(), log=logs())
def test_the_order_of_plain_lists(pairs: Any, log: list[Line]) -> None:
    """What a simple reading of the rules gives: newest first counted, oldest first shown."""
    given_ = dict(pairs)
    if "(" in given_.get("columns", ""):
        return
    found = answered((*[p for p in pairs if p[0] != "columns"], ("columns", "message")), [[log]])[1]
    rows = [line for line in log if "state[ne]" not in given_ or line["state"] != 1]
    rows.sort(key=lambda line: (line["time"], line["lineno"]))
    limit, offset = int(given_.get("limit", 0)), int(given_.get("offset", 0))
    if "sort" in given_:
        for key in reversed(given_["sort"].split(",")):
            name = key.removeprefix("-")
            rows.sort(key=lambda line: line.get(name, "s0"), reverse=key[0] == "-")  # type: ignore[arg-type, return-value]  # one type a column
        rows = rows[offset : offset + limit if limit else None]
    else:
        rows = rows[: max(0, len(rows) - offset)]
        rows = rows[-limit:] if limit else rows
    assert found == [[line["message"]] for line in rows]


def test_pages_of_the_newest_lines() -> None:
    log = [{"time": at, "lineno": 1, "message": str(at)} for at in range(10)]

    def page(**given: int) -> list[str]:
        pairs = (("columns", "message"), *((name, str(value)) for name, value in given.items()))
        return [row[0] for row in answered(pairs, [[log]])[1]]

    assert page(limit=3) == ["7", "8", "9"]
    assert page(limit=3, offset=3) == ["4", "5", "6"]
    assert page(limit=3, offset=9) == ["0"]
    assert page(offset=8) == ["0", "1"]
    assert page(limit=3, offset=10) == []


def test_many_rows_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 10)
    log = [{"time": at, "lineno": 1, "message": str(at)} for at in range(1000)]
    stores: list[RowStore] = []

    def store() -> RowStore:
        stores.append(RowStore(FILES, 100))
        return stores[-1]

    found = answered((("columns", "message"),), [in_batches(log, [*range(0, 1000, 90)])], store)
    assert [row[0] for row in found[1]] == [str(at) for at in range(1000)]
    assert stores[0]._rows <= 100


def test_what_cannot_be_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups, and lines that are sorted by something computed; of all sites together."""
    monkeypatch.setattr(module, "MOST_GROUPS", 20)
    monkeypatch.setattr(module, "MOST_HELD", 20)

    def sites(each: int) -> list[list[list[Line]]]:
        log = [{"time": at, "lineno": 1, "message": str(at), "state": 0} for at in range(each)]
        return [in_batches(log, [3, 6])] * 2

    groups = (("columns", "message,count(*)"),)
    computed = (("columns", "time,state+1 as n"), ("sort", "n"))
    for pairs, expected in ((groups, 10), (computed, 20)):
        assert len(answered(pairs, sites(10))[1]) == expected
        with pytest.raises(BadRequest) as caught:
            answered(pairs, sites(11))
        assert "choose a shorter time" in caught.value.description
    # Plain lists, and counting with fewer groups, have no end.
    assert len(answered((("sort", "message"), ("columns", "time")), sites(100))[1]) == 200
    assert answered((("columns", "state,count(*)"),), sites(100))[1] == [[0, 200]]
    # Of each site no more rows wait than are held altogether.
    assert len(answered((("limit", "15"), ("columns", "time")), sites(100))[1]) == 15
