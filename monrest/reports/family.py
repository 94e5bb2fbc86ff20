"""The parts of reports."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.base.values import Identity, Progress
from monrest.jobs.service import Jobs
from monrest.logs.cache import LogCache
from monrest.reports import endpoints
from monrest.reports.mail import Mailer
from monrest.reports.making import prepare
from monrest.reports.model import Report
from monrest.reports.service import Reports
from monrest.reports.sheet import Sheet


def _reports(common: Common) -> Reports:
    config, clock = common.config, common.reactor

    async def owner(report: Report) -> Identity:
        limit = None if report.limit is None else frozenset(report.limit)
        return await common.as_user(report.owner, limit)

    async def sheet_of(identity: Identity, report: Report, at: float, progress: Progress) -> Sheet:
        cache, templates = common.the(LogCache), common.the(Reports).templates
        return await prepare(common.context, cache, templates, identity, report, at, progress)

    return Reports(
        database=common.database,
        clock=clock,
        wall=common.wall,
        threads=common.threads,
        duties=common.duties,
        jobs=common.the(Jobs),
        mailer=Mailer(clock),
        config=config.reports,
        mail=config.mail,
        zone=config.display.zone(),
        prepare=sheet_of,
        owner=owner,
    )


FAMILY = Family(
    life=Life(
        _reports,
        open=lambda _, reports: reports.load(),
        configure=lambda common, reports: reports.configure(
            common.config.reports, common.config.mail, common.config.display.zone()
        ),
        leave=lambda reports, _: reports.leave(),
    ),
    served=(
        Served(
            (*endpoints.ReportRecords.endpoints(), *declared(endpoints)),
            lambda common: endpoints.ReportRecords(
                database=common.database, reports=common.the(Reports)
            ),
        ),
    ),
)
