"""JSON output: order of keys, odd values, pieces, memory."""

from __future__ import annotations

import json
import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import Column, Document, Expansion, Rows
from monrest.render.formats import JSON, RenderOptions, render
from monrest.render.json import ascii_only, dumps
from monrest.render.pieces import PIECE, gathered


def columns(*names):
    return tuple(Column(name) for name in names)


def text_of(answer, **options):
    rendered = render(answer, RenderOptions(**options))
    assert rendered.content_type == JSON
    assert rendered.disposition is None
    return b"".join(rendered.pieces).decode()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (Rows(columns=columns("name"), rows=[]), "[]\n"),
        (Rows(columns=(), rows=[[]]), "[{}]\n"),
        (Rows(columns=columns("b", "a"), rows=[[1, 2], [3, 4]]), '[{"a":2,"b":1},{"a":4,"b":3}]\n'),
        (Rows(columns=columns("a"), rows=[[5.0]]), '[{"a":5.0}]\n'),
        (Rows(columns=columns("a"), rows=[["/ü€😀\n\x01"]]), '[{"a":"/ü€😀\\n\\u0001"}]\n'),
        (Rows(columns=columns("a"), rows=[[{"Z": 1, "A": {"y": 1, "x": 2}}]]),
         '[{"a":{"A":{"x":2,"y":1},"Z":1}}]\n'),
        (Rows(columns=columns("\U00010000", "\uffff", "Z", "a", "_B"), rows=[[1, 2, 3, 4, 5]]),
         '[{"Z":3,"_B":5,"a":4,"\uffff":2,"\U00010000":1}]\n'),
        (Rows(columns=columns("a"), rows=[[math.nan], [math.inf], [-math.inf]]),
         '[{"a":null},{"a":null},{"a":null}]\n'),
        (Rows(columns=columns("a", "b"), rows=[[2**63, -(2**63)]]),
         '[{"a":9223372036854775808,"b":-9223372036854775808}]\n'),
        (Rows(columns=columns("a", "b"), rows=[[2**64, [-(2**70)]]]),
         '[{"a":18446744073709551616,"b":[-1180591620717411303424]}]\n'),
        (Rows(columns=columns("a"), rows=[[10**5000], [1]]), '[{"a":null},{"a":1}]\n'),
        (Rows(columns=columns("a"), rows=[["x\ud800y"], ["\ud83d\ude00"]]),
         '[{"a":"x\ufffdy"},{"a":"😀"}]\n'),
        (Rows(columns=columns("a"), rows=[[{"\udc00": 1}]]), '[{"a":{"\ufffd":1}}]\n'),
        (Rows(columns=columns("a", "b"), rows=[[1, 2, "hidden"]]), '[{"a":1,"b":2}]\n'),
    ],
)  # fmt: skip
def test_rows_as_compact_json(rows, expected):
    assert text_of(rows) == expected


def test_nesting_beyond_every_limit_ends_in_null():
    value: list = []
    for _ in range(1000):
        value = [value]
    text = text_of(Rows(columns=columns("a"), rows=[[value]]))
    assert "null" in text
    assert json.loads(text)[0]["a"][0][0] is not None


@pytest.mark.parametrize(
    "value",
    [{"b": [1, {"d": 1, "c": []}], "a": {}}, [], {}, [{"b": 1, "a": 2}], 5, "text", None, True],
)
def test_documents_compact_and_pretty(value):
    option = orjson.OPT_SORT_KEYS
    assert text_of(Document(value=value)) == orjson.dumps(value, option=option).decode() + "\n"
    expected = orjson.dumps(value, option=option | orjson.OPT_INDENT_2).decode() + "\n"
    assert text_of(Document(value=value), pretty=True) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 17, 300])
def test_pretty_rows_are_what_the_whole_list_would_be(count):
    rows = [[index, ["a\nb", {}]] for index in range(count)]
    whole = [{"list": row[1], "id": row[0]} for row in rows]
    expected = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2).decode()
    answer = Rows(columns=columns("id", "list"), rows=rows)
    assert text_of(answer, pretty=True) == expected + "\n"


@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        [{"b": index, "a": [index]} for index in range(5000)],
        {f"key{index}": {"b": index, "a": "x" * 50} for index in range(5000)},
        {"data": [[index] for index in range(9000)], "about": {"a": [2**70]}},
    ],
)
def test_large_documents_are_written_in_parts_that_add_up(value, pretty):
    option = orjson.OPT_SORT_KEYS | (orjson.OPT_INDENT_2 if pretty else 0)
    pieces = list(render(Document(value=value), RenderOptions(pretty=pretty)).pieces)
    assert len(pieces) > 1
    text = b"".join(pieces)
    small = 2**70
    if "about" in value:
        assert b"1180591620717411303424" in text
        value = {**value, "about": {"a": [small % 2**64]}}
        text = text.replace(str(small).encode(), str(small % 2**64).encode())
    assert text == orjson.dumps(value, option=option) + b"\n"


def test_rows_come_in_pieces_and_are_let_go_of():
    rows = [[index, "x" * 1000] for index in range(2000)]
    answer = Rows(columns=columns("id", "text"), rows=rows)
    pieces = render(answer, RenderOptions()).pieces
    assert all(len(row) == 2 for row in rows)
    first = next(pieces)
    assert rows[0] == []
    assert rows[-1] == [1999, "x" * 1000]
    rest = list(pieces)
    assert len(rows) == 2000
    assert not any(rows)
    assert max(map(len, [first, *rest])) < 2 * PIECE
    assert len(rest) > 20
    assert [row["id"] for row in json.loads(b"".join([first, *rest]))] == list(range(2000))


def test_one_long_row_does_not_swallow_its_short_neighbours():
    rows = [["x"]] * 100 + [["y" * 500_000]] + [["z"]] * 5000
    sizes = [
        len(piece)
        for piece in render(Rows(columns=columns("a"), rows=rows), RenderOptions()).pieces
    ]
    assert sorted(sizes)[-2] < 2 * PIECE


def test_gathering_joins_fragments():
    fragments = [b"a", b"b", b"c" * PIECE, b"d"]
    assert list(gathered(fragments)) == [b"ab" + b"c" * PIECE, b"d"]
    assert len(list(gathered([b"x"] * 1000))) > 3


names = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def answers(draw):
    keys = draw(st.lists(names, unique=True, max_size=5))
    rows = draw(st.lists(st.lists(values, min_size=len(keys), max_size=len(keys)), max_size=8))
    return keys, rows


@given(answers(), st.booleans())
def test_random_rows_load_back_equal_with_sorted_keys(answer, pretty):
    keys, rows = answer
    expected = [dict(zip(keys, row, strict=True)) for row in rows]
    text = text_of(Rows(columns=columns(*keys), rows=[list(row) for row in rows]), pretty=pretty)
    loaded = json.loads(text)
    assert loaded == expected
    for row in loaded:
        assert list(row) == sorted(row)


@given(values, st.booleans())
def test_random_documents_load_back_equal(value, pretty):
    assert json.loads(text_of(Document(value=value), pretty=pretty)) == value


@given(
    st.lists(names, unique=True, max_size=4),
    st.lists(
        st.tuples(st.integers(), st.dictionaries(names, st.integers(), max_size=4)), max_size=9
    ),
)
def test_random_expanded_keys_are_sorted_in_and_never_override(keys, rows):
    expected = [{**extra, **dict.fromkeys(keys, value)} for value, extra in rows]
    answer = Rows(
        columns=columns(*keys),
        rows=[[value] * len(keys) + [extra] for value, extra in rows],
        expand=lambda row: row[-1],
    )
    loaded = json.loads(text_of(answer))
    assert loaded == expected
    for row in loaded:
        assert list(row) == sorted(row)


texts = st.text(st.characters(codec="utf-8"), max_size=4)
groups = st.lists(st.tuples(texts, values), max_size=3, unique_by=lambda pair: pair[0])


@given(
    st.lists(texts, unique=True, max_size=4),
    st.lists(st.tuples(st.lists(values, max_size=4), groups, groups), max_size=20),
    st.sampled_from(["json", "ndjson", "wrapped_json"]),
    st.booleans(),
)
def test_groups_of_further_keys_are_written_as_one_mapping_is(keys, rows, wanted, pretty):
    def keys_and_values(pairs):
        return tuple(key for key, _ in pairs), [value for _, value in pairs]

    width = len(keys)
    whole = [[*(row + [None] * width)[:width], first, second] for row, first, second in rows]
    grouped = Expansion(((width, keys_and_values), (width + 1, keys_and_values)))

    def written(expand):
        answer = Rows(columns=columns(*keys), rows=[[*row] for row in whole], expand=expand)
        options = RenderOptions(format=wanted, pretty=pretty)
        return b"".join(render(answer, options).pieces)

    plain = written(lambda row: {**dict(row[-2]), **dict(row[-1])})
    assert written(grouped) == plain
    assert written(grouped.__call__) == plain
    if wanted == "json" and not pretty:
        found = [
            {**dict(row[-2]), **dict(row[-1]), **dict(zip(keys, row, strict=False))}
            for row in whole
        ]
        assert plain == dumps(found) + b"\n"


def test_rows_of_every_width_have_their_keys_in_order_and_hide_what_follows():
    for width in range(20):
        names = [f"column {at * 7 % 20}" for at in range(width)]
        rows = [[f"{row}-{at}" for at in range(width)] for row in range(30)]
        expected = orjson.dumps([dict(sorted(zip(names, row, strict=True))) for row in rows])
        longer = [[*row, "unseen"] if at % 3 else row for at, row in enumerate(rows)]
        for given_rows in (rows, longer):
            answer = Rows(columns=columns(*names), rows=list(given_rows))
            assert text_of(answer) == expected.decode() + "\n", width


def test_more_combinations_of_expanded_keys_than_are_kept():
    rows = [[number % 200] for number in range(1000)]
    answer = Rows(
        columns=columns("m"),
        rows=list(rows),
        expand=lambda row: {f"z{row[0]}": 1, f"a{row[0]}": 2},
    )
    text = text_of(answer)
    assert json.loads(text) == [{f"a{n}": 2, "m": n, f"z{n}": 1} for (n,) in rows]
    assert '{"a199":2,"m":199,"z199":1}' in text


@given(st.recursive(st.text() | st.integers(), st.lists), st.integers(1, 7))
def test_ascii_is_the_same_json(value, size):
    raw = b"".join(render(Document(value=value), RenderOptions()).pieces)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    escaped = b"".join(ascii_only(pieces))
    assert escaped.isascii()
    assert json.loads(escaped) == json.loads(raw)


def test_what_ascii_looks_like():
    assert b"".join(ascii_only(['["ü€😀\\n"]'.encode()])) == b'["\\u00fc\\u20ac\\ud83d\\ude00\\n"]'
