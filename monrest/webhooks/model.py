"""The record of a webhook and what may be in one (docs/spec/webhooks.md, "Record"). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import orjson
from attrs import field, frozen
from sqlalchemy import Index

from monrest.api.fields import Choice, Fields, Flag, NameList, Ruled, Text
from monrest.base.errors import BadRequest
from monrest.base.hidden import HIDDEN
from monrest.base.values import ROLES
from monrest.config.check import full_role
from monrest.store.stored import (
    KEY,
    NOT_STORED,
    References,
    Shown,
    StoredRow,
    shown_time,
    shown_values,
    stored,
)
from monrest.webhooks import placeholders

ALERTMANAGER, TEMPLATE = "alertmanager", "template"
BODY_FORMS = (ALERTMANAGER, "cloudevents", "oncall", "plain", "slack", TEMPLATE)

LONGEST_URL, LONGEST_FILTER = 2000, 8000
_LONGEST_SHOWN = 10_000
MOST_HEADERS, LONGEST_HEADER = 20, 2000

_URL = re.compile(
    r"https?://(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,30})"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?][!-~]*)?",
    re.ASCII,
)
_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65535
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[!-~](?:[ \t!-~]*[!-~])?")
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
    | {"accept", "accept-encoding", "webhook-id", "webhook-signature", "webhook-timestamp"}
)


@frozen(kw_only=True)
class Receiver:
    """The receiver of a webhook; ``host`` is without brackets."""

    secure: bool
    host: str
    port: int
    url: str


def _wrong(name: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid {name}", f"{name}: expected {expected}")


def read_url(text: str) -> Receiver:
    """Take a URL apart; BadRequest for what is none."""
    match = _URL.fullmatch(text) if len(text) <= LONGEST_URL else None
    if match is None or "#" in text:
        raise _wrong(
            "url",
            f"http(s)://HOST[:PORT]/PATH of at most {LONGEST_URL} characters, without user, "
            "password and fragment",
        )
    scheme = urlsplit(text).scheme
    port = int(match["port"] or _PORTS[scheme])
    if not 0 < port <= _HIGHEST_PORT:
        raise _wrong("url", f"a port from 1 to {_HIGHEST_PORT}")
    host = match["host"].strip("[]")
    return Receiver(secure=scheme == "https", host=host, port=port, url=text)


def _url(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise BadRequest("missing url", "url: expected where the events are sent to")
    return read_url(value.strip()).url


def _headers(value: Any) -> dict[str, str]:
    value = {} if value is None else value
    if not isinstance(value, Mapping) or len(value) > MOST_HEADERS:
        raise _wrong("headers", f"an object of at most {MOST_HEADERS} names and values")
    seen = set()
    for name, text in value.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OWN_HEADERS or name.lower() in seen:
            raise _wrong("headers", f"names of headers that it has not anyway, got {name[:80]!r}")
        seen.add(name.lower())
        if not isinstance(text, str) or len(text) > LONGEST_HEADER or not _VALUE.fullmatch(text):
            raise _wrong(
                f"headers.{name}", f"one line of 1 to {LONGEST_HEADER} printable ASCII characters"
            )
    return dict(value)


def _template(value: Any) -> Any:
    if value in (None, ""):
        return None
    try:
        placeholders.check(value)
    except (ValueError, orjson.JSONEncodeError) as error:
        raise BadRequest("invalid template", f"template: {error}") from None
    return value


def _known_role(parameter: str, name: str) -> None:
    if full_role(name) not in ROLES:
        short = ", ".join(role.removeprefix("authorized_for_") for role in ROLES)
        raise BadRequest("unknown role", f"{parameter}: expected names out of {short}")


FIELDS = Fields(
    (
        Text("name", "what it is for", longest=300, needed="what it is for"),
        Ruled("url", "http or https, where the events are sent to by POST", rule=_url,
              in_rows="where events are sent to", most=f"{LONGEST_URL} characters", required=True),
        Flag("enabled", "0: nothing is sent, and what happens meanwhile is left out", default=1,
             in_rows="0: nothing is sent"),
        Text("filter", "query string of `/events`, such as `types=state&host_groups[gte]=web`; "
             "empty: all that the owner may see", longest=LONGEST_FILTER, stripped=False,
             in_rows="query string that selects events, as for `/events`"),
        Choice("body", "form of what is sent; where there is a `template`, that is the default",
               BODY_FORMS, default="cloudevents", in_rows="form of what is sent"),
        Ruled("template", "for the body `template`: JSON whose texts have placeholders, such as "
              "`{\"text\": \"{{ data.host_name }}\"}`", type="object", rule=_template, nested=True,
              most=f"{placeholders.LONGEST_TEMPLATE} bytes, {placeholders.MOST_PLACEHOLDERS} "
              "placeholders", in_rows="what the body template is made of"),
        Ruled("headers", "further headers by name; their values are never shown, and `***` keeps "
              "the one that is stored", type="object", rule=_headers, nested=True,
              most=f"{MOST_HEADERS} headers of {LONGEST_HEADER} characters",
              in_rows="further headers; their values are not shown"),
        NameList("roles", "roles that the owner has here at most; none: all of them", most=100,
                 check=_known_role, in_rows="roles that the owner has here at most; none: all"),
    ),
    computed=frozenset(
        {"id", "paused", "paused_since", "last_delivery", "last_error", "last_error_time",
         "waiting", "failures", "secrets"}
    ),
    longest=131_072,
)  # fmt: skip


def _shown_body(body: bytes) -> str:
    return body.decode("utf-8", "replace")[:_LONGEST_SHOWN]


@frozen(kw_only=True)
class WebhookSecret:
    """A secret of a webhook, used ``until`` a date; None for the present one."""

    key: str = field(repr=False)
    until: float | None = None


@stored("webhooks")
@frozen(kw_only=True)
class Webhook(StoredRow):
    """A webhook.

    ``record`` has the FIELDS and the owner. ``limit`` are the roles to which its owner was
    restricted when it was made. ``token`` makes the ids of its messages differ from those of all
    others. ``position`` is the last event that was read, ``last_seq`` the number of the last
    delivery. After ``failures`` in a row the receiver is left alone until ``rests``.
    """

    number: Annotated[int, KEY, Shown("its number", "number", name="id")]
    record: Mapping[str, Any] = field(eq=False)
    secrets: Annotated[
        tuple[WebhookSecret, ...],
        Shown("how many secrets sign: 2 while one is being replaced", "number", show=len),
    ] = ()
    limit: tuple[str, ...] | None = None
    token: str = field(default="", repr=False)
    position: str | None = None
    last_seq: int = 0
    paused: Annotated[str | None, Shown("why nothing is sent until it is resumed; else empty")] = (
        None
    )
    paused_at: Annotated[float | None, shown_time("since when", "paused_since")] = None
    failures: Annotated[
        int, Shown("tries in a row in which the receiver took nothing", "number")
    ] = 0
    rests: float = 0.0
    delivered: Annotated[
        float | None, shown_time("when the receiver took something last", "last_delivery")
    ] = None
    error: Annotated[str | None, Shown("what went wrong last", name="last_error")] = None
    error_at: Annotated[float | None, shown_time("when that was", "last_error_time")] = None
    version: int = 0
    waiting: Annotated[int, NOT_STORED, Shown("messages that are not over", "number")] = 0

    @property
    def owner(self) -> str:
        return str(self.record["owner"])

    @property
    def alerts(self) -> bool:
        """Whether it sends problems to an Alertmanager, and no single events."""
        return bool(self.record["body"] == ALERTMANAGER)

    @property
    def works(self) -> bool:
        return bool(self.record["enabled"]) and self.paused is None

    @property
    def place(self) -> Receiver:
        """The URL of the receiver; of an Alertmanager the address is enough."""
        url = str(self.record["url"])
        if self.alerts and urlsplit(url).path in ("", "/"):
            url = f"{url.rstrip('/')}/api/v2/alerts"
        return read_url(url)

    def roles(self) -> frozenset[str] | None:
        """The roles to which the owner is restricted, None for no restriction."""
        chosen = self.record["roles"] or None
        limits = [frozenset(roles) for roles in (self.limit, chosen) if roles is not None]
        return frozenset.intersection(*limits) if limits else None

    def keys(self, now: float) -> list[str]:
        """The valid secrets, the present one first."""
        return [secret.key for secret in self.secrets if secret.until is None or secret.until > now]


@stored(
    "webhook_deliveries",
    Index("ix_webhook_deliveries_open", "webhook", "phase", "subject", "seq"),
    Index("ix_webhook_deliveries_event", "webhook", "event"),
)
@frozen(kw_only=True)
class Delivery(StoredRow):
    """One message of a webhook: ``body`` is sent as it is, however often.

    Deliveries are sent in the order of ``seq``, those of one ``subject`` one after another. They
    are kept until they are over, and the last of these a while longer.
    """

    webhook: Annotated[int, KEY, References("webhooks.number")]
    seq: Annotated[int, KEY, Shown("its number", "number", name="id")]
    message: Annotated[
        str, Shown("the header webhook-id, the same for each try", name="message_id")
    ]
    event: Annotated[str, Shown("id of the event")]
    type: Annotated[str, Shown("type of the event")]
    subject: Annotated[str, Shown("site and object of the event; in order for each of them")]
    made: Annotated[float, shown_time("when it was queued", "created")]
    content_type: str
    body: Annotated[bytes, Shown("what is sent", show=_shown_body)] = field(repr=False)
    phase: Annotated[str, Shown("waiting, sent or failed", name="state")] = "waiting"
    attempts: Annotated[int, Shown("how often it was tried", "number")] = 0
    again: Annotated[
        float, shown_time("when it is tried again; 0: at once, or never", "next_try")
    ] = 0.0
    status: Annotated[
        int | None,
        Shown("status of the last answer; null where there was none", "number", nothing=None),
    ] = None
    error: Annotated[str | None, Shown("what went wrong last")] = None
    ended: Annotated[float | None, shown_time("when it was taken, or given up; 0 before")] = None


def shown_delivery(delivery: Delivery) -> dict[str, Any]:
    row = shown_values(delivery)
    return row if delivery.phase == "waiting" else {**row, "next_try": 0}


def checked(given: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a whole record as it is stored, without its owner; BadRequest names what is wrong.

    ``stored`` is the record that is replaced, whose headers stay where they are hidden.
    """
    if given.get("template") is not None:
        given = {"body": TEMPLATE, **given}
    record = FIELDS.record(given)
    if record["body"] == TEMPLATE and record["template"] is None:
        raise BadRequest("missing template", "template: expected one for the body template")
    kept = {} if stored is None else stored["headers"]
    headers = {}
    for name, value in record["headers"].items():
        if value == HIDDEN and name not in kept:
            raise _wrong(f"headers.{name}", "a value, because none is stored")
        headers[name] = kept[name] if value == HIDDEN else value
    return {**record, "headers": headers, "roles": [full_role(role) for role in record["roles"]]}


def webhook_record(hook: Webhook) -> dict[str, Any]:
    """A webhook as it is shown: no secret, no value of a header."""
    headers = dict.fromkeys(hook.record["headers"], HIDDEN)
    return {**hook.record, "headers": headers, **shown_values(hook)}
