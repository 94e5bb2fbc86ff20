"""The scheduler: every time is made and mailed once, though daemons die, and failures are seen."""

from __future__ import annotations

from datetime import UTC

import pytest
from attrs import evolve
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed

from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.values import Identity, SiteProblem, no_progress
from monrest.config import MailConfig, ReportsConfig
from monrest.jobs.model import Job
from monrest.reports import store
from monrest.reports.availability import sheet_of_availability
from monrest.reports.mail import MailDelivery
from monrest.reports.model import QUEUE, checked
from monrest.reports.service import Reports
from monrest.reports.templates import TEMPLATES
from tests.fakes.keystore import result
from tests.fakes.scheduling import DAILY, SIX, Daemons
from tests.fakes.store import BOTH, url_for
from tests.fakes.threads import NoThreads
from tests.reports.samples import builder, measured, parts


class Jobs:
    """Does everything at once; ``ended`` says that a job has."""

    def __init__(self):
        self.jobs, self.work = {}, []

    async def start(self, work):
        number = len(self.jobs) + 1
        job = Job(
            id=number, user="", run=1, host_id=1, host_name="", pid=1, cmd=work.cmd, created=0
        )
        self.jobs[number] = job
        doing = Deferred.fromCoroutine(work.call(no_progress))
        self.work.append(doing)
        doing.addBoth(lambda _: self.jobs.pop(number))
        return job

    async def get(self, number):
        return self.jobs.get(number)

    async def wait(self, number, seconds):
        return self.jobs.get(number)


class Mailer(Service):
    def __init__(self, deliver):
        self.deliver = deliver


class World(Daemons):
    """``sent`` are the mails that the mail server has."""

    def __init__(self, url):
        super().__init__(url)
        self.sent, self.made, self.manner, self.problem = [], [], [], None
        self.held = None

    def service(self, **given):
        return Reports(
            threads=NoThreads(), jobs=Jobs(), mailer=Mailer(self.deliver), config=ReportsConfig(),
            mail=MailConfig(host="x", tries=3), zone=UTC, prepare=self.prepare,
            owner=lambda report: succeed(Identity(user=report.owner)), **given,
        )  # fmt: skip

    async def prepare(self, identity, report, at, progress):
        self.made.append((report.number, at, identity.user))
        if self.problem is not None:
            raise self.problem
        made = builder(params=report.record["params"])
        return sheet_of_availability(made, [measured(parts(made), bad=50)], parts(made))

    async def deliver(self, letter, config, before_text):
        manner = self.manner.pop(0) if self.manner else "take"
        if isinstance(manner, MailDelivery):
            return manner
        if manner == "hang before":
            await self.held
        await before_text(letter.recipients)
        self.sent.append(letter)
        if manner == "hang after":
            await self.held
        return MailDelivery(taken=letter.recipients)

    def add(self, to="a@x.org, b@x.org", schedule=DAILY, **params):
        record = checked(
            {"template": "sla_report.tt", "to": to, "send_types": schedule,
             "params": {"timeperiod": "yesterday", "breakdown": "days", **params}},
            TEMPLATES,
        )  # fmt: skip
        values = store.values({**record, "user": "olga"}, {}, None, self.now, UTC)
        return self.change(store.add(1, values))

    def get(self, number=1):
        return next(iter(self.run(store.several(number))), None)

    def error(self):
        return self.get().error(TEMPLATES)

    def left(self):
        return self.run(store.unfinished(1e12))


@pytest.fixture
def world(request, tmp_path):
    one = World(url_for(request, tmp_path))
    yield one
    one.close()


@BOTH
def test_every_time_once(world):
    """Two daemons, three days."""
    world.join("one")
    world.join("two")
    world.pass_(5)
    world.add()
    for _ in range(3):
        world.pass_(200, step=5)
        world.pass_(86200, step=86200)
    assert [at for _, at, _ in world.made] == [SIX, SIX + 86400, SIX + 2 * 86400]
    assert {user for _, _, user in world.made} == {"olga"}
    assert len(world.sent) == 3
    assert len({one.message for one in world.sent}) == 3
    assert (world.left(), world.error()) == ([], None)
    assert world.run(store.result(1, "pdf"))[1].startswith(b"%PDF-")


def test_without_recipients_it_is_only_made(world):
    world.join()
    world.add(to="")
    world.pass_(120)
    assert (len(world.made), world.sent, world.left()) == (1, [], [])


@pytest.mark.parametrize(("level", "mails"), [(-1, 1), (50, 0), (100, 1)])
def test_only_mailed_below_a_level(world, level, mails):
    world.join()
    world.add(mail_max_level=level)
    world.pass_(120)
    assert len(world.sent) == mails


def test_a_pause_is_made_up_once(world):
    """Of the times that passed while no daemon ran only the newest is made."""
    first = world.join()
    world.add()
    world.pass_(5)
    world.kill(first)
    world.elapsed += 3 * 86400
    world.join("one")
    world.pass_(30)
    assert [at for _, at, _ in world.made] == [SIX + 2 * 86400]
    assert len(world.sent) == 1


def test_mails_are_tried_again(world):
    world.join()
    world.add()
    world.manner = [MailDelivery(problem="connection refused"), MailDelivery(problem="451 busy")]
    world.pass_(80)
    assert world.sent == []
    assert world.error() == "not sent yet, tried 2 times: 451 busy"
    world.pass_(120)
    assert len(world.sent) == 1
    assert (world.error(), world.left()) == (None, [])
    assert len(world.made) == 1


def test_mails_are_tried_again_soon_when_the_clock_is_put_back(world):
    one = world.join()
    world.add()
    world.manner = [MailDelivery(problem="connection refused")]
    while world.manner:
        world.pass_(1)
    one.wall.jump(-3600)
    world.pass_(30)
    assert len(world.sent) == 1
    assert (world.left(), world.error()) == ([], None)


FAILED = MailDelivery(problem="connection refused")
PARTLY = MailDelivery(
    taken=("a@x.org",), refused={"b@x.org": "550 no"}, later={"c@x.org": "450 wait"}
)


@pytest.mark.parametrize(
    ("manner", "sent", "left", "error"),
    [
        ([FAILED] * 9, [], 6, "not sent: connection refused"),
        # A final refusal is not tried again.
        ([MailDelivery(problem="554 spam", final=True)], [], 0, "not sent: 554 spam"),
        # Recipients that have it are left out of the next try; one that is refused stays visible.
        ([PARTLY], [("c@x.org",)], 0, "refused: b@x.org: 550 no"),
        # A doubtful mail is never repeated.
        ([MailDelivery(doubtful=("a@x.org",), problem="cut")], [], 0,
         "it is unknown whether the mail arrived at a@x.org"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_mail(world, manner, sent, left, error):
    world.join()
    world.add(to="a@x.org, b@x.org, c@x.org")
    world.manner = list(manner)
    world.pass_(300, step=5)
    assert [one.recipients for one in world.sent] == sent
    assert world.error().startswith(error)
    assert (len(world.manner), world.left()) == (left, [])


@pytest.mark.parametrize(("manner", "mails"), [("hang before", 1), ("hang after", 1)])
def test_death_while_it_is_sent(world, manner, mails):
    """Before the text was asked for the next daemon sends it, after that none does."""
    first = world.join("one")
    world.pass_(5)
    world.join("two")
    world.add()
    world.held, world.manner = Deferred(), [manner]
    while world.manner:
        world.pass_(1)
    world.kill(first)
    world.pass_(120)
    assert len(world.sent) == mails
    error = world.error()
    assert (error is None) if manner == "hang before" else error.startswith("it is unknown")
    assert world.left() == []


def test_who_lost_the_duty_does_not_send(world):
    """A daemon that was paused in front of the text wakes up when another one has sent it."""
    first = world.join("one")
    world.pass_(5)
    world.join("two")
    world.add()
    world.held, world.manner = Deferred(), ["hang before"]
    while world.manner:
        world.pass_(1)
    world.daemons.remove(first)
    world.pass_(120)
    assert len(world.sent) == 1
    world.held.callback(None)
    world.pass_(5)
    assert len(world.sent) == 1
    first.database.down = True


def test_a_report_that_a_dead_one_had_begun_does_not_wait_for_its_job(world):
    """That the job has no daemon any more is noticed later than that the duty has none."""
    first, second = world.join("one"), world.join("two")
    first.prepare = first.jobs.wait = lambda *_: Deferred()
    world.add()
    world.pass_(70)
    assert (len(first.jobs.jobs), world.get().job) == (1, 1)
    second.jobs.jobs.update(first.jobs.jobs)
    world.kill(first)
    world.pass_(30)
    assert len(world.sent) == 1
    assert world.left() == []


def test_missing_sites_are_waited_for(world):
    world.join()
    world.add()
    world.problem = SitesFailed([SiteProblem("a", "A", "connection refused")])
    world.problem.message = "Some backends are not connected, cannot create report!"
    world.pass_(70)
    assert world.error() == "Some backends are not connected, cannot create report!"
    world.problem = None
    world.pass_(90)
    assert (world.error(), len(world.sent)) == (None, 1)


def test_what_cannot_be_made_fails_at_once(world):
    world.join()
    world.add()
    world.problem = BadRequest("error", "rpttimeperiod: no such time period")
    world.pass_(300, step=5)
    assert len(world.made) == 1
    assert world.error() == "error: rpttimeperiod: no such time period"
    assert world.left() == []


@BOTH
def test_queued_ones_are_made_later(world):
    one = world.join()
    world.add(schedule=[])
    world.pass_(5)
    world.change(store.queue(world.get(), int(one.clock.seconds()), QUEUE))
    again = store.queue(world.get(), int(one.clock.seconds()) + 1, QUEUE)
    assert world.change(again) is False
    world.pass_(10)
    assert (len(world.made), world.sent, world.left()) == (1, [], [])


@BOTH
def test_a_new_schedule_counts_at_once(world):
    world.join()
    number = world.add()
    old = world.get(number)
    later = {**old.record, "send_types": [{"type": "day", "minute": 5, "hour": 6}]}
    values = store.values(later, {}, None, SIX - 60, UTC)
    world.change(store.replace(old, values, SIX - 60, UTC))
    assert world.change(store.replace(old, values, SIX, UTC)) is False
    world.pass_(400, step=5)
    assert [at for _, at, _ in world.made] == [SIX + 300]


@BOTH
def test_numbers_are_the_lowest_free_ones(world):
    assert [world.add() for _ in range(3)] == [1, 2, 3]
    assert world.change(store.remove(world.get(2)))
    assert world.add() == 2
    assert not world.change(store.remove(evolve(world.get(1), number=9)))


@BOTH
def test_another_report_of_the_same_number_has_nothing_of_the_one_before(world):
    """What was made with the rights of one owner is never shown to another one."""
    one = world.join()
    world.add(schedule=[])
    old, go = world.get(), Deferred()

    async def slow(*asked):
        await go
        return await world.prepare(*asked)

    one.prepare = slow
    making = Deferred.fromCoroutine(one.now(old))
    assert result(one.being_made(old))
    assert world.change(store.remove(old))
    assert world.add(schedule=[]) == 1
    new = world.get()
    assert not result(one.being_made(new))
    go.callback(None)
    result(making)
    now = int(one.clock.seconds())
    for work in (store.begun(old, 7), store.fail(old, "broken")):
        world.change(work)
    for work in (
        store.queue(old, now, QUEUE),
        store.replace(old, store.values(old.record, {}, None, now, UTC), now, UTC),
        store.remove(old),
    ):
        assert world.change(work) is False
    assert world.run(store.result(1, "pdf")) is None
    assert world.left() == []
    found = world.get()
    assert found.identity == new.identity != old.identity
    assert (found.job, found.failure, found.made) == (None, None, None)


def test_templates_stay_while_their_folder_cannot_be_read(world, tmp_path):
    one = world.join()
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "ours.tt").write_text('+++\nlike = "sla_report.tt"\ntitle = "Ours"\n+++\n')

    def reconfigured():
        config = ReportsConfig(templates=str(folder))
        Deferred.fromCoroutine(one.configure(config, MailConfig(), UTC))
        return set(one.templates)

    assert reconfigured() == {*TEMPLATES, "ours.tt"}
    folder.rename(tmp_path / "away")
    assert reconfigured() == {*TEMPLATES, "ours.tt"}
    folder.mkdir()
    assert reconfigured() == set(TEMPLATES)
