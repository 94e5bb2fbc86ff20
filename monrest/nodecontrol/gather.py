"""How facts about a node are gathered: by a command, or on this host itself.

A gatherer is anything that has ``gather``; ``NodeControl`` chooses one for a site. A command is
told by ``MON_GATHER`` what is wanted, ``runtime`` (what changes by the minute) or ``facts``
(everything), and by ``MON_NODE`` of which node. It prints one JSON object with as many of the
documented keys as it knows and with whatever else there is to tell, and ends with status 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, frozen
from twisted.internet.defer import Deferred

from monrest.base import processes
from monrest.base.concurrency import Threads
from monrest.nodecontrol.model import GatherError, What, facts_of


@frozen
class NodeFacts:
    """``data`` as documented; ``problem`` is what could not be learned, empty for nothing."""

    data: Mapping[str, Any]
    problem: str = ""


class Gatherer(Protocol):
    """Learns about one node."""

    def gather(self, what: What) -> Deferred[NodeFacts]:
        """Ask; fails with GatherError. Cancelling ends everything that was started."""


@define(eq=False, kw_only=True)
class CommandGatherer:
    """Runs ``command`` through a shell, for ``seconds`` at most."""

    reactor: Any
    threads: Threads
    site: str
    command: str
    seconds: float

    def gather(self, what: What) -> Deferred[NodeFacts]:
        return Deferred.fromCoroutine(self._gather(what))

    async def _gather(self, what: What) -> NodeFacts:
        environment = {"MON_GATHER": what, "MON_NODE": self.site}
        ended = await processes.run(
            self.reactor, processes.shell(self.command), environment, self.seconds
        )
        if reason := ended.reason():
            raise GatherError(reason)
        if ended.dropped:
            raise GatherError(f"expected at most {processes.MOST_OUTPUT} bytes of output")
        return NodeFacts(await self.threads.run(lambda: facts_of(ended.out)))
