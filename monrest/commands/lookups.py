"""Queries before commands are sent: one for each table and site.

Which objects exist where, whose contact the user is (docs/spec/commands.md, "Permissions"), and
which comments and downtimes belong to an object
(docs/spec/commands.md, "Commands resolved by look-up"). However many objects are asked about, a
table is asked once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import TypeAlias

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime

from monrest.api.visibility import visibility
from monrest.base.concurrency import together
from monrest.base.room import Share
from monrest.base.values import Capabilities, Identity, Row, SiteProblem
from monrest.commands.permissions import contact_filter, is_contact
from monrest.livestatus.command import Target
from monrest.query.model import CoreFilter, Group, Pushed, Test, joined
from monrest.sites.fanout import Gathered, SiteAnswer, fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

_FEW = 20
"""Objects up to which a core is asked for them alone.

A core tests every row against every name, so for many objects all names come faster than a
filter with thousands of lines.
"""
_MANY = 1000
"""Rows that a thread reads."""

GROUP_MEMBERS = {"hostgroups": "hosts", "servicegroups": "services"}


@define
class FoundTargets:
    """The targets that exist, by the id of their site, and the sites that could not be asked."""

    sites: dict[Target, set[str]] = field(factory=lambda: defaultdict(set))
    problems: dict[str, SiteProblem] = field(factory=dict)

    def on(self, target: Target) -> Set[str]:
        """The ids of the sites where ``target`` was found."""
        return self.sites.get(target, frozenset())


@frozen
class _Question:
    """One table to ask, and how its rows name targets."""

    table: str
    columns: RowTypes
    filter: CoreFilter | None
    read: Callable[[Row], Iterable[Target]]
    lost: Callable[[Row], Iterable[Target]] | None = None


async def existing(
    sites: Sequence[Site], targets: Iterable[Target], clock: IReactorTime
) -> FoundTargets:
    """The sites on which ``targets`` exist, whether or not the user sees them.

    Raise SitesFailed when no site answers at all.
    """
    questions = [
        _numbered(kind, names) if kind in ENTRY_TABLES else _objects(kind, names, None)
        for kind, names in _by_kind(targets).items()
    ]
    return await _asked(sites, questions, clock)


async def commanded(
    sites: Sequence[Site],
    targets: Iterable[Target],
    user: str,
    clock: IReactorTime,
    *,
    strict: bool,
) -> FoundTargets:
    """The sites on which ``user`` is a contact of the target, or of every member of a group.

    Raise SitesFailed when no site answers at all.
    """
    questions = []
    for kind, names in _by_kind(targets).items():
        if kind in GROUP_MEMBERS:
            columns: RowTypes = (("contacts", "list"),)
            if kind == "servicegroups" and not strict:
                columns += (("host_contacts", "list"),)
            questions.append(_members(kind, names, None, columns, user))
        else:
            questions.append(_objects(kind, names, contact_filter(kind, user, strict=strict)))
    return await _asked(sites, questions, clock)


async def seen(
    sites: Sequence[Site],
    targets: Iterable[Target],
    identity: Identity,
    clock: IReactorTime,
    *,
    strict: bool,
) -> FoundTargets:
    """The sites on which ``identity`` sees the target, or a member of a group.

    Raise SitesFailed when no site answers at all.
    """
    questions = []
    for kind, names in _by_kind(targets).items():
        if kind in GROUP_MEMBERS:
            visible = visibility(identity, GROUP_MEMBERS[kind], strict)
            questions.append(_members(kind, names, visible))
        else:
            questions.append(_objects(kind, names, visibility(identity, kind, strict)))
    return await _asked(sites, questions, clock)


def _by_kind(targets: Iterable[Target]) -> dict[str, set[Target]]:
    by_kind: dict[str, set[Target]] = defaultdict(set)
    for target in targets:
        by_kind[target.kind].add(target)
    return by_kind


ENTRY_TABLES = {
    "host_comments": "comments",
    "service_comments": "comments",
    "host_downtimes": "downtimes",
    "service_downtimes": "downtimes",
}
"""Kinds of targets that are comments and downtimes, named by their id."""


def _limited(tests: Sequence[CoreFilter], further: CoreFilter | None = None) -> CoreFilter | None:
    """``further``, and one of ``tests`` if they are few enough for a core."""
    limits = [Group("or", tuple(tests))] if len(tests) <= _FEW else []
    return joined("and", limits if further is None else [*limits, further])


def _numbered(kind: str, targets: Collection[Target]) -> _Question:
    limit = _limited([Test("id", "=", target.name) for target in targets])
    of_service = kind.startswith("service_")

    def read(row: Row) -> Iterable[Target]:
        number, service = row
        return (Target(kind, str(int(number))),) if bool(service) == of_service else ()

    layout: RowTypes = (("id", "int"), ("service_description", "string"))
    return _Question(ENTRY_TABLES[kind], layout, limit, read)


def _objects(kind: str, targets: Collection[Target], further: CoreFilter | None) -> _Question:
    names = ("host_name", "description") if kind == "services" else ("name",)

    def is_it(target: Target) -> CoreFilter:
        values = (target.name, target.service)
        tests = [Test(name, "=", value) for name, value in zip(names, values, strict=False)]
        return tests[0] if len(tests) == 1 else Group("and", tuple(tests))

    limit = _limited(list(map(is_it, targets)), further)
    layout: RowTypes = tuple((name, "string") for name in names)
    return _Question(kind, layout, limit, lambda row: (Target(kind, *row),))


def _members(
    kind: str,
    targets: Collection[Target],
    further: CoreFilter | None,
    contacts: RowTypes = (),
    user: str = "",
) -> _Question:
    """Groups by their members; with columns of ``contacts`` none with a member without ``user``."""
    wanted = {target.name for target in targets}
    limit = _limited([Test("groups", ">=", name) for name in sorted(wanted)], further)

    def groups(row: Row) -> Iterable[Target]:
        return [Target(kind, name) for name in row[0] if name in wanted]

    def lost(row: Row) -> Iterable[Target]:
        return () if is_contact(user, *row[1:]) else groups(row)

    columns = (("groups", "list"), *contacts)
    return _Question(GROUP_MEMBERS[kind], columns, limit, groups, lost if contacts else None)


async def _asked(
    sites: Sequence[Site], questions: Sequence[_Question], clock: IReactorTime
) -> FoundTargets:
    objects = FoundTargets()
    share = sites[0].memory.room.share() if sites else None
    answers = await together(
        _gathered(sites, question.table, question.columns, question.filter, clock, share)
        for question in questions
    )
    for question, gathered in zip(questions, answers, strict=True):
        objects.problems.update((problem.site, problem) for problem in gathered.problems)
        for answer in gathered.answers:
            read = partial(_read, question, answer.rows, objects.sites, answer.site.id)
            await _understood(answer, read, objects.problems)
    return objects


async def _understood(
    answer: SiteAnswer, read: Callable[[], None], problems: dict[str, SiteProblem]
) -> None:
    """Read the rows of one site; one that lies about its types counts as failed."""
    try:
        if len(answer.rows) > _MANY:
            await answer.site.memory.threads.run(read)
        else:
            read()
    except (TypeError, ValueError):
        site = answer.site
        problems[site.id] = SiteProblem(site.id, site.name, "the core sent rows of wrong types")


def _read(
    question: _Question, rows: Sequence[Row], sites: Mapping[Target, set[str]], site: str
) -> None:
    lost: set[Target] = set()
    seen: set[Target] = set()
    for row in rows:
        seen.update(question.read(row))
        if question.lost is not None:
            lost.update(question.lost(row))
    for target in seen - lost:
        sites[target].add(site)


async def _gathered(
    sites: Sequence[Site],
    table: str,
    columns: RowTypes,
    limit: CoreFilter | None,
    clock: IReactorTime,
    share: Share | None = None,
) -> Gathered:
    pushed = Pushed(table=table, columns=tuple(name for name, _ in columns), filter=limit)

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        return pushed if all(core.has(table, name) for name in pushed.columns) else None

    return await fan_out(sites, plan, columns, clock, share=share)


@frozen
class ObjectEntry:
    """A comment or downtime of one object; ``start`` of a downtime in Unix time."""

    id: int
    text: str
    start: float


Entries: TypeAlias = Mapping[tuple[str, Target], list[ObjectEntry]]
"""Site id and host or service to its entries; those of services are not among their host's."""


async def entries(
    table: str, sites: Sequence[Site], targets: Collection[Target], clock: IReactorTime
) -> tuple[Entries, dict[str, SiteProblem]]:
    """The ``comments`` or ``downtimes`` of hosts and services, with the sites that failed.

    Raise SitesFailed when no site answers at all.
    """
    hosts = {target.name for target in targets}
    limit = _limited([Test("host_name", "=", name) for name in sorted(hosts)])
    columns: RowTypes = (
        ("id", "int"),
        ("host_name", "string"),
        ("service_description", "string"),
        ("comment", "string"),
    )
    if table == "downtimes":
        columns += (("start_time", "int"),)
    gathered = await _gathered(sites, table, columns, limit, clock)
    problems = {problem.site: problem for problem in gathered.problems}
    by_target: dict[tuple[str, Target], list[ObjectEntry]] = defaultdict(list)
    wanted = frozenset(targets)

    def read(site: str, rows: Sequence[Row]) -> None:
        for number, host, service, text, *start in rows:
            target = Target("services", host, service) if service else Target("hosts", host)
            if target in wanted:
                entry = ObjectEntry(int(number), text, start[0] if start else 0)
                by_target[site, target].append(entry)

    for answer in gathered.answers:
        await _understood(answer, partial(read, answer.site.id, answer.rows), problems)
    return by_target, problems


async def owners(
    table: str,
    sites: Sequence[Site],
    number: int,
    visible: CoreFilter | None,
    clock: IReactorTime,
) -> FoundTargets:
    """The hosts and services with a comment or downtime of this id, and on which sites.

    ``visible`` is what the user may see. Raise SitesFailed when no site answers at all.
    """
    limits: list[CoreFilter] = [Test("id", "=", str(number))]
    if visible is not None:
        limits.append(visible)

    def read(row: Row) -> Iterable[Target]:
        host, service = row
        return (Target("services", host, service) if service else Target("hosts", host),)

    layout: RowTypes = (("host_name", "string"), ("service_description", "string"))
    return await _asked(sites, [_Question(table, layout, joined("and", limits), read)], clock)
