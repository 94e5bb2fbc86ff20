"""A configured address of another instance, and the sites that it stands for.

An instance lists its sites under ``/sites``. What goes beyond the API's columns comes when it is
named, from an instance that has it: the way to the core, what the core can do, who may use it.
Before the list was asked for the first time there is one site with the configured id, which waits.
It is looked at as often as a core is; all sites of an address share one request
(docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, fail

from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import (
    LivestatusError,
    ProtocolError,
    first_line,
)
from monrest.livestatus.inbox import AnswerMemory
from monrest.sites.capabilities import Program, digest
from monrest.sites.federation.answers import Record, records
from monrest.sites.federation.questions import RestQueries, Running
from monrest.sites.federation.remote import (
    JSON,
    MOST_HOPS,
    OnBehalfOf,
    RefusedByRemoteError,
    Remote,
)
from monrest.sites.federation.remote_commands import RestCommands
from monrest.sites.health import Breaker
from monrest.sites.site import PROBE_TIMEOUT, Site
from monrest.sites.source import RelayedSite, RelaySource, SiteReport
from monrest.sites.static import naemon
from monrest.sites.transport import BehindRelayError, Hops

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig

_API = (
    "connected", "federation_addr", "federation_key", "federation_name", "federation_type",
    "federation_version", "id", "last_error", "localtime", "name", "section",
)  # fmt: skip
ON_DEMAND = ("core", "groups", "hidden", "instances", "program_start")
"""Columns of ``/sites`` for instances that federate; ``tables`` is asked once for each core."""

LISTING = f"/sites?columns={','.join((*_API, *ON_DEMAND))}"

_MOST_SITES = 1000
_MOST_TABLES = 100
_MOST_COLUMNS = 2000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z", re.ASCII)
_TYPES = frozenset({"string", "int", "float", "list", "dict", "time"})

_KEY_REFUSED = (401, 403)
_FOR_USERS_ONLY = "by secret key"
"""In what an instance answers to its own secret key, which acts for users only."""
_NO_SUCH_LIST = (400, 404, 405, 410)
_DEFAULT = "Default"


@frozen(kw_only=True)
class Facts:
    """One site of the other side, by the id that it has there.

    ``core`` is a digest of what its core can do, empty when the other side does not list it.
    """

    id: str
    name: str
    section: str = ""
    connected: bool = False
    last_error: str = ""
    localtime: float = 0.0
    program_start: int = 0
    core: str = ""
    hidden: bool = False
    groups: tuple[str, ...] = ()
    hops: Hops


def listed_facts(records: Sequence[Record], instance: str) -> tuple[Facts, ...]:
    """The sites in the other side's order, without those that are reached through ``instance``.

    Those that no request could reach any more are left out too. Raise ProtocolError when it is
    not a list of sites.
    """
    if len(records) > _MOST_SITES:
        raise ProtocolError(f"a list of more than {_MOST_SITES} sites")
    sites: dict[str, Facts] = {}
    for record in records:
        own_facts = _facts_of(record)
        if own_facts.id in sites:
            raise ProtocolError(f"two sites with the id {own_facts.id}")
        hops = own_facts.hops
        near = max(len(hops.instances), len(hops.keys)) <= MOST_HOPS
        if near and instance not in hops.instances:
            sites[own_facts.id] = own_facts
    return tuple(sites.values())


def _facts_of(record: Record) -> Facts:
    key, name = record.get("id"), record.get("name")
    if not isinstance(key, str) or not _ID.match(key) or not isinstance(name, str):
        raise ProtocolError("a site without id and name")
    hops = {
        word: _texts(record.get(f"federation_{word}"))
        for word in ("key", "name", "addr", "type", "version")
    }
    longest = max(1, *map(len, hops.values()))
    keys, names, addresses, kinds, versions = (
        (*hop, *[""] * (longest - len(hop))) for hop in hops.values()
    )
    return Facts(
        id=key,
        name=first_line(name) or key,
        section=_text(record.get("section")),
        connected=record.get("connected") in (1, True),
        last_error=_text(record.get("last_error")),
        localtime=_number(record.get("localtime")),
        program_start=int(_number(record.get("program_start"))),
        core=_text(record.get("core")),
        hidden=record.get("hidden") in (1, True),
        groups=_texts(record.get("groups")),
        hops=Hops(
            keys=keys,
            names=names,
            addresses=addresses,
            kinds=kinds,
            versions=versions,
            instances=_texts(record.get("instances")),
        ),
    )


def _text(value: Any) -> str:
    return first_line(value) if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(map(_text, listed[: 4 * MOST_HOPS]))


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and 0 <= value < 2**53 else 0


def capabilities_of(tables: Mapping[str, Mapping[str, str]], version: str) -> Capabilities:
    """The capabilities of a core with these tables behind another instance."""
    key = digest("rest", tables)
    return Capabilities(kind="rest", livestatus_version=version, tables=tables, key=key)


def listed_tables(records: Iterable[Record]) -> Mapping[str, Mapping[str, str]]:
    """Tables and columns of the first site that has them, with their types.

    Those of a Naemon when none does: what the core lacks is empty in the rows of its instance.
    """
    listed: Mapping[str, Any] = next(
        (record["tables"] for record in records if isinstance(record.get("tables"), dict)), {}
    )
    by_instance: dict[str, dict[str, str]] = {}
    for table, columns in list(listed.items())[:_MOST_TABLES]:
        if _NAME.match(table) and isinstance(columns, dict):
            by_instance[table] = {
                name: kind
                for name, kind in list(columns.items())[:_MOST_COLUMNS]
                if _NAME.match(name) and kind in _TYPES
            }
    return by_instance if by_instance.get("hosts") else naemon()


@define(eq=False)
class FederatedSite(RelayedSite):
    """``config`` is that of the address with what is this site's own: id, name, section, groups."""

    kind: ClassVar[str] = "http"

    source: FederationSource = field(kw_only=True)

    def _connect(self) -> None:
        running = Running()
        self.pool = RestQueries(self.source.remote, self._path, running=running)
        self.commands = RestCommands(self.source.remote, self._path, self.memory.threads)

    @property
    def facts(self) -> Facts | None:
        """Its row in the list of the other side, None until that was read for the first time."""
        facts: Facts | None = self._core.facts
        return facts

    def _path(self) -> str:
        """The path of the site below the API's root of the other side. Raises BehindRelayError."""
        if self.facts is None:
            raise BehindRelayError("not known on the other side")
        return f"/sites/{quote(self.facts.id, safe='')}"

    @property
    def remote_id(self) -> str:
        """The id of the site on the other side; empty while that is not known."""
        return self.facts.id if self.facts is not None else ""

    @property
    def whom(self) -> OnBehalfOf:
        """On behalf of which user it is asked."""
        assert isinstance(self.pool, RestQueries)
        return self.pool.whom

    @property
    def hops(self) -> Hops:
        """The address first, then what the other side lists."""
        if self.facts is None:
            return super().hops
        far = self.facts.hops
        return Hops(
            keys=(self.id, *far.keys),
            names=(self.name, *far.names),
            addresses=(self.address, *far.addresses),
            kinds=(self.kind, *far.kinds),
            versions=("", *far.versions),
            instances=far.instances,
        )

    def call(
        self,
        method: str,
        path: str,
        seconds: float,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        reads: bool = True,
    ) -> Deferred[bytes]:
        """The body of the answer to a request below the site on the other side.

        See ``Remote.call``; what only reads is sent again where a query would be.
        """

        def send(left: float) -> Deferred[bytes]:
            whole, whom = self._path() + path, self.whom
            return self.source.remote.call(
                method, whole, left, whom, body, content_type, reads=reads
            )

        left = self._in_time(seconds)
        if left <= 0:
            return fail(self.too_late())
        limited = self.deadline is not None
        return self.in_flight.run(send, left, once=not reads, has_deadline=limited)

    def acting(self, whom: OnBehalfOf) -> FederatedSite:
        """The same site, asked on behalf of a user."""
        twin = copy(self)
        assert isinstance(self.pool, RestQueries)
        assert isinstance(self.commands, RestCommands)
        twin.pool, twin.commands = self.pool.acting(whom), self.commands.acting(whom)
        return twin

    def learn(self, config: SiteConfig, facts: Facts, capabilities: Capabilities) -> None:
        self.config = config
        self._core.facts, self._core.capabilities = facts, capabilities

    def report(self) -> SiteReport:
        facts = self.facts
        if facts is None:
            return SiteReport(reason="not a site of the other side")
        if not facts.connected:
            return SiteReport(reason=f"down on the other side: {facts.last_error}".rstrip(": "))
        program = Program(
            program_version="monrest",
            livestatus_version=facts.hops.versions[-1],
            program_start=facts.program_start,
            localtime=facts.localtime or None,
            instances=facts.hops.instances,
        )
        return SiteReport(program=program)


class NotListedError(LivestatusError):
    """The other side does not list its sites."""


@define(eq=False, kw_only=True)
class FederationSource(RelaySource[FederatedSite]):
    """``instance`` returns the id of this one."""

    reactor: Any
    config: SiteConfig
    instance: Callable[[], str]
    memory: AnswerMemory
    remote: Remote = field()
    _tables: dict[str, Mapping[str, Mapping[str, str]]] = field(init=False, factory=dict)

    @remote.default
    def _usual(self) -> Remote:
        return Remote(reactor=self.reactor, config=self.config, instance=self.instance)

    def __attrs_post_init__(self) -> None:
        self.breaker = Breaker(
            clock=self.reactor,
            probe=self._look,
            site=self.config.address,
            on_hang=self._hangs,
            on_change=self._follow,
        )
        self.remote.on_heard = self.breaker.hear
        self.sites = (FederatedSite(self.reactor, self.config, source=self, memory=self.memory),)

    async def _look(self) -> Program:
        """Read the list of the other side."""
        try:
            records = await self._records(LISTING)
        except RefusedByRemoteError as error:
            if error.status in _KEY_REFUSED or _FOR_USERS_ONLY in error.reason:
                raise NotListedError(
                    "auth_key: expected the API key of a superuser on the other side, which says "
                    + error.reason
                ) from None
            if error.status in _NO_SUCH_LIST:
                raise NotListedError(
                    f"the other side is too old or no monrest, it says {error.reason}"
                ) from None
            raise
        # Another product has the same paths, but ignores filters: its rows would be wrong.
        if not all(isinstance(record.get("instances"), list) for record in records):
            raise NotListedError("not a monrest: its list of sites has no instances")
        sites = listed_facts(records, self.instance())
        if not sites:
            raise NotListedError("the other side has no site for us")
        for site in sites:
            await self._learn(site)
        self._take(sites)
        return Program(program_version="monrest")

    async def _learn(self, facts: Facts) -> None:
        """Ask once for the tables of each kind of core."""
        if facts.core in self._tables:
            return
        records: Sequence[Record] = ()
        if facts.core:
            try:
                path = f"/sites?columns=id,tables&id={quote(facts.id, safe='')}"
                records = await self._records(path)
            except RefusedByRemoteError as error:
                self.log.warn(
                    "{site} does not tell the tables of {there}: {error}",
                    site=self.config.id,
                    there=facts.id,
                    error=error.reason,
                )
        self._tables[facts.core] = listed_tables(records)

    async def _records(self, path: str) -> list[Record]:
        timeout = min(PROBE_TIMEOUT, self.config.timeout)
        body = await self.remote.call("GET", path, timeout, urgent=True)
        return await records(body, self.memory.threads)

    def _take(self, listed: Sequence[Facts]) -> None:
        used = {facts.core for facts in listed}
        self._tables = {core: columns for core, columns in self._tables.items() if core in used}
        old, before = {site.id: site for site in self.sites}, self.configs()
        sites: list[FederatedSite] = []
        for facts in listed:
            config = self._config(facts, alone=len(listed) == 1)
            site = old.pop(config.id, None)
            if site is None or site.remote_id not in ("", facts.id):
                site = FederatedSite(self.reactor, config, source=self, memory=self.memory)
            tables = self._tables[facts.core]
            site.learn(config, facts, capabilities_of(tables, facts.hops.versions[-1]))
            sites.append(site)
        self.take(sites, before)

    def _config(self, facts: Facts, *, alone: bool) -> SiteConfig:
        base = self.config
        here, there = base.section, facts.section
        parts = [part for part in (here, there) if part and part != _DEFAULT]
        return evolve(
            base,
            id=base.id if alone else f"{base.id}-{facts.id}",
            name=base.name if alone else f"{base.name} {facts.name}",
            section="/".join(parts) or _DEFAULT,
            hidden=base.hidden or facts.hidden,
            groups=base.groups or facts.groups,
        )

    @property
    def name(self) -> str:
        return self.config.id

    def stopService(self) -> Deferred[None]:
        return super().stopService().addCallback(lambda _: self.remote.close())


def selectors(site: Site) -> tuple[str, ...]:
    """The names that select a site: id, name, section; those of an address mean all its sites."""
    if isinstance(site, FederatedSite):
        base = site.source.config
        return (site.id, site.name, site.section, base.id, base.name)
    return (site.id, site.name, site.section)


def openly(site: Site) -> Site:
    """The site on behalf of no user; for details of objects that the user sees anyway."""
    if isinstance(site, FederatedSite):
        return site.acting(OnBehalfOf(visited=site.whom.visited))
    return site
