"""An Alertmanager is told states again and again, so that none is left firing on either side."""

import json
from datetime import datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from monrest.webhooks.alerting import after_look, alert_of
from tests.fakes.store import migrated_sqlite_url
from tests.webhooks.world import DEAD, NOW, TAKEN, World, event


@pytest.fixture
def world(tmp_path):
    """With a daemon that tells an Alertmanager."""
    one = World(migrated_sqlite_url(tmp_path))
    one.add(body="alertmanager", url="http://alerts.example.org/api/v2/alerts")
    one.join("one")
    one.pass_(5)
    yield one
    one.close()


def told(world, since=0):
    """What the Alertmanager knows: (service, severity, firing) by what it was told last."""
    known = {}
    for post in world.receiver.posts[since:]:
        for one in json.loads(post.body):
            labels = one["labels"]
            ends = datetime.fromisoformat(one["endsAt"]).timestamp()
            known[labels.get("service", ""), labels["severity"]] = ends > NOW + world.elapsed
    return known


def test_labels_and_times(world):
    world.source.happen(event(1, state=1))
    (alert,) = json.loads(world.receiver.posts[-1].body)
    assert alert["labels"] == {
        "alertname": "s", "host": "h", "service": "s", "site": "a", "severity": "warning", "groups": ",web,",
    }  # fmt: skip
    assert alert["annotations"] == {"summary": "a: h/s WARNING", "description": "output 1"}
    assert alert["startsAt"] == "2023-11-14T22:13:21Z"
    ahead = datetime.fromisoformat(alert["endsAt"]).timestamp() - (NOW + world.elapsed)
    assert 239 <= ahead <= 241
    host = alert_of(event(1, service="", state=1), ()).body["labels"]
    assert host == {"alertname": "Host", "host": "h", "site": "a", "severity": "critical"}


def test_it_is_told_again_each_minute_and_when_it_ends(world):
    world.source.happen(event(1))
    assert told(world) == {("s", "critical"): True}
    before = len(world.receiver.posts)
    world.pass_(300)
    assert 4 <= len(world.receiver.posts) - before <= 6
    world.source.happen(event(310, state=0))
    assert told(world) == {("s", "critical"): False}
    after = len(world.receiver.posts)
    world.pass_(180)
    assert len(world.receiver.posts) == after


def test_another_severity_is_another_alert(world):
    world.source.happen(event(1, state=1))
    world.pass_(3)
    world.source.happen(event(2, state=2))
    assert told(world) == {("s", "warning"): False, ("s", "critical"): True}


def test_soft_states_and_other_events_are_no_alerts(world):
    world.source.happen(
        event(1, state_type="SOFT"), event(2, type="comment"), event(3, host="", service="", type="site")
    )  # fmt: skip
    assert world.receiver.posts == []
    world.source.happen(event(4))
    world.pass_(3)
    assert told(world) == {("s", "critical"): True}
    world.source.happen(event(5, state=0, state_type="SOFT"))
    world.pass_(3)
    assert told(world) == {("s", "critical"): False}


def test_nothing_stays_firing_whose_end_no_event_told(world):
    world.source.happen(event(1), event(2, service="t"), event(3, service="away", site="b"))
    world.pass_(3)
    # t is well again, the core of it tells that nobody, and nothing is known of the site b.
    world.problems.well, world.problems.silent = {"t"}, frozenset({"b"})
    since = len(world.receiver.posts)
    world.pass_(61)
    assert told(world, since) == {
        ("s", "critical"): True, ("t", "critical"): False, ("away", "critical"): True,
    }  # fmt: skip
    world.problems.well, world.problems.silent = {"t", "away"}, frozenset()
    world.pass_(61)
    assert told(world)["away", "critical"] is False


def test_after_a_kill_the_next_daemon_sends_what_is_wrong_and_the_rest_ends_by_itself(world):
    (first,) = world.daemons
    world.source.happen(event(1), event(2, service="t"))
    world.pass_(3)
    world.kill(first)
    world.source.happen(event(50, service="t", state=0), event(51, service="u", state=1))
    world.pass_(100, step=5)
    since = len(world.receiver.posts)
    world.join("two")
    world.pass_(40)
    assert told(world, since) == {("s", "critical"): True, ("u", "warning"): True}
    world.pass_(150, step=5)
    assert told(world) == {
        ("s", "critical"): True, ("t", "critical"): False, ("u", "warning"): True,
    }  # fmt: skip


def test_many_events_are_one_look(world):
    before = world.problems.looks
    for number in range(200):
        world.source.happen(event(number, service=f"s{number % 7}", state=number % 3))
        world.pass_(0.1, step=0.1)
    assert world.problems.looks - before <= 12
    world.pass_(3)
    firing = {name for (name, _), on in told(world).items() if on}
    assert firing == {f"s{n % 7}" for n in range(193, 200) if n % 3}


def test_an_alertmanager_that_was_away_is_told_everything(world):
    world.receiver.answer = DEAD
    world.source.happen(event(1), event(2, service="t"))
    world.pass_(200)
    world.source.happen(event(210, state=0))
    world.receiver.answer = TAKEN
    since = len(world.receiver.posts)
    world.pass_(61)
    assert told(world, since) == {("s", "critical"): False, ("t", "critical"): True}
    assert world.get().failures == 0
    # A restart of it: all that is firing comes within a minute.
    since = len(world.receiver.posts)
    world.pass_(61)
    assert told(world, since) == {("t", "critical"): True}


def test_many_alerts_are_told_in_pieces(world):
    world.source.happen(*(event(n, service=f"s{n}") for n in range(1, 1201)))
    world.pass_(3)
    sizes = [len(json.loads(one.body)) for one in world.receiver.posts]
    assert max(sizes) <= 500
    assert len(told(world)) == 1200
    assert all(told(world).values())


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12))
def test_whatever_comes_at_most_one_alert_of_an_object_is_firing(looks):
    known = {}
    for number, (state, silent, sent) in enumerate(looks, 1):
        problems = (
            [alert_of(event(number, state=state), [f"g{number}"])] if state and not silent else []
        )
        before = {name: one for name, one in known.items() if one.ends is None}
        known = after_look(
            {one.subject: one for one in problems}, known, frozenset("a" if silent else ""), NOW + number
        )  # fmt: skip
        firing = {name: one for name, one in known.items() if one.ends is None}
        assert list(firing) == list(before if silent else [one.subject for one in problems])
        for name in firing.keys() & before.keys():
            assert firing[name].body["labels"] == before[name].body["labels"]
        assert all(one.ends is None or one.ends >= one.starts for one in known.values())
        if sent:
            known = {name: evolve(one, sent=True) for name, one in firing.items()}
