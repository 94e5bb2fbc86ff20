"""The parameters of a report: defaults, checks, and what they mean. Pure.

Rules: docs/spec/reports.md, "Parameters".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import partial
from math import floor, isfinite
from typing import Any, TypeAlias

import re2
from attrs import field, fields, frozen

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
        """The format of its answer: csv, xls, text or json."""
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


def read_search(given: Any, q: str) -> tuple[FilterTree, ...]:
    """Read the fields of a form and a text of the query language, all of which have to hold.

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
    return tuple(trees)


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


NAMED = (
    *("today", "last24hours", "yesterday", "thisweek", "last7days", "lastweek", "thismonth"),
    *("last31days", "lastmonth", "thisyear", "last12months", "lastyear", "custom"),
)
BREAKDOWNS = ("months", "weeks", "days")
FORMATS = ("pdf", "html", "xls", "csv")
"""The attachments of a mail; a form that a report does not have is left out."""
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


def _wrong(name: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid params.{name}", f"params.{name}: expected {expected}")


Params: TypeAlias = Mapping[str, Any]
"""The parameters of a client, with the defaults of the template."""


def _text(given: Params, name: str) -> str:
    """A short text without control characters."""
    return _Text(f"params.{name}", "").read(given.get(name))


def _choice(given: Params, name: str, *, choices: Sequence[str], default: str) -> str:
    words = tuple(choices)
    return Choice(f"params.{name}", "", words, default=default).read(given.get(name))


def _names(given: Params, name: str, *, needed: bool = False) -> tuple[str, ...]:
    """A list of names, or a text with commas."""
    value, text = given.get(name), _Text(f"params.{name}", "")
    items = value if isinstance(value, list) else text.read(value)
    names = tuple(_Names(text.name, "", item=lambda item: (text.read(item),)).read(items))
    if needed and not names:
        raise _wrong(name, "at least one name")
    return names


def _several(given: Params, name: str, *, choices: Sequence[str]) -> tuple[str, ...]:
    texts = _names(given, name)
    for text in texts:
        if text not in choices:
            raise _wrong(name, f"some of {', '.join(choices)}")
    return texts


def _number(
    given: Params,
    name: str,
    *,
    default: float,
    least: float,
    most: float,
    whole: bool = False,
) -> float:
    """A number within bounds; a comma is a decimal point as well."""
    text = _text(given, name).removesuffix("%").strip().replace(",", ".")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most or (whole and not value.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise _wrong(name, f"{kind} from {least:g} to {most:g}")
    return int(value) if whole else value


def _level(given: Params, name: str, *, default: float) -> float:
    """A percentage, or -1."""
    value = _number(given, name, default=default, least=-1, most=100)
    if -1 < value < 0:
        raise _wrong(name, "-1 or a number from 0 to 100")
    return value


def _assumed(given: Params, name: str, choices: Sequence[int]) -> str:
    """The number of a state that is assumed, as a text."""
    value = int(_number(given, name, default=0, least=-1, most=9, whole=True))
    if value not in choices:
        raise _wrong(name, f"one of {', '.join(map(str, choices))}")
    return str(value)


def _flag(given: Params, name: str, *, default: bool = False) -> bool:
    value = given.get(name)
    value = None if value is None or not str(value).strip() else value
    return bool(Flag(f"params.{name}", "", default=int(default)).read(value))


def _bound(given: Params, name: str) -> str:
    text = _text(given, name)
    if not text:
        raise _wrong(name, "a time, because timeperiod is custom")
    return text


def _variable(given: Params, name: str, *, wanted: str) -> str:
    """The custom variable that names are taken from, empty where they are not."""
    if _text(given, name) != wanted:
        return ""
    text = _text(given, f"{name}_cust")
    if not _CUSTOM.fullmatch(text):
        raise _wrong(f"{name}_cust", f"a custom variable, because {name} is {wanted}")
    return text.removeprefix("_").upper()


def _strftime(given: Params, name: str, *, default: str) -> str:
    text = _text(given, name) or default
    try:
        written = datetime(2000, 1, 1).strftime(text)  # noqa: DTZ001  to see whether it can be
    except ValueError:
        written = ""
    if not written or len(written) > 100:
        raise _wrong(name, "a format of strftime, as %Y-%m-%d")
    return text


def _pattern(given: Params, name: str) -> str:
    text = _text(given, name)
    try:
        re2.compile(text)
    except re2.error:
        raise _wrong(name, "a regular expression") from None
    return text


def _event_types(given: Params, name: str) -> tuple[str, ...]:
    """Types of events, with at most one kind of state each."""
    types = _several(given, name, choices=EVENT_TYPES)
    for kind in ("host_state_", "service_state_"):
        if sum(event.startswith(kind) for event in types) > 1:
            raise _wrong(name, f"at most one of {kind}hard, _soft and _both")
    return types


def _param(reader: Callable[..., Any], name: str = "", **options: Any) -> Any:
    """A field and how it is read; ``name`` is its parameter where that is called differently."""
    return field(metadata={"read": partial(reader, **options), "name": name})


_percent = partial(_number, least=0, most=100)
_pages = partial(_number, least=-1, most=1000, whole=True)


@frozen(kw_only=True)
class ReportSettings:
    """The parameters of one report, understood. Levels are percentages, -1 switches one off.

    ``form`` is the form of its file that a request without one means, ``attach`` those
    that a mail brings. ``delay``: seconds between the tries to read the ``url``.
    """

    search: tuple[FilterTree, ...]
    filter_type: str
    names: Mapping[str, tuple[str, ...]]
    custom: tuple[str, str]
    rules: Mapping[str, str]
    attach: tuple[str, ...]
    url: Link | None
    form: str
    language: str = _param(_choice, choices=LANGUAGES, default="en")
    timeperiod: str = _param(_choice, choices=NAMED, default="last24hours")
    breakdown: str = _param(_choice, choices=BREAKDOWNS, default="months")
    period: str = _param(_text, "rpttimeperiod")
    sla: float = _param(_percent, default=98)
    graph_min_sla: float = _param(_percent, default=90)
    decimals: int = _param(_number, default=2, least=0, most=6, whole=True)
    host_names: str = _param(_choice, "hostnameformat", choices=_HOST_NAMES, default="hostname")
    host_variable: str = _param(_variable, "hostnameformat", wanted="hostcustom")
    service_names: str = _param(
        _choice, "servicenameformat", choices=_SERVICE_NAMES, default="description"
    )
    service_variable: str = _param(_variable, "servicenameformat", wanted="servicecustom")
    date_format: str = _param(_strftime, "dateformat", default="%Y-%m-%d")
    moment_format: str = _param(_strftime, "datetimeformat", default="%Y-%m-%d %H:%M:%S")
    unavailable: tuple[str, ...] = _param(_several, choices=UNAVAILABLE)
    overview_max_level: float = _param(_level, default=-1)
    details_max_level: float = _param(_level, default=100)
    mail_max_level: float = _param(_level, default=-1)
    max_worst_pages: int = _param(_pages, default=1)
    max_outages_pages: int = _param(_pages, default=-1)
    attach_json: bool = _param(_flag)
    reverse: bool = _param(_flag)
    pattern: str = _param(_pattern)
    exclude_pattern: str = _param(_pattern)
    event_types: tuple[str, ...] = _param(_event_types)
    handled: bool = _param(_flag, default=True)
    retries: int = _param(_number, default=3, least=1, most=10, whole=True)
    delay: float = _param(_number, default=60, least=0, most=300)

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


_READERS = {
    attribute.name: (attribute.metadata["name"] or attribute.name, attribute.metadata["read"])
    for attribute in fields(ReportSettings)
    if attribute.metadata
}


def read(template: ReportTemplate, params: Mapping[str, Any]) -> ReportSettings:
    """The parameters as values; BadRequest that names a wrong one."""
    given = {**template.defaults, **params}
    values = {name: reader(given, param) for name, (param, reader) in _READERS.items()}
    try:
        url = read_link(_text(given, "url")) if template.kind == "url" else None
    except ValueError as error:
        raise _wrong("url", str(error)) from None
    search: tuple[FilterTree, ...] = ()
    filter_type: str = template.objects
    if template.chooses:
        try:
            search = read_search(given.get("filter"), _text(given, "q"))
        except ValueError as error:
            raise _wrong("filter", str(error)) from None
        filter_type = _choice(
            given, "filter_type", choices=("Hosts", "Services", "Both"), default=filter_type
        )
    custom = ("", "")
    if values["timeperiod"] == "custom":
        custom = (_bound(given, "t1"), _bound(given, "t2"))
    form = "pdf" if url is None or _flag(given, "pdf") else url.form
    return ReportSettings(
        search=search,
        filter_type=filter_type,
        names={
            name: _names(given, name, needed=name in template.needed) for name in template.names
        },
        custom=custom,
        rules={
            "assumeinitialstates": str(int(_flag(given, "assumeinitialstates", default=True))),
            "includesoftstates": str(int(_flag(given, "includesoftstates"))),
            "initialassumedhoststate": _assumed(given, "initialassumedhoststate", _ASSUMED_HOST),
            "initialassumedservicestate": _assumed(
                given, "initialassumedservicestate", _ASSUMED_SERVICE
            ),
        },
        attach=_several(given, "attach", choices=FORMATS) or (form,),
        url=url,
        form=form,
        **values,
    )
