"""A stored report while it is made: its owner's request, its settings, its sites.

Rules: docs/spec/reports.md, "Rights".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from monrest.api.endpoint import Context
from monrest.availability.chosen_objects import OBJECT_COLUMNS
from monrest.availability.periods import Span
from monrest.base.errors import SitesFailed
from monrest.base.values import RestRequest, SiteProblem
from monrest.logs.cache import LogCache
from monrest.query.model import Condition, FilterTree, Group, joined
from monrest.reports.build import Frame
from monrest.reports.model import CANCEL, Report
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Spelling
from monrest.sites.site import Site

_NOT_CONNECTED = "Some backends are not connected, cannot create report!"


@frozen(kw_only=True)
class Asking:
    """A report with all that its questions need; ``request`` is one of its owner."""

    cache: LogCache
    context: Context
    request: RestRequest
    report: Report
    settings: ReportSettings
    spelling: Spelling
    at: float
    sites: Sequence[Site]

    def frame(self, span: Span | None, problems: Collection[SiteProblem] = ()) -> Frame:
        """What stands on every report; SitesFailed where a site is missing that must not be."""
        if problems and self.report.record["failed_backends"] == CANCEL:
            raise not_connected(tuple(problems))
        return Frame(
            report=self.report,
            settings=self.settings,
            spelling=self.spelling,
            now=self.at,
            span=span,
            sites=[site.name for site in self.sites],
            failed=[f"{one.name}: {one.reason}" for one in problems],
        )

    def span(self) -> Span:
        weekday = self.context.config.display.first_day_of_week
        return self.settings.span(self.at, self.spelling.zone, weekday)

    def trees(self) -> tuple[FilterTree, ...]:
        """The conditions that choose its objects."""
        found = list(self.settings.search.trees)
        for name, values in self.settings.names.items():
            if not values:
                continue
            if name == "businessprocess":
                found.append(any_of(_process(value) for value in values))
            else:
                column, op = OBJECT_COLUMNS[name]
                found.append(
                    any_of(Condition(column, op, value, f"params.{name}") for value in values)
                )
        return tuple(found)


def _process(name: str) -> FilterTree:
    """The service that shows the state of a business process."""
    return Group(
        "and",
        (
            Condition("host", "=", name, "params.businessprocess"),
            Condition("service", "=", name, "params.businessprocess"),
        ),
    )


def any_of(trees: Iterable[FilterTree]) -> FilterTree:
    """At least one of some conditions."""
    return joined("or", trees) or Group("or", ())


def not_connected(problems: tuple[SiteProblem, ...]) -> SitesFailed:
    """What a report that needs all its sites says without some of them."""
    error = SitesFailed(problems)
    error.message = _NOT_CONNECTED
    return error
