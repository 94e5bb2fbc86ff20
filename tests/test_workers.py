"""What the workers of a daemon share: marks, parts of a whole, connections, messages."""

import os

from hypothesis import given
from hypothesis import strategies as st

from monrest.base.workers import MARKS, Workers, ended, marks
from monrest.config import Config, ServerConfig
from monrest.daemon.supervisor import Worker, processes


def crew(count):
    memory = marks(count)
    return memory, [Workers(count, number, memory=memory) for number in range(1, count + 1)]


@given(st.integers(1, 9), st.data())
def test_a_mark_that_anybody_sets_is_seen_by_all_and_is_no_other_mark(count, data):
    _, workers = crew(count)
    before = {mark: workers[0].state(mark) for mark in MARKS}
    mark = data.draw(st.sampled_from(MARKS))
    data.draw(st.sampled_from(workers)).changed(mark)
    for one in workers:
        assert {name for name in MARKS if one.state(name) != before[name]} == {mark}


@given(st.integers(1, 9), st.integers(0, 100))
def test_parts_are_a_whole_where_it_is_large_enough_and_one_at_least(count, whole):
    shares = [one.share(whole) for one in crew(count)[1]]
    assert sum(shares) == max(whole, count)
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1


def test_who_has_fewest_connections_is_the_lightest_and_the_dead_have_none():
    memory, (one, two) = crew(2)
    one.count_connections(3)
    two.count_connections(2)
    assert (one.lightest(), two.lightest()) == (False, True)
    assert (one.lightest(1), two.lightest(1)) == (False, True)
    assert (one.lightest(2), two.lightest(2)) == (False, False)
    ended(memory, 2, 2)
    assert one.lightest()
    assert Workers().lightest(100)


def test_a_message_comes_to_who_hears_its_topic_and_one_that_fails_ends_nothing(stray_failures):
    stray_failures.append(TypeError)
    heard = []
    one = Workers(2, 1)
    one.hear("job ended", heard.append)
    one.heard("nobody's", [1])
    one.heard("job ended", [1, 2])
    one.heard("job ended", [7])
    assert heard == [7]


def test_none_configured_is_one_worker_for_each_processor(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    counts = [processes(Config(server=ServerConfig(workers=count))) for count in (0, 1, 4)]
    assert counts == [3, 1, 4]


def test_a_worker_that_dies_again_and_again_begins_the_later():
    worker, now, pauses = Worker(1), 1000.0, []
    for _ in range(8):
        worker.begin(1, None, now)
        pauses.append(worker.over(now + 1))
        assert worker.due == now + 1 + pauses[-1]
        now = worker.due
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30]
    # One that was well for a minute begins at once.
    worker.begin(1, None, now)
    assert worker.over(now + 60) == 0
