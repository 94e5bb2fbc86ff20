"""From an event to what a webhook sends (docs/spec/webhooks.md, "Bodies"). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson
from attrs import frozen

from monrest.events.followers import StreamEvent
from monrest.events.model import Event, rfc3339
from monrest.query.states import NUMBERS
from monrest.webhooks import placeholders
from monrest.webhooks.model import TEMPLATE, Webhook

LARGEST_BODY = 262_144
"""Bytes of what is sent."""

JSON = "application/json"
_LONGEST_TEXT = 2000
_LONGEST_TITLE = 300

_NAMES: Mapping[bool, tuple[str, ...]] = {
    False: tuple(name.upper() for name in NUMBERS["host"]),
    True: tuple(name.upper() for name in NUMBERS["service"]),
}
_SEVERITIES: Mapping[bool, tuple[str, ...]] = {
    False: ("ok", "critical", "warning"),
    True: ("ok", "warning", "critical", "unknown"),
}
_COLORS = {"ok": "#2eb886", "warning": "#daa038", "critical": "#a30200", "unknown": "#7a5ba6"}


@frozen(kw_only=True)
class MessageBody:
    """The body of a message, ready to be signed."""

    content_type: str
    data: bytes


class BodyError(Exception):
    """An event of which no body can be made; the text says why."""


def state_of(event: Event) -> int | None:
    """The number of the state that an event is about, None for none."""
    state = event.data.get("state")
    if isinstance(state, bool) or not isinstance(state, int | float) or not event.host:
        return None
    return min(max(int(state), 0), len(_NAMES[bool(event.service)]) - 1)


def state_name(event: Event) -> str:
    state = state_of(event)
    return "" if state is None else _NAMES[bool(event.service)][state]


def severity_of(event: Event) -> str:
    """ok, warning, critical or unknown; empty where an event has no state."""
    state = state_of(event)
    return "" if state is None else _SEVERITIES[bool(event.service)][state]


def _word(event: Event, name: str) -> str:
    value = event.data.get(name)
    return "" if value is None else str(value)


def object_of(event: Event) -> str:
    """The name of what an event is about, for people."""
    if event.service:
        return f"{event.host}/{event.service}"
    return event.host or event.subject


def title_of(event: Event) -> str:
    words = [event.type, _word(event, "action")]
    if event.type in ("state", "notification"):
        words = [] if event.type == "state" else [event.type]
        words.append(state_name(event))
    begin = f"{event.site}: " if event.site else ""
    title = " ".join(word for word in (object_of(event), *words) if word)
    return f"{begin}{title}"[:_LONGEST_TITLE]


def text_of(event: Event) -> str:
    """The output of the check, else a comment, else a reason of the daemon."""
    names = ("plugin_output", "comment", "reason", "options")
    return next((text for name in names if (text := _word(event, name))), "")[:_LONGEST_TEXT]


def _cloudevents(stream_event: StreamEvent, _: Webhook) -> MessageBody:
    return MessageBody(
        content_type="application/cloudevents+json; charset=utf-8",
        data=orjson.dumps(stream_event.event.cloud_event(stream_event.data)),
    )


def _plain(stream_event: StreamEvent, _: Webhook) -> MessageBody:
    event = stream_event.event
    lines = [f"{rfc3339(event.time)} {title_of(event)}", text_of(event)]
    text = "\n".join(line for line in lines if line) + "\n"
    return MessageBody(
        content_type="text/plain; charset=utf-8", data=text.encode("utf-8", "replace")
    )


def _escaped(text: str) -> str:
    """A text in which Slack finds no links and no mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack(stream_event: StreamEvent, _: Webhook) -> MessageBody:
    event = stream_event.event
    title, text = _escaped(title_of(event)), _escaped(text_of(event))
    attachment: dict[str, Any] = {
        "fallback": title,
        "color": _COLORS.get(severity_of(event), "#808080"),
        "text": text,
        "ts": int(event.time),
    }
    return _json({"text": title, "attachments": [attachment]})


def _oncall(stream_event: StreamEvent, hook: Webhook) -> MessageBody:
    event = stream_event.event
    return _json(
        {
            "alert_uid": f"{hook.token[:8]}:{event.site}:{event.subject}",
            "title": title_of(event),
            "state": "ok" if severity_of(event) == "ok" else "alerting",
            "message": text_of(event),
        }
    )


def _template(stream_event: StreamEvent, hook: Webhook) -> MessageBody:
    event = stream_event.event
    values = {
        **event.cloud_event(stream_event.data),
        "site": event.site,
        "object": object_of(event),
        "title": title_of(event),
        "text": text_of(event),
        "severity": severity_of(event),
        "state_name": state_name(event),
    }
    return _json(placeholders.filled(hook.record["template"], values))


def _json(value: Any) -> MessageBody:
    return MessageBody(content_type=JSON, data=orjson.dumps(value))


BodyForm: TypeAlias = Callable[[StreamEvent, Webhook], MessageBody]

_FORMS: Mapping[str, BodyForm] = {
    "cloudevents": _cloudevents,
    "oncall": _oncall,
    "plain": _plain,
    "slack": _slack,
    TEMPLATE: _template,
}


def body_of(stream_event: StreamEvent, hook: Webhook) -> MessageBody:
    """BodyError where none can be made."""
    try:
        body = _FORMS[str(hook.record["body"])](stream_event, hook)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise BodyError(f"no JSON can be made of it: {error}") from None
    if len(body.data) > LARGEST_BODY:
        raise BodyError(f"a body of more than {LARGEST_BODY} bytes")
    return body
