"""The parts of the stream of events."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.events.endpoints import EventEndpoints
from monrest.events.service import Events
from monrest.jobs.service import Jobs
from monrest.logs.cache import LogCache
from monrest.objectconfig.service import Staging


def _events(common: Common) -> Events:
    jobs = common.the(Jobs)
    events = Events(
        *(common.reactor, common.wall, common.registry, lambda: common.context, common.database),
        duties=common.duties,
        reports_sites=lambda: common.does("events of sites"),
        jobs=jobs.here,
        logs=common.the(LogCache).source,
    )
    jobs.job_ended.hear(events.publish_ended)
    common.the(Staging).saved.hear(events.publish_saved)
    return events


FAMILY = Family(
    life=Life(_events, leave=lambda events, _: events.end()),
    served=(
        Served(
            declared(EventEndpoints),
            lambda common: EventEndpoints(events=common.the(Events), who=common.who),
        ),
    ),
)
