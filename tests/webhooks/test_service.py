"""Messages are sent in order, at least once, with an id that tells a repetition; nothing is lost."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from attrs import evolve
from standardwebhooks.webhooks import Webhook as ReferenceWebhook
from standardwebhooks.webhooks import WebhookVerificationError
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from monrest.base.errors import Forbidden
from monrest.events.followers import Gap
from monrest.webhooks import store as statements
from monrest.webhooks.delivering import AT_ONCE, MOST_TRIES, pause_after
from monrest.webhooks.model import WebhookSecret
from monrest.webhooks.posting import PostResult
from monrest.webhooks.signature import new_secret
from monrest.webhooks.store import deliveries as webhook_deliveries
from monrest.webhooks.store import webhooks
from tests.fakes.store import migrated_sqlite_url
from tests.webhooks.world import DEAD, NOW, SECRET, TAKEN, World, event


@pytest.fixture
def world(database_url):
    one = World(database_url)
    yield one
    one.close()


@pytest.fixture
def empty(tmp_path):
    """A world without webhooks and daemons."""
    one = World(migrated_sqlite_url(tmp_path))
    yield one
    one.close()


@pytest.fixture
def small(empty):
    """One with a webhook and a daemon that reads events for it."""
    empty.add()
    empty.join()
    empty.pass_(3)
    return empty


def states(world):
    return [one.phase for one in reversed(world.deliveries())]


def test_an_object_waits_for_its_own_and_for_nobody_else(small):
    """400 is about what was sent: the other object goes on, and is not held up by tries."""
    refused = PostResult(status=400, error="status 400: no")
    small.receiver.answer = lambda body: refused if b"h/bad" in body else TAKEN
    small.source.happen(
        *(event(n, service="bad" if n % 2 else "good", state=n % 3) for n in range(1, 7))
    )
    small.pass_(1)
    assert small.receiver.outputs("h/good") == [2, 4, 6]
    assert states(small) == ["waiting", "sent", "waiting", "sent", "waiting", "sent"]
    assert small.get().paused is None
    # Only the first one was tried.
    assert set(small.receiver.outputs("h/bad")) == {1}
    small.receiver.answer = TAKEN
    small.pass_(30)
    assert small.receiver.outputs("h/bad")[-3:] == [1, 3, 5]
    assert states(small) == ["sent"] * 6


def slow_one(world, answer=TAKEN):
    """Have the object ``h/slow`` wait for what is given back; all others are taken."""
    slow = world.receiver.slow = Deferred()
    world.receiver.answer = lambda body: slow if b"h/slow" in body and not slow.called else answer


def test_so_many_are_on_their_way_at_once(small):
    small.receiver.held = Deferred()
    small.source.happen(*(event(n, service=f"s{n}") for n in range(1, 31)))
    small.pass_(30)
    assert len(small.receiver.posts) == AT_ONCE
    held, small.receiver.held = small.receiver.held, None
    held.callback(None)
    small.pass_(3)
    assert len(small.receiver.posts) == 30
    assert set(states(small)) == {"sent"}


def test_a_message_that_is_never_answered_holds_nobody_up(small):
    """While others are taken it is the message and not the receiver."""
    slow_one(small)
    small.source.happen(event(1, service="slow"), event(2, service="slow", state=0))
    for n in range(3, 43):
        small.source.happen(event(n, service="fine", state=n % 3))
        small.pass_(0.05, step=0.05)
        assert small.receiver.outputs("h/fine")[-1] == n
        slow = small.receiver.slow
        slow_one(small)
        slow.callback(DEAD)
        small.pass_(4, step=2)
    # Tried less and less often.
    assert set(small.receiver.outputs("h/slow")) == {1}
    assert 4 <= len(small.receiver.outputs("h/slow")) <= 7
    assert (small.get().failures, small.get().rests, small.get().paused) == (0, 0.0, None)


def test_one_object_without_an_answer_says_nothing_about_others(small):
    small.receiver.answer = lambda body: DEAD if b"h/bad" in body else TAKEN
    small.source.happen(event(1, service="bad"), event(2, service="bad", state=0))
    small.pass_(60, step=4)
    found = small.get()
    assert found.failures == len(small.receiver.posts) > 2
    small.source.happen(event(3, service="good"))
    assert small.receiver.outputs("h/good") == [3]
    assert small.get().failures == 0
    # Two objects do: the third one waits.
    small.receiver.answer = DEAD
    small.pass_(40, step=4)
    small.source.happen(event(4, service="good"))
    before = len(small.receiver.posts)
    small.source.happen(event(5, service="third"))
    assert len(small.receiver.posts) == before
    assert small.get().rests > NOW + small.elapsed
    small.receiver.answer = TAKEN
    small.pass_(200, step=4)
    assert set(states(small)) == {"sent"}
    assert small.receiver.outputs("h/third") == [5]
    assert small.receiver.outputs("h/bad")[-2:] == [1, 2]


def test_one_object_without_an_answer_pauses_after_a_day(small):
    small.receiver.answer = DEAD
    small.source.happen(event(1), event(2))
    small.pass_(60)
    assert small.get().failures == len(small.receiver.posts) > 2
    small.change(lambda c: c.execute(webhooks.update().values(failures=MOST_TRIES - 1)))
    small.change(lambda c: c.execute(webhook_deliveries.update().values(again=0.0)))
    small.pass_(60)
    assert small.get().paused == "nothing was taken for a day: connection refused"
    assert states(small) == ["waiting", "waiting"]
    small.receiver.answer = TAKEN
    small.change(statements.resume(1))
    small.pass_(5)
    assert states(small) == ["sent", "sent"]


def test_what_is_taken_meanwhile_does_not_shorten_a_rest(small):
    """429 with Retry-After, while a message that was sent before it is taken."""
    slow_one(small, PostResult(status=429, error="status 429", rest=100.0))
    small.source.happen(event(1, service="slow"), event(2))
    small.receiver.answer = TAKEN
    small.receiver.slow.callback(TAKEN)
    small.source.happen(event(3, service="third"))
    small.pass_(98)
    assert len(small.receiver.posts) == 2
    assert states(small) == ["sent", "waiting", "waiting"]
    small.pass_(10)
    assert states(small) == ["sent", "sent", "sent"]


def test_a_changed_webhook_waits_for_what_is_on_its_way(small):
    """So that nothing comes behind what happened after it."""
    slow_one(small)
    small.source.happen(event(1, service="slow"), event(2, service="slow", state=0))
    hook = small.get()
    small.change(statements.replace(hook, {**hook.record, "name": "other"}, None, NOW))
    small.pass_(10)
    small.source.happen(event(3))
    assert len(small.receiver.posts) == 1
    small.receiver.slow.callback(TAKEN)
    small.pass_(10)
    assert small.receiver.outputs("h/slow") == [1, 2]
    assert states(small) == ["sent", "sent", "sent"]


def test_what_was_answered_while_the_database_was_away_is_noted_later(small):
    (daemon,) = small.daemons
    slow_one(small)
    small.source.happen(event(1, service="slow"))
    daemon.database.down = True
    small.receiver.slow.callback(TAKEN)
    small.pass_(3)
    daemon.database.down = False
    small.pass_(10)
    assert states(small) == ["sent"]
    assert len(small.receiver.posts) == 1


def test_growing_pauses_add_up_to_a_day():
    for spread in (0.0, 0.5, 1.0):
        pauses = [
            pause_after(tries, lambda spread=spread: spread) for tries in range(1, MOST_TRIES)
        ]
        assert 0.85 * 86400 < sum(pauses) < 1.2 * 86400
        assert pauses == sorted(pauses)
        assert (pauses[0] < 6, max(pauses) < 3961) == (True, True)


def test_a_dead_receiver_is_asked_less_and_less_with_one_message_and_then_paused(small):
    small.receiver.answer = DEAD
    small.source.happen(event(1), event(2, service="t"))
    times, seen, began = [], 0, small.elapsed
    while small.elapsed < began + 320:
        small.pass_(4, step=4)
        if len(small.receiver.posts) > seen:
            times.append(small.elapsed - began)
            seen = len(small.receiver.posts)
    pauses = [b - a for a, b in pairwise(times)]
    assert 4 <= len(pauses) <= 8
    assert all(1.4 * a < b + 4 for a, b in pairwise(pauses))
    # Two at first; one of them at a time since.
    assert len(small.receiver.posts) == len(times) + 1
    assert (small.get().failures, small.get().error) == (len(times), "connection refused")
    small.change(lambda c: c.execute(webhooks.update().values(failures=MOST_TRIES - 1, rests=0.0)))
    small.pass_(10)
    found = small.get()
    assert found.paused == "nothing was taken for a day: connection refused"
    assert states(small) == ["waiting", "waiting"]
    # Nothing is read meanwhile, and nothing of it is lost.
    small.source.happen(event(3))
    assert len(small.deliveries()) == 2
    small.receiver.answer = TAKEN
    small.change(statements.resume(1))
    small.pass_(5)
    assert states(small) == ["sent"] * 3
    assert small.get().failures == 0


def test_what_is_refused_for_a_day_pauses_too(small):
    small.receiver.answer = PostResult(status=422, error="status 422: no")
    small.source.happen(event(1))
    small.pass_(3)
    assert (states(small), small.get().failures) == (["waiting"], 0)
    almost = webhook_deliveries.update().values(attempts=MOST_TRIES - 1, again=0.0)
    small.change(lambda c: c.execute(almost))
    small.pass_(5)
    assert small.get().paused == "what is sent was refused for a day: status 422: no"
    assert states(small) == ["failed"]
    # Sent again by hand: with the same id.
    small.receiver.answer = TAKEN
    small.change(statements.repeat(1, 1))
    small.change(statements.resume(1))
    small.pass_(5)
    assert states(small) == ["sent"]
    assert len(set(small.receiver.ids)) == 1


def test_410_ends_the_subscription(small):
    small.receiver.answer = PostResult(status=410, error="status 410")
    small.source.happen(event(1))
    small.pass_(5)
    small.source.happen(event(2))
    small.pass_(60)
    found = small.get()
    assert len(small.receiver.posts) == 1
    assert found.record["enabled"] == 0
    assert found.paused == "the receiver answered 410, which ends the subscription"
    assert states(small) == []
    # Switched on again it begins with what happens then.
    small.receiver.answer = TAKEN
    record = {**found.record, "enabled": 1}
    small.change(statements.replace(found, record, None, NOW + 3))
    small.pass_(5)
    assert (small.get().paused, small.get().position) == (None, str(NOW + 3))
    assert len(small.receiver.posts) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_who_wants_to_rest_rests(small, status):
    small.receiver.answers = [PostResult(status=status, error="later", rest=100.0)]
    small.source.happen(event(1))
    small.pass_(98)
    small.source.happen(event(2, service="t"))
    assert len(small.receiver.posts) == 1
    small.pass_(10)
    assert states(small) == ["sent", "sent"]


def test_a_killed_daemon_repeats_what_nobody_heard_of_with_the_same_id(world):
    world.add()
    first = world.join("one")
    world.join("two")
    world.pass_(5)
    world.receiver.held = Deferred()
    world.source.happen(event(1), event(2), event(3, service="t"))
    assert len(world.receiver.posts) == 2
    world.kill(first)
    world.receiver.held = None
    world.pass_(60)
    assert states(world) == ["sent", "sent", "sent"]
    sent = world.receiver.ids
    assert sorted(sent[:2]) == sorted(set(sent[2:]) & set(sent[:2]))
    assert len(set(sent)) == 3
    assert world.receiver.outputs("h/s") == [1, 1, 2]


def test_what_was_read_and_not_stored_is_read_again(empty):
    empty.add()
    first = empty.join("one")
    empty.join("two")
    empty.pass_(5)
    first.database.down = True
    empty.source.happen(event(1), event(2))
    assert empty.deliveries() == []
    empty.kill(first)
    empty.pass_(60)
    assert [one.event for one in reversed(empty.deliveries())] == [f"a@{NOW}.1", f"a@{NOW}.2"]
    assert len(empty.receiver.posts) == 2


def test_events_that_were_removed_before_they_were_read_are_left_out(small):
    small.source.happen(event(1))
    small.change(lambda c: c.execute(webhooks.update().values(version=2)))
    small.pass_(5)
    (follower,) = small.source.followers
    follower.listener.miss(Gap("@1", "@7", 6, NOW))
    small.pass_(5)
    assert small.source.followers == [follower], "it would have the same gap again"
    small.source.happen(event(8))
    small.pass_(5)
    follower.listener.miss(Gap("@8", "@90", 82, NOW))
    small.pass_(5)
    assert small.source.followers != [follower], "they are read again from the table"
    assert small.receiver.outputs("h/s") == [1, 8]


def test_events_that_are_told_twice_are_sent_once(small):
    small.source.happen(event(1))
    assert small.get().position == "@1"
    # As by a daemon that has lost its position.
    small.change(lambda c: c.execute(webhooks.update().values(position=str(NOW), version=2)))
    small.pass_(5)
    assert small.get().position == "@1"
    small.source.happen(event(2))
    small.pass_(5)
    assert len(small.receiver.posts) == 2


def test_a_clock_that_is_set_holds_nothing_up(small):
    (daemon,) = small.daemons
    small.receiver.answers = [PostResult(status=503, error="later", rest=3000.0)]
    small.source.happen(event(1))
    small.pass_(20)
    assert states(small) == ["waiting"]
    daemon.wall.jump(-86400)
    small.pass_(10)
    assert states(small) == ["sent"]
    # Put back by a day: what comes is not held up, nor thrown away when it is put right again.
    small.receiver.answers = [DEAD]
    small.source.happen(event(2))
    daemon.wall.jump(7 * 86400)
    small.pass_(20)
    assert states(small) == ["sent", "sent"]


def test_the_number_of_waiting_messages_is_bounded(tmp_path):
    world = World(migrated_sqlite_url(tmp_path), waiting=10)
    try:
        world.add()
        world.join()
        world.pass_(3)
        world.receiver.answer = DEAD
        world.source.happen(*(event(n, service=f"s{n}") for n in range(1, 31)))
        world.pass_(30, step=2)
        assert states(world).count("waiting") == 10
        world.receiver.answer = TAKEN
        world.pass_(200, step=4)
        assert [one.event for one in reversed(world.deliveries())] == [
            f"a@{NOW}.{n}" for n in range(1, 31)
        ]
        assert set(states(world)) == {"sent"}
    finally:
        world.close()


def test_an_owner_who_is_locked_gets_nothing(small):
    follower = small.source.followers[0]
    small.source.followers.remove(follower)
    follower.ended.errback(Failure(Forbidden("account is locked")))
    small.pass_(5)
    assert small.get().paused == "no events for the owner: account is locked"
    small.source.happen(event(1))
    small.pass_(5)
    assert small.receiver.posts == []


def test_another_webhook_of_the_same_number_is_not_paused_for_the_owner_before(small):
    follower = small.source.followers[0]
    small.source.followers.remove(follower)
    follower.ended.errback(Failure(Forbidden("account is locked")))
    small.change(statements.remove(small.get()))
    small.add(name="other")
    small.pass_(10)
    assert small.get().paused is None


def test_both_secrets_sign_while_one_is_replaced(empty):
    empty.add(body="slack")
    empty.join()
    empty.pass_(3)
    other = new_secret()
    hook = empty.get()
    kept = evolve(hook.secrets[0], until=NOW + empty.elapsed + 100)
    assert empty.change(statements.keep_secrets(hook, [WebhookSecret(key=other), kept]))
    empty.pass_(5)
    empty.source.happen(event(1))
    both = empty.receiver.posts[0].headers["webhook-signature"].split()
    empty.pass_(200)
    empty.source.happen(event(2))
    one = empty.receiver.posts[1].headers["webhook-signature"].split()
    assert (len(both), len(one)) == (2, 1)
    for at, keys in ((0, [SECRET, other]), (1, [other])):
        found = empty.receiver.posts[at]
        for key in [SECRET, other]:
            good = verifies(key, found)
            assert good == (key in keys)


def verifies(key, one):
    reference = ReferenceWebhook(key)
    stamp = int(one.headers["webhook-timestamp"])
    reference._Webhook__verify_timestamp = lambda _: datetime.fromtimestamp(stamp, UTC)
    try:
        reference.verify(one.body, one.headers)
    except WebhookVerificationError:
        return False
    return True


def test_a_deleted_webhook_sends_nothing_more(small):
    small.receiver.answer = DEAD
    small.source.happen(event(1), event(2))
    small.change(statements.remove(small.get()))
    small.pass_(60)
    before = len(small.receiver.posts)
    small.source.happen(event(3))
    small.pass_(60)
    assert len(small.receiver.posts) == before
    assert small.deliveries() == []


def test_another_webhook_of_the_same_number_has_nothing_of_the_one_before(small):
    """Numbers come again: the owner, the cursor and what is on its way do not."""
    small.receiver.held = Deferred()
    small.source.happen(event(1), event(2))
    held, small.receiver.held = small.receiver.held, None
    small.change(statements.remove(small.get()))
    small.receiver.answer = DEAD
    small.add(name="other")
    small.pass_(1)
    held.callback(None)
    small.pass_(5)
    assert states(small) == ["waiting", "waiting"]
    small.receiver.answer = TAKEN
    small.pass_(30)
    assert states(small) == ["sent", "sent"]
    before, *after = small.receiver.ids
    assert before not in after


def test_one_that_is_switched_off_leaves_out_what_happens_meanwhile(small):
    hook = small.get()
    small.change(statements.replace(hook, {**hook.record, "enabled": 0}, None, NOW))
    small.pass_(5)
    small.source.happen(event(1))
    small.pass_(5)
    hook = small.get()
    small.change(statements.replace(hook, {**hook.record, "enabled": 1}, None, NOW + 100))
    small.pass_(5)
    assert small.receiver.posts == []
    assert small.get().position == str(NOW + 100)


def test_only_the_last_of_what_was_sent_is_kept(small, monkeypatch):
    monkeypatch.setattr(statements, "KEPT", 20)
    small.source.happen(*(event(n, service=f"s{n}") for n in range(1, 61)))
    small.pass_(3)
    assert len(small.receiver.posts) == 60
    assert 20 <= len(small.deliveries()) <= 28
