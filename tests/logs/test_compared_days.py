"""Closed days are compared with the core's own count; a time can be imported once more."""

from __future__ import annotations

import pytest
from sqlalchemy import and_, delete, update
from twisted.logger import globalLogPublisher

from monrest.livestatus.core_errors import ConnectError, RefusedError
from monrest.logs import cache_records as records
from monrest.logs import compared_days
from monrest.logs import importer as importing
from monrest.logs.compared_days import ceil, floor
from monrest.logs.importer import Again
from monrest.store.tables import logcache_lines, logcache_sites
from tests.logs.core import DAY, NOW, LoggingCore, done, importer, stored

ALERT = "SERVICE ALERT: web;http;CRITICAL;HARD;3;down"
FIRST = floor(NOW - 5 * DAY)


@pytest.fixture
def core():
    core = LoggingCore()
    for moment in range(FIRST, NOW, 3000):
        core.write(moment, f"{ALERT} {moment}")
        core.write(moment, "EXTERNAL COMMAND: x")
    return core


@pytest.fixture
def told():
    """What was logged, one text for each line."""
    texts = []

    def observe(event):
        if event.get("log_format", "").startswith("log cache of"):
            texts.append(event["log_format"].format(**event))

    globalLogPublisher.addObserver(observe)
    yield texts
    globalLogPublisher.removeObserver(observe)


@pytest.fixture
def update_(core, database, clock):
    """A function that updates, as the daemon does regularly or ``again``."""
    one = importer(core, database, clock, first=5 * DAY)
    return lambda again=None: done(one.update(again=again))


def record(database):
    return done(database.run(records.record("a")))


def known(database):
    return done(database.run(compared_days.known(record(database).id)))


def of_day(day):
    return lambda row: day <= row["time"] < day + DAY


def test_every_closed_day_is_compared_before_it_is_covered(core, database, clock, update_):
    update_()
    closed = range(FIRST, floor(NOW), DAY)
    found = known(database)
    assert sorted(found) == list(closed)
    for day in closed:
        count = len(
            [one for one in core.rows if max(day, NOW - 5 * DAY) <= one["time"] < day + DAY]
        )
        one = found[day]
        assert (one.lines, one.missing, one.gone, one.since, one.settled) == (count, 0, 0, 1, False)
    assert record(database).sure_from == NOW - 5 * DAY
    assert stored(database) == core.told(since=NOW - 5 * DAY)
    # Each count comes before the transaction that covers its day.
    counts = [int(one.filter.items[0].value) for one in core.asked if one.stats]
    assert counts == sorted(counts, reverse=True)
    asked = len(core.asked)
    update_()
    assert not any(one.stats for one in core.asked[asked:])


def test_silent_days_are_counted_together(core, database, clock):
    """A year without lines is a question for each slice, and still every day of it is known."""
    core.rows = [one for one in core.rows if one["time"] >= floor(NOW)]
    old = floor(NOW) - 200 * DAY
    core.write(old, ALERT)
    done(importer(core, database, clock, first=365 * DAY).update())
    found = known(database)
    assert sorted(found) == list(range(floor(NOW) - 365 * DAY, floor(NOW), DAY))
    assert {day for day, one in found.items() if one.lines} == {old}
    assert {(one.missing, one.gone, one.since, one.settled) for one in found.values()} == {
        (0, 0, 1, False)
    }
    assert len([one for one in core.asked if one.stats]) < 50
    assert stored(database) == sorted(core.told())


def test_a_silent_day_that_is_not_given(core, database, clock):
    """The core counts lines among days for which it gives none: that one is doubted, no other."""
    bad = floor(NOW) - 200 * DAY
    core.rows = [one for one in core.rows if one["time"] >= floor(NOW)]
    core.write(bad, ALERT)
    core.unread = of_day(bad)
    done(importer(core, database, clock, first=365 * DAY).update())
    assert {day for day, one in known(database).items() if one.missing} == {bad}
    missing = record(database).missing
    assert (missing.first, missing.until, missing.lines) == (bad, bad + DAY, 1)


def test_a_day_closes(core, database, clock, update_):
    update_()
    clock.advance(DAY)
    core.write(NOW + DAY - 5, ALERT)
    update_()
    assert known(database)[floor(NOW)].missing == 0
    assert floor(NOW + DAY) not in known(database)


def test_a_log_that_is_given_in_part(core, database, clock, update_, told):
    bad = FIRST + 2 * DAY
    core.unread = of_day(bad)
    update_()
    lost = len([one for one in core.rows if of_day(bad)(one)])
    missing = record(database).missing
    assert (missing.first, missing.until, missing.days, missing.lines) == (bad, bad + DAY, 1, lost)
    assert record(database).sure_from == bad + DAY
    date = "2023-11-11"
    assert str(missing) == f"the core counts {lost} lines of {date} that it does not give"
    assert told == [
        f"log cache of a: {missing}; times before are read from the core, which is asked again every "
        "hour and after its next start"
    ]
    # It is asked again after an hour and not before, and says nothing new.
    asked = len(core.asked)
    clock.advance(1800)
    update_()
    assert not any(one.stats for one in core.asked[asked:])
    clock.advance(1801)
    update_()
    assert [int(one.filter.items[0].value) for one in core.asked[asked:] if one.stats] == [bad, bad]
    assert len(told) == 1
    core.unread = lambda row: False
    core.health.program_start = 2
    update_()
    assert record(database).missing is None
    assert record(database).sure_from == NOW - 5 * DAY
    assert told[1:] == ["log cache of a: it is complete again"]
    assert stored(database) == core.told(since=NOW - 5 * DAY)


def test_a_file_that_is_read_at_the_second_look(core, database, clock, update_, told):
    """The day is imported again before anybody is told."""
    bad, looks = FIRST + 2 * DAY, []

    def unread(row):
        return not looks and of_day(bad)(row)

    def before(pushed):
        if pushed.stats and int(pushed.filter.items[0].value) == bad:
            looks.append(pushed)

    core.unread, core.before = unread, before
    update_()
    assert record(database).missing is None
    assert stored(database) == core.told(since=NOW - 5 * DAY)
    assert told == []


def test_files_that_a_core_has_lost_until_its_next_start(core, database, clock, update_, told):
    """Lines and counts are missing alike, so nothing is seen until the core has read them again."""
    rows, bad = core.rows, FIRST + 2 * DAY
    core.rows = [one for one in rows if one["time"] >= bad + DAY]
    update_()
    assert record(database).covered_from == NOW - 5 * DAY
    assert record(database).missing is None
    assert len(stored(database)) < len(rows)
    core.rows, core.health.program_start = rows, 2
    update_()
    assert stored(database) == core.told(since=NOW - 5 * DAY)
    assert {one.missing for one in known(database).values()} == {0}
    assert {one.settled for one in known(database).values()} == {True}
    # What two runs of the core have told alike is settled.
    asked, core.health.program_start = len(core.asked), 3
    update_()
    assert not any(one.stats for one in core.asked[asked:])
    assert told == []


def test_what_a_core_has_lost_stays_and_is_told(core, database, clock, update_, told):
    update_()
    before = stored(database)
    bad = FIRST + DAY
    core.rows = [one for one in core.rows if one["time"] >= bad + DAY]
    core.health.program_start = 2
    update_()
    assert stored(database) == before
    assert record(database).missing is None
    gone = len([one for one in before if one[0] < bad + DAY])
    assert told == [
        f"log cache of a: the core has lost {gone} of {gone} lines of 2023-11-09 to 2023-11-10, the "
        "cache keeps them; where its archives are still there, it has them after its next start"
    ]


def test_few_days_at_a_time_are_compared_again(core, database, clock, update_, monkeypatch):
    monkeypatch.setattr(importing, "MOST_COMPARED", 2)
    update_()
    core.health.program_start = 2
    for expected in (2, 2, 1, 0):
        asked = len(core.asked)
        update_()
        assert len([one for one in core.asked[asked:] if one.stats]) == expected


def test_classes_are_compared_apart(core, database, clock, update_):
    """One line too many of another class does not stand for one that is missing."""
    update_()
    day = FIRST + 2 * DAY

    def tamper(connection):
        moment = next(one["time"] for one in core.rows if one["time"] >= day)
        chosen = and_(logcache_lines.c.time == moment, logcache_lines.c["class"] == 1)
        values = {"class": 5, "message": "another"}
        connection.execute(update(logcache_lines).where(chosen).values(values))

    done(database.change(tamper))
    core.health.program_start = 2
    update_()
    assert (known(database)[day].missing, known(database)[day].gone) == (0, 1)
    assert set(core.told(since=NOW - 5 * DAY)) < set(stored(database))


def test_a_core_that_does_not_count(core, database, clock, update_, told):
    def before(pushed):
        if pushed.stats:
            raise RefusedError(400, "no Stats here")

    core.before = before
    update_()
    assert stored(database) == core.told(since=NOW - 5 * DAY)
    assert record(database).sure_from == NOW - 5 * DAY
    assert told[0] == "log cache of a: its core does not count lines: 400: no Stats here"
    asked = len(core.asked)
    update_()
    assert not any(one.stats for one in core.asked[asked:])


def test_a_kill_within_a_day_covers_nothing_of_it(core, database, clock, monkeypatch):
    monkeypatch.setattr(importing, "FEW", 1)
    monkeypatch.setattr(importing, "MANY", 8)
    one = importer(core, database, clock, first=5 * DAY)

    def fail(pushed):
        if pushed.stats and int(pushed.filter.items[0].value) == FIRST + 2 * DAY:
            raise ConnectError("gone")

    core.before = fail
    with pytest.raises(ConnectError):
        done(one.update())
    assert record(database).covered_from == FIRST + 3 * DAY
    assert floor(min(one[0] for one in stored(database))) == FIRST + 2 * DAY
    core.before = lambda pushed: None
    done(one.update())
    assert stored(database) == core.told(since=NOW - 5 * DAY)


SPAN = {"start": FIRST + DAY + 5000, "end": FIRST + 3 * DAY + 5000}


def spoilt(database, core):
    """A cache that lacks some lines and has others that the core does not."""

    def work(connection):
        site = connection.execute(logcache_sites.select()).one().id
        # The last minutes are asked for with every update.
        mine = and_(logcache_lines.c.site == site, logcache_lines.c.time < NOW - 3600)
        connection.execute(delete(logcache_lines).where(mine, logcache_lines.c.time % 7 == 0))
        connection.execute(
            update(logcache_lines)
            .where(mine, logcache_lines.c.time % 5 == 0)
            .values(message="nobody wrote this")
        )

    done(database.change(work))


@pytest.mark.parametrize("many", [7, 20_000])
def test_replaced(core, database, clock, update_, monkeypatch, many):
    monkeypatch.setattr(importing, "MANY", many)
    monkeypatch.setattr(importing, "AT_ONCE", 5)
    update_()
    whole = stored(database)
    spoilt(database, core)
    before = stored(database)
    written = update_(Again(**SPAN, exactly=True))

    def within(lines):
        return [one for one in lines if SPAN["start"] <= one[0] < SPAN["end"]]

    def outside(lines):
        return [one for one in lines if not SPAN["start"] <= one[0] < SPAN["end"]]

    after = stored(database)
    assert within(after) == within(whole)
    # The days that the time ends in are complete again as well, because they were compared.
    touched = floor(SPAN["start"]), ceil(SPAN["end"])
    rest = [one for one in outside(after) if not touched[0] <= one[0] < touched[1]]
    assert rest == [one for one in outside(before) if not touched[0] <= one[0] < touched[1]]
    invented = len([one for one in within(before) if one[13] == "nobody wrote this"])
    assert written.removed == invented > 0
    assert len(after) == len(before) + written.added - written.removed
    assert record(database).items == len(whole) + written.added - written.removed
    assert update_(Again(**SPAN, exactly=True)) == records.LinesWritten()


def test_merged(core, database, clock, update_):
    update_()
    whole = stored(database)
    spoilt(database, core)
    written = update_(Again(**SPAN))
    assert written.removed == 0
    within = [one for one in whole if SPAN["start"] <= one[0] < SPAN["end"]]
    assert set(within) <= set(stored(database))


def test_nothing_is_removed_by_a_core_that_gives_less_than_it_counts(
    core, database, clock, update_
):
    update_()
    whole = stored(database)
    core.unread = of_day(FIRST + 2 * DAY)
    assert update_(Again(**SPAN, exactly=True)) == records.LinesWritten()
    assert stored(database) == whole


def test_further_back_than_the_first_import(core, database, clock):
    one = importer(core, database, clock, first=DAY)
    done(one.update())
    assert record(database).covered_from == NOW - DAY
    done(one.update(again=Again(start=NOW - 4 * DAY, end=NOW - 3 * DAY)))
    assert record(database).covered_from == record(database).wanted_from == NOW - 4 * DAY
    assert stored(database) == core.told(since=NOW - 4 * DAY)
    assert min(known(database)) == floor(NOW - 4 * DAY)


def test_compacted_days_stay_compacted(core, database, clock):
    for moment in range(FIRST, FIRST + DAY, 600):
        core.write(moment, "HOST ALERT: web;DOWN;HARD;1;x")
    one = importer(core, database, clock, first=5 * DAY, compact=2 * DAY)
    done(one.update())
    before = stored(database)
    assert len(before) < len(core.told(since=NOW - 5 * DAY))
    done(one.update(again=Again(start=NOW - 5 * DAY, end=NOW, exactly=True)))
    assert stored(database) == before
    assert record(database).items == len(before)
