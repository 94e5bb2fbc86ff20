"""Daemons with jobs on one database, with time that the tests turn."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.answer_file import AnswerFiles
from monrest.base.daemon_node import DaemonNode
from monrest.base.values import ADMIN, Document, Identity
from monrest.config import JobsConfig
from monrest.jobs.running_job import JobWork
from monrest.jobs.service import Jobs
from monrest.render.formats import RenderOptions
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result
from tests.fakes.threads import NoThreads

ANN = Identity(user="ann")
BOB = Identity(user="bob")
ROOT = Identity(user="root", roles=frozenset({ADMIN}))


class World:
    """Daemons with clocks that go together; ``join`` starts one with a folder of this name."""

    def __init__(self, url, folder):
        self.url, self.folder, self.daemons, self.clocks = url, folder, [], []
        self.users = {}

    async def who(self, caller):
        """Who has this address now, or why he is refused."""
        found = self.users[caller.address]
        if isinstance(found, Exception):
            raise found
        return found

    def join(self, name="one", **config):
        clock = Clock()
        clock.advance(self.clocks[0].seconds() if self.clocks else 1_700_000_000)
        store = Store(self.url, clock)
        store.startService()
        home = self.folder / name
        home.mkdir(exist_ok=True)
        jobs = Jobs(
            database=store, clock=clock, wall=Wall(clock), threads=NoThreads(), files=AnswerFiles(home),
            config=JobsConfig(**config), who=self.who,
        )  # fmt: skip
        jobs.identify(DaemonNode.open(home))
        jobs.startService()
        self.clocks.append(clock)
        self.daemons.append(jobs)
        return jobs

    def kill(self, jobs):
        """Let a daemon vanish: nothing of it runs any more, and nothing is written."""
        self.clocks.remove(jobs.clock)
        self.daemons.remove(jobs)
        jobs.node.close()
        jobs.database.stopService()

    def pass_(self, seconds, step=0.5):
        for _ in range(int(seconds / step)):
            for clock in self.clocks:
                clock.advance(step)

    def close(self):
        for jobs in tuple(self.daemons):
            jobs.database.down = False
            done = []
            jobs.stopService().addBoth(done.append)
            while not done:
                self.pass_(1)
            jobs.database.stopService()


class Held:
    """Work that ends when the test says so."""

    def __init__(self, identity=ANN, **more):
        self.answer, self.began, self.canceled = Deferred(self.cancel), False, False
        self.progress = None
        self.work = JobWork(call=self.call, cmd="POST /x", identity=identity, changes=True, **more)

    def cancel(self, _):
        self.canceled = True

    async def call(self, progress):
        self.began, self.progress = True, progress
        return await self.answer

    def end(self, value="done"):
        self.answer.callback(Document(value=value))


def at_once(answer, identity=ANN, **options):
    async def call(progress):
        if isinstance(answer, Exception):
            raise answer
        return answer

    return JobWork(call=call, cmd="GET /x", identity=identity, options=RenderOptions(**options))


def start(jobs, held):
    job = result(jobs.start(held.work if isinstance(held, Held) else held))
    jobs.clock.advance(0)
    return job.id


def get(jobs, number):
    return result(jobs.get(number))


def whole(jobs, number):
    async def read():
        job = await jobs.get(number)
        return [piece async for piece in jobs.output(job)]

    return result(read())
