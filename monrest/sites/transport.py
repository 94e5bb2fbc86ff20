"""The transport of a site: queries and commands to its core.

A site that is reached directly has connections of Livestatus; one behind another instance has
that instance's REST API. The caller of a site sees no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import frozen
from twisted.internet.defer import Deferred

from monrest.base.values import Row
from monrest.livestatus.command_channel import TransmissionOutcome
from monrest.livestatus.core_errors import LivestatusError
from monrest.livestatus.pool import CoreRequest


class PartialRows(list[Row]):
    """Rows of another instance among which some are missing, as that reports."""


class BehindRelayError(LivestatusError):
    """An LMD or another instance answers that it cannot ask the core."""


class Queries(Protocol):
    """Sends queries; see ``livestatus.pool.Pool``."""

    limit: int
    process: int

    @property
    def quiet(self) -> bool:
        """Whether no query runs and no connection is open."""

    def query(self, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        """The rows of an answer; fails with LivestatusError."""

    def keep(self, idle: float) -> None:
        """Keep connections without work for ``idle`` seconds."""

    def stop(self) -> Deferred[None]:
        """Fail what is running; fires when nothing is left."""

    def retire(self) -> None:
        """Finish what is running and then close."""


class CommandSender(Protocol):
    """Sends commands; see ``livestatus.command_channel.CommandChannel``."""

    @property
    def quiet(self) -> bool:
        """Whether no command is on its way and no connection is open."""

    def transmit(
        self,
        lines: Sequence[str],
        kind: str,
        timeout: float,
        allowed: Callable[[], bool] = ...,
    ) -> Deferred[TransmissionOutcome]:
        """Send lines; fires with what became of each, never fails."""

    def keep(self, idle: float) -> None:
        """Keep the connection without work for ``idle`` seconds."""

    def end(self, error: LivestatusError) -> None:
        """Give up what is under way and what waits."""

    def stop(self) -> Deferred[None]:
        """Finish what is being sent; fires when nothing is left."""


@frozen(kw_only=True)
class Hops:
    """The instances and connections on the way to a core, the local one first.

    All of them have the same length. ``instances`` are the random ids of the instances behind
    this one.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]
    addresses: tuple[str, ...]
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    instances: tuple[str, ...] = ()
