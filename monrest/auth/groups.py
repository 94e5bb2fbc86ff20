"""The contact groups of a user, read from the cores and kept for a while.

Used only when ``[auth.contactgroup_roles]`` is configured (auth-and-commands.md, section 2:
refreshed after 300 s, and what is known stays in force while the cores are unreachable).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.errors import RestError
from monrest.query.model import Pushed, Test
from monrest.sites.fanout import fan_out
from monrest.sites.registry import ALL, Registry
from monrest.sites.site import Site
from monrest.values import Capabilities

log = Logger()

ReadGroups: TypeAlias = Callable[[str], Awaitable[frozenset[str]]]
"""Reads the groups of one user from all sites; RestError when no site answers."""

_REMEMBERED = 4096


@frozen
class _Known:
    groups: frozenset[str]
    until: float


@define(eq=False)
class ContactGroups:
    """Remembers what ``read`` said about a user for ``lifetime`` seconds."""

    read: ReadGroups
    clock: IReactorTime
    lifetime: float = 300.0
    _known: dict[str, _Known] = field(factory=dict, init=False)

    async def of(self, user: str) -> frozenset[str]:
        """Give the user's contact groups; the last known ones while no site answers."""
        known = self._known.get(user)
        now = self.clock.seconds()
        if known is not None and now < known.until:
            return known.groups
        try:
            groups = await self.read(user)
        except RestError as error:
            log.warn("contact groups of {user} not read: {error}", user=user, error=error)
            return known.groups if known is not None else frozenset()
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[user] = _Known(groups, now + self.lifetime)
        return groups


async def read_groups(registry: Registry, user: str, clock: IReactorTime) -> frozenset[str]:
    """Ask all sites for the contact groups of ``user``; SitesFailed when none answers."""
    sites = registry.select((ALL,))
    if not sites:
        return frozenset()
    asked = Pushed(table="contactgroups", columns=("name",), filter=Test("members", ">=", user))

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        return asked if core.has("contactgroups", "members") else None

    gathered = await fan_out(sites, plan, None, clock)
    return frozenset(str(row[0]) for answer in gathered.answers for row in answer.rows)
