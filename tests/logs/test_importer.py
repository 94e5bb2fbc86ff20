"""Every line of the core once: through all that happens to clocks, files and the importer."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from monrest.livestatus.core_errors import ConnectError
from monrest.logs import cache_records as records
from monrest.logs import compaction
from monrest.logs import importer as importing
from monrest.logs.cache_records import Leases
from monrest.logs.importer import UpdateRunningError
from tests.examples import examples
from tests.fakes.store import BOTH, inline_database, migrated_sqlite_url
from tests.logs.core import DAY, NOW, LoggingCore, Prompt, done, importer, stored

ALERT = "SERVICE ALERT: web;http;CRITICAL;HARD;3;it; is: down"


@pytest.fixture
def core():
    return LoggingCore()


def record(database, site="a"):
    return done(database.run(records.record(site)))


def test_the_first_import_goes_back_as_far_as_told(core, database, clock):
    for age in (40, 31, 29, 10, 1):
        core.write(NOW - age * DAY, ALERT)
    core.write(NOW - 5, "HOST ALERT: web;DOWN;SOFT;1;gone")
    assert done(importer(core, database, clock).update()).added == 4
    assert stored(database) == core.told(since=NOW - 30 * DAY)
    known = record(database)
    assert known.covered_from == known.wanted_from == NOW - 30 * DAY
    assert (known.items, known.progress, known.owner, known.mode) == (4, 1.0, "", "")
    assert known.last_entry == known.covered_until == NOW - 5
    assert known.last_update == NOW


def test_the_room_of_lines_is_free_when_they_are_stored(core, database, clock, monkeypatch):
    """No request waits until the interpreter finds that an update is over."""
    made, runs = importing._Run, []
    monkeypatch.setattr(importing, "_Run", lambda *known: runs.append(made(*known)) or runs[-1])
    core.write(NOW - 100, ALERT)
    done(importer(core, database, clock).update())
    assert core.memory.room.held == 0
    core.before = lambda pushed: 1 / 0
    with pytest.raises(ZeroDivisionError):
        done(importer(core, database, clock).update())
    assert core.memory.room.held == 0
    assert len(runs) == 2


@BOTH
def test_all_that_happens_to_logs(core, database, clock):
    one = importer(core, database, clock)
    core.write(NOW - 100, ALERT)
    core.write(NOW - 100, "another line of the same second")
    core.write(NOW - 100, ALERT)
    assert done(one.update()).added == 3
    assert done(one.update()).added == 0
    core.write(NOW - 100, ALERT)  # a third time, in the same second
    core.write(NOW - 350, "late by some minutes")
    assert done(one.update()).added == 2
    core.rotate(NOW - 50)
    core.write(NOW - 50, ALERT)
    assert done(one.update()).added == 3
    core.write(NOW + 7200, "the clock of the core was two hours ahead")
    assert done(one.update()).added == 1
    core.write(NOW - 20, "and is right again")
    assert done(one.update()).added == 1
    clock.advance(9 * DAY)
    for age in range(9 * 24):
        core.write(NOW + 9 * DAY - age * 3600, f"while nobody looked {age}")
    assert done(one.update()).added == 9 * 24
    assert stored(database) == core.told()
    assert record(database).items == len(core.rows)


def test_the_clock_of_a_core_goes_back(core, database, clock):
    core.write(NOW, "before")
    done(importer(core, database, clock).update())
    clock.advance(-3600)
    core.write(NOW - 3600, "after")
    core.write(NOW - 3590, "after that")
    assert done(importer(core, database, clock).update()).added == 2
    assert stored(database) == core.told()


def test_only_the_clock_of_a_core_goes_back(core, database, clock):
    core.write(NOW, "before")
    done(importer(core, database, clock).update())
    core.health.program.localtime = NOW - 3600
    core.write(NOW - 3600, "after")
    clock.advance(60)
    assert done(importer(core, database, clock).update()).added == 1
    core.health.program.localtime = NOW + 60
    core.write(NOW + 60, "right again")
    assert done(importer(core, database, clock).update()).added == 1
    assert stored(database) == core.told()


def test_numbers_of_lines_follow_the_core(core, database, clock):
    core.write(NOW - 10, ALERT)
    core.write(NOW - 10, ALERT)
    done(importer(core, database, clock).update())
    for one in core.rows:
        one["lineno"] += 5
    assert done(importer(core, database, clock).update()).added == 0
    assert stored(database) == core.told()


def test_what_a_core_has_lost_stays(core, database, clock):
    core.write(NOW - 10, ALERT)
    done(importer(core, database, clock).update())
    kept = stored(database)
    core.rows.clear()
    assert done(importer(core, database, clock).update()).added == 0
    assert stored(database) == kept


@BOTH
def test_many_lines_come_in_slices_of_their_own(core, database, clock, monkeypatch):
    monkeypatch.setattr(importing, "MANY", 20)
    monkeypatch.setattr(importing, "AT_ONCE", 7)
    for number in range(80):
        core.write(NOW - 20 * DAY + number // 3, f"a storm {number}")
    for number in range(40):
        core.write(NOW - number * 3000, f"{number}: later")
    for number in range(60):
        core.write(NOW + number * 5, f"the clock of the core is ahead {number}")
    for number in range(60):
        core.write(NOW - 100, f"all in one second {number}")
    assert done(importer(core, database, clock).update()).added == 240
    assert core.longest == 60
    assert stored(database) == core.told()
    assert max(int(one.filter.items[1].value) - int(one.filter.items[0].value)
               for one in core.asked if len(one.filter.items) > 1) <= 30 * DAY  # fmt: skip


@BOTH
def test_one_updater_at_a_time(core, database, clock):
    core.write(NOW - 10, ALERT)
    held = Deferred()
    core.before = lambda _: held
    running = Deferred.fromCoroutine(importer(core, database, clock, owner="one").update())
    with pytest.raises(UpdateRunningError):
        done(importer(core, database, clock, owner="two").update())
    # The lease is renewed while the core takes its time.
    clock.pump([5.0] * 20)
    with pytest.raises(UpdateRunningError):
        done(importer(core, database, clock, owner="two").update())
    assert record(database).owner == "one"
    core.before = lambda _: None
    held.callback(None)
    assert done(running).added == 1
    assert done(importer(core, database, clock, owner="two").update()).added == 0
    assert not clock.getDelayedCalls()


@BOTH
def test_a_dead_updater_is_followed_and_cannot_write_any_more(core, database, clock):
    core.write(NOW - 10, ALERT)
    sleeping = done(database.change(records.acquire("a", "one", "update", NOW)))
    lease = records.UpdateLease(id=sleeping.id, owner="one")
    leases = Leases(database)
    leases.gone = {sleeping.id: (sleeping.owner, sleeping.owned_until)}
    assert done(importer(core, database, clock, owner="two", leases=leases).update()).added == 1
    before = stored(database)
    for work in (records.write(lease, NOW, ()), compaction.drop(lease, NOW, (), NOW),
                 compaction.remove(lease, NOW, NOW), records.renew(lease, NOW)):  # fmt: skip
        with pytest.raises(records.LeaseLostError):
            done(database.change(work))
    assert stored(database) == before


def test_cancelled_in_the_middle(core, database, clock):
    core.before = lambda _: Deferred()
    running = Deferred.fromCoroutine(importer(core, database, clock).update())
    running.addErrback(lambda failure: None)
    running.cancel()
    assert record(database).owner == ""
    assert not clock.getDelayedCalls()


@BOTH
def test_values_that_no_database_holds(core, database, clock):
    core.write(NOW - 10, "odd \ud800 and \0 text")
    core.rows[-1].update(state=1e300, attempt=None, lineno=True, comment=None)
    assert done(importer(core, database, clock).update()).added == 1
    (line,) = stored(database)
    assert "odd ? and \ufffd text" in line[13]


@BOTH
def test_old_lines_are_removed(core, database, clock):
    for age in (300, 200, 100, 1):
        core.write(NOW - age * DAY, ALERT)
    done(importer(core, database, clock, first=400 * DAY).update())
    assert len(stored(database)) == 4
    done(importer(core, database, clock, first=400 * DAY, keep=150 * DAY).update())
    assert len(stored(database)) == 2
    known = record(database)
    assert NOW - 151 * DAY <= known.covered_from == known.wanted_from <= NOW - 150 * DAY
    assert known.items == 2
    assert known.progress == 1


@pytest.mark.parametrize("dies", [False, True])
def test_late_lines_after_a_silent_time(core, database, clock, dies):
    """Where the first import begins, the newest line is days old; lines come late after that one."""
    core.write(NOW - 5 * DAY, "the newest")
    core.write(NOW - 9 * DAY, "the oldest")
    if dies:

        def fail(pushed):
            if any(int(one.value) <= NOW - 8 * DAY for one in pushed.filter.items):
                raise ConnectError("gone")

        core.before = fail
        with suppress(ConnectError):
            done(importer(core, database, clock).update())
        core.before = lambda _: None
    done(importer(core, database, clock).update())
    assert record(database).covered_until == NOW - 5 * DAY
    core.write(NOW - 5 * DAY - 290, "late")
    done(importer(core, database, clock).update())
    assert stored(database) == core.told()


def test_late_lines_after_an_update_that_died(core, database, clock):
    """It has read hours without lines; they come late after the newest line, not after those."""
    core.write(NOW, "the newest")
    done(importer(core, database, clock).update())
    clock.advance(6 * 3600)
    asked = []

    def fail(pushed):
        asked.append(pushed)
        if len(asked) > 3:
            raise ConnectError("gone")

    core.before = fail
    with pytest.raises(ConnectError):
        done(importer(core, database, clock).update())
    core.before = lambda _: None
    core.write(NOW - 290, "late")
    done(importer(core, database, clock).update())
    assert stored(database) == core.told()


def test_an_icinga_2_is_asked_for_a_day_more(database, clock):
    """Also where what it is shows only while it is waited for."""
    core = LoggingCore(kind="icinga2")
    core.capabilities, known = None, core.capabilities

    async def verdict():
        core.capabilities = known

    core.verdict = verdict
    done(importer(core, database, clock).update())
    for pushed in core.asked:
        first, *_, last = pushed.filter.items
        assert (last.column, last.op) == ("time", ">=")
        assert int(last.value) == int(first.value) - DAY


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_lives_of_a_log(tmp_path_factory, data):
    """Lines, late lines, rotations, clock steps, pauses, and importers that die anywhere."""
    clock, core = Prompt(), LoggingCore()
    clock.advance(NOW)
    database = inline_database(clock, migrated_sqlite_url(tmp_path_factory.mktemp("db")))
    steps = st.lists(
        st.tuples(
            st.sampled_from(["line", "line", "same", "late", "rotate", "pass", "away", "update", "die", "step"]),
            st.integers(0, 290),
        ),
        max_size=25,
    )  # fmt: skip
    for what, number in data.draw(steps):
        now = int(clock.seconds())
        if what == "line":
            core.write(now, f"line {number % 3}: x")
        elif what == "same":
            core.write(now, ALERT)
            core.write(now, ALERT)
        elif what == "late":
            newest = max((one["time"] for one in core.rows), default=now)
            core.write(min(newest, now) - number, f"late {number % 3}")
        elif what == "rotate":
            core.rotate(now)
        elif what == "pass":
            clock.advance(number)
        elif what == "away":
            # All lives are shorter than what a first import fetches.
            clock.advance(number * 355)
        elif what == "step":
            # Noticed by an update before the clock has gone on for long.
            clock.advance(-number)
            done(importer(core, database, clock).update())
        elif what == "update":
            done(importer(core, database, clock).update())
        else:
            left = [number % 6]

            def fail(_, left=left):
                left[0] -= 1
                if left[0] < 0:
                    raise ConnectError("gone")

            core.before = fail
            with suppress(ConnectError):
                done(importer(core, database, clock, owner=f"dead {number}").update())
            core.before = lambda _: None
    done(importer(core, database, clock).update())
    assert stored(database) == core.told()
    database.stopService()
