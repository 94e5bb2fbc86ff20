"""What the cores say about recurring downtimes: which of their objects there are.

Rules: docs/spec/downtimes.md, "Check".
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence, Set
from typing import Any, Protocol

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.schedule import cron
from monrest.base.values import SiteProblem
from monrest.downtimes.model import SERVICE, Downtime
from monrest.livestatus.command import Target
from monrest.sites.site import Site


class FoundObjects(Protocol):
    """Which objects exist on which sites."""

    @property
    def problems(self) -> Mapping[str, SiteProblem]:
        """The sites that could not say, by id."""

    def on(self, target: Target) -> Set[str]:
        """The ids of the sites that have ``target``."""


Existing = Callable[
    [Sequence[Site], Iterable[Target], IReactorTime], Coroutine[Deferred[Any], Any, FoundObjects]
]
"""Asks the cores which of some objects they have; raises SitesFailed when none answers."""


@frozen
class _Silent:
    """No site answered."""

    problems: Mapping[str, SiteProblem]

    def on(self, _target: Target) -> Set[str]:
        return frozenset()


async def find(
    existing: Existing, sites: Sequence[Site], targets: Iterable[Target], clock: IReactorTime
) -> FoundObjects:
    """Where the objects are, on whatever sites answer."""
    targets = set(targets)
    if not sites or not targets:
        return _Silent({})
    try:
        return await existing(sites, targets, clock)
    except SitesFailed as error:
        return _Silent({problem.site: problem for problem in error.problems})


# -------------------------------------------------------------------- what is wrong


def line(text: str) -> str:
    """One line of ``error``."""
    return f"  - ERROR: {text}"


def wanted(downtime: Downtime) -> set[Target]:
    """What has to be looked for to tell what is wrong: of services their hosts as well."""
    targets = set(downtime.targets())
    if downtime.target == SERVICE:
        targets |= {Target("hosts", target.name) for target in targets}
    return targets


def check(
    downtime: Downtime, sites: Sequence[Site], unknown: Sequence[str], found: FoundObjects
) -> list[str]:
    """The lines of what is wrong with a downtime; ``sites`` are its own.

    While one of them cannot be asked, nothing is missing.
    """
    lines = [line(f"unknown backend: {key}") for key in unknown]
    for at, entry in enumerate(downtime.record["schedule"]):
        try:
            cron(entry, f"schedule.{at}")
        except BadRequest as error:
            lines.append(line(f"cannot be scheduled: {error.description}"))
    keys = {site.id for site in sites}
    if keys & found.problems.keys():
        return lines

    def there(target: Target) -> bool:
        return not keys.isdisjoint(found.on(target))

    if downtime.target != SERVICE:
        kind = downtime.target
        return lines + [
            line(f"{kind} {target.name} not found")
            for target in downtime.targets()
            if not there(target)
        ]
    return lines + _check_services(downtime, there)


def _check_services(downtime: Downtime, there: Callable[[Target], bool]) -> list[str]:
    hosts, services = downtime.record["host"], downtime.record["service"]
    lines: list[str] = []
    for host in hosts:
        if not there(Target("hosts", host)):
            lines.append(line(f"host {host} not found"))
        elif not any(there(Target("services", host, service)) for service in services):
            lines.append(line(f"host {host} has none of the services"))
    lines += [
        line(f"service {service} not found on any of the hosts")
        for service in services
        if not any(there(Target("services", host, service)) for host in hosts)
    ]
    return lines
