"""Reports with made-up numbers."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

from monrest.availability.outages import Outage
from monrest.reports.build import Figures, Frame, Measured, parts_of
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


def frame(one, zone=UTC, failed=(), sites=("One",)):
    settings = one.settings(TEMPLATES)
    spelling = Spelling(zone=zone, language=settings.language, decimals=settings.decimals)
    return Frame(
        report=one, settings=settings, spelling=spelling, now=NOW,
        span=settings.span(NOW, zone, 1), sites=sites, failed=failed,
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
