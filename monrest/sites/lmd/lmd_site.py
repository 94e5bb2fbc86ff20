"""A site behind an LMD, which is asked like one of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed

from monrest.base.values import Capabilities, Row
from monrest.livestatus.command_channel import CommandChannel
from monrest.livestatus.core_errors import (
    ConnectError,
    LivestatusError,
    StoppedError,
)
from monrest.livestatus.pool import CoreRequest
from monrest.sites.health import Breaker
from monrest.sites.lmd.joint_queries import BehindLmdError, JointQueries
from monrest.sites.lmd.lmd_list import LmdFacts
from monrest.sites.site import Site

if TYPE_CHECKING:
    from monrest.sites.lmd.lmd_source import LmdSource

STARTS = 2.0
"""Seconds for which a site that its LMD has not read yet is waited for."""


@define(eq=False)
class FollowingBreaker(Breaker):
    """The health of a site as its LMD reports it; ``leader`` is that of the LMD itself."""

    leader: Breaker = field(kw_only=True)
    _beginning: float | None = field(init=False, default=None)
    """Since when the LMD reports that it begins with the site."""

    def startService(self) -> None:
        """Wait for what the LMD reports."""
        Service.startService(self)

    def stopService(self) -> Deferred[None]:
        """Fail what waits."""
        Service.stopService(self)
        self._end_waiting(StoppedError())
        return succeed(None)

    def retire(self) -> Deferred[None]:
        return self.stopService()

    def failed(self, error: LivestatusError, sent: float) -> None:
        """See ``Breaker``; the LMD is probed after an error of this site alone."""
        if isinstance(error, BehindLmdError):
            self.leader.suspect()
        else:
            self.leader.failed(error, sent)

    def hear(self) -> None:
        self.leader.hear()

    def suspect(self) -> None:
        self.leader.suspect()

    def slow(self) -> None:
        self.leader.slow()

    def probed(self) -> Deferred[None]:
        return self.leader.probed()

    def follow(self, facts: LmdFacts | None) -> None:
        """Take over how the LMD is, and what it reports of the site; None: it has no such site."""
        leader = self.leader
        if leader.error is not None:
            if self.error is not leader.error:
                self._down(leader.error)
        elif leader.missed is not None:
            if self.error is None:
                self.missed = leader.missed
        elif leader.health.state == "up":
            self._follow_site(facts)

    def _follow_site(self, facts: LmdFacts | None) -> None:
        now = self.clock.seconds()
        if facts is None:
            self._down(BehindLmdError("the LMD has no such site"))
        elif facts.up:
            assert facts.program is not None
            self._beginning, self._started = None, self.leader._started
            self._up(facts.program)
        elif facts.begins and self._beginning is None:
            self._beginning = now
            if self.error is None:
                self.missed = ConnectError("the LMD has not read it yet", momentary=True)
        elif facts.begins and self._beginning is not None and now - self._beginning < STARTS:
            return
        else:
            self._beginning = None if not facts.begins else self._beginning
            reason = facts.last_error or "the LMD has not read it yet"
            if self.error is None or self.error.reason != reason:
                self._down(BehindLmdError(reason))


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
class LmdSite(Site):
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

    def _new_breaker(self, on_hang: Callable[[LivestatusError], None]) -> Breaker:
        return FollowingBreaker(
            clock=self.reactor,
            probe=self._probe,
            site=self.config.id,
            on_hang=on_hang,
            leader=self.source.breaker,
        )

    def _connect(self) -> None:
        self.pool = QueriesOfSite(self.source.queries, self.id)
        self.commands = CommandChannel(
            clock=self.reactor, endpoint=lambda: self.source.endpoint, backend=self.id
        )

    def learn(self, facts: LmdFacts, capabilities: Capabilities) -> None:
        self.facts = facts
        if self._core.capabilities != capabilities or not self._core.capabilities.tables:
            self._core.capabilities = capabilities

    def follow(self) -> None:
        breaker = self.breaker
        assert isinstance(breaker, FollowingBreaker)
        breaker.follow(self.facts)
