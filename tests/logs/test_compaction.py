"""What tells nothing new in a log, and removing that in small steps."""

from monrest.logs import cache_records as records
from monrest.logs import compaction
from monrest.logs.line import repetitions
from tests.fakes.clocks import Wall
from tests.fakes.store import BOTH
from tests.logs.core import DAY, NOW, LoggingCore, done, importer, lease_of, row, stored
from tests.table import each

DOWN = "HOST ALERT: a;DOWN;HARD;1;x"
UP = "HOST ALERT: a;UP;HARD;1;x"
BAD = "SERVICE ALERT: a;s;CRITICAL;HARD;1;x"


@each(
    ("texts", "gone"),
    [
        ([DOWN, DOWN], []),
        ([DOWN, DOWN, DOWN, DOWN], [1, 2]),
        ([DOWN, DOWN, DOWN, UP, UP, UP], [1, 4]),
        ([DOWN, "HOST ALERT: b;DOWN;HARD;1;x"], []),
        ([DOWN, "HOST ALERT: a;DOWN;SOFT;1;x", DOWN], []),
        ([DOWN, "CURRENT HOST STATE: a;UP;HARD;1;x", DOWN], []),
        ([DOWN, "CURRENT HOST STATE: a;DOWN;HARD;1;x", DOWN, DOWN], [2]),
        ([DOWN, DOWN, "CURRENT HOST STATE: a;DOWN;HARD;1;x"], [1]),
        ([DOWN, "Caught 'Terminated', shutting down...", DOWN], []),
        # The latest before a downtime, of a host also that of its services.
        ([DOWN, "HOST DOWNTIME ALERT: a;STARTED; x", DOWN, DOWN], [2]),
        ([DOWN, DOWN, "HOST DOWNTIME ALERT: a;STARTED; x", DOWN, DOWN], [3]),
        ([DOWN, DOWN, "HOST DOWNTIME ALERT: b;STARTED; x", DOWN, DOWN], [1, 3]),
        ([BAD, BAD, "HOST DOWNTIME ALERT: a;STARTED; x", BAD, BAD], [3]),
        ([BAD, BAD, "SERVICE DOWNTIME ALERT: a;s;STARTED; x", BAD, BAD], [3]),
        ([DOWN, "SERVICE ALERT: a;s;DOWN;HARD;1;x"], []),
        # The numbers of both are the same.
        (["SERVICE ALERT: a;s;WARNING;HARD;1;x", "SERVICE ALERT: a;s;PENDING;HARD;1;x"], []),
        (["SERVICE ALERT: a;s;OK;HARD;1;x;y", "SERVICE ALERT: a;s;OK;HARD;1;z;HARD;2;z",
          "SERVICE ALERT: a;s;OK;HARD;1;x"], [1]),
        (["PASSIVE HOST CHECK: a;1;x", "HOST NOTE: a;x", "Successfully shutdown... (PID=1)"], [0, 1]),
        (["HOST ALERT: a", "HOST ALERT: a"], []),
        (["HOST FLAPPING ALERT: a;STARTED; x", "HOST NOTIFICATION: ann;a;DOWN;mail;x",
          "EXTERNAL COMMAND: ADD_HOST_COMMENT;a;1;ann;x", "Warning: something"], [3]),
    ],
)  # fmt: skip
@each("named", [True, False])
def test_what_tells_nothing_new(texts, gone, named):
    lines = [row(NOW, at, text) for at, text in enumerate(texts)]
    for line in lines:
        if not named:  # as in lines of hosts of an Icinga 2
            line["host_name"] = ""
    given = [(at, one["class"], one["type"], one["message"]) for at, one in enumerate(lines)]
    assert list(repetitions(given)) == gone


@BOTH
def test_in_small_steps(database, clock, monkeypatch):
    """What was left behind by one who was killed goes the next time."""
    monkeypatch.setattr(compaction, "AT_ONCE", 10)
    core = LoggingCore()
    for at in range(NOW - 6 * DAY, NOW - 3 * DAY, 1000):
        core.write(at, DOWN)
    done(importer(core, database, clock).update())
    lease = lease_of(database, clock)
    known = done(database.run(records.record("a")))
    day = (NOW - 5 * DAY) // DAY * DAY
    doomed = done(database.run(compaction.repeated(lease.id, day, day + DAY)))
    assert len(doomed) == len([one for one in core.rows if day <= one["time"] < day + DAY]) - 2
    done(database.change(compaction.drop(lease, NOW, doomed[:10], day + DAY)))
    known = done(database.run(records.record("a")))
    assert known.compacted_until == day + DAY
    noted = done(compaction.thin(database, clock, Wall(clock), lease, known, 2 * DAY, 0))
    assert noted["last_compact"] == NOW
    days = {line[0] // DAY for line in stored(database) if line[0] >= day}
    # The first and the latest alert of each day.
    assert 2 * len(days) == len([line for line in stored(database) if line[0] >= day])
    after = done(database.run(records.record("a")))
    assert after.compacted_until == (NOW - 2 * DAY) // DAY * DAY
    assert after.items == len(stored(database))
