"""What recurring downtimes are made of."""

from __future__ import annotations

from monrest.api.family import Common, Family, Life, Served
from monrest.downtimes.endpoints import RecurringDowntimeRecords
from monrest.downtimes.service import RecurringDowntimes


def _downtimes(common: Common) -> RecurringDowntimes:
    return RecurringDowntimes(
        database=common.database,
        clock=common.reactor,
        wall=common.wall,
        duties=common.duties,
        registry=common.registry,
        zone=common.config.display.zone(),
    )


FAMILY = Family(
    life=Life(
        _downtimes,
        configure=lambda common, downtimes: downtimes.configure(common.config.display.zone()),
    ),
    served=(
        Served(
            RecurringDowntimeRecords.endpoints(),
            lambda common: RecurringDowntimeRecords(database=common.database),
        ),
    ),
)
