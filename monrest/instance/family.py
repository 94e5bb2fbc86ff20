"""What an instance says of itself is made of."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Family, Served
from monrest.instance.endpoints import INDEX_ENDPOINTS, InstanceEndpoints
from monrest.instance.stats import ENDPOINTS as FIGURES
from monrest.instance.stats import FigureEndpoints

FAMILY = Family(
    served=(
        Served(INDEX_ENDPOINTS),
        Served(
            declared(InstanceEndpoints), lambda common: InstanceEndpoints(config_path=common.path)
        ),
        Served(
            FIGURES, lambda common: FigureEndpoints(figures=common.figures, meters=common.meters)
        ),
    ),
)
