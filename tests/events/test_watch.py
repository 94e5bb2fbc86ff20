"""What a watch tells of a Naemon whose module leaves lines out (docs/spec/events.md).

The core is one in memory: its objects change with or without a line that its module reads.
"""

import re
from types import SimpleNamespace

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from monrest.base.values import Capabilities
from monrest.events import store
from monrest.events.watch import SiteWatch
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store
from tests.fakes.store import migrated_sqlite_url

NOW = 1_795_400_000
MANY = [f"many {number}" for number in range(20)]
TABLES = {"hosts": ("name",), "services": ("host_name", "description")}


class Core:
    """A Naemon of one host. ``asked`` are the first lines and what they had."""

    capabilities = Capabilities(kind="naemon")

    def __init__(self, clock):
        self.clock, self.id = clock, "s1"
        self.start, self.lines, self.comments, self.asked, self.waiting = 7, [], [], [], []
        names = [("web01", ""), *(("web01", one) for one in ("ping", "http", "disk", *MANY))]
        self.objects = {
            key: {
                "name": key[0], "host_name": key[0], "description": key[1], "state": 0, "state_type": 1,
                "current_attempt": 1, "plugin_output": "fine", "perf_data": "a=1", "last_state_change": NOW - 900,
                "last_hard_state_change": NOW - 900, "has_been_checked": 1, "acknowledged": 0, "is_flapping": 0,
                "scheduled_downtime_depth": 0, "comments": [],
            }
            for key in names
        }  # fmt: skip

    @property
    def health(self):
        now = self.clock.seconds()
        return SimpleNamespace(
            checked=now, program=SimpleNamespace(program_start=self.start, localtime=int(now))
        )

    def verdict(self):
        return succeed(None)

    def new_pool(self, _):
        return self

    def stop(self):
        return succeed(None)

    def query(self, asked, _):
        first, *lines = asked.request.decode().strip().split("\n")
        table, found = first.removeprefix("GET "), dict(one.split(": ", 1) for one in lines)
        self.asked.append((table, lines))
        if "WaitTrigger" in found:
            done = Deferred()
            self.waiting.append(done)
            done.addTimeout(
                int(found["WaitTimeout"]) / 1000, self.clock, onTimeoutCancel=lambda *_: None
            )
            return done.addCallback(lambda _: [[self.start]])
        rows = self.rows(table, found.get("Columns", "").split(), lines)
        return succeed(rows if asked.transform is None else asked.transform(rows))

    def rows(self, table, columns, lines):
        if table == "log":
            low = int(re.search(r"time >= (\d+)", " ".join(lines))[1])
            # Those of one second come the other way round.
            kept = [one for one in reversed(self.lines) if one[0] >= low]
            rows = sorted(kept, key=lambda one: -one[0])
            return [[time, message][: len(columns)] for time, message in rows]
        if table == "comments":
            if not columns:
                return [[len(self.comments), sum(one["id"] for one in self.comments)]]
            return [[one[name] for name in columns] for one in self.comments]
        bad = "Filter: state != 0" in lines
        return [
            [one[name] for name in columns]
            for key, one in self.objects.items()
            if bool(key[1]) == (len(TABLES[table]) > 1) and (one["state"] or not bad)
        ]

    def count(self, table, word):
        return len([1 for one, lines in self.asked if one == table and word in " ".join(lines)])

    def log(self, text):
        now = int(self.clock.seconds())
        self.lines.append((now, f"[{now}] {text}"))
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            if not one.called:
                one.callback(None)

    def change(self, service, state, *, line=True, kind="HARD", output="now"):
        now, key = int(self.clock.seconds()), ("web01", service)
        self.objects[key] |= {
            "state": state, "state_type": int(kind == "HARD" or not state), "plugin_output": output,
            "last_state_change": now, "last_hard_state_change": now, "acknowledged": 0,
        }  # fmt: skip
        word = ("OK", "WARNING", "CRITICAL")[state]
        if line:
            self.log(f"SERVICE ALERT: web01;{service};{word};{kind};1;{output}")

    def comment(self, number, service, kind=1, text="a text"):
        self.comments.append(
            {
                "host_name": "web01", "service_description": service, "entry_time": int(self.clock.seconds()),
                "entry_type": kind, "author": "olga", "comment": text, "id": number,
            }
        )  # fmt: skip

    def acknowledge(self, number, service):
        self.log(f"EXTERNAL COMMAND: ACKNOWLEDGE_SVC_PROBLEM;web01;{service};1;0;0;olga;on it")
        self.objects["web01", service]["acknowledged"] = 1
        self.comment(number, service, kind=4, text="on it")


class World:
    """A watch of it: ``events`` are all that were told, whether by a line or by an object."""

    def __init__(self, folder):
        self.clock = Clock()
        self.clock.advance(NOW)
        self.core, self.events, self.number = Core(self.clock), [], 0
        self.database = Store(migrated_sqlite_url(folder), self.clock)
        self.database.startService()
        self.watch = self.made()
        self.watch.start()

    def made(self):
        return SiteWatch(
            "s1", lambda: self.core, self.clock, Wall(self.clock), self.database.change, 1, self.read
        )  # fmt: skip

    def read(self):
        """Read what is new in the table."""
        found = []
        self.database.run(store.behind(self.number)).addCallback(found.extend)
        for one in found:
            self.number = one.number
            by = "line" if one.nth else "object"
            self.events.append((by, one.type, one.host, one.service, one.data))

    def pass_(self, seconds, step=0.05):
        for _ in range(round(seconds / step)):
            self.clock.advance(step)

    def of(self, kind):
        """How and what was told of one type: source, service and state or action."""
        return [
            (by, service, data.get("action", data.get("state")))
            for by, type_, _, service, data in self.events
            if type_ == kind
        ]


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    one.pass_(35)
    yield one
    one.watch.stop()
    one.database.stopService()


def test_the_log_is_never_asked_for_while_the_core_waits(world):
    world.pass_(10)
    world.core.change("ping", 2)
    world.pass_(5)
    waits = [table for table, lines in world.core.asked if "WaitTrigger: log" in lines]
    assert set(waits) == {"status"}
    assert 30 <= len(waits) <= 60
    assert all(
        "WaitTimeout: 1000" in lines[-1]
        for _, lines in world.core.asked
        if lines[-2:-1] == ["WaitTrigger: log"]
    )


def test_a_line_is_told_at_once(world):
    world.core.change("ping", 2, kind="SOFT")
    assert world.of("state") == [("line", "ping", 2)]


def test_a_change_whose_line_is_missing_is_told_once_within_a_minute(world):
    world.core.change("ping", 2, line=False, output="torn")
    world.core.change("http", 2)
    world.pass_(65)
    assert world.of("state") == [("line", "http", 2), ("object", "ping", 2)]
    data = world.events[-1][-1]
    assert (data["old_state"], data["state_type"], data["plugin_output"], data["perf_data"]) == (
        0, "HARD", "torn", "a=1",
    )  # fmt: skip
    world.pass_(300)
    world.core.change("http", 0, line=False)
    world.core.change("ping", 1)
    world.pass_(300)
    assert world.of("state")[2:] == [("line", "ping", 1), ("object", "http", 0)]
    assert [data["old_state"] for *_, data in world.events[2:]] == [2, 2]


def test_a_problem_that_gets_hard_without_a_line_is_told(world):
    world.core.change("ping", 2, kind="SOFT")
    world.core.change("ping", 2, line=False)
    world.pass_(65)
    assert world.of("state") == [("line", "ping", 2), ("object", "ping", 2)]


def test_what_lines_tell_objects_do_not_tell_again(world):
    for number in range(150):
        world.core.change("ping", number % 3, kind="HARD" if number % 7 else "SOFT")
        world.pass_(0.7)
    assert {by for by, *_ in world.of("state")} == {"line"}
    assert len(world.of("state")) == 150


def test_soft_states_and_objects_that_are_gone_are_not_told(world):
    world.core.change("ping", 2, line=False, kind="SOFT")
    world.core.change("http", 2)
    world.core.objects["web01", "disk"] |= {"has_been_checked": 0}
    world.pass_(10)
    del world.core.objects["web01", "http"]
    world.pass_(300)
    assert world.of("state") == [("line", "http", 2)]
    asked = world.core.count("services", "last_hard_state_change")
    world.pass_(300)
    assert world.core.count("services", "last_hard_state_change") == asked


def test_missing_events_wait_for_the_database(world):
    world.database.down = True
    world.core.change("ping", 2, line=False)
    world.pass_(130)
    assert world.events == []
    world.database.down = False
    world.pass_(2)
    assert world.of("state") == [("object", "ping", 2)]


def test_lines_wait_for_the_database_and_are_read_when_it_is_back(world):
    world.database.down = True
    for number in range(5):
        world.core.change("ping", 1 + number % 2)
        world.pass_(10)
    assert world.events == []
    world.database.down = False
    world.pass_(2)
    assert world.of("state") == [("line", "ping", 1 + number % 2) for number in range(5)]
    assert [data["old_state"] for *_, data in world.events] == [0, 1, 2, 1, 2]


def test_who_watches_next_goes_on_where_the_former_one_ended(world):
    """One is killed between the line and its row; for a moment two have the duty."""
    world.core.change("ping", 2)
    world.pass_(1)
    world.watch.stop()
    world.core.change("http", 2)
    world.pass_(600)
    world.core.change("disk", 2)
    other = world.made()
    other.start()
    world.watch = world.made()
    world.watch.start()
    world.pass_(40)
    world.core.change("ping", 1)
    world.pass_(2)
    other.stop()
    lines = [("line", "ping", 2), ("line", "http", 2), ("line", "disk", 2), ("line", "ping", 1)]
    assert world.of("state") == lines


def test_what_is_long_ago_is_left_to_the_log(world):
    world.core.change("ping", 2)
    world.pass_(1)
    world.watch.stop()
    world.pass_(3700, 10)
    world.core.change("http", 2)
    world.pass_(600, 10)
    world.watch = world.made()
    world.watch.start()
    world.pass_(40)
    assert world.of("state") == [("line", "ping", 2)]
    world.core.change("disk", 2)
    assert world.of("state")[1:] == [("line", "disk", 2)]


def test_after_a_start_all_classes_are_asked_for_and_objects_are_looked_at_soon(world):
    def whole():
        return [at for at, (table, lines) in enumerate(world.core.asked)
                if table == "log" and not any("class" in one for one in lines)]  # fmt: skip

    (first,) = whole()
    assert first == min(at for at, (table, _) in enumerate(world.core.asked) if table == "log")
    world.core.change("ping", 2)
    world.pass_(30)
    # The core is started again, and its module never reads what is written meanwhile.
    world.core.start = 8
    world.core.change("ping", 0, line=False)
    world.core.log("Naemon 1.5.2 starting... (PID=1)")
    world.pass_(2)
    assert len(whole()) == 2
    world.pass_(26)
    assert world.of("state") == [("line", "ping", 2)]
    world.pass_(4)
    assert world.of("state") == [("line", "ping", 2), ("object", "ping", 0)]


def test_an_acknowledgement_that_ends_by_recovery_is_told_soon(world):
    world.core.change("ping", 2)
    world.core.acknowledge(4, "ping")
    world.pass_(5)
    world.core.change("ping", 0)
    world.core.comments.clear()
    world.pass_(3)
    assert world.of("acknowledgement") == [("line", "ping", "added"), ("object", "ping", "removed")]
    data = world.events[-1][-1]
    assert (data["author"], data["comment"]) == ("olga", "on it")
    assert world.of("comment") == []
    world.pass_(120)
    assert len(world.of("acknowledgement")) == 2


def test_an_acknowledgement_that_expires_is_told_also_when_its_comment_stays(world):
    world.core.change("ping", 2)
    world.core.acknowledge(4, "ping")
    world.pass_(100)
    world.core.objects["web01", "ping"]["acknowledged"] = 0
    world.pass_(65)
    assert world.of("acknowledgement") == [("line", "ping", "added"), ("object", "ping", "removed")]
    assert world.of("comment") == []


def test_an_acknowledgement_that_is_removed_by_command_is_told_by_its_line(world):
    world.core.change("ping", 2)
    world.core.acknowledge(4, "ping")
    world.pass_(100)
    world.core.log("EXTERNAL COMMAND: REMOVE_SVC_ACKNOWLEDGEMENT;web01;ping")
    world.core.objects["web01", "ping"]["acknowledged"] = 0
    world.pass_(130)
    assert world.of("acknowledgement") == [("line", "ping", "added"), ("line", "ping", "removed")]


def test_a_comment_that_is_removed_by_its_number_is_told_of_its_object(world):
    world.core.comment(11, "ping", text="said before")
    world.core.log("EXTERNAL COMMAND: ADD_SVC_COMMENT;web01;ping;1;olga;said before")
    world.pass_(70)
    world.core.log("EXTERNAL COMMAND: DEL_SVC_COMMENT;11")
    world.core.comments.clear()
    world.pass_(3)
    assert world.of("comment") == [("line", "ping", "added"), ("object", "ping", "removed")]
    data = world.events[-1][-1]
    assert (data["author"], data["comment"]) == ("olga", "said before")
    world.core.comment(12, "http")
    world.core.log("EXTERNAL COMMAND: ADD_SVC_COMMENT;web01;http;1;olga;a text")
    world.pass_(70)
    world.core.log("EXTERNAL COMMAND: DEL_ALL_SVC_COMMENTS;web01;http")
    world.core.comments.clear()
    world.pass_(130)
    assert world.of("comment")[2:] == [("line", "http", "added"), ("line", "http", "removed")]


def test_a_stream_of_alerts_costs_few_questions(world):
    world.core.asked.clear()
    for number in range(200):
        world.core.change(MANY[number % 20], 2 - number // 20 % 2 * 2)
        world.pass_(0.05)
    assert len(world.of("state")) >= 195
    assert world.core.count("services", "perf_data") <= 45
    assert {data["perf_data"] for *_, data in world.events} == {"a=1"}


def test_a_core_where_nothing_happens_is_asked_two_questions_a_second(world):
    world.core.asked.clear()
    world.pass_(60)
    assert len(world.core.asked) <= 130
