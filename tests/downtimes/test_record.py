"""What may be in the record of a recurring downtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.config.sections import CommandsConfig
from monrest.downtimes.cores import orders_of
from monrest.downtimes.model import Downtime, checked, targets_of
from monrest.livestatus.command import Target
from tests.table import each

CONFIG = CommandsConfig()


def test_defaults():
    assert checked({"host": "h"}, CONFIG) == {
        "target": "host", "host": ["h"], "service": [], "hostgroup": [], "servicegroup": [],
        "schedule": [], "duration": 120, "fixed": 1, "flex_range": 720, "childoptions": 0,
        "comment": "automatic downtime",
    }  # fmt: skip


@each(
    ("given", "name", "stored"),
    [
        ({"host": " b, a ,,a"}, "host", ["a", "b"]),
        ({"host": ["b", None, " a", 5]}, "host", ["5", "a", "b"]),
        ({"host": "h", "service": ["s"]}, "target", "service"),
        ({"host": "h", "hostgroup": "g"}, "target", "host"),
        ({"host": "h", "hostgroup": "g", "target": "hostgroup"}, "target", "hostgroup"),
        ({"servicegroup": "g", "target": ""}, "target", "servicegroup"),
        ({"host": "h", "duration": "90"}, "duration", 90),
        ({"host": "h", "duration": 90.0}, "duration", 90),
        ({"host": "h", "fixed": False}, "fixed", 0),
        ({"host": "h", "fixed": "false"}, "fixed", 0),
        ({"host": "h", "childoptions": "2"}, "childoptions", 2),
        ({"host": "h", "childoptions": True}, "childoptions", 1),
        ({"host": "h", "comment": " a\nb; c "}, "comment", "a b; c"),
        ({"host": "h", "comment": ""}, "comment", "automatic downtime"),
        ({"host": "h", "mine": {"x": [None]}}, "mine", {"x": [None]}),
    ],
)
def test_values(given, name, stored):
    assert checked(given, CONFIG)[name] == stored


def test_what_comes_from_elsewhere_is_not_stored():
    given = {"host": "h", "file": 5, "error": "x", "backends": ["a"], "fixable": {}}
    assert not checked(given, CONFIG).keys() & {"file", "error", "backends", "fixable"}


@each(
    ("given", "words"),
    [
        ({}, "host: expected at least one name, because target is service"),
        ({"host": "h", "target": "service"}, "service: expected at least one name"),
        ({"service": "s"}, "host: expected at least one name"),
        ({"host": "h", "target": "hostgroup"}, "hostgroup: expected at least one name"),
        ({"host": "h", "target": "contact"}, "target: expected one of"),
        ({"host": "h", "target": ["host"]}, "target: expected one of"),
        ({"host": {"a": 1}}, "host: expected a list of names"),
        ({"host": [["a"]]}, "host: expected a list of names"),
        ({"host": [True]}, "host: expected a list of names"),
        ({"host": 5}, "host: expected a list of names"),
        ({"host": ["a;b"]}, "host: expected text without semicolons"),
        ({"host": ["a\nb"]}, "host: expected text without control characters"),
        ({"host": ["x" * 5000]}, "host: expected names of at most"),
        ({"host": [str(n) for n in range(1001)]}, "host: expected at most 1000 names"),
        ({"host": [str(n) for n in range(200)], "service": [str(n) for n in range(100)]}, "pairs"),
        ({"host": "h", "duration": 0}, "duration: expected a number from 1"),
        ({"host": "h", "duration": "two"}, "duration: expected"),
        ({"host": "h", "duration": 1.5}, "duration: expected"),
        ({"host": "h", "duration": [5]}, "duration: expected"),
        ({"host": "h", "duration": 10**9}, "duration: expected"),
        ({"host": "h", "duration": "true"}, "duration: expected"),
        ({"host": "h", "flex_range": -1}, "flex_range: expected"),
        ({"host": "h", "fixed": 2}, "fixed: expected a number from 0 to 1"),
        ({"host": "h", "childoptions": 3}, "childoptions: expected a number from 0 to 2"),
        ({"host": "h", "comment": 5}, "comment: expected a text"),
        ({"host": "h", "comment": "a\0b"}, "comment: expected text without control"),
        ({"host": "h", "comment": "x" * 5000}, "comment: expected at most"),
        ({"host": "h", "schedule": "daily"}, "schedule: expected a list of objects"),
        ({"host": "h", "schedule": [{"type": "year"}]}, "schedule.0.type: expected one of"),
        ({"host": "h", "own": "x" * 2_000_000}, "bytes as JSON"),
        ({"host": "h", "own": 2**70}, "numbers of 64 bits"),
    ],
)  # fmt: skip
def test_what_is_refused(given, words):
    with pytest.raises(BadRequest) as caught:
        checked(given, CONFIG)
    assert words in caught.value.description


def test_the_longest_downtime():
    config = CommandsConfig(downtime_max_duration=7200)
    assert checked({"host": "h", "duration": 120, "flex_range": 120}, config)
    for name in ("duration", "flex_range"):
        with pytest.raises(BadRequest, match="expected at most 120 minutes"):
            checked({"host": "h", "duration": 5, "flex_range": 5, name: 121}, config)


def test_targets():
    pairs = checked({"host": "b,a", "service": "t,s"}, CONFIG)
    assert targets_of(pairs) == [
        Target("services", host, service) for host in "ab" for service in "st"
    ]
    assert targets_of(checked({"servicegroup": "g"}, CONFIG)) == [Target("servicegroups", "g")]


NAMES = st.lists(st.text(min_size=1, max_size=8), max_size=3)


@given(
    st.fixed_dictionaries(
        {}, optional={"host": NAMES, "service": NAMES, "hostgroup": NAMES, "comment": st.text(max_size=9),
                      "fixed": st.sampled_from([0, 1]), "childoptions": st.integers(-1, 3)},
    )
)  # fmt: skip
def test_every_accepted_record_can_be_sent(given):
    """And is the same when it is sent back."""
    try:
        record = checked(given, CONFIG)
    except BadRequest:
        return
    orders = orders_of(Downtime(number=1, record=record), 1_700_000_000)
    assert len(orders) == len(targets_of(record))
    assert len({order.key for order in orders}) == len(orders)
    assert checked(record, CONFIG) == record
