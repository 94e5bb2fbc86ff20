"""The arguments of a report: objects, time, rules.

The same parameters hold arguments, conditions that choose objects and conditions on the rows of
the result; here they are separated.

Rules: docs/spec/availability.md, "Span of a report".
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import tzinfo
from functools import partial
from math import floor
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from monrest.api.endpoint import DeclaredParameter, Parameter
from monrest.api.fields import Choice, Field, Flag, Number, Second, Text, second_of
from monrest.availability.periods import DEFAULT, Span, UnknownPeriodError, named
from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.logs.line import DAY
from monrest.query.model import Condition, FilterTree, Query, Ref, conjuncts, leaves
from monrest.query.parse import MOST_NAME, RESERVED, parse_query
from monrest.query.scan import printable

ObjectKinds: TypeAlias = Literal["hosts", "services", "both"]

CURRENT = -1
"""To be assumed: the present state of the object."""

OBJECTS = ("host", "service", "hostgroup", "servicegroup")
"""Parameters of lists that choose objects by an exact name."""

_OF_REQUEST = frozenset({"columns", "backend", "backends", "headers", "pretty", "background"})
_WRONG = "error during request"
_PERIOD = Text(
    "rpttimeperiod",
    "name of a time period of the core to which the report is limited",
    longest=MOST_NAME,
    stripped=False,
    title=_WRONG,
)
_BACKTRACK = 4
_NINE_DIGITS = 999_999_999
_ASSUMED_HOST = {0: None, -1: CURRENT, 3: 0, 4: 1, 5: 2}
_ASSUMED_SERVICE = {0: None, -1: CURRENT, 6: 0, 7: 3, 8: 1, 9: 2}

_Number = partial(
    Number,
    least=-_NINE_DIGITS,
    most=_NINE_DIGITS,
    title=_WRONG,
    expected="a whole number of at most 9 digits",
)

TYPE = Choice(
    "type", "hosts, services or both", ("hosts", "services", "both"), title=_WRONG,
    expected="hosts, services or both",
)  # fmt: skip
_DOWNTIMES = Flag(
    "withdowntimes",
    "1: downtimes count as outages, 0: they do not; default 1. Availability is the same either way",
    default=1,
)
_SOFT = Flag("includesoftstates", "1: soft states are counted as well; default 0")
_BACK = _Number(
    "backtrack",
    "days of log before the start that are searched for the first state; default 4",
    default=_BACKTRACK,
)
_ASSUME = Flag(
    "assumeinitialstates",
    "0: no state is assumed where the log has none; default 1",
    default=1,
)
_HOST_STATE = _Number(
    "initialassumedhoststate",
    "state to assume: 0 none (default), -1 the present one, 3 up, 4 down, 5 unreachable",
)
_SERVICE_STATE = _Number(
    "initialassumedservicestate",
    "state to assume: 0 none (default), -1 the present one, 6 ok, 7 unknown, 8 warning, 9 critical",
)
_STOPPED = Flag(
    "assumestatesduringnotrunning",
    "0: the time when the core was stopped is counted as notrunning; default 1",
    default=1,
)
_RETENTION = Flag("assumestateretention", "accepted, without effect", default=1)

ARGUMENTS: tuple[DeclaredParameter, ...] = (
    Parameter(
        name="timeperiod",
        description="named range such as last24hours (default), today, yesterday, thisweek, "
        "lastweek, last7days, thismonth, lastmonth, last31days, last3months, thisyear, lastyear",
    ),
    Second("start", "first second: Unix time, relative time or date"),
    Second("end", "end, default: now; the last state lasts to the end"),
    _DOWNTIMES,
    _SOFT,
    _BACK,
    _PERIOD,
    _ASSUME,
    _HOST_STATE,
    _SERVICE_STATE,
    _STOPPED,
    _RETENTION,
)
"""The parameters that are arguments of a report."""

_RULES = frozenset(argument.name for argument in (TYPE, *ARGUMENTS))


@frozen(kw_only=True)
class ReportArguments:
    """One report, understood.

    ``since`` is the first second of log to read. ``assumed_host`` and ``assumed_service`` are
    states, CURRENT or None. ``period`` is the name of a time period of the cores, or empty.
    ``chosen`` are exact names by kind of object, ``objects`` further conditions on objects.
    ``rows`` are the conditions on the rows, ``left`` the other parameters about them.
    """

    kind: ObjectKinds
    span: Span
    since: int
    with_downtimes: bool = True
    soft: bool = False
    not_running: bool = False
    period: str = ""
    assumed_host: int | None = None
    assumed_service: int | None = None
    chosen: Mapping[str, str] = field(factory=dict)
    objects: tuple[FilterTree, ...] = ()
    rows: tuple[FilterTree, ...] = ()
    left: Parameters = ()


def asked(
    parameters: Parameters,
    *,
    kind: ObjectKinds,
    fields: Set[str],
    now: float,
    zone: tzinfo,
    first_weekday: int,
    single: bool = False,
) -> ReportArguments:
    """Separate all parameters of a request; raise BadRequest naming the one that is wrong.

    ``kind`` is the endpoint's default, ``fields`` are the names of all columns of its rows. A
    ``single`` object is of its kind in spite of ``type``, and is neither chosen nor filtered.
    """
    reader = _Reader(floor(now), zone, first_weekday)
    left: list[tuple[str, str]] = []
    for name, value in parameters:
        if name in _RULES:
            reader.given[name] = value.strip()
        elif name in OBJECTS and not single:
            if value:
                reader.chosen[name] = value
        elif name == "breakdown":
            raise BadRequest(_WRONG, "breakdown: not available here, ask for each part alone")
        else:
            left.append((name, value))
    query = parse_query(tuple(left))
    reader.sort_out(query, fields)
    if single and (reader.objects or reader.rows):
        names = [condition.column for condition in leaves(query.filter.items)]
        raise BadRequest(
            "possible typo in filter",
            f"{printable(', '.join(names))}: a single object cannot be filtered",
        )
    span = reader.span()
    assumes, back = reader.read(_ASSUME), reader.read(_BACK)
    reader.read(_RETENTION)
    return ReportArguments(
        kind=kind if single else reader.read(TYPE) or kind,
        span=span,
        since=max(span.start - (_BACKTRACK if back < 0 else back) * DAY, 0),
        with_downtimes=bool(reader.read(_DOWNTIMES)),
        soft=bool(reader.read(_SOFT)),
        not_running=not reader.read(_STOPPED),
        period=reader.read(_PERIOD),
        assumed_host=reader.assumed(_HOST_STATE, _ASSUMED_HOST, wanted=assumes),
        assumed_service=reader.assumed(_SERVICE_STATE, _ASSUMED_SERVICE, wanted=assumes),
        chosen=reader.chosen,
        objects=tuple(reader.objects),
        rows=tuple(reader.rows),
        left=tuple(pair for pair in left if pair[0] in RESERVED and pair[0] != "q"),
    )


@define
class _Reader:
    now: int
    zone: tzinfo
    first_weekday: int
    given: dict[str, str] = field(factory=dict)
    chosen: dict[str, str] = field(factory=dict)
    objects: list[FilterTree] = field(factory=list)
    rows: list[FilterTree] = field(factory=list)
    bounds: dict[str, tuple[str, str]] = field(factory=dict)
    """Bounds among conditions: ``start``, ``end`` or ``timeperiod`` to where and what."""

    def sort_out(self, query: Query, fields: Set[str]) -> None:
        """Take the conditions apart, those of ``q`` and those of parameters alike."""
        fields = fields | _expressions(query)
        for tree in conjuncts(query.filter.items):
            if isinstance(tree, Condition) and tree.column in ("time", "timeperiod"):
                self._bound(tree)
                continue
            names = {condition.column for condition in leaves([tree])} - {"host", "service"}
            mine = names & fields
            if not mine:
                self.objects.append(tree)
            elif mine == names:
                self.rows.append(tree)
            else:
                raise BadRequest(
                    _WRONG,
                    "q: conditions on objects and on fields of the result can only be joined by "
                    f"and, got {printable(', '.join(sorted(names)))}",
                )

    def _bound(self, condition: Condition) -> None:
        if condition.column == "timeperiod" and condition.op == "=":
            name = "timeperiod"
        elif condition.column == "time" and condition.op in (">", ">=", "<", "<="):
            name = "start" if condition.op[0] == ">" else "end"
        else:
            raise BadRequest(
                _WRONG,
                f"{printable(condition.parameter)}: {condition.column} cannot be compared with "
                f"{condition.op} here",
            )
        if name in self.bounds:
            raise BadRequest(
                _WRONG,
                f"{printable(condition.parameter)}: more than one bound of {condition.column}",
            )
        self.bounds[name] = (condition.parameter, condition.value)

    def span(self) -> Span:
        """From when to when: either a named range or bounds, never both."""
        given = {
            name: (name, self.given[name])
            for name in ("timeperiod", "start", "end")
            if self.given.get(name)
        }
        bounds = {**self.bounds, **given}
        if "timeperiod" in bounds and len(bounds) > 1:
            raise BadRequest(
                "use either timeperiod or start/end, not both.", f"got {', '.join(sorted(bounds))}"
            )
        if "end" in bounds and "start" not in bounds:
            raise BadRequest(_WRONG, f"{bounds['end'][0]}: an end needs a start")
        if "start" not in bounds:
            parameter, value = bounds.get("timeperiod", ("timeperiod", DEFAULT))
            try:
                return named(value, self.now, self.zone, self.first_weekday)
            except UnknownPeriodError as error:
                raise BadRequest(
                    _WRONG, f"{parameter}: unknown time period '{printable(value)}', {error}"
                ) from None
        start = second_of(*bounds["start"], self.now, self.zone)
        end = second_of(*bounds["end"], self.now, self.zone) if "end" in bounds else self.now
        return Span(min(start, end), max(start, end))

    def read(self, field: Field) -> Any:
        """The value of an argument; an empty one is absent."""
        return field.read(self.given.get(field.name) or None)

    def assumed(
        self, argument: Number, states: Mapping[int, int | None], *, wanted: int
    ) -> int | None:
        """The state of an object of which nothing is known; other numbers mean none."""
        number = self.read(argument)
        return states.get(number) if wanted else None


def _expressions(query: Query) -> set[str]:
    """The names of a filter that are no columns: selected expressions, and aliases.

    The filter of rows refuses the comparison of an alias.
    """
    expressions = set()
    for item in query.items or ():
        if item.renamed:
            expressions.add(item.key)
        if not isinstance(item.expression, Ref):
            expressions.add(item.text)
    return expressions
