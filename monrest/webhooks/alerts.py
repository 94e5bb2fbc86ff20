"""From states to the alerts of an Alertmanager (docs/spec/webhooks.md, "Alertmanager"). Pure.

An alert is what its labels are, so a problem that gets another severity is another alert: the
first one ends when the second one begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from monrest.events.model import Event, object_subject, rfc3339
from monrest.webhooks.bodies import severity_of, text_of, title_of

AHEAD = 240.0
"""Seconds for which an alert is firing without being told again, so that none outlives us."""


@frozen(kw_only=True)
class Alert:
    """An alert: ``body`` has its labels and annotations, ``ends`` is None while it is firing.

    ``subject`` is the object with the severity. ``sent``: the Alertmanager has accepted it.
    """

    subject: str
    site: str
    body: Mapping[str, Any]
    starts: float
    ends: float | None = None
    sent: bool = False


def alert_of(event: Event, groups: Sequence[str]) -> Alert:
    """Give the alert of a problem, firing since the event."""
    labels = {
        "alertname": event.service or "Host",
        "host": event.host,
        "service": event.service,
        "site": event.site,
        "severity": severity_of(event),
        # With commas around, so that one of them can be matched: groups=~".*,web,.*".
        "groups": f",{','.join(groups)}," if groups else "",
    }
    annotations = {"summary": title_of(event), "description": text_of(event)}
    subject = object_subject(event.host, event.service)
    return Alert(
        subject=f"{event.site}:{subject}#{labels['severity']}",
        site=event.site,
        body={
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {name: value for name, value in annotations.items() if value},
        },
        starts=event.time,
    )


def after_look(
    problems: Mapping[str, Alert], known: Mapping[str, Alert], silent: frozenset[str], now: float
) -> dict[str, Alert]:
    """Give the alerts after a look at all present ``problems``; ``known`` are those before.

    Nothing is known of the objects of ``silent`` sites, whose alerts stay as they are.
    """
    found = dict(problems)
    for name, one in known.items():
        problem = problems.get(name)
        if problem is None:
            over = one.ends is None and one.site not in silent
            found[name] = evolve(one, ends=max(now, one.starts), sent=False) if over else one
        elif one.ends is None:
            # The labels stay, since they are what the alert is known by.
            found[name] = evolve(one, body={**problem.body, "labels": one.body["labels"]})
    return found


def posted(one: Alert, now: float) -> dict[str, Any]:
    """Give an alert as the Alertmanager takes it."""
    # The clock of a core may be ahead; what is over has an end that is not to come.
    ends = now + AHEAD if one.ends is None else min(one.ends, now)
    return {**one.body, "startsAt": rfc3339(min(one.starts, ends)), "endsAt": rfc3339(ends)}
