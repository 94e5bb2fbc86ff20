"""Reports with made-up numbers."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

from monrest.availability.outages import Outage
from monrest.reports.availability import Figures, Measured, parts_of
from monrest.reports.builder import ReportBuilder
from monrest.reports.model import Report, checked
from monrest.reports.sheet import Spelling
from monrest.reports.templates import TEMPLATES

NOW = 1_795_280_000
BERLIN = ZoneInfo("Europe/Berlin")
HOSTILE = "<script>alert('x')</script>&\"; ../../etc\r"


def report(template="sla_report.tt", params=None, number=1, **fields):
    record = checked(
        {"name": "Report", "template": template, "params": params or {}, **fields}, TEMPLATES
    )
    return Report(number=number, record={**record, "user": "olga"})


def builder(template="sla_report.tt", params=None, zone=UTC, failed=(), **fields):
    """A report of a site while it is made, whose rows are made up."""
    one = report(template, params, **fields)
    settings = one.settings(TEMPLATES)
    return ReportBuilder(
        context=None, cache=None, request=None, report=one, settings=settings, now=NOW,
        spelling=Spelling(zone=zone, language=settings.language, decimals=settings.decimals),
        span=settings.span(NOW, zone, 1), sites=("One",), failed=failed,
    )  # fmt: skip


def parts(made):
    return parts_of(made.span, made.settings.breakdown, made.spelling.zone, 1)


def measured(periods, host="web01", service="", bad=0, outages=0, output="CRITICAL - no answer"):
    """An object that was bad for so many seconds of each part."""
    each = [
        Figures(available=one.end - one.start - bad, unavailable=bad, downtime=0, unknown=0)
        for one in periods
    ]
    whole = Figures(
        available=sum(one.available for one in each), unavailable=bad * len(each), downtime=0,
        unknown=0,
    )  # fmt: skip
    start = periods[0].start if periods else 0
    found = [Outage(start + 60 * at, start + 60 * at + 30, 1, "", output) for at in range(outages)]
    return Measured(
        key=(host, service),
        host=host,
        service=service,
        whole=whole,
        parts=[one.percent for one in each],
        outages=found,
    )
