"""Old jobs are removed with their results, by one daemon of several."""

from __future__ import annotations

from sqlalchemy import select

from monrest.base.values import Document
from monrest.jobs.model import job_output
from tests.fakes.jobs import Held, at_once, get, start
from tests.fakes.keystore import result


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
