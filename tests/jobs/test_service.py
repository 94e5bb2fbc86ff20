"""Jobs of several daemons on one database, with time that the tests turn."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from attrs import evolve
from sqlalchemy import select
from twisted.internet.defer import Deferred

from monrest.base.errors import Forbidden, TooManyRequests, Unavailable
from monrest.base.values import ADMIN, READ_ONLY, Caller, Column, Document, Identity, Rows
from monrest.jobs import store as statements
from monrest.jobs.model import Job, job_output, visible
from monrest.store import space
from tests.fakes.jobs import ANN, BOB, ROOT, Held, World, at_once, get, start, whole
from tests.fakes.keystore import result


@pytest.fixture
def world(database_url, tmp_path):
    """Daemons on one database."""
    made = World(database_url, tmp_path)
    yield made
    made.close()


def test_a_large_result_goes_in_pieces(world):
    jobs = world.join()
    rows = Rows(columns=(Column("a"), Column("b")), rows=[[n, "x" * 200] for n in range(10_000)])
    number = start(jobs, at_once(rows, format="csv"))
    world.pass_(5, 0.05)
    pieces = whole(jobs, number)
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 700_000
    assert sum(map(len, pieces)) == get(jobs, number).size
    assert b"".join(pieces).count(b"\n") == 10_001


def test_progress_is_seen_everywhere(world):
    one, two = world.join("one"), world.join("two")
    held = Held()
    number = start(one, held)
    world.pass_(10)
    held.progress(25, message="half of a half\0")
    world.pass_(3)
    for jobs in (one, two):
        job = get(jobs, number)
        assert (job.percent, job.message) == (25, "half of a half�")
        now = one.clock.seconds()
        assert job.seconds_left(now) == pytest.approx(39, abs=3)
        # It is estimated anew as long as nothing is heard of the work.
        assert job.seconds_left(now + 13) == pytest.approx(78, abs=6)
    held.progress(50, 7)
    assert get(one, number).seconds_left(now) == 7
    held.progress(float("nan"))
    assert get(one, number).seconds_left(now) is None
    held.end()


def test_a_daemon_that_is_gone_is_found_out_by_the_others(world):
    one, two = world.join("one", concurrent=1), world.join("two")
    running, waiting = start(one, Held()), start(one, Held())
    world.pass_(60)
    assert get(two, running).ended is None
    world.kill(one)
    world.pass_(20)
    assert get(two, running).ended is None
    world.pass_(20)
    assert "that ran it ended unexpectedly" in get(two, running).stderr
    assert "before it began" in get(two, waiting).stderr
    assert get(two, running).rc == 1


def test_a_step_of_a_clock_and_a_sleep_of_the_machine_kill_no_daemon(world):
    one, two = world.join("one"), world.join("two")
    held = Held()
    number = start(one, held)
    world.pass_(10)
    two.clock.advance(3600)
    assert get(two, number).ended is None
    world.pass_(60)
    held.end({"a": 1})
    assert get(two, number).rc == 0


def test_a_daemon_that_slept_does_not_go_on(world):
    one, two = world.join("one"), world.join("two")
    held = Held()
    number = start(one, held)
    world.clocks.remove(one.clock)
    world.pass_(40)
    assert get(two, number).ended is not None
    world.clocks.append(one.clock)
    world.pass_(3)
    assert held.canceled
    assert "ended unexpectedly" in get(two, number).stderr


def test_an_outage_of_the_database_kills_nobody(world):
    one, two = world.join("one"), world.join("two")
    held = Held()
    number = start(one, held)
    one.database.down = two.database.down = True
    world.pass_(120)
    with pytest.raises(Unavailable):
        start(one, Held())
    one.database.down = two.database.down = False
    world.pass_(20)
    assert get(two, number).ended is None
    one.database.down = True
    held.end()
    world.pass_(20)
    assert get(two, number).ended is None
    one.database.down = False
    world.pass_(5)
    assert get(two, number).rc == 0


def test_a_result_that_cannot_be_stored_fails_its_job(world, monkeypatch):
    def full(*_):
        raise Unavailable("cannot store", "the disk of the database is full")

    jobs = world.join()
    rows = Rows(columns=(Column("a"),), rows=[["x" * 1000] for _ in range(2000)])
    monkeypatch.setattr(statements, "_insert_piece", full)
    many, one = start(jobs, at_once(rows)), start(jobs, at_once(Document(value=1)))
    world.pass_(50)
    assert get(jobs, many).ended is None
    world.pass_(90)
    for number in (many, one):
        job = get(jobs, number)
        assert (job.rc, job.status) == (1, None)
        assert "the disk of the database is full" in job.stderr


def test_rows_go_although_the_database_is_away(world):
    """What is left of an answer is made then, and waits for the database without its rows."""
    jobs = world.join()
    gone = []
    many = [["x" * 1000] for _ in range(4000)]
    rows = Rows(columns=(Column("a"),), rows=many, gone=lambda: gone.append(jobs.clock.seconds()))
    number = start(jobs, held := Held())
    jobs.database.down = True
    began = jobs.clock.seconds()
    held.answer.callback(rows)
    world.pass_(10, 0.05)
    assert gone
    assert gone[0] - began < 5
    jobs.database.down = False
    world.pass_(5, 0.05)
    body = b"".join(whole(jobs, number))
    assert len(body) == get(jobs, number).size
    assert len(json.loads(body)) == 4000
    assert jobs.files.stored == 0


def test_bulk_leaves_room_on_the_disk(world, monkeypatch):
    """A result that would fill the disk fails, and what was kept of it goes."""
    left = [10_000_000]

    def disk(_path):
        left[0] = max(0, left[0] - 1_000_000)
        return SimpleNamespace(f_bavail=left[0], f_frsize=1, f_blocks=10**12)

    def large():
        return at_once(Rows(columns=(Column("a"),), rows=[["x" * 1000] for _ in range(8000)]))

    jobs = world.join()
    if jobs.database.url.startswith("postgresql"):
        pytest.skip("nothing is known of the disk of a server")
    monkeypatch.setattr(space.os, "statvfs", disk)
    monkeypatch.setattr(space, "RESERVE", 4_000_000)
    number, small = start(jobs, large()), start(jobs, at_once(Document(value=1)))
    world.pass_(30)
    assert get(jobs, number).ended is None
    assert get(jobs, small).rc == 0
    world.pass_(60)
    assert "the disk of the database is nearly full" in get(jobs, number).stderr
    pieces = select(job_output.c.piece).where(job_output.c.job == number)
    assert result(jobs.database.run(lambda c: list(c.execute(pieces).scalars()))) == []
    # What a deleted result has left in the file is room for the next one.
    left[0] = 10**9
    number = start(jobs, large())
    world.pass_(5, 0.05)
    assert get(jobs, number).size > 8_000_000
    assert result(jobs.remove(number))
    left[0] = 0
    few = Rows(columns=(Column("a"),), rows=[["x" * 1000] for _ in range(2000)])
    number = start(jobs, at_once(few))
    world.pass_(5, 0.05)
    assert get(jobs, number).size > 2_000_000


def test_a_large_result_goes_bit_by_bit(world, monkeypatch):
    jobs = world.join()
    rows = Rows(columns=(Column("a"),), rows=[["x" * 1000] for _ in range(20_000)])
    number = start(jobs, at_once(rows))
    world.pass_(5, 0.05)
    assert get(jobs, number).size > 20_000_000
    gone = []
    discard = statements.discard

    def counted(which):
        work = discard(which)
        return lambda connection: gone.append(work(connection)) or gone[-1]

    monkeypatch.setattr(statements, "discard", counted)
    assert result(jobs.remove(number))
    assert max(gone) <= 8
    assert sum(gone) * 524288 > 15_000_000
    assert get(jobs, number) is None


def test_cancel_here_and_from_another_daemon(world):
    one, two = world.join("one", concurrent=1), world.join("two")
    first, second, third = Held(), Held(), Held()
    numbers = [start(one, held) for held in (first, second, third)]
    job = result(one.cancel(get(one, numbers[0]), "ann"))
    assert first.canceled
    assert (job.stderr, job.canceled_by, job.rc) == ("canceled by ann", "ann", 1)
    assert second.began
    assert not third.began
    for number in (numbers[2], numbers[1]):
        waiting = Deferred.fromCoroutine(two.cancel(get(two, number), "root"))
        world.pass_(5)
        assert result(waiting).stderr == "canceled by root"
    assert second.canceled
    assert not third.began


def test_waiting(world):
    one, two = world.join("one"), world.join("two")
    held = Held()
    number = start(one, held)
    waits = [Deferred.fromCoroutine(jobs.wait(number, 10)) for jobs in (one, two)]
    late = [Deferred.fromCoroutine(jobs.wait(number, 60)) for jobs in (one, two)]
    gone = Deferred.fromCoroutine(one.wait(number, 60))
    gone.addErrback(lambda _: None)
    gone.cancel()
    world.pass_(11)
    assert [result(one).ended for one in waits] == [None, None]
    held.end()
    world.pass_(2)
    assert [result(one).rc for one in late] == [0, 0]
    assert result(one.wait(4711, 10)) is None


def test_a_full_queue(world):
    jobs = world.join(concurrent=1, queue=4)
    running = Held()
    start(jobs, running)
    mine = [Held() for _ in range(2)]
    for held in mine:
        start(jobs, held)
    with pytest.raises(TooManyRequests, match="2 of yours"):
        start(jobs, Held())
    his = [Held(BOB) for _ in range(2)]
    for held in his:
        start(jobs, held)
    with pytest.raises(TooManyRequests, match="4 wait"):
        start(jobs, Held(ROOT))
    order = []
    for held in (running, mine[0], his[0], mine[1], his[1]):
        assert held.began
        order.append(held)
        held.end()
    assert len(result(jobs.several())) == 5


def test_large_requests_do_not_fill_the_memory(world):
    jobs = world.join(concurrent=1)
    start(jobs, Held(size=40_000_000))
    with pytest.raises(TooManyRequests):
        start(jobs, Held(size=40_000_000))


def test_who_leaves_before_the_answer_has_a_job_all_the_same(world):
    jobs = world.join()
    jobs.database.held = True
    held = Held()
    starting = Deferred.fromCoroutine(jobs.start(held.work))
    starting.addErrback(lambda _: None)
    starting.cancel()
    jobs.database.release()
    world.pass_(1)
    assert held.began
    held.end()
    assert [job.rc for job in result(jobs.several())] == [0]


def test_what_is_not_done_in_time_ends(world):
    jobs = world.join(concurrent=1, timeout=259_000)
    first, second = Held(), Held()
    numbers = [start(jobs, held) for held in (first, second)]
    world.pass_(250_000, 1000)
    assert not first.canceled
    world.pass_(10_000, 1000)
    assert first.canceled
    for number in numbers:
        assert get(jobs, number).stderr == ("it was not done after 259000 seconds (jobs.timeout)")


def test_two_daemons_in_one_folder_are_two(world):
    one, two = world.join("same"), world.join("same")
    held = Held()
    number = start(one, held)
    assert one.node.id != two.node.id
    world.pass_(10)
    assert get(two, number).ended is None
    held.end()


def test_the_number_of_a_folder_stays(world, tmp_path):
    one = world.join("one")
    number, run = one.node.id, one.node.run
    world.kill(one)
    again = world.join("one")
    assert (again.node.id == number, again.node.run == run) == (True, False)
    assert (tmp_path / "one" / "node.id").stat().st_mode & 0o777 == 0o600


def test_results_are_bounded_for_a_user_and_in_all(world, monkeypatch):
    jobs = world.join()
    jobs.configure(evolve(jobs.config, results_per_user=3000, results=5000))
    text = Document(value="x" * 1100)
    kept = [start(jobs, at_once(text)) for _ in range(2)]
    failed = get(jobs, start(jobs, at_once(text)))
    assert (failed.rc, failed.size) == (1, 0)
    assert "(jobs.results_per_user)" in failed.stderr
    assert get(jobs, start(jobs, at_once(text, identity=BOB))).rc == 0
    assert get(jobs, start(jobs, at_once(text, identity=BOB))).rc == 0
    # One more of Bob's would be his third: what is left for all is less than that.
    jobs.configure(evolve(jobs.config, results_per_user=4000))
    assert "(jobs.results)" in get(jobs, start(jobs, at_once(text, identity=BOB))).stderr
    assert result(jobs.remove(kept[0]))
    assert get(jobs, start(jobs, at_once(text))).rc == 0
    monkeypatch.setattr(statements, "MOST_KEPT_PER_USER", 3)
    with pytest.raises(TooManyRequests, match="at most 3 of a user"):
        start(jobs, at_once(text))
    monkeypatch.setattr(statements, "MOST_KEPT", 5)
    with pytest.raises(TooManyRequests, match="5 in all"):
        start(jobs, at_once(text, identity=BOB))


def test_stop(world):
    one, two = world.join("one", concurrent=1), world.join("two")
    first, second = Held(), Held()
    numbers = [start(one, held) for held in (first, second)]
    waiting = Deferred.fromCoroutine(one.wait(numbers[0], 30))
    stopping = Deferred.fromCoroutine(one.drain(10))
    assert result(waiting).ended is None
    with pytest.raises(Unavailable, match="stops"):
        start(one, Held())
    world.pass_(5)
    assert not first.canceled
    assert not stopping.called
    world.pass_(10)
    assert stopping.called
    assert [get(two, number).stderr for number in numbers] == [
        "the daemon was stopped",
        "the daemon was stopped before the job began",
    ]


def test_old_jobs_go_with_their_results(world):
    jobs = world.join(keep=100)
    old = start(jobs, at_once(Document(value=1)))
    running = Held()
    number = start(jobs, running)
    world.pass_(200)
    assert get(jobs, old) is None
    assert get(jobs, number) is not None
    left = result(jobs.database.run(lambda c: list(c.execute(select(job_output.c.job)).scalars())))
    assert left == []
    running.end()


def test_who_does_not_have_the_duty_removes_nothing(world):
    one, two = world.join(keep=100), world.join("two", keep=100)
    one.duty = two.duty = lambda: False
    old = start(one, at_once(Document(value=1)))
    world.pass_(300)
    assert get(one, old) is not None
    two.duty = lambda: True
    world.pass_(6)
    assert get(one, old) is None


HOSTS = "authorized_for_all_hosts"
MAKER = Identity(user="ann", roles=frozenset({HOSTS}))


def queued(world, identity=MAKER):
    """A job behind another one, whose asker is known by his address."""
    jobs = world.join(concurrent=1)
    first = Held(BOB)
    start(jobs, first)
    second = Held(identity, caller=Caller(address="192.0.2.7"))
    world.users["192.0.2.7"] = identity
    return jobs, first, second, start(jobs, second)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (Forbidden("wrong authentication key"), "wrong authentication key"),
        (Forbidden("your account is locked"), "your account is locked"),
        (evolve(MAKER, roles=frozenset()), "the rights of who asked for it have changed"),
        (evolve(MAKER, user="bob"), "the rights of who asked for it have changed"),
        (evolve(MAKER, roles=MAKER.roles | {READ_ONLY}), "have changed"),
    ],
)
def test_what_its_asker_may_not_any_more_is_not_begun(world, now, why):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = now
    first.end()
    world.pass_(5)
    assert not second.began
    job = get(jobs, number)
    assert (job.rc, job.status, job.started) == (1, None, None)
    assert "it was not begun when its turn came" in job.stderr
    assert why in job.stderr


@pytest.mark.parametrize("now", [MAKER, evolve(MAKER, roles=frozenset({HOSTS, ADMIN}))])
def test_who_still_may_has_his_job_done(world, now):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = now
    first.end()
    world.pass_(1)
    assert second.began
    second.end()
    assert get(jobs, number).rc == 0


def test_a_key_that_cannot_be_looked_up_for_a_while(world):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = Unavailable("cannot read", "away")
    first.end()
    world.pass_(10)
    assert not second.began
    world.users["192.0.2.7"] = MAKER
    world.pass_(5)
    assert second.began
    second.end()
    assert get(jobs, number).rc == 0


def test_a_burst_of_one_user_leaves_room_for_another(world):
    jobs = world.join(concurrent=1, queue=4)
    jobs.database.held = True
    coming = [Deferred.fromCoroutine(jobs.start(Held(ANN).work)) for _ in range(3)]
    coming.append(Deferred.fromCoroutine(jobs.start(Held(BOB).work)))
    jobs.database.release()
    with pytest.raises(TooManyRequests, match="2 of yours"):
        result(coming[2])
    assert [result(coming[at]).user for at in (0, 1, 3)] == ["ann", "ann", "bob"]


def test_a_burst_of_large_requests_does_not_fill_the_memory(world):
    jobs = world.join()
    jobs.database.held = True
    coming = [Deferred.fromCoroutine(jobs.start(Held(size=40_000_000).work)) for _ in range(2)]
    jobs.database.release()
    with pytest.raises(TooManyRequests):
        result(coming[1])
    assert result(coming[0]).user == "ann"


JOB = Job(
    id=1, user="ann", roles=("authorized_for_all_hosts",), run=1, host_id=1, host_name="h", pid=1,
    cmd="GET /", created=0.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("job", "identity", "seen"),
    [
        (JOB, ANN, False),
        (evolve(JOB, roles=()), ANN, True),
        (JOB, Identity(user="ann", roles=frozenset(JOB.roles)), True),
        (JOB, BOB, False),
        (JOB, ROOT, True),
        (JOB, Identity(user="", superuser=True), True),
        (JOB, Identity(user=""), False),
        (evolve(JOB, user=""), Identity(user=""), False),
        (evolve(JOB, user=None), BOB, True),
        (JOB, Identity(user="ann", limit=frozenset()), False),
        (evolve(JOB, roles=()), Identity(user="ann", limit=frozenset()), True),
        (
            JOB,
            Identity(user="ann", limit=frozenset(JOB.roles), roles=frozenset(JOB.roles)),
            True,
        ),
    ],
)
def test_visible(job, identity, seen):
    assert visible(job, identity) is seen
