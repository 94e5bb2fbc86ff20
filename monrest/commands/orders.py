"""From what a client asks for to what each core is told (docs/spec/commands.md).

One command or thousands: every step is done for all of them, so that a core is asked once for
each table. What is wrong is collected for each command; nothing is sent from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.api.rights import may_submit
from monrest.api.zones import zone_of
from monrest.base.errors import BadRequest, Forbidden, NotFound, RestError
from monrest.base.values import Identity, SiteProblem
from monrest.commands import describe
from monrest.commands.arguments import Defaults, parse, shown, unused
from monrest.commands.asked import AskedCommand
from monrest.commands.fill import Removal, check_target, named, orders, removal
from monrest.commands.lookups import (
    ENTRY_TABLES,
    Entries,
    FoundTargets,
    commanded,
    entries,
    existing,
)
from monrest.commands.permissions import Grant, grant, needed, refusal, refused_to_all
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import Command, find, singular, suggestion
from monrest.livestatus.command import CoreCommand, Target
from monrest.sites.site import Site

_UNKNOWN = {
    "hosts": "host",
    "services": "service",
    "hostgroups": "hostgroup",
    "servicegroups": "servicegroup",
    "contacts": "contact",
    "contactgroups": "contactgroup",
    "sites": "system",
}
"""The permission that decides who hears that there is no such command."""

EFFORT = 200
"""Values of rows that take as long as one step of one command."""

LONGEST_NAME = 4096
"""Characters of the name of an object."""


@define(eq=False, kw_only=True)
class PreparedCommand:
    """One command that may be sent: to which sites, and what each of them is told.

    ``failed`` are the sites that were meant and could not be asked. ``warnings`` name what was
    left out of the command, and sites to which it does not go. A site with no orders has
    nothing that the command matches.
    """

    asked: AskedCommand
    command: Command
    config: CommandsConfig = field(repr=False)
    arguments: Mapping[str, str] = field(factory=dict)
    sites: tuple[Site, ...] = ()
    failed: tuple[SiteProblem, ...] = ()
    removal: Removal | None = None
    warnings: list[str] = field(factory=list)
    orders: dict[str, tuple[CoreCommand, ...]] = field(factory=dict)

    @property
    def help(self) -> str:
        """What the command does, takes and needs, for error documents."""
        needs = needed(self.command.permission, singular(self.command.kind))
        return describe.help_text(self.command, self.config, needs)

    def fail(self, found: FoundTargets) -> None:
        """Leave out the sites that could not say what was asked."""
        known = {one.site for one in self.failed}
        self.failed += tuple(one for one in _failed(self.asked, found) if one.site not in known)
        self.sites = tuple(site for site in self.sites if site.id not in found.problems)


@define(eq=False)
class Preparation:
    """All commands of one request on their way; ``problems`` by index."""

    context: Context
    identity: Identity
    jobs: list[PreparedCommand] = field(factory=list, init=False)
    problems: dict[int, RestError] = field(factory=dict, init=False)

    async def run(self, asked: Sequence[AskedCommand]) -> None:
        """Fill ``jobs`` with what can be sent and ``problems`` with why the others cannot.

        Raise SitesFailed when no site answers the questions that have to be asked first.
        """
        granted = await self._permitted(asked)
        zone = await zone_of(self.context, self.identity)
        allowed = [one for one in asked if one.index in granted]
        await self._step(lambda: self._read(allowed, zone), len(allowed))
        await self._locate(granted)
        await self._resolve()

    async def _step(self, work: Callable[[], None], count: int) -> None:
        """Do ``work`` on so many commands, in a thread where they are many."""
        await self.context.compute(lambda _: work(), count * EFFORT)

    async def _permitted(self, asked: Sequence[AskedCommand]) -> dict[int, FoundTargets | None]:
        """The commands that are allowed; with where, if that is for a contact to say."""
        allowed = await may_submit(self.identity, self.context.contacts, self.context.config)
        granted: dict[int, FoundTargets | None] = {}
        open_: list[AskedCommand] = []
        await self._step(lambda: self._by_roles(asked, allowed, granted, open_), len(asked))
        if not open_:
            return granted
        found = await commanded(
            _sites(open_),
            {one.target for one in open_},
            self.identity.user,
            self.context.clock,
            strict=self.context.config.auth.strict_host_authorization,
        )
        await self._step(lambda: self._by_contact(open_, found, granted), len(open_))
        return granted

    def _by_roles(
        self,
        asked: Sequence[AskedCommand],
        allowed: bool,
        granted: dict[int, FoundTargets | None],
        open_: list[AskedCommand],
    ) -> None:
        for one in asked:
            if (wrong := malformed(one.target)) is not None:
                self.problems[one.index] = wrong
                continue
            verdict = grant(self.identity, _permission(one), one.target.name, may_submit=allowed)
            if verdict is Grant.ALLOWED:
                granted[one.index] = None
            elif verdict is Grant.CONTACT:
                open_.append(one)
            else:
                self.problems[one.index] = self._refused(one, ())

    def _by_contact(
        self,
        asked: Sequence[AskedCommand],
        found: FoundTargets,
        granted: dict[int, FoundTargets | None],
    ) -> None:
        for one in asked:
            if found.on(one.target).isdisjoint(site.id for site in one.sites):
                self.problems[one.index] = self._refused(one, _failed(one, found))
            else:
                granted[one.index] = found

    def _refused(self, one: AskedCommand, failed: Sequence[SiteProblem]) -> Forbidden:
        target = one.target
        error = refusal(
            self.identity, _permission(one), singular(target.kind), target.name, target.service
        )
        if failed:
            error.extra = {**error.extra, "failed_sites": told(failed)}
            error.problems = tuple(failed)
        return error

    def _read(self, asked: Iterable[AskedCommand], zone: tzinfo) -> None:
        defaults = Defaults(
            user=self.identity.user,
            now=self.context.wall.now(),
            zone=zone,
            config=self.context.config.commands,
        )
        for one in asked:
            command = find(one.target.kind, one.command)
            if command is None:
                # Looking for similar names is slow, and one of a thousand hints is read.
                hint = {} if self.problems else {"help": suggestion(one.target.kind, one.command)}
                self.problems[one.index] = NotFound(
                    "no such command",
                    f"there is no command {shown(one.command)} for type "
                    f"{singular(one.target.kind)}",
                    extra=hint,
                )
                continue
            if (disabled := refused_to_all(command, defaults.config)) is not None:
                self.problems[one.index] = disabled
                continue
            job = PreparedCommand(asked=one, command=command, config=defaults.config)
            self.jobs.append(job)
            try:
                job.arguments = parse(command, one.given, defaults)
                job.warnings += [
                    f"{name}: {command.name} does not take it"
                    for name in unused(command, one.given)
                ]
            except BadRequest as error:
                self._wrong(job, error)

    def _wrong(self, job: PreparedCommand, error: RestError) -> None:
        error.extra = {**error.extra, "help": job.help}
        self.problems.setdefault(job.asked.index, error)

    async def _locate(self, granted: Mapping[int, FoundTargets | None]) -> None:
        """Say to which sites each command goes: those where its object is, and what it names."""
        targets: set[Target] = set()
        sites: dict[str, Site] = {}
        await self._step(lambda: self._to_find(granted, targets, sites), len(self.jobs))
        found = FoundTargets()
        if targets:
            found = await existing(tuple(sites.values()), targets, self.context.clock)
        await self._step(lambda: self._place(granted, found), len(self.jobs))

    def _to_find(
        self,
        granted: Mapping[int, FoundTargets | None],
        targets: set[Target],
        sites: dict[str, Site],
    ) -> None:
        for job in self._good():
            one = job.asked
            wanted = set(named(job.command, job.arguments).values())
            if one.target.kind != "sites" and granted[one.index] is None:
                wanted.add(one.target)
            if wanted:
                targets |= wanted
                sites.update((site.id, site) for site in one.sites)

    def _place(self, granted: Mapping[int, FoundTargets | None], found: FoundTargets) -> None:
        for job in self._good():
            one = job.asked
            job.sites = one.sites
            if one.target.kind != "sites":
                where = granted[one.index] or found
                self._keep(job, where, one.target, _filter(one.target))
            for argument, target in named(job.command, job.arguments).items():
                if target.kind in ENTRY_TABLES:
                    self._narrow(job, found, argument, target)
                elif one.target.kind == "sites":
                    self._keep(job, found, target, f"{argument}={shown(target.name)}")
                else:
                    self._demand(job, found, argument, target)

    def _keep(self, job: PreparedCommand, found: FoundTargets, target: Target, what: str) -> None:
        """Leave out the sites without ``target``; it is wrong if none is left."""
        job.fail(found)
        job.sites = tuple(site for site in job.sites if site.id in found.on(target))
        if not job.sites:
            self._wrong(job, _nowhere(what, job.failed))

    def _narrow(
        self, job: PreparedCommand, found: FoundTargets, argument: str, target: Target
    ) -> None:
        """Leave out the sites that do not have the comment or downtime, with a warning."""
        job.fail(found)
        having = found.on(target)
        missing = [site.name for site in job.sites if site.id not in having]
        job.sites = tuple(site for site in job.sites if site.id in having)
        if missing:
            kind = describe.kind_in_words(target.kind)
            warning = f"{argument}: there is no {kind} {target.name} on {', '.join(missing)}"
            job.warnings.append(warning)
            if not job.sites:
                error = BadRequest(f"invalid value for {argument}", warning)
                error.problems = job.failed
                self._wrong(job, error)

    def _demand(
        self, job: PreparedCommand, found: FoundTargets, argument: str, target: Target
    ) -> None:
        """It is wrong if any site that has the object lacks what goes with it."""
        job.fail(found)
        missing = [site.name for site in job.sites if site.id not in found.on(target)]
        if missing:
            kind = describe.kind_in_words(target.kind)
            where = ", ".join(missing)
            self._wrong(
                job,
                BadRequest(
                    f"invalid value for {argument}",
                    f"{argument}: there is no {kind} {shown(target.name)} on {where}",
                ),
            )

    def _good(self) -> Iterable[PreparedCommand]:
        return (job for job in self.jobs if job.asked.index not in self.problems)

    async def _resolve(self) -> None:
        """Fill the orders; ids of comments and downtimes are those of each site."""
        now = self.context.wall.now()
        removing: dict[str, list[PreparedCommand]] = {}
        await self._step(lambda: self._fill(now, removing), len(self.jobs))
        for table, jobs in removing.items():
            await self._look_up(table, jobs)

    def _fill(self, now: float, removing: dict[str, list[PreparedCommand]]) -> None:
        """Fill the orders that are the same everywhere; sort out who removes what."""
        for job in self._good():
            target = job.asked.target
            try:
                common = orders(job.command, target, job.arguments)
            except BadRequest as error:
                self._wrong(job, error)
                continue
            job.removal = removal(job.command, target, job.arguments, now)
            job.orders = {site.id: common for site in job.sites}
            if job.removal is not None:
                removing.setdefault(job.removal.table, []).append(job)

    async def _look_up(self, table: str, jobs: Sequence[PreparedCommand]) -> None:
        targets = {job.asked.target for job in jobs}
        found, problems = await entries(table, _sites_of(jobs), targets, self.context.clock)
        missed = FoundTargets(problems=problems)
        await self._step(lambda: self._remove(jobs, found, missed), len(jobs))

    def _remove(self, jobs: Sequence[PreparedCommand], known: Entries, asked: FoundTargets) -> None:
        for job in jobs:
            removal = job.removal
            assert removal is not None
            job.fail(asked)
            one = job.asked.target
            whose = f"{removal.id} of {'/'.join(filter(None, (one.name, one.service)))}"
            entry = Target(f"{singular(one.kind)}_{removal.table}", whose)
            having = FoundTargets(problems=asked.problems)
            for site in job.sites:
                found = known.get((site.id, one), ())
                numbers = [it.id for it in found if removal.matches(it.id, it.text, it.start)]
                job.orders[site.id] += removal.orders(numbers)
                if numbers:
                    having.sites[entry].add(site.id)
            if removal.id is not None:
                self._narrow(job, having, f"{removal.table.removesuffix('s')}_id", entry)


def told(problems: Iterable[SiteProblem]) -> list[dict[str, str]]:
    """Failed sites as members of a document."""
    return [{"site": one.site, "name": one.name, "reason": one.reason} for one in problems]


def _permission(one: AskedCommand) -> str:
    command = find(one.target.kind, one.command)
    return command.permission if command is not None else _UNKNOWN[one.target.kind]


def malformed(target: Target) -> BadRequest | None:
    """Say what keeps a target from being one."""
    try:
        check_target(target)
    except BadRequest as error:
        return error
    if max(len(target.name), len(target.service)) > LONGEST_NAME:
        return BadRequest(
            "invalid name",
            f"{singular(target.kind)}: expected at most {LONGEST_NAME} characters",
        )
    return None


def _filter(target: Target) -> str:
    if target.kind == "services":
        return f"host={target.name} service={target.service}"
    return f"{singular(target.kind)}={target.name}"


def _nowhere(what: str, failed: Sequence[SiteProblem]) -> BadRequest:
    message = (
        f"cannot send command, affected backend list is empty. no object found by filter: {what}"
    )
    extra = {}
    if failed:
        message += f", unreachable sites: {', '.join(one.name for one in failed)}"
        extra = {"failed_sites": told(failed)}
    error = BadRequest(message, f"{what}: expected an object of the selected sites", extra=extra)
    error.problems = tuple(failed)
    return error


def _sites(asked: Iterable[AskedCommand]) -> tuple[Site, ...]:
    return tuple({site.id: site for one in asked for site in one.sites}.values())


def _sites_of(jobs: Iterable[PreparedCommand]) -> tuple[Site, ...]:
    return tuple({site.id: site for job in jobs for site in job.sites}.values())


def _failed(one: AskedCommand, found: FoundTargets) -> tuple[SiteProblem, ...]:
    return tuple(found.problems[site.id] for site in one.sites if site.id in found.problems)
