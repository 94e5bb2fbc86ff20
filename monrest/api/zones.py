"""The time zone in which a request's dates are meant: that of the user's profile.

A profile is only read for what may hold a date, because most requests hold none.
"""

from __future__ import annotations

import re
from datetime import tzinfo

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as TooLate

from monrest.api.endpoint import Context
from monrest.base.errors import Unavailable
from monrest.base.values import Identity, RestRequest
from monrest.query.functions import Moment

_NUMBERS_OF_DATE = re.compile("[0-9][-:][0-9]")
_WORDS_OF_DATE = (
    *("day", "week", "month", "year", "date("),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
)

_SEARCHED = 50_000
"""Characters that are searched for what may hold a date; longer requests are rare."""

_PATIENCE = 2.0
"""Seconds to wait for a database that hangs: reads of cores can do without."""


async def zone_of(context: Context, identity: Identity) -> tzinfo:
    """The user's time zone, else the server's."""
    try:
        reading = Deferred.fromCoroutine(context.chosen_zone(identity.user))
        return await reading.addTimeout(_PATIENCE, context.clock) or context.zone
    except (Unavailable, TooLate):
        return context.zone


async def moment_of(context: Context, request: RestRequest) -> Moment:
    """The present for the filters and functions of a request, with the zone of its dates."""
    moment = context.moment()
    if not holds_date(request):
        return moment
    return Moment(now=moment.now, zone=await zone_of(context, request.identity))


def holds_date(request: RestRequest) -> bool:
    """Whether something in the parameters may be a date, which is meant in the user's zone."""
    size = sum(len(name) + len(value) for name, value in request.parameters)
    if size > _SEARCHED:
        return True
    text = "\n".join([part for pair in request.parameters for part in pair]).lower()
    return any(word in text for word in _WORDS_OF_DATE) or bool(_NUMBERS_OF_DATE.search(text))
