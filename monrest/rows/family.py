"""The parts of the collections of the cores."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Family, Served
from monrest.rows import commandline, endpoints, site_endpoints, statistics

FAMILY = Family(
    served=(
        Served(endpoints.ENDPOINTS),
        Served((*statistics.ENDPOINTS, *declared(statistics))),
        Served(commandline.ENDPOINTS),
        Served(declared(site_endpoints)),
    ),
)
