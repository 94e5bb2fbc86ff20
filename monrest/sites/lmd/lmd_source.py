"""An LMD and the sites that it stands for (docs/spec/lmd.md).

Its list of sites is read every two seconds and has the health of each of them. Before it was
read for the first time there is one site with the id ``lmd``, which waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred, succeed

from monrest.base.values import Capabilities, Row
from monrest.config.sections import SiteConfig
from monrest.livestatus.command_channel import CommandChannel
from monrest.livestatus.core_errors import (
    ConnectError,
    HangingError,
    LivestatusError,
    NoHeaderError,
    RefusedError,
    first_line,
)
from monrest.livestatus.endpoints import AlternativeEndpoints
from monrest.livestatus.inbox import AnswerMemory
from monrest.livestatus.lql import build
from monrest.livestatus.pool import CoreRequest, Pool
from monrest.query.model import Pushed
from monrest.sites.capabilities import UNKNOWN, Program, digest
from monrest.sites.health import SIGN_OF_LIFE, Breaker, pause_after
from monrest.sites.lmd.joint_queries import JointQueries
from monrest.sites.site import PROBE_TIMEOUT
from monrest.sites.source import RelayedSite, RelaySource, SiteReport
from monrest.sites.static import NAEMON, joined

if TYPE_CHECKING:
    from monrest.config.sections import LmdConfig

SITE_COLUMNS = (
    *("addr", "bytes_received", "bytes_send", "federation_addr", "federation_key"),
    *("federation_name", "federation_type", "federation_version", "flags", "idling", "key"),
    *("last_error", "last_online", "last_query", "last_update", "lmd_version", "name", "parent"),
    *("peer_key", "peer_name", "queries", "response_time", "section", "status"),
)
PROGRAM_COLUMNS = (
    *("peer_key", "program_version", "livestatus_version", "program_start", "nagios_pid"),
    "localtime",
)
COLUMN_COLUMNS = ("table", "name", "type")

_UP = (0, 1)
"""Up, and up with data that were not brought up to date lately."""
_BEGINS = (4, 5)
"""Not looked at yet, and read for the first time."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}\Z")
_TEXTS = frozenset(
    {"addr", "key", "last_error", "lmd_version", "name", "parent"}
    | {"peer_key", "peer_name", "section"}
)
_LISTS = frozenset(
    {"flags"} | {column for column in SITE_COLUMNS if column.startswith("federation_")}
)
_ALSO_LOGGED = ("current_host_contacts", "current_service_contacts")
"""Joined columns that the log of an LMD has."""

NAME = "lmd"
"""Id of the site that stands for an LMD of which nothing is known yet."""
GRACE = 0.6
"""Seconds for which no connection can be made before all sites count as down."""
LONGEST_PAUSE = 0.5
"""Seconds at most between two attempts to reach an LMD that is down."""
IDLE = 30.0
"""Seconds that a connection without work is kept; an LMD closes it after 60."""

_SITES = Pushed(table="sites", columns=SITE_COLUMNS)
_PROGRAMS = Pushed(table="status", columns=PROGRAM_COLUMNS)
_COLUMNS = Pushed(table="columns", columns=COLUMN_COLUMNS)


@frozen(kw_only=True)
class LmdFacts:
    """The report of an LMD on one site; ``record`` is its row, ``program`` the core there."""

    id: str
    name: str
    section: str
    address: str
    status: int
    last_error: str
    parent: str
    record: Mapping[str, Any] = field(repr=False)
    program: Program | None = None

    @property
    def icinga2(self) -> bool:
        """Whether its core is an Icinga 2, as the LMD found or as it was configured."""
        return any(flag.lower() == "icinga2" for flag in self.record["flags"])

    @property
    def up(self) -> bool:
        """Whether it answers for the site."""
        return self.status in _UP and self.program is not None

    @property
    def begins(self) -> bool:
        """Whether it will know in a moment."""
        return self.status in _BEGINS or (self.status in _UP and self.program is None)


def facts_of(
    sites: Sequence[Row], programs: Sequence[Row], run: str
) -> tuple[dict[str, LmdFacts], list[str]]:
    """The sites by id, in the order of their ids, and the ids that cannot be used.

    ``run`` is the run of the LMD itself. A site that only stands for those behind it is left out
    once these are there.
    """
    running = {str(row[0]): _program(row, run) for row in programs}
    records = sorted(map(_record, sites), key=lambda record: str(record["key"]))
    parents = {record["parent"] for record in records}
    facts: dict[str, LmdFacts] = {}
    strange: list[str] = []
    for record in records:
        key = record["key"]
        if not _ID.match(key) or key in ("ALL", "LOCAL"):
            strange.append(key)
        elif key not in parents or "MultiBackend" not in record["flags"]:
            facts[key] = LmdFacts(
                id=key,
                name=record["name"] or key,
                section=record["section"] or "Default",
                address=record["addr"],
                status=int(record["status"]),
                last_error=first_line(record["last_error"]),
                parent=record["parent"],
                record=record,
                program=running.get(key),
            )
    return facts, strange


def _record(row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in zip(SITE_COLUMNS, row, strict=True):
        if name in _TEXTS:
            record[name] = first_line(value) if isinstance(value, str) else ""
        elif name in _LISTS:
            record[name] = [str(item) for item in value] if isinstance(value, list) else []
        else:
            record[name] = value if isinstance(value, (int, float)) else 0
    return record


def _program(row: Row, run: str) -> Program:
    _, version, livestatus, start, pid, localtime = row
    return Program(
        program_version=str(version or ""),
        livestatus_version=str(livestatus or ""),
        program_start=start if isinstance(start, int) else 0,
        nagios_pid=pid if isinstance(pid, int) else 0,
        localtime=localtime if isinstance(localtime, (int, float)) else None,
        instances=(run,),
    )


def capabilities_of(columns: Sequence[Row]) -> Capabilities:
    """The capabilities of the sites of an LMD with this table of columns.

    It serves the columns of other tables under their prefix as well, which it does not list. Of
    its own ones those count that a core has, with their types there.
    """
    listed: dict[str, set[str]] = {}
    for table, name, _ in columns:
        listed.setdefault(str(table), set()).add(str(name))
    own = {
        table: {
            name: kind for name, kind in types.items() if name in listed.get(table, frozenset())
        }
        for table, types in NAEMON.items()
    }
    tables = joined(own)
    tables["log"] = {
        **own["log"],
        **{name: "list" for name in _ALSO_LOGGED if name in listed.get("log", frozenset())},
    }
    return Capabilities(kind="lmd", tables=tables, key=digest("lmd", tables))


def behind(capabilities: Capabilities, *, icinga2: bool) -> Capabilities:
    """The capabilities of one site, by the kind of its core."""
    if not icinga2:
        return capabilities
    return evolve(capabilities, over_icinga2=True, key=f"{capabilities.key}-icinga2")


@define(eq=False)
class QueriesOfSite:
    """The queries of one site; see ``transport.Queries``. The connections are those of the LMD."""

    joint: JointQueries
    site: str
    limit: int = 0
    process: int = 0
    quiet: bool = True

    def query(self, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        return self.joint.query(self.site, asked, timeout)

    def keep(self, idle: float) -> None:
        """Nothing is kept here."""

    def stop(self) -> Deferred[None]:
        """Nothing is left here."""
        return succeed(None)

    def retire(self) -> None:
        """Nothing is kept here."""


@define(eq=False)
class LmdSite(RelayedSite):
    """``config`` is made of what the LMD reports of the site and of what is configured for it.

    ``facts`` are what it reports now, None before it was asked for the first time.
    """

    source: LmdSource = field(kw_only=True)
    facts: LmdFacts | None = field(kw_only=True, default=None)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        where = [address.where() for address in self.source.addresses]
        self.address = self.facts.address if self.facts is not None else ""
        self.local = all(address.local for address in where) and self.address.startswith("/")
        texts = [self.address, *(address.path or address.host for address in where)]
        self._hide = tuple(text for text in texts if any(sign in text for sign in "/.:"))

    def _connect(self) -> None:
        self.pool = QueriesOfSite(self.source.queries, self.id)
        self.commands = CommandChannel(
            clock=self.reactor, endpoint=lambda: self.source.endpoint, backend=self.id
        )

    def learn(self, facts: LmdFacts, capabilities: Capabilities) -> None:
        self.facts = facts
        if self._core.capabilities != capabilities or not self._core.capabilities.tables:
            self._core.capabilities = capabilities

    def report(self) -> SiteReport:
        facts = self.facts
        if facts is None:
            return SiteReport(reason="the LMD has no such site")
        return SiteReport(
            program=facts.program if facts.up else None,
            reason=facts.last_error or "the LMD has not read it yet",
            begins=facts.begins,
        )


@define(eq=False, kw_only=True)
class LmdSource(RelaySource[LmdSite]):
    """An LMD, or several of which one is asked."""

    interval = 2.0

    reactor: Any
    config: LmdConfig
    memory: AnswerMemory
    addresses: tuple[SiteConfig, ...] = field(init=False)
    endpoint: AlternativeEndpoints = field(init=False)
    queries: JointQueries = field(init=False)
    _run: int = field(init=False, default=0)
    """Counts the runs of the LMD that were seen."""
    _process: int = field(init=False, default=0)
    _counted: Mapping[str, float] = field(init=False, factory=dict)
    _version: tuple[str, int] = field(init=False, default=("", -1))
    _capabilities: Capabilities | None = field(init=False, default=None)
    _strange: Sequence[str] = field(init=False, default=())
    _asking: Deferred[list[Row]] | None = field(init=False, default=None)
    _hung: LivestatusError | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        config = self.config
        self.addresses = tuple(
            SiteConfig(
                id=NAME,
                name="LMD",
                address=address,
                connections=config.connections,
                timeout=config.timeout,
            )
            for address in config.addresses
        )
        self.endpoint = AlternativeEndpoints(self.reactor, self.addresses)
        self.breaker = Breaker(
            clock=self.reactor,
            probe=self._look,
            site=NAME,
            interval=self.interval,
            retry=lambda failures: min(LONGEST_PAUSE, pause_after(failures)),
            grace=GRACE,
            on_hang=self._hangs,
            on_change=self._follow,
        )
        pool = partial(
            Pool,
            clock=self.reactor,
            endpoint=lambda: self.endpoint,
            limit=config.connections,
            idle=IDLE,
            local=all(address.where().local for address in self.addresses),
            on_heard=self.breaker.hear,
        )
        self.queries = JointQueries(
            self.reactor, pool(on_lost=self._lost), pool(), on_lost=self._lost
        )
        self.sites = (LmdSite(self.reactor, self.addresses[0], source=self, memory=self.memory),)

    def soon(self) -> float:
        return 0.3

    def _lost(self) -> None:
        """A connection ended: whether the LMD is still there shows in a moment."""
        now = self.reactor.seconds()
        self.breaker.failed(ConnectError("connection lost", momentary=True), now)

    def _hangs(self, error: LivestatusError) -> None:
        """Nothing waits for it any longer; the next address is tried, where there is one."""
        super()._hangs(error)
        self.endpoint.skip()
        for pool in (self.queries.pool, self.queries.logs):
            pool.keep(0.0)
            pool.keep(IDLE)
        if self._asking is not None and len(self.addresses) > 1:
            self._hung = error
            self._asking.cancel()

    async def _look(self) -> Program:
        rows = await self._rows(_SITES)
        programs = await self._rows(_PROGRAMS)
        # Another run of the LMD is another process, or has counters that have gone back.
        key, sent, version_at = map(SITE_COLUMNS.index, ("key", "bytes_send", "lmd_version"))
        counted = {str(row[key]): row[sent] for row in rows if isinstance(row[sent], (int, float))}
        process = self.queries.pool.process
        back = any(counted.get(program, 0) < count for program, count in self._counted.items())
        if process != self._process or back:
            self._run += 1
        self._process, self._counted = process, counted
        version = (str(rows[0][version_at]) if rows else "", self._run)
        if self._capabilities is None or self._version != version:
            self._capabilities = capabilities_of(await self._rows(_COLUMNS))
            self._version = version
        facts, strange = facts_of(rows, programs, f"lmd{self._run}")
        if strange and strange != self._strange:
            self.log.warn("sites of the LMD whose ids cannot be used: {ids!r}", ids=strange)
        self._strange = strange
        self._take(facts)
        return Program(program_version=version[0], instances=(f"lmd{self._run}",))

    async def _rows(self, pushed: Pushed) -> list[Row]:
        asked = CoreRequest(build(pushed, UNKNOWN), len(pushed.columns), urgent=True)
        self._asking = self.queries.pool.query(asked, min(PROBE_TIMEOUT, self.config.timeout))
        try:
            return await self._asking
        except CancelledError:
            if self._hung is None:
                raise
            raise HangingError(SIGN_OF_LIFE) from None
        except NoHeaderError as error:
            raise RefusedError(400, error.text) from None
        finally:
            self._asking = self._hung = None

    def _take(self, listed: dict[str, LmdFacts]) -> None:
        assert self._capabilities is not None
        current, before = {site.id: site for site in self.sites}, self.configs()
        away = {fact.id for fact in listed.values() if not fact.up}
        for site in self.sites:
            # Sites behind another LMD are listed once that one was read.
            facts = site.facts
            if facts is not None and site.id not in listed and facts.parent in away:
                listed[site.id] = evolve(facts, status=2, last_error="its LMD has not read it yet")
        sites: list[LmdSite] = []
        for facts in listed.values():
            config = self._config(facts)
            old = current.get(facts.id)
            site = (
                old
                if old is not None and old.config == config
                else LmdSite(self.reactor, config, source=self, facts=facts, memory=self.memory)
            )
            program = facts.program
            site.learn(
                facts,
                evolve(
                    behind(self._capabilities, icinga2=facts.icinga2),
                    program_version=program.program_version if program else "",
                    livestatus_version=program.livestatus_version if program else "",
                ),
            )
            sites.append(site)
        # An LMD without any site shall not count as one that answers.
        self.take(sites or [site for site in self.sites if site.facts is None], before)

    def _config(self, facts: LmdFacts) -> SiteConfig:
        own = self.config.own(facts.id)
        return evolve(
            self.addresses[0],
            id=facts.id,
            name=facts.name,
            section=facts.section,
            hidden=own.hidden if own else False,
            groups=own.groups if own else (),
            resource_file=own.resource_file if own else "",
        )

    @property
    def name(self) -> str:
        return "the LMD"

    @property
    def quiet(self) -> bool:
        return self.queries.pool.quiet and self.queries.logs.quiet and super().quiet

    def _end(self) -> list[Deferred[None]]:
        return [*super()._end(), self.queries.pool.stop(), self.queries.logs.stop()]

    def retire(self) -> Deferred[None]:
        left = super().retire()
        for pool in (self.queries.pool, self.queries.logs):
            pool.retire()
        return left
