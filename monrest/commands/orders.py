"""From what a client asks for to the orders of each core (docs/spec/commands.md).

One command or thousands: every step is done for all of them, so that a core is asked once for
each table. Errors are collected for each command; nothing is sent from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.api.rights import may_submit
from monrest.api.zones import zone_of
from monrest.base.errors import BadRequest, Forbidden, NotFound, RestError
from monrest.base.values import Identity, SiteProblem
from monrest.commands import describe
from monrest.commands.arguments import Defaults, excerpt, parse, unused
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
"""The permission that a user needs to learn that there is no such command."""

EFFORT = 200
"""Values of rows that take as long as one step of one command."""

LONGEST_NAME = 4096
"""Characters of the name of an object."""


@define(eq=False, kw_only=True)
class PreparedCommand:
    """One command that may be sent: its sites, and what each of them gets.

    ``own`` is where the user is a contact of the object, None where a role decides. ``named`` are
    objects and entries in arguments. ``failed`` are the sites that were meant and could not be
    asked. ``warnings`` name what was left out of the command, and sites to which it does not go. A
    site with no orders has nothing that the command matches.
    """

    asked: AskedCommand
    command: Command
    config: CommandsConfig = field(repr=False)
    own: FoundTargets | None = field(default=None, repr=False)
    arguments: Mapping[str, str] = field(factory=dict)
    named: Mapping[str, Target] = field(factory=dict)
    sites: tuple[Site, ...] = ()
    failed: tuple[SiteProblem, ...] = ()
    removal: Removal | None = None
    warnings: list[str] = field(factory=list)
    orders: dict[str, tuple[CoreCommand, ...]] = field(factory=dict)

    @property
    def index(self) -> int:
        return self.asked.index

    @property
    def help(self) -> str:
        """The effect, arguments and permission of the command, for error documents."""
        needs = needed(self.command.permission, singular(self.command.kind))
        return describe.help_text(self.command, self.config, needs)

    def fail(self, objects: FoundTargets) -> None:
        """Leave out the sites that could not be asked."""
        failed = {problem.site for problem in self.failed}
        self.failed += tuple(
            problem for problem in _failed(self.asked, objects) if problem.site not in failed
        )
        self.sites = tuple(site for site in self.sites if site.id not in objects.problems)

    def keep(self, objects: FoundTargets, target: Target, what: str) -> None:
        """Leave out the sites without ``target``; raise BadRequest if none is left."""
        self.fail(objects)
        self.sites = tuple(site for site in self.sites if site.id in objects.on(target))
        if self.sites:
            return
        message = (
            "cannot send command, affected backend list is empty. "
            f"no object found by filter: {what}"
        )
        extra = {}
        if self.failed:
            message += f", unreachable sites: {', '.join(problem.name for problem in self.failed)}"
            extra = {"failed_sites": failed_sites(self.failed)}
        error = BadRequest(
            message, f"{what}: expected an object of the selected sites", extra=extra
        )
        error.problems = self.failed
        raise error

    def narrow(self, objects: FoundTargets, argument: str, target: Target) -> None:
        """Leave out the sites that do not have the comment or downtime, with a warning.

        Raise BadRequest if none is left.
        """
        self.fail(objects)
        having = objects.on(target)
        missing = [site.name for site in self.sites if site.id not in having]
        self.sites = tuple(site for site in self.sites if site.id in having)
        if missing:
            kind = describe.kind_in_words(target.kind)
            warning = f"{argument}: there is no {kind} {target.name} on {', '.join(missing)}"
            self.warnings.append(warning)
            if not self.sites:
                error = BadRequest(f"invalid value for {argument}", warning)
                error.problems = self.failed
                raise error


Item = TypeVar("Item", AskedCommand, PreparedCommand)


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
        context, identity = self.context, self.identity
        allowed = await may_submit(identity, context.contacts, context.config)
        by_contact: dict[int, AskedCommand] = {}
        await self._each(asked, lambda command: self._check_roles(command, allowed, by_contact))
        own = FoundTargets()
        if by_contact:
            own = await commanded(
                _sites(by_contact.values()),
                {command.target for command in by_contact.values()},
                identity.user,
                context.clock,
                strict=context.config.auth.strict_host_authorization,
            )
        defaults = Defaults(
            user=identity.user,
            now=context.wall.now(),
            zone=await zone_of(context, identity),
            config=context.config.commands,
        )
        permitted = [command for command in asked if command.index not in self.problems]
        await self._each(
            permitted,
            lambda command: self._find_command(
                command, own if command.index in by_contact else None, defaults
            ),
        )
        targets: set[Target] = set()
        sites: dict[str, Site] = {}
        await self._each(self.jobs, lambda job: _read(job, defaults, targets, sites))
        objects = FoundTargets()
        if targets:
            objects = await existing(tuple(sites.values()), targets, context.clock)
        now = context.wall.now()
        await self._each(self._good(), lambda job: _place(job, objects, now))
        for table in ("comments", "downtimes"):
            await self._look_up(table)

    async def _each(self, items: Sequence[Item], work: Callable[[Item], None]) -> None:
        """Do ``work`` on each, of many in a thread; an error is the problem of its command."""

        def do() -> None:
            for command in items:
                try:
                    work(command)
                except RestError as error:
                    if isinstance(command, PreparedCommand):
                        error.extra = {**error.extra, "help": command.help}
                    # Its frames hold all commands, and the problems, which hold the error.
                    self.problems[command.index] = error.with_traceback(None)

        await self.context.compute(lambda _: do(), len(items) * EFFORT)

    def _good(self) -> list[PreparedCommand]:
        return [job for job in self.jobs if job.index not in self.problems]

    def _check_roles(
        self, command: AskedCommand, allowed: bool, by_contact: dict[int, AskedCommand]
    ) -> None:
        """Raise what forbids the command; note it in ``by_contact`` if no role decides."""
        check_names(command.target)
        verdict = grant(
            self.identity, _permission(command), command.target.name, may_submit=allowed
        )
        if verdict is Grant.DENIED:
            raise self._refused(command, ())
        if verdict is Grant.CONTACT:
            by_contact[command.index] = command

    def _refused(self, command: AskedCommand, failed: Sequence[SiteProblem]) -> Forbidden:
        target = command.target
        error = refusal(
            self.identity, _permission(command), singular(target.kind), target.name, target.service
        )
        if failed:
            error.extra = {**error.extra, "failed_sites": failed_sites(failed)}
            error.problems = tuple(failed)
        return error

    def _find_command(
        self, wanted: AskedCommand, own: FoundTargets | None, defaults: Defaults
    ) -> None:
        if own is not None and own.on(wanted.target).isdisjoint(site.id for site in wanted.sites):
            raise self._refused(wanted, _failed(wanted, own))
        command = find(wanted.target.kind, wanted.command)
        if command is None:
            # Looking for similar names is slow, and one of a thousand hints is read.
            hint = {} if self.problems else {"help": suggestion(wanted.target.kind, wanted.command)}
            raise NotFound(
                "no such command",
                f"there is no command {excerpt(wanted.command)} "
                f"for type {singular(wanted.target.kind)}",
                extra=hint,
            )
        if (disabled := refused_to_all(command, defaults.config)) is not None:
            raise disabled
        self.jobs.append(
            PreparedCommand(asked=wanted, command=command, config=defaults.config, own=own)
        )

    async def _look_up(self, table: str) -> None:
        """Add the orders that delete entries, whose ids are those of each site."""
        jobs = [
            job for job in self._good() if job.removal is not None and job.removal.table == table
        ]
        if jobs:
            sites = {site.id: site for job in jobs for site in job.sites}
            targets = {job.asked.target for job in jobs}
            listed, problems = await entries(
                table, tuple(sites.values()), targets, self.context.clock
            )
            await self._each(jobs, lambda job: _remove(job, listed, problems))


def _read(
    job: PreparedCommand, defaults: Defaults, targets: set[Target], sites: dict[str, Site]
) -> None:
    """Read the arguments; add to ``targets`` and ``sites`` what the cores are asked for it."""
    asked, command = job.asked, job.command
    job.arguments = parse(command, asked.given, defaults)
    job.warnings += [
        f"{name}: {command.name} does not take it" for name in unused(command, asked.given)
    ]
    job.named = named(command, job.arguments)
    wanted = set(job.named.values())
    if asked.target.kind != "sites" and job.own is None:
        wanted.add(asked.target)
    if wanted:
        targets |= wanted
        sites.update((site.id, site) for site in asked.sites)


def _place(job: PreparedCommand, objects: FoundTargets, now: float) -> None:
    """Choose the sites, those with the object and what the arguments name; fill in the orders."""
    target = job.asked.target
    job.sites = job.asked.sites
    if target.kind != "sites":
        job.keep(job.own or objects, target, _filter(target))
    for argument, other in job.named.items():
        if other.kind in ENTRY_TABLES:
            job.narrow(objects, argument, other)
        elif target.kind == "sites":
            job.keep(objects, other, f"{argument}={excerpt(other.name)}")
        else:
            job.fail(objects)
            missing = [site.name for site in job.sites if site.id not in objects.on(other)]
            if missing:
                raise BadRequest(
                    f"invalid value for {argument}",
                    f"{argument}: there is no {describe.kind_in_words(other.kind)} "
                    f"{excerpt(other.name)} on {', '.join(missing)}",
                )
    common = orders(job.command, target, job.arguments)
    job.removal = removal(job.command, target, job.arguments, now)
    job.orders = {site.id: common for site in job.sites}


def _remove(job: PreparedCommand, entries: Entries, problems: dict[str, SiteProblem]) -> None:
    """Add the orders that delete the entries which were found on each site."""
    removal, target = job.removal, job.asked.target
    assert removal is not None
    having = FoundTargets(problems=problems)
    job.fail(having)
    whose = f"{removal.id} of {'/'.join(filter(None, (target.name, target.service)))}"
    entry = Target(f"{singular(target.kind)}_{removal.table}", whose)
    for site in job.sites:
        matching = entries.get((site.id, target), ())
        numbers = [
            entry.id for entry in matching if removal.matches(entry.id, entry.text, entry.start)
        ]
        job.orders[site.id] += removal.orders(numbers)
        if numbers:
            having.sites[entry].add(site.id)
    if removal.id is not None:
        job.narrow(having, f"{removal.table.removesuffix('s')}_id", entry)


def failed_sites(problems: Iterable[SiteProblem]) -> list[dict[str, str]]:
    """Failed sites as members of a document."""
    return [
        {"site": problem.site, "name": problem.name, "reason": problem.reason}
        for problem in problems
    ]


def _permission(asked: AskedCommand) -> str:
    command = find(asked.target.kind, asked.command)
    return command.permission if command is not None else _UNKNOWN[asked.target.kind]


def check_names(target: Target) -> None:
    """Raise BadRequest for an object whose name no core can have."""
    check_target(target)
    if max(len(target.name), len(target.service)) > LONGEST_NAME:
        raise BadRequest(
            "invalid name",
            f"{singular(target.kind)}: expected at most {LONGEST_NAME} characters",
        )


def _filter(target: Target) -> str:
    if target.kind == "services":
        return f"host={target.name} service={target.service}"
    return f"{singular(target.kind)}={target.name}"


def _sites(asked: Iterable[AskedCommand]) -> tuple[Site, ...]:
    return tuple({site.id: site for command in asked for site in command.sites}.values())


def _failed(command: AskedCommand, objects: FoundTargets) -> tuple[SiteProblem, ...]:
    return tuple(objects.problems[site.id] for site in command.sites if site.id in objects.problems)
