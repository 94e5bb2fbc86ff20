"""What dashboards are made of."""

from __future__ import annotations

from monrest.api.family import Common, Family, Life, Served
from monrest.panorama.endpoints import ENDPOINTS, DashboardRecords
from monrest.panorama.service import Panorama


def _panorama(common: Common) -> Panorama:
    stored = common.reactor, common.wall, common.database
    return Panorama(*stored, common.threads, common.config.panorama)


FAMILY = Family(
    life=Life(
        _panorama, configure=lambda common, panorama: panorama.configure(common.config.panorama)
    ),
    served=(
        Served(
            ENDPOINTS,
            lambda common: DashboardRecords(
                database=common.database, panorama=common.the(Panorama)
            ),
        ),
    ),
)
