"""The contact of a user in the cores: contact groups and permissions.

Read from all sites and kept for 300 s; of a site that cannot be asked the last answer counts
(docs/spec/accounts.md, "Users").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.concurrency import Shared
from monrest.base.errors import SitesFailed
from monrest.base.room import Share
from monrest.base.values import Capabilities, Contact, SiteProblem
from monrest.base.workers import Workers
from monrest.query.model import Pushed, Test
from monrest.sites.fanout import PlanSite, SiteAnswer, fan_out
from monrest.sites.registry import Registry
from monrest.sites.site import Site

log = Logger()

LIFETIME = 300.0
"""Seconds for which an answer of the cores is good."""

_RETRY = 10.0
_PATIENCE = 5.0
_REMEMBERED = 4096
_COLUMNS = ("name", "alias", "email", "can_submit_commands")


NO_CONTACT = Contact()
"""A user who is no contact anywhere, as far as is known."""


@frozen
class _Remembered:
    """The answer of each site, and all of them together.

    ``until`` is when to ask again; before that when there are other sites than ``sites``.
    """

    sites: tuple[Site, ...]
    parts: Mapping[str, Contact]
    contact: Contact
    until: float


@define(eq=False)
class Contacts:
    """Remembers users for ``lifetime`` seconds."""

    registry: Registry
    clock: IReactorTime
    lifetime: float = LIFETIME
    workers: Workers = field(factory=Workers)
    _state: bytes = field(default=b"", init=False)
    _remembered: dict[str, _Remembered] = field(factory=dict, init=False)
    _running: dict[str, Shared[Contact]] = field(factory=dict, init=False)

    async def of(self, user: str) -> Contact:
        """The contact of ``user``; ``NO_CONTACT`` when no site can be asked and none ever was.

        Requests for one user at the same time share an answer. What was known is given when the
        cores need longer than a few seconds.
        """
        if self._state != (state := self.workers.state("contacts")):
            self._state = state
            for name, known in self._remembered.items():
                self._remembered[name] = evolve(known, until=0.0)
        remembered, sites = self._remembered.get(user), self.registry.sites
        if (
            remembered is not None
            and remembered.sites is sites
            and self.clock.seconds() < remembered.until
        ):
            return remembered.contact
        if not sites:
            return NO_CONTACT
        question = self._running.get(user)
        if question is None:
            question = self._running[user] = Shared()
            question.run(self._ask(user, remembered), lambda: self._running.pop(user))
        waiter = question.wait()
        if remembered is None:
            return await waiter
        try:
            return await waiter.addTimeout(_PATIENCE, self.clock)
        except TooLate:
            return remembered.contact

    def expire(self) -> None:
        """Ask the cores again about each user who comes, as after a reload of one."""
        self.workers.changed("contacts")

    async def _ask(self, user: str, remembered: _Remembered | None) -> Contact:
        sites = self.registry.sites
        share = sites[0].memory.room.share()
        member_of = _asking("contactgroups", ("name",), Test("members", ">=", user))
        about_groups = Deferred.fromCoroutine(self._read(sites, member_of, share))
        entry = _asking("contacts", _COLUMNS, Test("name", "=", user))
        entries, failed = await self._read(sites, entry, share)
        groups, failed_too = await about_groups
        silent = failed.keys() | failed_too.keys()
        old = remembered.parts if remembered is not None else {}
        parts: dict[str, Contact] = {}
        for site in sites:
            if site.id in silent:
                if site.id in old:
                    parts[site.id] = old[site.id]
                continue
            rows = groups[site.id].rows if site.id in groups else ()
            parts[site.id] = evolve(
                _contact(entries.get(site.id)), groups=frozenset(str(row[0]) for row in rows)
            )
        if silent:
            log.debug("contact data of {user} not read from {sites}", user=user, sites=silent)
        if len(silent) == len(sites) and remembered is None:
            return NO_CONTACT
        contact = _joined(parts.values())
        # Sites that were silent are asked again soon, and not with every request.
        lifetime = min(self.lifetime, _RETRY) if silent else self.lifetime
        while len(self._remembered) >= _REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[user] = _Remembered(sites, parts, contact, self.clock.seconds() + lifetime)
        return contact

    async def all_contacts(
        self, sites: Sequence[Site]
    ) -> tuple[dict[str, Contact], tuple[SiteProblem, ...]]:
        """Return all contacts of ``sites`` by name, asked now, and the sites without an answer."""
        if not sites:
            return {}, ()
        share = sites[0].memory.room.share()
        members = _asking("contactgroups", ("name", "members"))
        about_groups = Deferred.fromCoroutine(self._read(sites, members, share))
        entries, problems = await self._read(sites, _asking("contacts", _COLUMNS), share)
        groups, more_problems = await about_groups
        parts: dict[str, list[Contact]] = {}
        for answer in entries.values():
            for row in answer.rows:
                parts.setdefault(str(row[0]), []).append(_contact(evolve(answer, rows=[row])))
        groups_of: dict[str, set[str]] = {}
        for answer in groups.values():
            for row in answer.rows:
                listed = row[1] if len(row) > 1 and isinstance(row[1], list) else ()
                for member in listed:
                    groups_of.setdefault(str(member), set()).add(str(row[0]))
        return {
            name: evolve(_joined(contacts), groups=frozenset(groups_of.get(name, ())))
            for name, contacts in parts.items()
        }, tuple((problems | more_problems).values())

    async def _read(
        self, sites: Sequence[Site], plan: PlanSite, share: Share
    ) -> tuple[dict[str, SiteAnswer], dict[str, SiteProblem]]:
        """Answers by site, and the problems of the sites that could not be asked."""
        try:
            gathered = await fan_out(sites, plan, None, self.clock, share=share)
        except SitesFailed as error:
            return {}, {problem.site: problem for problem in error.problems}
        return (
            {answer.site.id: answer for answer in gathered.answers},
            {problem.site: problem for problem in gathered.problems},
        )


def _asking(table: str, columns: tuple[str, ...], wanted: Test | None = None) -> PlanSite:
    """Ask for those of ``columns`` that a core has, if it has the first one."""

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        present = tuple(name for name in columns if core.has(table, name))
        if columns[0] not in present or (wanted is not None and not core.has(table, wanted.column)):
            return None
        return Pushed(table=table, columns=present, filter=wanted)

    return plan


def _contact(answer: SiteAnswer | None) -> Contact:
    """Read the entry of one site; the columns are those that its core has."""
    if answer is None or not answer.rows:
        return NO_CONTACT
    entry = dict(zip(answer.asked.columns, answer.rows[0], strict=False))
    may = entry.get("can_submit_commands")
    return Contact(
        alias=str(entry.get("alias") or ""),
        email=str(entry.get("email") or ""),
        can_submit_commands=None if may is None else bool(may),
    )


def _joined(parts: Iterable[Contact]) -> Contact:
    """Put together what the sites say, in their order: the first one that knows them names them."""
    contacts = tuple(parts)
    named = next((contact for contact in contacts if contact.alias is not None), NO_CONTACT)
    may = [
        contact.can_submit_commands
        for contact in contacts
        if contact.can_submit_commands is not None
    ]
    return Contact(
        groups=frozenset().union(*(contact.groups for contact in contacts)),
        alias=named.alias,
        email=named.email,
        can_submit_commands=all(may) if may else None,
    )
