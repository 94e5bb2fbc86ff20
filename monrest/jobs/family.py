"""The parts of background jobs."""

from __future__ import annotations

from attrs import evolve

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.config import JobsConfig
from monrest.jobs.endpoints import JobRecords
from monrest.jobs.service import Jobs


def job_records(common: Common) -> JobRecords:
    return JobRecords(database=common.database, jobs=common.the(Jobs))


def _limits(common: Common) -> JobsConfig:
    config, share = common.config.jobs, common.workers.share
    return evolve(config, concurrent=share(config.concurrent), queue=share(config.queue))


def _jobs(common: Common) -> Jobs:
    jobs = Jobs(
        database=common.database,
        clock=common.reactor,
        wall=common.wall,
        threads=common.answers,
        files=common.files,
        config=_limits(common),
        who=common.who,
        duty=lambda: common.does("old jobs"),
        workers=common.workers,
    )
    common.meters.offer(jobs.measured)
    return jobs


FAMILY = Family(
    life=Life(
        _jobs,
        open=lambda common, jobs: jobs.identify(common.process),
        configure=lambda common, jobs: jobs.configure(_limits(common)),
        leave=lambda jobs, seconds: jobs.drain(seconds),
    ),
    served=(Served((*JobRecords.endpoints(), *declared(JobRecords)), job_records),),
)
