"""One configured site: its connections, capabilities and health."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self
from zlib import crc32

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredList, fail
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.python.failure import Failure

from monrest.base.meters import Sample
from monrest.base.room import Share
from monrest.base.values import Capabilities, Row, SiteProblem
from monrest.livestatus.command_channel import IDLE, CommandChannel
from monrest.livestatus.core_errors import (
    LivestatusError,
    LostCoreError,
    QueryTimeoutError,
    RefusedError,
    first_line,
)
from monrest.livestatus.endpoints import endpoint_for, uses_tls
from monrest.livestatus.inbox import AnswerMemory, StoredRows
from monrest.livestatus.pool import CoreRequest, Pool
from monrest.query.model import Pushed
from monrest.sites.asking import prepare
from monrest.sites.capabilities import (
    UNKNOWN,
    Program,
    detect,
    ends_in_order,
    in_order,
    read_status,
    status_query,
)
from monrest.sites.health import INTERVAL, Breaker, Health
from monrest.sites.inflight import InFlight, SharedQueries
from monrest.sites.normalise import RowTypes
from monrest.sites.transport import CommandSender, Hops, Queries

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig

LOG_TIMEOUT = 300.0
"""Seconds for a log query, unless the site's own time-out is longer."""
PROBE_TIMEOUT = 10.0
LOOKED_AT = 20_000
"""Names whose order shows that of all: a core sorts all that it has, or nothing."""

_DEFAULT_CONNECTIONS = 4
_IDLE = 60.0
"""Seconds that a connection without work is kept."""
_FEW_CONNECTIONS = 2
_ONE_BY_ONE = ("shinken",)
"""Cores that answer one request after the other: a probe behind a slow query proves nothing."""
_MK_MOST = 8


@frozen
class Deadline:
    """The client waits for ``seconds`` in all, until ``until`` by the reactor's clock."""

    seconds: float
    until: float


@define(eq=False)
class _Core:
    """The known state of the core; ``stale``: it refused a query, so it may be another core.

    ``looked_at`` are the tables whose order was or is being looked at.
    """

    capabilities: Capabilities | None = None
    stale: bool = False
    looked_at: set[str] = field(factory=set)
    failed: int = 0
    """Queries without an answer."""
    facts: Any = None
    """Its row in the list of a relay."""


@define(eq=False)
class Site:
    """A site; ``reactor`` connects and keeps the time.

    ``endpoint`` replaces what the configuration's address says. ``memory`` is where its rows are.
    ``deadline`` is that of the request, None: the site has as long as the configuration says.
    """

    kind: ClassVar[str] = "livestatus"

    reactor: Any
    config: SiteConfig
    endpoint: Callable[[], IStreamClientEndpoint] | None = None
    memory: AnswerMemory = field(kw_only=True)
    deadline: Deadline | None = field(init=False, default=None)
    pool: Queries = field(init=False)
    commands: CommandSender = field(init=False)
    breaker: Breaker = field(init=False)
    in_flight: InFlight = field(init=False)
    shared: SharedQueries = field(init=False, factory=SharedQueries)
    local: bool = field(init=False, default=False)
    address: str = field(init=False, default="")
    _hide: tuple[str, ...] = field(init=False, default=())
    _core: _Core = field(init=False, factory=_Core)

    def __attrs_post_init__(self) -> None:
        config = self.config
        try:
            where = config.where()
        except ValueError:
            self.address = config.address
        else:
            self.local = where.local
            self.address = where.path or where.url or f"{where.host}:{where.port}"
            # A bare word such as "core" is no secret, and would be cut out of every message.
            host = where.host if "." in where.host or ":" in where.host else ""
            self._hide = tuple(text for text in (self.address, host) if len(text) > 1)
        self.breaker = self._new_breaker(self.give_up)
        self.in_flight = InFlight(self.reactor, self.breaker, self._slow)
        self._connect()

    def _new_breaker(self, on_hang: Callable[[LivestatusError], None]) -> Breaker:
        # Sites started together shall not be probed together for ever.
        spread = 1 + crc32(self.config.id.encode()) / 2**32 / 10
        return Breaker(
            clock=self.reactor,
            probe=self._probe,
            site=self.config.id,
            interval=INTERVAL * spread,
            on_hang=on_hang,
        )

    def _connect(self) -> None:
        """Make what queries and commands go over; nothing is sent yet."""
        endpoint = self.endpoint or partial(endpoint_for, self.reactor, self.config)
        tls = uses_tls(self.config) and self.endpoint is None
        self.commands = CommandChannel(clock=self.reactor, endpoint=endpoint, tls=tls)
        self.pool = self.new_pool(self.config.connections)

    def new_pool(self, limit: int) -> Pool:
        """Make a pool of ``limit`` connections, beside others that there are."""
        return Pool(
            clock=self.reactor,
            endpoint=self.endpoint or partial(endpoint_for, self.reactor, self.config),
            limit=limit,
            idle=_IDLE,
            tls=uses_tls(self.config) and self.endpoint is None,
            local=self.config.address.startswith("unix:"),
            on_lost=self.breaker.suspect,
            on_heard=self.breaker.hear,
        )

    @property
    def id(self) -> str:
        """``peer_key``."""
        return self.config.id

    @property
    def name(self) -> str:
        """``peer_name``."""
        return self.config.name

    @property
    def section(self) -> str:
        """``peer_section``."""
        return self.config.section

    @property
    def hidden(self) -> bool:
        """Whether only an explicit selection means it."""
        return self.config.hidden

    @property
    def hops(self) -> Hops:
        """The way to the core, which is right here."""
        version = self.capabilities.livestatus_version if self.capabilities else ""
        return Hops(
            keys=(self.id,),
            names=(self.name,),
            addresses=(self.address,),
            kinds=(self.kind,),
            versions=(version,),
        )

    @property
    def capabilities(self) -> Capabilities | None:
        """The capabilities of the core; None until it answered for the first time.

        The last known ones stay, also while it is down.
        """
        return self._core.capabilities

    @property
    def health(self) -> Health:
        return self.breaker.health

    @property
    def connected(self) -> bool:
        """Whether the last probe was answered."""
        return self.health.state == "up"

    @property
    def status(self) -> int:
        """0 up, 1 not (``/sites``)."""
        return 0 if self.connected else 1

    @property
    def last_error(self) -> str:
        """One line without paths and addresses; empty while up."""
        return self.public_reason(self.health.last_error)

    @property
    def quiet(self) -> bool:
        """Whether nothing is left: no probe, no connection, no query, no command."""
        return not self.breaker.running and self.pool.quiet and self.commands.quiet

    def measured(self) -> Iterator[Sample]:
        yield "site_up", (self.id,), int(self.connected)
        yield "site_query_errors_total", (self.id,), self._core.failed
        if isinstance(self.pool, Pool):
            yield from self.pool.measured(self.id)

    def within(self, deadline: Deadline | None) -> Self:
        """The same site for a request with this deadline."""
        twin = copy(self)
        twin.deadline = deadline
        return twin

    @property
    def timeout(self) -> float:
        """Seconds that a query or a list of commands may take, 0 or less when it is too late."""
        return self._in_time(self.config.timeout)

    def _in_time(self, seconds: float) -> float:
        if self.deadline is None:
            return seconds
        left: float = self.deadline.until - self.reactor.seconds()
        return min(seconds, left)

    def too_late(self) -> LivestatusError:
        """Why the request does not wait any longer."""
        seconds = self.deadline.seconds if self.deadline else self.config.timeout
        missed = self.breaker.missed
        return QueryTimeoutError(seconds) if missed is None else missed.anew()

    def verdict(self) -> Deferred[None]:
        """Wait until the site is up; fails with the last error when it is down, or too late."""
        waiting = self.breaker.verdict()
        if self.deadline is None or waiting.called:
            return waiting

        def late(result: Failure | None, _: float) -> Failure | None:
            return None if result is None else Failure(self.too_late())

        return waiting.addTimeout(max(0.0, self.timeout), self.reactor, late)

    async def ask(
        self, pushed: Pushed, layout: RowTypes | None = None, share: Share | None = None
    ) -> list[Row]:
        """Rows of this site alone: of ``layout`` if given, else as the core sends them.

        Waits for room for them, in ``share``, which ends with the rows.
        Raise LivestatusError if the site is down or does not answer as it should.
        """
        await self.verdict()
        assert self.capabilities is not None
        inbox = self.memory.inbox(share)
        stored = StoredRows(inbox, self)
        ask = prepare(pushed, self.capabilities, layout).with_rows_in(stored)
        try:
            rows = await self.query(ask)
            (opened,) = await inbox.opened([(stored, rows)])
        except BaseException:
            inbox.let_go()
            raise
        if isinstance(opened, LivestatusError):
            raise opened
        return opened

    def query(self, ask: CoreRequest, *, shared: bool = False) -> Deferred[list[Row]]:
        """Send what was prepared for this site's capabilities; fails with LivestatusError.

        The caller has looked at ``breaker.error`` before. ``shared``: an equal query that is under
        way may answer it.
        """
        timeout = max(LOG_TIMEOUT, self.config.timeout) if ask.log else self.config.timeout
        if self.deadline is not None:
            timeout = self._in_time(timeout)
        if timeout <= 0:
            return fail(self.too_late())
        core = self._core.capabilities
        assert core is not None
        has_deadline = self.deadline is not None
        exchange = partial(self._send, ask, core.key)
        send = partial(self.in_flight.run, exchange, timeout, has_deadline=has_deadline)
        alone = has_deadline or not shared
        done = send() if alone else self.shared.ask(ask, send)
        return done.addErrback(self._failed)

    def _send(self, ask: CoreRequest, core: str, seconds: float) -> Deferred[list[Row]]:
        """Send a query that was made for the kind of core with the key ``core``."""
        now = self._core.capabilities
        if now is None or now.key != core:
            return fail(LostCoreError("another core has taken its place"))
        return self.pool.query(ask, seconds)

    def learn_order(self, table: str, order: tuple[str, ...]) -> None:
        """Look, once for each start of the core, whether a table comes in this order by itself.

        A Naemon sorts its hosts and services when it starts. To sort 20,000 services again for the
        first hundred takes it eight times as long as to send those. No request waits for the
        look: the core is asked to sort until it is known.
        """
        capabilities, looked_at = self._core.capabilities, self._core.looked_at
        if capabilities is None or capabilities.kind != "naemon" or table in looked_at:
            return
        if self.breaker.error is not None:
            return
        looked_at.add(table)
        if not all(capabilities.has(table, name) for name in order):
            return

        def learn(rows: list[Row]) -> None:
            now = self._core.capabilities
            if now is not None and self._core.looked_at is looked_at and in_order(rows):
                self._core.capabilities = evolve(now, ordered=now.ordered | {table})

        def go_on(failure: Failure) -> None:
            failure.trap(LivestatusError)
            looked_at.discard(table)

        names = Pushed(table=table, columns=order, limit=LOOKED_AT)
        looking = self.query(evolve(prepare(names, capabilities), transform=ends_in_order))
        looking.addCallbacks(learn, go_on)

    def problem(self, error: LivestatusError) -> SiteProblem:
        """The text for users about a failure of this site."""
        reason = self.public_reason(first_line(error.reason))
        return SiteProblem(self.id, self.name, reason, error.timed_out)

    def broken(self, error: LivestatusError) -> SiteProblem:
        """The text for users when a complete answer turns out to be broken."""
        self._core.failed += 1
        self.breaker.suspect()
        return self.problem(error)

    def incomplete(self) -> SiteProblem:
        """The text for users when only some of the sites behind it have answered."""
        return SiteProblem(self.id, self.name, "incomplete: sites of the other side have failed")

    def public_reason(self, reason: str) -> str:
        """A text of the core without the site's address."""
        for text in self._hide:
            if text in reason:
                reason = reason.replace(text, "…")
        return reason

    def _failed(self, failure: Failure) -> Failure:
        self._core.failed += isinstance(failure.value, LivestatusError)
        if isinstance(failure.value, RefusedError):
            self._core.stale = True
        if self.deadline is not None and isinstance(failure.value, QueryTimeoutError):
            return Failure(self.too_late())
        return failure

    def _slow(self) -> None:
        """A request waits for long."""
        if self.capabilities is not None and self.capabilities.kind in _ONE_BY_ONE:
            self.breaker.suspect()
        else:
            self.breaker.slow()

    def give_up(self, error: LivestatusError) -> None:
        """The core hangs: nothing waits for it any longer."""
        self.in_flight.end(error)
        self.commands.end(error)

    async def _probe(self) -> Program:
        async def ask(pushed: Pushed) -> list[Row]:
            asked = evolve(prepare(pushed, UNKNOWN), transform=None, log=False, urgent=True)
            return await self.pool.query(asked, min(PROBE_TIMEOUT, self.config.timeout))

        program = read_status(await ask(status_query(self.capabilities)))
        if self.pool.process == program.nagios_pid:
            program = evolve(program, process=program.nagios_pid)
        core = self._core
        fresh = program.same_run(self.health.program)
        if core.capabilities is None or core.stale or not fresh:
            stale, core.stale = core.stale, False
            try:
                capabilities = await detect(program, ask)
            except LivestatusError:
                core.stale = stale
                raise
            core.capabilities = capabilities
            core.looked_at = set()
            self._suit(capabilities)
        return program

    def _suit(self, capabilities: Capabilities) -> None:
        """Hold no more connections than the core can spare, and none for longer.

        Each connection holds one of the ten threads of an MK Livestatus. An open one, busy or
        not, holds one of the threads with which an Icinga 2 does all of its work, checks
        included: two per processor, so that four idle ones stop the whole core on a small machine
        (seen on 2.13.6).
        """
        wanted, kind = self.config.connections, capabilities.kind
        if kind in ("mk", "icinga2") and wanted == _DEFAULT_CONNECTIONS:
            wanted = _FEW_CONNECTIONS
        self.pool.limit = min(wanted, _MK_MOST) if kind == "mk" else wanted
        self.pool.keep(0.0 if kind == "icinga2" else _IDLE)
        self.commands.keep(0.0 if kind == "icinga2" else IDLE)

    def startService(self) -> None:
        """Connect in the background."""
        self.breaker.startService()

    def stopService(self) -> Deferred[None]:
        """Fail the queries, finish sending commands; fires when no connection is left."""
        self.in_flight.finish()
        left = DeferredList([self.breaker.stopService(), self.pool.stop(), self.commands.stop()])
        return left.addCallback(lambda _: None)

    def retire(self) -> Deferred[None]:
        """Stop probing and keep no connection, but finish what requests still ask.

        A site that was never up is probed to the end first: requests wait for that.
        """
        self._close_idle()
        # A first probe that was under way has suited the connections to the core meanwhile.
        return self.breaker.retire().addCallback(lambda _: self._close_idle())

    def _close_idle(self) -> None:
        self.in_flight.finish()
        self.pool.retire()
        self.commands.keep(0.0)
