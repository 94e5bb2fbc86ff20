"""What commands are made of."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Family, Served
from monrest.commands import endpoints, listing

FAMILY = Family(
    served=(
        Served((*endpoints.OF_OBJECTS, *declared(endpoints))),
        Served((*declared(listing), *listing.DESCRIPTIONS)),
    ),
)
