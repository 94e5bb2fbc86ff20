"""From what the cores say now to the sheet of a report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.reports import picture
from monrest.reports.build import Frame
from monrest.reports.sheet import Grid, Head, Sheet, SheetPart


@frozen(kw_only=True)
class ObjectProblem:
    """A host (without service) or service that is not well; times are Unix seconds."""

    host: str
    service: str
    state: str
    since: int
    output: str
    acknowledged: bool
    downtime: bool


def problems(
    frame: Frame,
    hosts: Counter[str] | None,
    services: Counter[str] | None,
    found: Sequence[ObjectProblem],
) -> Sheet:
    """How many hosts and services are in which state, and all that are not well."""
    say = frame.spelling.say
    whole: list[SheetPart] = frame.warnings()
    for title, words, counts in (
        ("Hosts", (*HOST_WORDS, "pending"), hosts),
        ("Services", (*SERVICE_WORDS, "pending"), services),
    ):
        if counts is not None:
            whole.append(picture.shares(say(title), [(word, counts[word]) for word in words]))
    rows = [
        (
            one.host, one.service, one.state, one.since, max(0, int(frame.now) - one.since),
            ", ".join(say(word) for word, is_so in (("acknowledged", one.acknowledged),
                                                    ("in downtime", one.downtime)) if is_so),
            one.output,
        )
        for one in found
    ]  # fmt: skip
    whole.append(
        Grid(
            title=say("Problems"),
            heads=(
                Head(say("Host"), weight=1.2), Head(say("Service"), weight=1.4),
                Head(say("State"), "state"), Head(say("Since"), "time"),
                Head(say("Duration"), "duration"), Head(say("Handled"), weight=0.8),
                Head(say("Output"), weight=2.0),
            ),
            rows=rows,
            empty=say("There are no problems."),
        )
    )  # fmt: skip
    count = sum(sum(counts.values()) for counts in (hosts, services) if counts is not None)
    return Sheet(
        title=frame.report.name,
        kind="problems",
        facts=frame.facts(("Objects", str(count)), ("Problems", str(len(found)))),
        parts=tuple(whole),
        spelling=frame.spelling,
        worst=0.0 if found else 100.0,
        data={
            "problems": [
                {
                    "host": one.host, "service": one.service, "state": one.state,
                    "last_state_change": one.since, "plugin_output": one.output,
                    "acknowledged": int(one.acknowledged), "in_downtime": int(one.downtime),
                }
                for one in found
            ]
        },
    )  # fmt: skip
