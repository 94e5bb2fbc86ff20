"""Reading what cores send: headers, bodies in any pieces, everything that is wrong, and large
answers, which are kept as the core wrote them until their rows are gone through.
"""

import json

import orjson
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BrokenRowsError, ClientLeftError
from monrest.livestatus import framing
from monrest.livestatus.core_errors import LivestatusError, ProtocolError, RefusedError
from monrest.livestatus.framing import BATCH, RowParser, parse_header, parse_rows
from monrest.livestatus.inbox import StoredRows
from monrest.livestatus.pool import CoreRequest
from tests.examples import examples
from tests.fakes.livestatus import as_json, framed
from tests.fakes.threads import Reactor, own_memory

ROWS = [["h1", 0, ["a", "b"], {"X": "1"}], ["h2 ], [ \n],\n[ ü", 1.5, [], {}]]


def read(pieces, width=None, transform=None):
    reader = CoreRequest(b"", width, transform).reader()
    answer = None
    for piece in pieces:
        assert answer is None
        answer = reader.feed(piece)
    return answer


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"200           3\n", (200, 3)),
        (b"404          42\n", (404, 42)),
        (b"200 00000000003\n", (200, 3)),
        (b"200  1073741824\n", (200, 1 << 30)),
    ],
)
def test_header(header, expected):
    assert parse_header(header) == expected


@pytest.mark.parametrize(
    "header",
    [
        b"Invalid request method\n",
        b"200 3\n",
        b"200           3 ",
        b"200          -3\n",
        b"20x           3\n",
        b"200            \n",
        b"200 99999999999\n",
        b"",
        b"\xff" * 16,
    ],
)
def test_no_header(header):
    with pytest.raises(ProtocolError):
        parse_header(header)


def test_text_instead_of_a_header_is_the_message():
    with pytest.raises(ProtocolError, match="no header but 'Invalid request method'"):
        parse_header(b"Invalid request method\nand more")


def test_not_complete_yet():
    reader = CoreRequest(b"").reader()
    assert not reader.started
    assert reader.feed(b"2") is None
    assert reader.started
    assert reader.feed(b"00           5\n[[1]") is None
    assert reader.feed(b"]") == [[1]]


def test_more_bytes_than_announced_spoil_the_connection():
    reader = CoreRequest(b"").reader()
    assert reader.feed(framed(b"[[1]]\n") + b"x") == [[1]]
    assert reader.surplus
    with pytest.raises(ProtocolError, match="not valid JSON"):
        read([framed(as_json(ROWS), length=10)])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[[1]", "ends too early"),
        (b'[["abc', "ends too early"),
        (b'[["h1",0],\n["h2",oops]]\n', "not valid JSON near byte"),
        (b"[[1]] nonsense", "behind the last row"),
        (b"", "no body"),
        (b"{}", "not a list"),
        (b"[1]", "a row is not a list"),
        (b'["ab"]', "a row is not a list"),
        (b'[{"a":1,"b":2}]', "a row is not a list"),
        (b"[[1,2],[1]]", "1 columns instead of 2"),
        (b"[[1,2,3]]", "3 columns instead of 2"),
        (b"[" * 100_000, "lists nested too deeply"),
    ],
)
def test_broken_bodies(body, words):
    with pytest.raises(ProtocolError, match=words) as caught:
        parse_rows(body, 2)
    assert caught.value.reason.startswith("protocol error: ")
    with pytest.raises(ProtocolError):
        read([framed(body)[:20], framed(body)[20:]], 2)


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b'[["M\xfcnchen","ok"]]', [["M\ufffdnchen", "ok"]]),
        (b'[["a\tb\x01\nc"]]', [["a\tb\x01\nc"]]),
        (b'[[nan,-nan,inf,-inf,"nan,inf",1.5]]', [[None, None, None, None, "nan,inf", 1.5]]),
        (b'[["a\\"nan\\"",nan]]', [['a"nan"', None]]),
        (b'[["\\ud83d"]]', [["\ufffd"]]),
        (b'[[{"\\udc00":["\\ud83d"]}]]', [[{"\ufffd": ["\ufffd"]}]]),
        (b'[["\\ud83d\\ude00"]]', [["\U0001f600"]]),
        (b'[["\xff\\ud83d\x02",inf]]', [["\ufffd\ufffd\x02", None]]),
        (b"[[NaN,Infinity]]", [[None, None]]),
    ],
)
def test_what_cores_print_against_the_rules_stays_readable(body, rows):
    assert parse_rows(body) == rows
    for row in rows:
        orjson.dumps(row)
    filler = [["x" * 100] for _ in range(2000)]
    text = b"[" + b",\n".join([orjson.dumps(f) for f in filler] + [body[1:-1]]) + b"]"
    assert read([framed(text)[i : i + 5000] for i in range(0, len(text) + 16, 5000)]) == (
        filler + rows
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["], [", "],\n[", '"', "\\", "]]", "[["]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.lists(json_values, min_size=3, max_size=3), max_size=12),
    st.sampled_from([(",\n", ","), (", ", ","), (", ", ", "), (",\n", ", "), (",", ",")]),
    st.lists(st.integers(1, 60), min_size=1),
    st.integers(1, 80),
)
def test_any_rows_in_any_pieces_and_batches(rows, separators, sizes, batch):
    between, inside = separators
    text = "[" + between.join(json.dumps(row, separators=(inside, ":")) for row in rows) + "]\n"
    data = framed(text.encode())
    before, framing.BATCH = framing.BATCH, batch
    try:
        pieces, at = [], 0
        while at < len(data):
            pieces.append(data[at : at + sizes[len(pieces) % len(sizes)]])
            at += len(pieces[-1])
        assert read(pieces, 3) == rows
    finally:
        framing.BATCH = before


@pytest.mark.parametrize("between", [",\n", ", "])
def test_no_slice_is_big(between, monkeypatch):
    rows = [[f"h{n}", n, ["a", "b"], ["c ], [", "d"], "x" * 200] for n in range(5000)]
    text = "[" + between.join(map(json.dumps, rows)) + "]\n"
    sizes = []
    real = orjson.loads

    def loads(body):
        sizes.append(len(body))
        return real(body)

    monkeypatch.setattr(framing.orjson, "loads", loads)
    data = framed(text.encode())
    assert read([data[i : i + 65536] for i in range(0, len(data), 65536)], 5) == rows
    assert len(data) > 1_000_000
    assert max(sizes) <= 256 * 1024
    sizes.clear()
    assert read([data[:1000], data[1000:]], 5) == rows  # also when it comes in one piece
    assert max(sizes) <= 256 * 1024


def test_one_huge_row_is_read_all_the_same():
    row = ["h", [[f"host{n}", f"service ], [ {n}"] for n in range(8000)]]
    data = framed((json.dumps([row, row], separators=(", ", ":"))).encode())
    assert read([data[i : i + 65536] for i in range(0, len(data), 65536)], 2) == [row, row]


def test_endless_row_is_refused():
    parser = RowParser()
    parser.feed(b'[["')
    with pytest.raises(ProtocolError, match="16 MiB"):
        parser.feed(b"x" * (40 << 20))


def test_hostile_quotes_take_linear_time():
    # Quadratic work on this would take minutes.
    with pytest.raises(ProtocolError):
        parse_rows(b'[["' + b'\\"' * 2_000_000)


def test_transform_is_applied_to_each_slice():
    calls = []

    def double(rows):
        calls.append(len(rows))
        return [[value * 2 for value in row] for row in rows]

    rows = [[n, "x" * 50] for n in range(5000)]
    data = framed(as_json(rows))
    answer = read([data[i : i + 9000] for i in range(0, len(data), 9000)], 2, double)
    assert answer == [[n * 2, "x" * 100] for n in range(5000)]
    assert len(calls) > 3
    assert sum(calls) == 5000


def test_wrong_width_is_found_while_the_body_still_comes():
    rows = [[1, 2, "x" * 100]] * 2000
    data = framed(as_json(rows))
    reader = CoreRequest(b"", 4).reader()
    with pytest.raises(ProtocolError, match="3 columns instead of 4"):
        reader.feed(data[: BATCH + 5000])


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_refusal_shows_the_first_line_only(size):
    stack = b"Error: Column 'x' does not exist.\n\nStacktrace:\n 0# /usr/lib/icinga2\n" * 50
    data = framed(stack, 452)
    reader = CoreRequest(b"").reader()
    with pytest.raises(RefusedError) as caught:
        [reader.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert caught.value.reason == "452: Error: Column 'x' does not exist."
    assert caught.value.status == 452


def test_refusal_without_a_newline_or_a_text():
    with pytest.raises(RefusedError) as caught:
        read([framed(b"Table 'x' does not exist.", 404)])
    assert caught.value.reason == "404: Table 'x' does not exist."
    with pytest.raises(RefusedError, match="413"):
        read([framed(b"", 413)])


def test_control_characters_of_a_message_do_not_reach_the_user():
    with pytest.raises(RefusedError) as caught:
        read([framed(b"bad \x1b[31mthing\x00" + b"x" * 500 + b"\n", 400)])
    assert caught.value.reason.isprintable()
    assert len(caught.value.reason) < 220


def test_short_text_without_header():
    with pytest.raises(ProtocolError, match="no header but 'oops'"):
        read([b"oo", b"ps\n"])
    reader = CoreRequest(b"").reader()
    assert reader.feed(b"oops") is None
    assert "oops" in str(reader.lost())
    assert CoreRequest(b"").reader().lost() is None


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"200          20\n"]))
def test_garbage_never_does_anything_but_fail(garbage, head):
    reader = CoreRequest(b"", 2).reader()
    reason = ""
    try:
        answer = reader.feed(head + garbage)
    except LivestatusError as error:
        answer, reason = None, error.reason
    assert reason.isprintable()
    assert answer is None or isinstance(answer, list)


PAIRS = st.text() | st.integers() | st.lists(st.text(), max_size=3) | st.just("],\n[")


@pytest.fixture
def inbox():
    memory = own_memory(Reactor())
    memory.free = 100
    made = memory.inbox()
    yield made
    made.let_go()
    assert (memory.files.stored, memory.room.held) == (0, 0)


def stored_by(stored, data, size=37, **how):
    reader = evolve(CoreRequest(b"", **how), stored=stored).reader()
    rows = None
    for start in range(0, len(data), size):
        rows = reader.feed(data[start : start + size])
    return rows


def through(stored):
    return [row for batch in stored.batches() for row in batch]


def tagged(rows):
    return [[*row, "tag"] for row in rows]


@settings(deadline=None)
@given(st.lists(st.lists(PAIRS, min_size=2, max_size=2), max_size=40), st.integers(20, 200))
def test_stored_rows_are_the_same(rows, size):
    memory = own_memory(Reactor())
    memory.free = 0
    inbox = memory.inbox()
    body = as_json(rows)
    both = [StoredRows(inbox, site) for site in "ab"]
    for stored in both:
        assert stored_by(stored, framed(body), size, transform=tagged) == []
    for _ in range(2):
        assert [through(stored) for stored in both] == [tagged(parse_rows(body))] * 2
    inbox.let_go()
    assert memory.files.stored == 0


def test_many_rows_come_in_batches(inbox):
    rows = [[f"row {at} {'x' * 60}", at] for at in range(10_000)]
    stored = StoredRows(inbox, "a")
    stored_by(stored, framed(as_json(rows)), 65536)
    batches = list(stored.batches())
    assert [row for batch in batches for row in batch] == rows
    assert len(batches) > inbox.size // BATCH // 2


def test_what_is_small_becomes_rows_as_long_as_there_is_room(inbox):
    body = framed(as_json([["a", 1], ["b", 2]]))
    sites = [StoredRows(inbox, at) for at in range(10)]
    found = [stored_by(one, body, len(body)) for one in sites]
    few = sum(bool(one) for one in found)
    assert 1 < few < 10
    assert found == [[["a", 1], ["b", 2]]] * few + [[]] * (10 - few)
    assert [through(one) for one in sites] == [[]] * few + found[:1] * (10 - few)


def test_a_second_answer_takes_the_place_of_the_first(inbox):
    stored = StoredRows(inbox, "a")
    for word in ("old", "new"):
        rows = [[word, at] for at in range(60)]
        stored_by(stored, framed(as_json(rows)))
    assert through(stored) == rows
    assert stored_by(stored, framed(as_json([["one", 1]]))) == [["one", 1]]
    assert (stored.size, through(stored)) == (0, [])


def test_nonsense_is_an_error_of_its_site(inbox):
    rows = [["row", at] for at in range(50)]
    broken = as_json(rows)[:-40] + b"?" + as_json(rows)[-39:]
    stored = StoredRows(inbox, "a")
    for data, width, words in ((broken, 2, "JSON"), (as_json(rows), 3, "2 columns instead of 3")):
        stored_by(stored, framed(data), width=width)
        with pytest.raises(BrokenRowsError) as caught:
            through(stored)
        assert caught.value.site == "a"
        assert isinstance(caught.value.error, ProtocolError)
        assert words in caught.value.error.reason


def test_who_has_left_reads_no_more(inbox):
    stored = StoredRows(inbox, "a")
    stored_by(stored, framed(as_json([["row", at] for at in range(50)])))
    batches = stored.batches()
    inbox.let_go()
    with pytest.raises(ClientLeftError):
        next(batches)


def test_what_a_thread_works_on_stays_until_it_has_ended(inbox):
    stored = StoredRows(inbox, "a")
    stored_by(stored, framed(as_json([["row", at] for at in range(50)])))
    inbox.begin_work()
    inbox.let_go()
    assert len(through(stored)) == 50
    inbox.end_work()
    assert inbox.memory.files.stored == 0
