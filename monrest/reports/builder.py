"""A stored report while it is made: what its owner asks, and the parts that it has so far.

Rules: docs/spec/reports.md, "Rights".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from monrest.api.endpoint import Context
from monrest.availability.chosen_objects import OBJECT_COLUMNS
from monrest.availability.periods import Span
from monrest.base.errors import SitesFailed
from monrest.base.values import RestRequest, Row, Rows, SiteProblem
from monrest.logs.cache import LogCache
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition, FilterTree, Group, joined
from monrest.reports.model import CANCEL, Report
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Grid, Head, Note, Say, Sheet, SheetPart, Spelling
from monrest.rows.fetch import fetch

_NOT_CONNECTED = "Some backends are not connected, cannot create report!"


@define(kw_only=True, eq=False)
class ReportBuilder:
    """``request`` is one of the report's owner, ``now`` the moment for which it is made.

    ``sites`` are the names of its sites, ``span`` the time that it is about, where it has one.
    ``failed`` are sites that did not answer, with reasons.
    """

    context: Context
    cache: LogCache
    request: RestRequest
    report: Report
    settings: ReportSettings
    spelling: Spelling
    now: float
    sites: Sequence[str] = ()
    span: Span | None = None
    failed: Sequence[str] = ()
    parts: list[SheetPart] = field(factory=list)

    @property
    def say(self) -> Say:
        return self.spelling.say

    def missing(self, problems: Collection[SiteProblem]) -> None:
        """Note sites that did not answer; SitesFailed where the report needs all of them."""
        if problems and self.report.record["failed_backends"] == CANCEL:
            raise not_connected(tuple(problems))
        self.failed = [f"{problem.name}: {problem.reason}" for problem in problems]

    def choose_span(self) -> Span:
        """Fix the time that the report is about; BadRequest for bounds that cannot be."""
        weekday = self.context.config.display.first_day_of_week
        self.span = self.settings.span(self.now, self.spelling.zone, weekday)
        return self.span

    def trees(self) -> tuple[FilterTree, ...]:
        """The conditions that choose its objects."""
        conditions = list(self.settings.search)
        for name, values in self.settings.names.items():
            where = f"params.{name}"
            trees: list[FilterTree] = []
            for value in values:
                if name == "businessprocess":
                    # The service that shows the state of a business process is called as its host.
                    host = Condition("host", "=", value, where)
                    trees.append(Group("and", (host, Condition("service", "=", value, where))))
                else:
                    column, op = OBJECT_COLUMNS[name]
                    trees.append(Condition(column, op, value, where))
            if trees:
                conditions.append(any_of(trees))
        return tuple(conditions)

    async def rows(
        self, schema: TableSchema, columns: str, extra: Any = ()
    ) -> tuple[Iterator[Row], tuple[SiteProblem, ...]]:
        """The rows of a collection, for one look at them, and the sites without an answer."""
        request = evolve(self.request, parameters=(("columns", columns),))
        rows = await fetch(self.context, request, schema, extra=extra)
        assert isinstance(rows, Rows)
        return rows.once(), tuple(rows.failed_sites)

    def table(
        self,
        title: str,
        heads: Iterable[Head],
        rows: Sequence[tuple[Any, ...]],
        *,
        low: float = 0.0,
        lead: int = 1,
        empty: str = "There is nothing to show.",
    ) -> None:
        """Add a table; its titles are translated into the language of the report."""
        say = self.say
        heads = tuple(evolve(head, title=say(head.title)) for head in heads)
        grid = Grid(title=say(title), heads=heads, rows=rows, low=low, lead=lead, empty=say(empty))
        self.parts.append(grid)

    def left_out(self, count: int) -> None:
        """Note that rows are not shown, where there are any."""
        if count > 0:
            self.parts.append(Note(f"{count} {self.say('more rows are left out')}"))

    def sheet(
        self,
        data: Any,
        *facts: tuple[str, str],
        worst: float | None = None,
        kept: Mapping[str, bytes] | None = None,
    ) -> Sheet:
        """The report with all parts so far; ``facts`` are those of its kind for the top."""
        failed = "; ".join(self.failed)
        warning = Note(f"{self.say('Sites that did not answer')}: {failed}", bad=True)
        return Sheet(
            title=self.report.name,
            facts=tuple(self._facts(facts)),
            parts=(*((warning,) if failed else ()), *self.parts),
            spelling=self.spelling,
            worst=worst,
            data=data,
            kept=kept or {},
        )

    def _facts(self, more: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        say, time = self.say, self.spelling.time
        text = str(self.report.record["desc"]).strip()
        if text and text != "Description":
            yield say("Description"), text
        if self.span is not None:
            yield say("Period"), f"{time(self.span.start)} - {time(self.span.end)}"
        if self.settings.period:
            yield say("Time period"), self.settings.period
        for label, value in more:
            yield say(label), value
        if self.sites:
            yield say("Sites"), ", ".join(self.sites)
        yield say("Created"), time(self.now)


def any_of(trees: Iterable[FilterTree]) -> FilterTree:
    """At least one of some conditions."""
    return joined("or", trees) or Group("or", ())


def not_connected(problems: tuple[SiteProblem, ...]) -> SitesFailed:
    """The error of a report that needs all its sites."""
    error = SitesFailed(problems)
    error.message = _NOT_CONNECTED
    return error
