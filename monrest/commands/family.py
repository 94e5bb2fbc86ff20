"""What commands are made of."""

from __future__ import annotations

from monrest.api.family import Family, Served
from monrest.commands import endpoints, listing, removals

FAMILY = Family(
    served=(
        Served(endpoints.ENDPOINTS),
        Served(listing.ENDPOINTS),
        Served(removals.ENDPOINTS),
    ),
)
