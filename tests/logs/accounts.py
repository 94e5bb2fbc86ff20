"""The availability and the outages of objects by a whole log."""

from __future__ import annotations

from monrest.availability import account
from monrest.availability import outages as all_outages


def availability(events, keys, rules):
    """The row of each object."""
    counted = account.Availability(keys, rules)
    for event in events:
        counted.take(event)
    return {key: account.row(key, counted.times(key), rules.span) for key in keys}


def outages(events, keys, rules, *, with_downtimes=True):
    """The rows of all objects, in the order of ``keys``."""
    counted = all_outages.Outages(keys, rules, with_downtimes)
    for event in events:
        counted.take(event)
    return [all_outages.row(key, outage) for key in keys for outage in counted.of(key)]
