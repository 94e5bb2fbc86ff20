"""Each limit that the reference page shows is the one that is kept."""

from __future__ import annotations

import pytest

from monrest.api.fields import NameList, Number, Reading, Text
from monrest.base.errors import BadRequest
from monrest.broadcasts.model import FIELDS as BROADCASTS
from monrest.daemon.reference import reference
from monrest.downtimes.model import FIELDS as DOWNTIMES
from monrest.reports.model import FIELDS as REPORTS
from tests.table import each

DECLARED = [one for family in (BROADCASTS, DOWNTIMES, REPORTS) for one in family.declared]


def bounds(one):
    """Values of a field that are just within its limit, and just beyond."""
    if isinstance(one, Text):
        return ["x" * one.longest], ["x" * (one.longest + 1)]
    if isinstance(one, Number):
        return [one.least, one.most], [one.least - 1, one.most + 1]
    if isinstance(one, NameList):
        names = [f"n{at}" for at in range(one.most + 1)]
        return [names[1:], ",".join(names[1:])], [names, ",".join(names)]
    return [], []


@each(("one",), [(one,) for one in DECLARED])
def test_limits(one):
    within, beyond = bounds(one)
    for value in within:
        one.read(value)
    for value in beyond:
        with pytest.raises(BadRequest) as caught:
            one.read(value, Reading("in."))
        assert caught.value.description.startswith(f"in.{one.name}: expected ")


def test_the_reference_page_has_them():
    page = reference()
    for one in DECLARED:
        if one.limit:
            assert f"| `{one.name}` | {one.type} | {one.limit} |" in page
