"""A node of a cluster: it enters itself, looks at the others, and is looked at.

Each node has its own view of the others, from its own calls; their addresses and their maintenance
are in the database that they share.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from attrs import define, evolve, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Outcome, Periodic, ask_all
from monrest.base.errors import Forbidden, Unavailable
from monrest.base.workers import Workers
from monrest.cluster import seal
from monrest.cluster import store as statements
from monrest.cluster.model import SKIPPED, Member, PeerError, Pong, RestartStep, Seen
from monrest.cluster.peers import Peers
from monrest.cluster.rolling import DUTY, Rolling
from monrest.config import ClusterConfig
from monrest.config.sections import without_slash
from monrest.store.database import Database
from monrest.store.database_health import DatabaseHealth
from monrest.store.duties import Duties, DutyLostError

_LOOK = 2.0
_ABSTAIN = 10.0
_ANSWER_SECONDS = 8.0
_PATIENCE_OF_ONE = 2.0


@define(eq=False, kw_only=True)
class Cluster(Service):
    """``own`` is set before it starts.

    ``check`` says what is in the way of a restart of this daemon, nothing if it may begin, and
    ``leave`` begins it. ``drain``: seconds for which a node that stops may let requests and jobs
    run.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    health: DatabaseHealth
    clock: IReactorTime
    wall: WallClock
    duties: Duties
    peers: Peers
    config: ClusterConfig
    drain: float
    check: Callable[[], Awaitable[str]]
    leave: Callable[[], object]
    timer: Callable[[], float] = time.monotonic
    workers: Workers = field(factory=Workers)
    _state: bytes = field(init=False, default=b"")
    own: Member = field(init=False)
    members: dict[int, Member] = field(init=False, factory=dict)
    steps: Sequence[RestartStep] = field(init=False, default=())
    leaving: bool = field(init=False, default=False)
    _url: str = field(init=False, default="")
    _stored_url: str | None = field(init=False, default=None)
    _seen: dict[str, Seen] = field(init=False, factory=dict)
    _used: seal.Used = field(init=False, factory=seal.Used)
    _abstain: float = field(init=False, default=0.0)
    _rolling: Rolling = field(init=False)
    _periodic: tuple[Periodic, ...] = field(init=False, default=())

    def __attrs_post_init__(self) -> None:
        self._rolling = Rolling(self)
        self.workers.hear("node leaves", self._leaves)

    @property
    def clustered(self) -> bool:
        return self.config.several

    @property
    def maintenance(self) -> int:
        """Since when this node is in maintenance; 0 for no maintenance."""
        mine = self.members.get(self.own.id)
        return 0 if mine is None else mine.maintenance

    def not_ready(self) -> str:
        """Why no requests should be sent to this node; empty when they should."""
        if self.leaving:
            return "STOPPING"
        if not self.running or (self.clustered and not self._knows()):
            return "STARTING"
        if self.maintenance:
            return "MAINTENANCE"
        return f"NO DATABASE: {self.health.trouble}" if self.health.trouble else ""

    def _knows(self) -> bool:
        """Whether this node is entered, and each of its workers knows what the nodes share.

        A client that found one worker ready finds the next one ready as well.
        """
        return self._stored_url is not None and self.workers.all_begun()

    def does(self, duty: str) -> bool:
        """Whether this process has a duty that one of all has; true when it is the only one."""
        if not self.clustered and self.workers.count == 1:
            return True
        self.duties.want(duty)
        return self.duties.held(duty) is not None

    def urls(self) -> list[str]:
        """The base URLs of all nodes, sorted; none without a cluster."""
        return sorted(self.config.nodes) if self.clustered else []

    def member_at(self, url: str) -> Member | None:
        """The stored row of the node at ``url``; None while no node is known there."""
        plain = without_slash(url)
        member = next(
            (candidate for candidate in self.members.values() if candidate.url == plain), None
        )
        pong = self.seen(url).pong
        if member is None and pong is not None and pong.node_id.isdigit():
            return self.members.get(int(pong.node_id))
        return member

    def node_at(self, url: str) -> Member | None:
        """The node at ``url``: this one, a stored one, or as it has answered."""
        if self.is_own(url):
            return evolve(self.own, maintenance=self.maintenance)
        pong = self.seen(url).pong
        return self.member_at(url) or (None if pong is None else pong.member)

    def name_of(self, url: str) -> str:
        """The id of the node at ``url``; ``node<n>`` until it is known."""
        if self.is_own(url):
            return str(self.own.id)
        member, pong = self.member_at(url), self.seen(url).pong
        if member is not None:
            return str(member.id)
        return f"node{self.config.nodes.index(url)}" if pong is None else pong.node_id

    def is_own(self, url: str) -> bool:
        return without_slash(url) == self._url

    def seen(self, url: str) -> Seen:
        return self._seen.get(url, Seen())

    async def heartbeat(self) -> dict[str, Pong | None]:
        """Call all other nodes; what each has answered, by the id that it had before."""
        others = [url for url in self.urls() if not self.is_own(url)]
        names = {url: self.name_of(url) for url in others}
        outcomes = await self.ask(others)
        return {
            names[outcome.asked]: outcome.value
            for outcome in outcomes
            if not self.is_own(outcome.asked)
        }

    async def ask(self, urls: Sequence[str]) -> list[Outcome[str, Pong]]:
        """Call nodes at the same time, each with a limit, and note what becomes of it."""
        outcomes = await ask_all(urls, self._call, self.clock, _ANSWER_SECONDS)
        for outcome in outcomes:
            if outcome.problem is not None:
                self._noted(
                    outcome.asked,
                    evolve(self.seen(outcome.asked), last_error=_reason(outcome.problem)),
                )
        return outcomes

    async def _call(self, url: str) -> Pong:
        began = self.timer()
        pong = await self.peers.ping(url)
        if pong.node_id == str(self.own.id):
            if pong.run != self.own.run:
                raise PeerError("it has the same id as this node: was node.id copied?")
            self._url = without_slash(url)
        self._noted(
            url,
            Seen(
                last_contact=self.wall.now(),
                response_time=round(self.timer() - began, 6),
                pong=pong,
            ),
        )
        return pong

    def _noted(self, url: str, seen: Seen) -> None:
        before, self._seen[url] = self.seen(url), seen
        if seen.last_error and seen.last_error != before.last_error:
            self.log.warn("node {url}: {error}", url=url, error=seen.last_error)
        elif before.last_error and not seen.last_error:
            self.log.info("node {url} answers again", url=url)

    def answer(self, credentials: str, url: str) -> dict[str, Any]:
        """Answer the call of another node, that wanted to reach ``url``; Forbidden.

        That it came here proves nothing: a listener may have repeated it. This node learns its
        own url from a call of its own.
        """
        number = seal.number_of_call(self.peers.key, credentials, url)
        if number is None or not self._used.first(number):
            raise Forbidden(
                "not a node of this cluster",
                "all nodes of a cluster need the same secret key (auth.secret_key_file)",
            )
        return seal.sealed(self.peers.key, number, self._pong())

    def _pong(self) -> dict[str, Any]:
        return {
            "time": self.wall.now(),
            "node_id": str(self.own.id),
            "run": self.own.run,
            "hostname": self.own.host,
            "version": self.own.version,
            "pid": self.own.pid,
            "maintenance": self.maintenance,
            "ready": not self.not_ready(),
        }

    async def maintain(self, number: int, *, on: bool) -> bool:
        """Take a node out of the balance, or back; False when there is none of this id."""
        since = int(self.wall.now()) if on else 0
        if not await self.database.change(statements.maintain(number, since)):
            return False
        self.workers.changed("cluster")
        await self.look()
        return True

    async def current(self) -> None:
        """Look again if another worker has changed something, and the database can be asked."""
        if self._state != self.workers.state("cluster") and not self.health.trouble:
            with suppress(DeferredTimeout):
                await Deferred.fromCoroutine(self.look()).addTimeout(_PATIENCE_OF_ONE, self.clock)

    async def restart_all(self) -> list[RestartStep] | None:
        """Begin to restart all nodes that answer, this one at last; None during another restart.

        Raises Unavailable.
        """
        await self.look()
        await self.heartbeat()
        now = int(self.wall.now())
        order = sorted(self.urls(), key=lambda url: (self.is_own(url), url))
        steps = [self._step(position, url, now) for position, url in enumerate(order)]
        return steps if await self.database.change(statements.begin(steps)) else None

    def _step(self, position: int, url: str, now: int) -> RestartStep:
        """Plan the restart of a node that answers, and leave out one that does not."""
        if self.is_own(url):
            return RestartStep(
                position=position, node=self.own.id, run=self.own.run, url=url, changed=now
            )
        seen = self.seen(url)
        if seen.pong is None or seen.last_error or not seen.pong.node_id.isdigit():
            reason = seen.last_error or "it was never reached"
            return RestartStep(
                position=position, node=0, run=0, url=url, changed=now,
                state=SKIPPED, message=f"it does not answer: {reason}",
            )  # fmt: skip
        node, run = int(seen.pong.node_id), seen.pong.run
        return RestartStep(position=position, node=node, run=run, url=url, changed=now)

    async def look(self) -> None:
        """Read what all nodes share, and do what is to be done; the database may be away."""
        if not self.clustered:
            return
        try:
            state, before = self.workers.state("cluster"), self.maintenance
            await self._enter()
            self.members, self.steps = await self.database.run(statements.state)
            self._state = state
            self.workers.begun()
            if self.maintenance != before:
                # All workers answer /mon/ready alike.
                self.workers.changed("cluster")
            self._take_part()
            if not self.leaving:
                await self._rolling.look(self.steps, self.members)
        except (Unavailable, DutyLostError) as error:
            self.log.debug("the cluster cannot be looked at: {reason}", reason=str(error))

    def _take_part(self) -> None:
        """Want the duty of restarts, but not at once again after it was left to others."""
        now = self.timer()
        if self.duties.held(DUTY) is not None:
            self._abstain = now + _ABSTAIN
        elif now >= self._abstain:
            self.duties.want(DUTY)

    async def _enter(self) -> None:
        """Enter this node, and where it is reached, as soon as that is known."""
        mine = self.members.get(self.own.id)
        if self._stored_url is None or mine is None:
            await self.database.change(statements.enter(self.own))
            self._stored_url = ""
        if self._url and (self._stored_url != self._url):
            await self.database.change(statements.reached_at(self.own, self._url))
            self._stored_url = self._url

    async def _beat(self) -> None:
        if self.clustered:
            await self.heartbeat()

    def configure(self, config: ClusterConfig, drain: float) -> None:
        self.config, self.drain = config, drain
        for task in self._periodic[1:]:
            task.interval = config.heartbeat_interval
        self._seen = {url: seen for url, seen in self._seen.items() if url in config.nodes}
        if self._url not in {without_slash(node) for node in config.nodes}:
            self._url = ""

    def startService(self) -> None:
        """Take part; the database and the duties must run."""
        super().startService()
        interval = self.config.heartbeat_interval
        self._periodic = (
            Periodic(self.clock, _LOOK, self.look, "looking at the cluster"),
            Periodic(self.clock, interval, self._beat, "calling the other nodes"),
        )
        for task in self._periodic:
            task.startService()

    def leave_all(self) -> None:
        """Begin the restart of this node: all of its workers leave."""
        self.workers.tell("node leaves")
        self._leaves()

    def _leaves(self) -> None:
        self.leaving = True
        self.leave()

    def stopService(self) -> Deferred[None]:
        """Fire when no call is open and no connection is kept."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for task in self._periodic:
            await task.stopService()
        await self.peers.close()


def _reason(problem: Exception) -> str:
    if isinstance(problem, DeferredTimeout):
        return f"no answer within {_ANSWER_SECONDS:g} s"
    return str(problem) or type(problem).__name__
