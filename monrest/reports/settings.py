"""The parameters of a report: defaults, checks, and what they mean. Pure.

Rules: docs/spec/reports.md, "Parameters".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import partial
from math import floor, isfinite
from typing import Any, Literal, TypeVar

import re2
from attrs import define, frozen

from monrest.api.fields import Choice, Flag, NameList, Text
from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.periods import Span, UnknownPeriodError, named
from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.query.model import Condition, FilterTree, Group, Operator
from monrest.query.q import parse_q
from monrest.query.scan import UNPRINTABLE
from monrest.query.target import PathTarget, parameters, target
from monrest.query.times import parse_time
from monrest.reports.templates import LANGUAGES, ReportTemplate

# The URL of a report over the API itself (docs/spec/reports.md, "A path of the API").

_EXPECTED = "a path of this API, such as /mon/r/csv/hosts?columns=name,state"
_FORMS = {"csv": "csv", "xls": "xls", "text": "text"}


@frozen(kw_only=True)
class Link:
    """``root`` is what stands in front of the API's own path, to be compared with the real one."""

    text: str
    root: str
    target: PathTarget
    parameters: Parameters

    @property
    def form(self) -> str:
        """What its answer is: csv, xls, text or json."""
        return _FORMS.get(self.target.format or "", "json")


def read_link(text: str) -> Link:
    """Read a URL without scheme and host; ValueError says what was expected.

    Other servers are never asked: the author of a report could make this one ask them with its
    own rights.
    """
    if not text.startswith("/") or text.startswith("//"):
        raise ValueError(_EXPECTED)
    whole, _, query = text.partition("?")
    app, _, rest = whole[1:].partition("/")
    mark, _, path = rest.partition("/")
    if not app or mark != "r":
        raise ValueError(_EXPECTED)
    try:
        return Link(
            text=text,
            root=f"/{app}/{mark}",
            target=target(path),
            parameters=parameters(query.encode("utf-8"), "url"),
        )
    except BadRequest as error:
        raise ValueError(f"{_EXPECTED}: {error.description}") from None


# The search that chooses the objects of a report, as conditions of the query language.
#
# It comes as the fields of a search form: ``dfl_s0_type``, ``dfl_s0_op``, ``dfl_s0_value`` and so
# on, one or many of each; searches ``s0``, ``s1``, … are joined by or, the lines of one by and
# (docs/spec/reports.md, "Parameters").

_FIELD = re.compile(
    r"(?:dfl_)?s([0-9]{1,3})_(type|op|value|val_pre|hoststatustypes|servicestatustypes"
    r"|hostprops|serviceprops)"
)
_OPS: Mapping[str, Operator] = {
    "": "=", "=": "=", "!=": "!=", "~": "~~", "!~": "!~~", ">=": ">=", "<=": "<=",
}  # fmt: skip
_LISTS: Mapping[str, Operator] = {"=": ">=", "!=": "!>=", ">=": ">=", "~~": "~~", "!~~": "!~~"}
_COLUMNS = {"host": "host", "service": "service"}
_GROUPS = {
    "hostgroup": "host_groups",
    "servicegroup": "service_groups",
    "contact": "contacts",
    "contactgroup": "contact_groups",
}
_EVERYTHING = {"hoststatustypes": (0, 15), "servicestatustypes": (0, 31)}
_MOST_NAMES = 500


@frozen
class Search:
    """``trees`` have all to hold, on columns of hosts or of services."""

    trees: tuple[FilterTree, ...] = ()


def read_search(given: Any, q: str) -> Search:
    """Read the fields of a form and a text of the query language; ValueError says what is wrong.

    A filter that is a text is the query language as well.
    """
    texts = [q] if q else []
    trees: list[FilterTree] = []
    if isinstance(given, str):
        texts += [given] if given.strip() else []
    elif isinstance(given, Mapping):
        trees += _form(given)
    elif given is not None:
        raise ValueError("an object of search fields, or a text of the query language")
    for text in texts:
        try:
            trees.append(parse_q(text))
        except BadRequest as error:
            raise ValueError(f"the query language: {error.description}") from None
    return Search(tuple(trees))


def _form(given: Mapping[Any, Any]) -> list[FilterTree]:
    searches: dict[int, dict[str, list[str]]] = {}
    for name, value in given.items():
        match = _FIELD.fullmatch(str(name))
        if match is None:
            raise ValueError(f"fields such as dfl_s0_type, got {str(name)[:80]!r}")
        items = value if isinstance(value, list) else [value]
        if len(items) > _MOST_NAMES or not all(isinstance(item, (str, int)) for item in items):
            raise ValueError(f"texts, got something else in {name}")
        searches.setdefault(int(match[1]), {})[match[2]] = [str(item) for item in items]
    forms = [_search(searches[number]) for number in sorted(searches)]
    chosen = [form for form in forms if form.items]
    # A search without any condition finds everything, and so do all of them together.
    return [Group("or", tuple(chosen))] if chosen and len(chosen) == len(forms) else []


def _search(fields: Mapping[str, list[str]]) -> Group[Condition]:
    for name, values in fields.items():
        if name in ("hostprops", "serviceprops") or name in _EVERYTHING:
            neutral = _EVERYTHING.get(name, (0,))
            if any(value not in ("", *map(str, neutral)) for value in values):
                raise ValueError(f"no {name}: a report is about all states of its objects")
    types, ops = fields.get("type", []), fields.get("op", [])
    values = fields.get("value", [])
    if len(values) > len(types):
        raise ValueError("a type for each value")
    conditions = []
    for at, kind in enumerate(types):
        op = ops[at] if at < len(ops) else ""
        value = values[at].strip() if at < len(values) else ""
        if value:
            conditions.append(_line(kind.strip().lower(), op.strip(), value))
    return Group("and", tuple(conditions))


def _line(kind: str, op: str, value: str) -> FilterTree:
    sign = _OPS.get(op)
    if sign is None:
        raise ValueError(f"one of {' '.join(word for word in _OPS if word)} in op, got {op[:20]!r}")
    if kind == "search":
        how: Operator = "~~" if sign in ("=", "~~") else "!~~"
        text = re.escape(value) if sign in ("=", "!=") else value
        both = (Condition("host", how, text, "filter"), Condition("service", how, text, "filter"))
        return Group("or" if how == "~~" else "and", both)
    if kind in _COLUMNS:
        return Condition(_COLUMNS[kind], sign, value, "filter")
    if kind in _GROUPS:
        listed = _LISTS.get(sign)
        if listed is None:
            raise ValueError(f"one of = != ~ !~ for a {kind}, got {op!r}")
        return Condition(_GROUPS[kind], listed, value, "filter")
    names = ", ".join(("search", *_COLUMNS, *_GROUPS))
    raise ValueError(f"one of {names} in type, got {kind[:40]!r}")


T = TypeVar("T")

NAMED = (
    *("today", "last24hours", "yesterday", "thisweek", "last7days", "lastweek", "thismonth"),
    *("last31days", "lastmonth", "thisyear", "last12months", "lastyear", "custom"),
)
BREAKDOWNS = ("months", "weeks", "days")
FORMATS = ("pdf", "html", "xls", "csv")
"""What a mail may bring; a form that a report does not have is left out."""
EVENT_TYPES = (
    *("host_up", "host_down", "host_unreachable"),
    *("service_ok", "service_warning", "service_unknown", "service_critical"),
    *("notification_host", "notification_service"),
    *("host_state_hard", "host_state_soft", "host_state_both"),
    *("service_state_hard", "service_state_soft", "service_state_both"),
)
_STATES = (*HOST_WORDS, *SERVICE_WORDS)
UNAVAILABLE = (*_STATES, *(f"{state}_downtime" for state in _STATES))
_HOST_NAMES = ("hostname", "hostalias", "hostdisplayname", "hostcustom")
_SERVICE_NAMES = ("description", "servicedisplayname", "servicecustom")
_ASSUMED_HOST = (0, -1, 3, 4, 5)
_ASSUMED_SERVICE = (0, -1, 6, 7, 8, 9)
_CUSTOM = re.compile(r"_?[A-Za-z0-9_-]{1,100}")
_Text = partial(
    Text,
    longest=4096,
    refused=UNPRINTABLE,
    expected=(
        "a text",
        *("at most {longest} characters, none of them control characters",) * 2,
    ),
)
_Names = partial(NameList, most=1000, number="at most {most} of them")
_LAST_SECOND = 253_402_300_799


@frozen(kw_only=True)
class ReportSettings:
    """The parameters of one report, understood. Levels are percentages, -1 switches one off.

    ``form`` is the form of its file that a request without one means, ``attach`` those
    that a mail brings. ``delay``: seconds between the tries to read the ``url``.
    """

    language: str
    search: Search
    filter_type: Literal["Hosts", "Services", "Both"]
    names: Mapping[str, tuple[str, ...]]
    timeperiod: str
    custom: tuple[str, str]
    breakdown: str
    period: str
    sla: float
    graph_min_sla: float
    decimals: int
    host_names: str
    host_variable: str
    service_names: str
    service_variable: str
    date_format: str
    moment_format: str
    rules: Mapping[str, str]
    unavailable: frozenset[str]
    overview_max_level: float
    details_max_level: float
    mail_max_level: float
    max_worst_pages: int
    max_outages_pages: int
    attach_json: bool
    attach: tuple[str, ...]
    reverse: bool
    pattern: str
    exclude_pattern: str
    event_types: tuple[str, ...]
    handled: bool
    url: Link | None
    retries: int
    delay: float
    form: str

    def span(self, now: float, zone: tzinfo, first_weekday: int) -> Span:
        """From when to when the report goes; BadRequest for bounds that cannot be."""
        if self.timeperiod != "custom":
            try:
                return named(self.timeperiod, floor(now), zone, first_weekday)
            except UnknownPeriodError as error:
                raise _wrong("timeperiod", str(error)) from None
        bounds = [
            _moment(name, text, now, zone)
            for name, text in zip(("t1", "t2"), self.custom, strict=True)
        ]
        return Span(min(bounds), max(bounds))


def _wrong(name: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid params.{name}", f"params.{name}: expected {expected}")


def _moment(name: str, text: str, now: float, zone: tzinfo) -> int:
    moment = parse_time(text, floor(now), zone)
    if moment is None or not isfinite(moment) or not 0 <= moment <= _LAST_SECOND:
        raise _wrong(name, "a date, a unix time or a relative time")
    return floor(moment)


def completed(template: ReportTemplate, params: Mapping[str, Any]) -> dict[str, Any]:
    """``params`` with the defaults of the template, checked; BadRequest that names one."""
    values = dict(params)
    for name, default in template.defaults.items():
        if values.get(name) in (None, "", []):
            values[name] = default
    if values.get("timeperiod", "custom") != "custom":
        values.pop("t1", None)
        values.pop("t2", None)
    read(template, values)
    return values


def read(template: ReportTemplate, params: Mapping[str, Any]) -> ReportSettings:
    """What the parameters mean; BadRequest that names the one that is wrong."""
    given = _Params({**template.defaults, **params})
    custom = given.choice("timeperiod", NAMED, "last24hours") == "custom"
    objects = template.objects
    url = given.link("url") if template.kind == "url" else None
    form = "pdf" if url is None or given.flag("pdf", default=False) else url.form
    return ReportSettings(
        language=given.choice("language", LANGUAGES, "en"),
        search=given.search() if template.chooses else Search(),
        filter_type=given.choice("filter_type", ("Hosts", "Services", "Both"), objects)  # type: ignore[arg-type]  # one of these
        if template.chooses
        else objects,
        names={name: given.names(name, needed=name in template.needed) for name in template.names},
        timeperiod=given.choice("timeperiod", NAMED, "last24hours"),
        custom=(given.bound("t1"), given.bound("t2")) if custom else ("", ""),
        breakdown=given.choice("breakdown", BREAKDOWNS, "months"),
        period=given.text("rpttimeperiod"),
        sla=given.percent("sla", 98),
        graph_min_sla=given.percent("graph_min_sla", 90),
        decimals=int(given.number("decimals", 2, 0, 6, whole=True)),
        host_names=given.choice("hostnameformat", _HOST_NAMES, "hostname"),
        host_variable=given.variable("hostnameformat", "hostcustom"),
        service_names=given.choice("servicenameformat", _SERVICE_NAMES, "description"),
        service_variable=given.variable("servicenameformat", "servicecustom"),
        date_format=given.strftime("dateformat", "%Y-%m-%d"),
        moment_format=given.strftime("datetimeformat", "%Y-%m-%d %H:%M:%S"),
        rules={
            "assumeinitialstates": str(int(given.flag("assumeinitialstates", default=True))),
            "includesoftstates": str(int(given.flag("includesoftstates", default=False))),
            "initialassumedhoststate": given.one_of("initialassumedhoststate", _ASSUMED_HOST),
            "initialassumedservicestate": given.one_of(
                "initialassumedservicestate", _ASSUMED_SERVICE
            ),
        },
        unavailable=frozenset(given.several("unavailable", UNAVAILABLE)),
        overview_max_level=given.level("overview_max_level", -1),
        details_max_level=given.level("details_max_level", 100),
        mail_max_level=given.level("mail_max_level", -1),
        max_worst_pages=given.pages("max_worst_pages", 1),
        max_outages_pages=given.pages("max_outages_pages", -1),
        attach_json=given.flag("attach_json", default=False),
        attach=tuple(given.several("attach", FORMATS)) or (form,),
        reverse=given.flag("reverse", default=False),
        pattern=given.pattern("pattern"),
        exclude_pattern=given.pattern("exclude_pattern"),
        event_types=given.event_types(),
        handled=given.flag("handled", default=True),
        url=url,
        retries=int(given.number("retries", 3, 1, 10, whole=True)),
        delay=given.number("delay", 60, 0, 300),
        form=form,
    )


@define
class _Params:
    given: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A short text without control characters."""
        return _Text(f"params.{name}", "").read(self.given.get(name))

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        return Choice(f"params.{name}", "", choices, default=default).read(self.given.get(name))

    def names(self, name: str, *, needed: bool) -> tuple[str, ...]:
        """A list of names, or a text with commas."""
        names = self._list(name)
        if needed and not names:
            raise _wrong(name, "at least one name")
        return names

    def _list(self, name: str) -> tuple[str, ...]:
        value, text = self.given.get(name), _Text(f"params.{name}", "")
        items = value if isinstance(value, list) else text.read(value)
        return tuple(_Names(text.name, "", item=lambda item: (text.read(item),)).read(items))

    def several(self, name: str, choices: tuple[str, ...]) -> tuple[str, ...]:
        texts = self._list(name)
        for text in texts:
            if text not in choices:
                raise _wrong(name, f"some of {', '.join(choices)}")
        return texts

    def number(
        self, name: str, default: float, least: float, most: float, *, whole: bool = False
    ) -> float:
        """A number within bounds; a comma is a decimal point as well."""
        text = self.text(name).removesuffix("%").strip().replace(",", ".")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most or (whole and not value.is_integer()):
            kind = "a whole number" if whole else "a number"
            raise _wrong(name, f"{kind} from {least:g} to {most:g}")
        return value

    def percent(self, name: str, default: float) -> float:
        return self.number(name, default, 0, 100)

    def level(self, name: str, default: float) -> float:
        """A percentage, or -1."""
        value = self.number(name, default, -1, 100)
        if -1 < value < 0:
            raise _wrong(name, "-1 or a number from 0 to 100")
        return value

    def pages(self, name: str, default: int) -> int:
        """A number of pages, -1 for all."""
        return int(self.number(name, default, -1, 1000, whole=True))

    def one_of(self, name: str, choices: tuple[int, ...]) -> str:
        """One of some numbers, as a text."""
        value = int(self.number(name, 0, -1, 9, whole=True))
        if value not in choices:
            raise _wrong(name, f"one of {', '.join(map(str, choices))}")
        return str(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.given.get(name)
        given = None if value is None or not str(value).strip() else value
        return bool(Flag(f"params.{name}", "", default=int(default)).read(given))

    def bound(self, name: str) -> str:
        """One end of a custom time."""
        text = self.text(name)
        if not text:
            raise _wrong(name, "a time, because timeperiod is custom")
        return text

    def variable(self, name: str, wanted: str) -> str:
        """The custom variable that names are taken from, empty where they are not."""
        if self.text(name) != wanted:
            return ""
        text = self.text(f"{name}_cust")
        if not _CUSTOM.fullmatch(text):
            raise _wrong(f"{name}_cust", f"a custom variable, because {name} is {wanted}")
        return text.removeprefix("_").upper()

    def strftime(self, name: str, default: str) -> str:
        """A format of dates."""
        text = self.text(name) or default
        try:
            written = datetime(2000, 1, 1).strftime(text)  # noqa: DTZ001  to see whether it can be
        except ValueError:
            written = ""
        if not written or len(written) > 100:
            raise _wrong(name, "a format of strftime, as %Y-%m-%d")
        return text

    def pattern(self, name: str) -> str:
        """A regular expression."""
        text = self.text(name)
        try:
            re2.compile(text)
        except re2.error:
            raise _wrong(name, "a regular expression") from None
        return text

    def event_types(self) -> tuple[str, ...]:
        """Types of events, with at most one kind of state each."""
        types = self.several("event_types", EVENT_TYPES)
        for kind in ("host_state_", "service_state_"):
            if sum(name.startswith(kind) for name in types) > 1:
                raise _wrong("event_types", f"at most one of {kind}hard, _soft and _both")
        return types

    def link(self, name: str) -> Link:
        """A path of the API."""
        try:
            return read_link(self.text(name))
        except ValueError as error:
            raise _wrong(name, str(error)) from None

    def search(self) -> Search:
        """What chooses the objects."""
        try:
            return read_search(self.given.get("filter"), self.text("q"))
        except ValueError as error:
            raise _wrong("filter", str(error)) from None
