"""Results as passive checks of the core, acknowledgements and downtimes; pure.

Rules: docs/spec/bp.md, "Results".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from monrest.bp.model import ROOT, Definition, Node
from monrest.bp.results import Result
from monrest.bp.states import PENDING, NodeState
from monrest.livestatus.command import CoreCommand

DOWNTIME_SECONDS = 86400
RENEW_SECONDS = 1800
DOWNTIME_COMMENT = "automatic downtime, all child nodes are in downtime."
ACK_COMMENT = "automatic acknowledgment, all child nodes are acknowledged."

_LONGEST_OUTPUT = 8000
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def results(definition: Definition, result: Result, duration: float) -> Iterator[CoreCommand]:
    """Give the passive checks of one process; ``duration`` is that of the run before, in seconds.

    The host of the root is always up, its services have the states of their nodes.
    """
    for node in definition.exported:
        host = definition.host_of(node)
        state = result.node(node.id)
        text = result.status_text if node.id == ROOT else state.status_text or state.short_desc
        status = result.status if node.id == ROOT else state.status
        if node.id == ROOT:
            took = f"{duration:.3f}s"
            output = (
                f"OK - business process calculation of {len(definition.nodes)} nodes "
                f"complete in {took}|runtime={took}"
            )
            yield CoreCommand("PROCESS_HOST_CHECK_RESULT", (host, "0", output), "output")
        fields = (host, node.label, str(0 if status == PENDING else status), output_of(text))
        yield CoreCommand("PROCESS_SERVICE_CHECK_RESULT", fields, "output")


def output_of(text: str) -> str:
    r"""Give a text as plugin output in one line, newlines as the characters ``\n``."""
    kept = text[:_LONGEST_OUTPUT].rstrip("\n")
    return "\\n".join(_CONTROL.sub(" ", one) for one in kept.split("\n"))


# -------------------------------------------------------------------- acknowledgements, downtimes


@frozen
class Present:
    """What a core has for the service of a node: downtimes of ours as (id, end), acknowledged."""

    downtimes: tuple[tuple[int, float], ...] = ()
    acknowledged: bool = False
    ours: bool = False
    """Whether the acknowledgement is one of ours."""


def synchronised(
    definition: Definition, node: Node, state: NodeState, present: Present, author: str, now: int
) -> Iterator[CoreCommand]:
    """Give what makes the service of an exported node have the flags of the node."""
    host, label = definition.host_of(node), node.label
    if state.scheduled_downtime_depth:
        ends = [end for _, end in present.downtimes]
        if not ends or max(ends) - now <= RENEW_SECONDS:
            end = str(now + DOWNTIME_SECONDS)
            fields = (host, label, str(now), end, "1", "0", str(DOWNTIME_SECONDS), author)
            yield CoreCommand("SCHEDULE_SVC_DOWNTIME", (*fields, DOWNTIME_COMMENT), "text")
    else:
        for number, _ in present.downtimes:
            yield CoreCommand("DEL_SVC_DOWNTIME", (str(number),))
    if state.acknowledged and not present.acknowledged:
        manner = ("1", "1", "0")
        acknowledge = (host, label, *manner, author, ACK_COMMENT)
        yield CoreCommand("ACKNOWLEDGE_SVC_PROBLEM", acknowledge, "text")
    elif not state.acknowledged and present.ours:
        yield CoreCommand("REMOVE_SVC_ACKNOWLEDGEMENT", (host, label))


def presents(
    services: Iterable[Sequence[object]],
    downtimes: Iterable[Sequence[object]],
    comments: Iterable[Sequence[object]],
) -> dict[tuple[object, object], Present]:
    """Put together rows of one core, by host and service.

    ``services`` are (host, service, acknowledged), ``downtimes`` (host, service, id, end) and
    ``comments`` (host, service) of ours.
    """
    ends: dict[tuple[object, object], list[tuple[int, float]]] = {}
    for host, service, number, end in downtimes:
        if isinstance(number, (int, float)) and isinstance(end, (int, float)):
            ends.setdefault((host, service), []).append((int(number), float(end)))
    ours = {(host, service) for host, service in comments}
    return {
        (host, service): Present(
            tuple(ends.get((host, service), ())),
            bool(acknowledged),
            bool(acknowledged) and (host, service) in ours,
        )
        for host, service, acknowledged in services
    }
