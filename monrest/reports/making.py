"""What stored reports say: their questions are asked as their owners, and become sheets."""

from __future__ import annotations

from attrs import evolve

from monrest.api.endpoint import Context
from monrest.api.visibility import visible_sites
from monrest.api.zones import zone_of
from monrest.base.errors import SitesFailed
from monrest.base.values import Identity, Progress, RestRequest, SiteProblem
from monrest.logs.cache import LogCache
from monrest.reports.availability import availability_or_outages
from monrest.reports.builder import ReportBuilder, not_connected
from monrest.reports.events import event_log
from monrest.reports.model import CANCEL, Report
from monrest.reports.own import written
from monrest.reports.problems import current_problems
from monrest.reports.sheet import Sheet, Spelling
from monrest.reports.templates import Templates
from monrest.reports.url_report import answer_of_path
from monrest.sites.registry import remembered_sites

_NO_LIMIT = 31_536_000.0


async def prepare(
    context: Context,
    cache: LogCache,
    templates: Templates,
    identity: Identity,
    report: Report,
    at: float,
    progress: Progress,
) -> Sheet:
    """The sheet of a report for the moment ``at``, as its owner sees things.

    Raise RestError: SitesFailed where sites are missing, BadRequest where a parameter cannot be.
    """
    template, settings = report.template(templates), report.settings(templates)
    server = evolve(context.config.server, request_timeout=_NO_LIMIT)
    context = evolve(context, config=evolve(context.config, server=server))
    visible = await visible_sites(identity, context.sites, context.contacts)
    context = evolve(context, sites=visible)
    sites, unknown = remembered_sites(report.sites, context.sites.sites)
    if unknown and (report.record["failed_backends"] == CANCEL or not sites):
        raise not_connected(
            tuple(SiteProblem(key, report.sites[key], "no such backend") for key in unknown)
        )
    request = RestRequest(
        method="GET",
        path=f"/mon/reports/{report.number}/report",
        segments=(),
        sites=tuple(site.id for site in sites) if report.sites else (),
        identity=identity,
        progress=progress,
    )
    builder = ReportBuilder(
        cache=cache,
        context=context,
        request=request,
        report=report,
        settings=settings,
        spelling=Spelling(
            zone=await zone_of(context, request.identity),
            language=settings.language,
            date=settings.date_format,
            moment=settings.moment_format,
            decimals=settings.decimals,
            rounding=context.config.reports.rounding,
        ),
        now=at,
        sites=[site.name for site in sites],
    )
    try:
        if template.kind == "events":
            sheet = await event_log(builder)
        elif template.kind == "problems":
            sheet = await current_problems(builder)
        elif template.kind == "url":
            sheet = await answer_of_path(builder)
        else:
            sheet = await availability_or_outages(builder, outages=template.kind == "outages")
    except SitesFailed as error:
        raise not_connected(tuple(error.problems)) from None
    if not template.text:
        return sheet
    params = report.record["params"]
    return await context.threads.run(lambda: written(template, sheet, params))
