"""The templates of reports and the parameters that each takes. Pure.

Rules: docs/spec/reports.md, "Templates".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

ReportKind: TypeAlias = Literal["availability", "outages", "events", "problems", "url"]

TEMPLATE_NAME = re.compile(r"[0-9a-zA-Z]+\w*\.tt", re.ASCII)
"""The name of a template, which is that of its file."""

LANGUAGES = ("de", "dk", "en", "es", "fr", "it")
HOST_UNAVAILABLE = ("down", "unreachable")
SERVICE_UNAVAILABLE = ("critical", "unknown")


@frozen(kw_only=True)
class ReportTemplate:
    """The contents of a report: ``kind``, of the ``objects`` hosts, services or both.

    ``names``: the parameters that name its objects, of which the ``needed`` must be given.
    ``defaults``: values of parameters that are missing. ``text`` is what an operator wrote
    (``monrest.reports.own``), empty for those that come with the program.
    """

    name: str
    title: str
    kind: ReportKind
    objects: Literal["Hosts", "Services", "Both"] = "Both"
    names: tuple[str, ...] = ("host", "service", "hostgroup", "servicegroup")
    needed: tuple[str, ...] = ()
    defaults: Mapping[str, Any]
    searches: bool = True
    text: str = field(default="", repr=False)

    @property
    def chooses(self) -> bool:
        """Whether a search says which objects it is about."""
        return self.searches and not self.needed


def _unavailable(objects: str) -> list[str]:
    return [
        *(HOST_UNAVAILABLE if objects != "Services" else ()),
        *(SERVICE_UNAVAILABLE if objects != "Hosts" else ()),
    ]


def _of_availability(
    name: str,
    title: str,
    objects: Literal["Hosts", "Services", "Both"],
    needed: tuple[str, ...] = (),
    *,
    outages: bool = False,
) -> ReportTemplate:
    defaults: dict[str, Any] = {
        "language": "en",
        "timeperiod": "lastweek" if outages else "last12months",
        "breakdown": "days" if outages else "months",
        "sla": 98,
        "graph_min_sla": 90,
        "decimals": 2,
        "unavailable": _unavailable(objects),
        "details_max_level": 100,
        "mail_max_level": 100 if outages else -1,
        "max_outages_pages": 5 if outages else -1,
    }
    if not outages:
        defaults |= {"max_worst_pages": 1, "max_pnp_sources": 1}
    if not needed:
        defaults["filter_type"] = "Both"
    return ReportTemplate(
        name=name,
        title=title,
        kind="outages" if outages else "availability",
        objects=objects,
        names=needed or ("host", "service", "hostgroup", "servicegroup"),
        needed=needed,
        defaults=defaults,
    )


Templates: TypeAlias = Mapping[str, ReportTemplate]

TEMPLATES: Templates = {
    template.name: template
    for template in (
        _of_availability("sla_report.tt", "Service level", "Both"),
        _of_availability("sla_outage.tt", "Outages", "Both", outages=True),
        _of_availability("sla_host.tt", "Service level", "Hosts", ("host",)),
        _of_availability("sla_hostgroup.tt", "Service level", "Hosts", ("hostgroup",)),
        _of_availability("sla_service.tt", "Service level", "Services", ("host", "service")),
        _of_availability("sla_servicegroup.tt", "Service level", "Services", ("servicegroup",)),
        _of_availability("sla_host_outage.tt", "Outages", "Hosts", ("host",), outages=True),
        _of_availability(
            "sla_service_outage.tt", "Outages", "Services", ("host", "service"), outages=True
        ),
        _of_availability(
            "sla_business_process.tt", "Service level", "Services", ("businessprocess",)
        ),
        ReportTemplate(
            name="eventlog.tt",
            title="Event log",
            kind="events",
            names=("host", "service"),
            searches=False,
            defaults={"language": "en", "timeperiod": "last24hours"},
        ),
        ReportTemplate(
            name="problems.tt",
            title="Problems",
            kind="problems",
            defaults={"language": "en", "filter_type": "Both", "handled": "yes"},
        ),
        ReportTemplate(
            name="report_from_url.tt",
            title="Report",
            kind="url",
            names=(),
            searches=False,
            defaults={"language": "en", "retries": 3, "delay": 60, "pdf": "no"},
        ),
    )
}
"""The built-in templates, by name."""
