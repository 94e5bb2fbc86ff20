"""Where a stream goes on, and what is asked of it (docs/spec/events.md)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.events.filter import read_filter
from monrest.events.model import TYPES, Cursor, Event, Place, line_id, read_cursor
from tests.table import each

PLACES = st.builds(Place, st.integers(0, 2**50), st.integers(0, 2**40))


NUMBERS = st.none() | st.integers(0, 2**50)


@given(NUMBERS, NUMBERS, st.dictionaries(st.text(min_size=1, max_size=5), PLACES))
def test_a_cursor_is_read_as_it_was_written(number, base, places):
    cursor = Cursor(number, base, places)
    if str(cursor):
        assert read_cursor(str(cursor), "since") == cursor


def test_a_cursor_is_a_number_or_a_time_and_what_single_sites_have():
    assert read_cursor("@7", "since") == Cursor(7)
    assert read_cursor("100", "since").time == 100
    old = read_cursor("100,a@103.2,b@90,@7", "since")
    assert old == Cursor(7, 100, {"a": Place(103, 2), "b": Place(90)})
    assert old.time == 90
    assert read_cursor("@7", "since").time is None


def test_the_id_of_an_event_is_a_cursor_behind_it():
    place = Place(1700000000, 3)
    event = Event(
        number=12, site="Bärlin, 1", type="state", time=1700000000, subject="hosts/a",
        data={"state": 1}, name=line_id("Bärlin, 1", place), nth=3,
    )  # fmt: skip
    assert read_cursor(event.id, "since").places == {"Bärlin, 1": place}
    assert event.cloud_event() == {
        "specversion": "1.0",
        "id": "B%C3%A4rlin%2C%201@1700000000.3",
        "source": "/sites/B%C3%A4rlin%2C%201",
        "type": "state",
        "time": "2023-11-14T22:13:20Z",
        "subject": "hosts/a",
        "datacontenttype": "application/json",
        "data": {"state": 1},
    }


@each("text", ["", "x", "a@", "a@1.", "1,2", "a@1,5", "a@1.2.3", f"a@{2**60}", "@x"])
def test_what_is_no_cursor_is_refused_with_the_name_of_the_parameter(text):
    with pytest.raises(BadRequest, match=r"^error during request: since: expected the id"):
        read_cursor(text, "since")


def test_what_is_asked_of_a_stream_is_read():
    def shown(*pairs):
        wanted = read_filter(pairs)
        return wanted.types, len(list(wanted.on_objects()))

    assert shown() == (frozenset(TYPES), 0)
    assert shown(("types", "state, job"), ("types", "site")) == ({"state", "job", "site"}, 0)
    assert shown(("state", "2"), ("q", "host = 'a' and type ~ ALERT")) == (frozenset(TYPES), 0)
    assert shown(("host_groups[gte]", "web"), ("_LOCATION", "Berlin"))[1] == 1
    assert shown(("q", "(groups >= web or _A = 1) and (state = 2 or alias = x)"))[1] == 2
    same = (("types", "state"), ("state", "2"))
    assert hash(read_filter(same)) == hash(
        read_filter((*same, ("since", "5"), ("format", "ndjson")))
    )


@each(
    "name, value, expected",
    [
        ("types", "state,sate", "types: no such type of event: sate; expected some of state,"),
        ("offset", "5", "offset: events come as they happen, expected no offset"),
        ("sort", "host_name", "sort: events come as they happen"),
        ("lineno", "5", "lineno: an event has no lineno"),
        ("state[xx]", "5", "state[xx]: unknown operator"),
    ],
)
def test_what_no_stream_can_have_is_refused(name, value, expected):
    with pytest.raises(BadRequest) as error:
        read_filter(((name, value),))
    assert expected in error.value.description
