"""The table of events (docs/spec/events.md, "The table")."""

import pytest
from sqlalchemy import select

from monrest.events import store
from monrest.events.model import Event, Place, line_id
from monrest.store import engines
from monrest.store.tables import duties
from tests.fakes.store import migrated_sqlite_url

NOW = 1_795_400_000


@pytest.fixture
def connection(tmp_path):
    url = engines.parse(migrated_sqlite_url(tmp_path))
    with engines.writing(url, 1, 5.0).begin() as one:
        yield one


def line(second, nth=1, site="s"):
    return Event(
        time=second, type="state", subject="hosts/a", data={}, site=site, nth=nth,
        name=line_id(site, Place(second, nth)),
    )  # fmt: skip


def seen(name, time=NOW):
    return Event(time=time, type="comment", subject="hosts/a", data={}, site="s", name=name)


def add(connection, *events, now=NOW):
    store.add(events, now)(connection)


def numbers(connection):
    query = select(Event.table.c.number, Event.table.c.name).order_by(Event.table.c.number)
    return [tuple(row) for row in connection.execute(query)]


def uncovered(connection, number, *sites):
    return store.uncovered(sites or ("s",), number, NOW)(connection)


def test_what_several_processes_see_is_stored_once(connection):
    add(connection, seen("one"), seen("two"), seen("one"))
    add(connection, seen("two"), seen(None), seen(None))
    add(connection, seen("late", NOW - 50))
    stored = [(1, "one"), (2, "two"), (3, None), (4, None), (5, "late")]
    assert numbers(connection) == stored
    assert [store.before(NOW + at)(connection) for at in (-60, 0, 1)] == [0, 0, 5]


def test_a_reader_gets_what_is_behind_its_number_and_the_log_of_a_site_in_its_order(connection):
    add(connection, line(NOW, 2), seen("object"), line(NOW + 1), line(NOW + 1, site="t"))
    add(connection, line(NOW, 3), line(NOW - 5))
    assert [one.number for one in store.behind(4)(connection)] == [5, 6]
    first, second, *_ = store.behind(0)(connection)
    assert first.id == f"s@{NOW}.2"
    assert second.id == "@2", "no log has it: its number is its id"

    def log(low, place, end=9):
        return [one.number for one in store.of_log("s", low, place, end)(connection)]

    assert log(0, Place(0)) == [6, 1, 5, 3]
    assert log(0, Place(NOW, 2)) == [5, 3]
    assert log(NOW, Place(0), end=4) == [1, 3]
    assert store.number_of(f"s@{NOW}.3")(connection) == 5
    assert store.number_of("s@1.1")(connection) is None


def test_a_reader_that_was_there_when_all_was_stored_misses_nothing(connection):
    store.begin("s", NOW)(connection)
    add(connection, line(NOW + 1), line(NOW + 2))
    assert store.last(connection) == 3
    assert uncovered(connection, 1) == uncovered(connection, 3) == {}
    assert store.continued("s", NOW)(connection) == Place(NOW + 2, 1)
    assert store.continued("s", NOW + 3)(connection) is None, "that is too long ago"
    assert store.continued("other", 0)(connection) is None


def test_a_reader_from_before_a_break_misses_what_only_the_log_has(connection):
    store.begin("s", NOW)(connection)
    add(connection, line(NOW + 1), line(NOW + 2))
    store.begin("s", NOW + 900)(connection)
    assert store.last(connection) == 4, "a reader that comes now is told from those before"
    add(connection, line(NOW + 901))
    assert store.coverage(connection)["s"].since == NOW + 900
    assert uncovered(connection, 4) == uncovered(connection, 5) == {}
    assert uncovered(connection, 3) == {"s": Place(NOW + 2, 1)}
    assert uncovered(connection, 2) == {"s": Place(NOW + 1, 1)}
    assert uncovered(connection, 1) == {"s": Place(NOW)}, "nothing had happened yet"
    assert uncovered(connection, 2, "other") == {"other": Place(NOW + 1)}


def test_a_site_is_watched_while_its_watcher_has_the_duty(connection):
    store.begin("s", NOW)(connection)
    store.begin("t", NOW)(connection)
    connection.execute(duties.insert().values(name="events", run=7, number=3))
    store.note_watched("s", 3)(connection)
    store.note_watched("t", 2)(connection)
    assert store.watched("events")(connection) == {"s"}
    connection.execute(duties.update().values(run=0))
    assert store.watched("events")(connection) == set()


def test_old_events_are_removed_and_it_is_known_from_where_on_there_are_all(
    connection, monkeypatch
):
    monkeypatch.setattr(store, "_CLEANED", 10)
    store.begin("s", NOW)(connection)
    add(connection, *(line(NOW + at) for at in range(8)))
    assert store.kept(connection) == (0, 9)
    later = NOW + store.KEPT + 4
    add(connection, *(line(int(later) + at) for at in range(12)), now=later)
    first, end = store.kept(connection)
    assert (first, end) == (5, 21)
    assert numbers(connection)[0][0] == 6
    assert store.coverage(connection)["s"].since == NOW + 5
    assert uncovered(connection, 6) == {}


def test_more_events_than_are_kept_go_whatever_their_age(connection, monkeypatch):
    monkeypatch.setattr(store, "_CLEANED", 10)
    monkeypatch.setattr(store, "MOST_KEPT", 20)
    for at in range(60):
        add(connection, line(NOW + at), now=NOW + at)
    assert len(numbers(connection)) <= 31
    assert store.kept(connection)[0] + 1 == numbers(connection)[0][0]
