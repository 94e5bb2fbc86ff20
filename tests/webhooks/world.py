"""Daemons on one database, with events that a test makes up and receivers that do as they are told."""

from itertools import count
from types import SimpleNamespace

from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from monrest.base.values import Identity
from monrest.config import WebhooksConfig
from monrest.events.followers import StreamEvent
from monrest.events.model import Cursor, Event, object_subject
from monrest.events.present_objects import PresentProblems
from monrest.store.duties import Duties
from monrest.webhooks import store as statements
from monrest.webhooks.model import checked
from monrest.webhooks.posting import PostResult
from monrest.webhooks.service import Webhooks
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result

NOW = 1_700_000_000
_TOKENS = count(1)
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
TAKEN = PostResult(status=200)
DEAD = PostResult(error="connection refused")


def event(number=1, host="h", service="s", state=2, type="state", site="a", **data):
    data = {"host_name": host, "service_description": service, "state": state, "state_type": "HARD",
            "plugin_output": f"output {number}", **data}  # fmt: skip
    subject = object_subject(host, service) if host else "sites/a"
    return Event(
        number=number, site=site, type=type, time=float(NOW + number), subject=subject, data=data,
        name=f"{site}@{NOW}.{number}", nth=number,
    )  # fmt: skip


class Follower:
    def __init__(self, source, who, listener, since):
        self.source, self.who, self.listener = source, who, listener
        self.cursor = since or Cursor()
        self.ended = Deferred()
        source.followers.append(self)

    def go_on(self):
        told = []
        for one in self.source.events if not self.listener.paused else ():
            base, number = self.cursor.base, self.cursor.number or 0
            if one.time >= base if base is not None else one.number > number:
                self.cursor = Cursor(one.number)
                told.append(StreamEvent(one, one.data, str(self.cursor)))
        if told:
            self.listener.take(told)

    def resume(self):
        if self in self.source.followers:
            self.go_on()

    def stop(self):
        if self in self.source.followers:
            self.source.followers.remove(self)


class Source:
    """Events in their order; all daemons read the same."""

    def __init__(self):
        self.events, self.followers, self.filters = [], [], []

    async def check(self, wanted, who):
        pass

    async def follow(self, wanted, who, listener, since=None):
        self.filters.append(wanted)
        await who()
        made = Follower(self, who, listener, since)
        made.go_on()
        return made

    def happen(self, *events):
        self.events += events
        for one in list(self.followers):
            one.go_on()


class Receiver:
    """``posts`` are what it was sent; ``answers`` are given in turn, then ``answer``.

    An answer may be called with the body, and may be one that comes later.
    """

    def __init__(self):
        self.posts, self.answers, self.answer, self.held = [], [], TAKEN, None

    async def post(self, to, headers, body):
        self.posts.append(SimpleNamespace(url=to.url, headers=dict(headers), body=body))
        answer = self.answers.pop(0) if self.answers else self.answer
        if self.held is not None:
            await self.held
        answer = answer(body) if callable(answer) else answer
        return await answer if isinstance(answer, Deferred) else answer

    def configure(self, config):
        pass

    @property
    def ids(self):
        return [one.headers["webhook-id"] for one in self.posts]

    @property
    def bodies(self):
        return [one.body.decode() for one in self.posts]

    def outputs(self, subject):
        """The numbers of the events of an object, as they came."""
        mine = [one for one in self.bodies if subject in one]
        return [int(one.split("output ")[1].strip()) for one in mine]


class Problems:
    """What is wrong, for an Alertmanager: what the events of ``source`` have led to.

    ``well`` are services whose recovery no event told; ``silent`` sites say nothing.
    """

    def __init__(self, source):
        self.source, self.silent, self.group, self.well, self.looks = (
            source,
            frozenset(),
            ["web"],
            set(),
            0,
        )

    async def look(self, who, wanted):
        self.looks += 1
        present = {}
        for one in self.source.events:
            if one.type == "state" and (one.data["state_type"] == "HARD" or not one.data["state"]):
                present[one.site, one.host, one.service] = one
        bad = [
            (one, self.group)
            for one in present.values()
            if one.data["state"] and one.service not in self.well and one.site not in self.silent
        ]
        return PresentProblems(problems=bad, silent=self.silent)


class World:
    """``join`` starts a daemon, ``pass_`` lets time go by."""

    def __init__(self, url, **config):
        self.url, self.config = url, WebhooksConfig(**config)
        self.daemons, self.elapsed = [], 0.0
        self.source, self.receiver = Source(), Receiver()
        self.problems = Problems(self.source)
        self.refusal = None
        self.books = Store(url, Clock())
        self.books.startService()

    def join(self, owner="one"):
        clock = Clock()
        clock.advance(NOW + self.elapsed)
        store = Store(self.url, clock)
        store.startService()
        duties = Duties(store, clock, owner, timer=lambda: self.elapsed)
        made = Webhooks(
            database=store, clock=clock, wall=Wall(clock), threads=SimpleNamespace(run=execute), duties=duties,
            source=self.source, sender=self.receiver, owner=self.owner, problems=self.problems, config=self.config,
        )  # fmt: skip
        made.startService()
        duties.startService()
        self.daemons.append(made)
        return made

    async def owner(self, name, limit):
        if self.refusal is not None:
            raise self.refusal
        return Identity(user=name, limit=limit)

    def kill(self, daemon):
        """Nothing of it reaches the database or a receiver any more."""
        self.daemons.remove(daemon)
        daemon.database.down = True
        for one in list(self.source.followers):
            one.stop()

    def pass_(self, seconds, step=1.0):
        for _ in range(int(seconds / step)):
            self.elapsed += step
            for daemon in self.daemons:
                daemon.clock.advance(step)

    def add(self, **fields):
        """A stored webhook, whose reading begins before all events."""
        record = {"name": "n", "url": "https://example.org/x", "body": "plain", **fields}
        values = {
            "record": {**checked(record), "owner": "olga"}, "limit": None, "token": f"t{next(_TOKENS)}",
            "secrets": [{"key": SECRET, "until": None}], "position": str(NOW),
        }  # fmt: skip
        return result(self.books.change(statements.add(1, "olga", values, 100)))

    def get(self, number=1):
        return next(iter(result(self.books.run(statements.several(number)))), None)

    def deliveries(self, number=1):
        return result(self.books.run(statements.list_deliveries(number)))

    def change(self, work):
        return result(self.books.change(work))

    def close(self):
        for daemon in self.daemons:
            daemon.database.down = False
            stopping = daemon.stopService()
            daemon.clock.advance(10)
            result(stopping)
            result(daemon.duties.stopService())
            daemon.database.stopService()
        self.books.stopService()
