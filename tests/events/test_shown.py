"""What objects show, and what of it is kept (docs/spec/events.md, "Comparing objects")."""

from twisted.internet.defer import Deferred

from monrest.events.shown import ShownObjects

NOW = 1_795_400_000


class Core:
    """Answers of a core with these comments and, where it has no log, these services."""

    def __init__(self):
        self.comments, self.services, self.asked = [], [], []

    async def ask(self, pushed, _):
        self.asked.append(pushed.table)
        if pushed.stats:
            return [[len(self.comments), sum(one[-1] for one in self.comments)]]
        rows = {"comments": self.comments, "services": self.services}.get(pushed.table, [])
        return [list(row) for row in rows]


def now(work):
    found = []
    Deferred.fromCoroutine(work).addCallback(found.append)
    return found[0]


def told(seen):
    return [(one.type, one.action, one.host, one.service) for one in seen]


def comment(number, text="a text", kind=1, host="web01", service=""):
    return [host, service, NOW, kind, "olga", text, number]


def test_comments_that_come_and_go_are_told_whatever_their_ids():
    core, shown = Core(), ShownObjects("s1")
    core.comments = [comment(1)]
    first = now(shown.look_at_comments(core.ask, NOW))
    assert told(first) == [("comment", "added", "web01", "")]
    assert now(shown.look_at_comments(core.ask, NOW)) == []
    assert core.asked == ["comments"] * 3, "the comments are read when they changed"
    core.comments = [comment(7), comment(8), comment(9, kind=4, service="ping")]
    shown.forget_numbers()
    found = now(shown.look_at_comments(core.ask, NOW))
    assert told(found) == [
        ("comment", "added", "web01", ""), ("acknowledgement", "added", "web01", "ping"),
    ], "a second one with the same text is another one"  # fmt: skip
    core.comments = [comment(7), comment(10, kind=2)]
    gone = now(shown.look_at_comments(core.ask, NOW + 5))
    assert sorted(told(gone)) == [
        ("acknowledgement", "removed", "web01", "ping"), ("comment", "removed", "web01", ""),
    ]  # fmt: skip
    assert {one.time for one in gone} == {NOW + 5}
    other = ShownObjects("s1")
    core.comments = [comment(3)]
    again = now(other.look_at_comments(core.ask, NOW))
    assert [one.name for one in again] == [one.name for one in first]


def service(state, changed, hard=1, acknowledged=0, flapping=0, depth=0):
    return [
        *("web01", "ping", state, hard, 1, f"state {state}", "", changed, changed, 1),
        *(acknowledged, flapping, depth, []),
    ]


def test_states_are_told_once_and_flags_when_they_begin_and_end():
    core, shown = Core(), ShownObjects("s1")
    core.services = [service(2, NOW - 100)]
    (event,) = now(shown.look_at_all(core.ask, NOW, NOW - 3600))
    assert (event.data["state"], event.data["old_state"]) == (2, None)
    core.services = [service(2, NOW - 10)]
    assert len(now(shown.look_at_all(core.ask, NOW, NOW - 15))) == 1
    assert now(shown.look_at_all(core.ask, NOW, NOW - 15)) == []
    core.services = [service(0, NOW, flapping=1)]
    found = now(shown.look_at_all(core.ask, NOW, NOW - 15))
    assert [(one.type, one.action) for one in found] == [("state", ""), ("flapping", "started")]
    assert found[0].data["old_state"] == 2
    core.services = []
    found = now(shown.look_at_all(core.ask, NOW, NOW - 15))
    assert told(found) == [("flapping", "stopped", "web01", "ping")]
