"""Searches of status filters: which hosts and services they find, and what that makes of a node."""

from __future__ import annotations

import pytest

from monrest.base.errors import BadRequest
from monrest.bp.function import parse
from tests.bp.town import NOW, leaf, town
from tests.table import each

__all__ = ["town"]


def searched(aggregation, kind, *filters, limits=(), **search):
    function = ["statusfilter", aggregation, kind, [{"text_filter": list(filters), **search}]]
    return leaf([*function, *limits])


WEB = {"type": "host", "op": "~", "value": "^web"}


@pytest.fixture
def web(town):
    town.host("web1").host("web2", 1, acknowledged=1).host("db")
    town.service("web1", "http", 2).service("web2", "http", 1, acknowledged=1)
    town.service("db", "http", 3)
    return town


@pytest.mark.parametrize(
    ("aggregation", "kind", "limits", "status", "counts"),
    [
        ("worst", "both", (), 2, "1/2 hosts up, 1/2 services up"),
        ("worst", "services", (), 2, "1/2 services up"),
        ("worst", "hosts", (), 2, "1/2 hosts up"),
        ("best", "hosts", (), 0, "1/2 hosts up"),
        ("best", "services", (), 1, "1/2 services up"),
        ("threshold", "both", ("", "", 2, ""), 0, "1/2 hosts up, 1/2 services up"),
        ("threshold", "both", (1, "", "", ""), 1, "1/2 hosts up, 1/2 services up"),
        ("threshold", "services", (1, 1, "", "50%"), 2, "1/2 services up"),
    ],
)
def test_searches(web, aggregation, kind, limits, status, counts):
    found = web.calculate(searched(aggregation, kind, WEB, limits=limits))
    assert found.status == status
    assert counts in found.status_text.splitlines()[0]


def test_what_a_search_says(web):
    found = web.calculate(searched("worst", "both", WEB, {"type": "service", "value": "http"}))
    node = found.nodes["node1"]
    assert node.short_desc == "host~^web & service=http"
    lines = node.status_text.splitlines()
    assert lines[0].startswith("CRITICAL - ")
    assert "[CRITICAL] web1 - http - http says" in lines
    # The host is handled, but there is nothing handled that makes up for the service.
    assert node.acknowledged == 0
    assert web.calculate(searched("worst", "hosts", WEB)).nodes["node1"].acknowledged == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ({"type": "search", "value": "web1"}, 1),
        ({"type": "host", "op": "!=", "value": "web1"}, 3),
        ({"type": "plugin output", "op": "~", "value": "HTTP"}, 3),
        ({"type": "custom variable", "val_pre": "level", "value": "gold"}, 1),
        ({"type": "custom variable", "val_pre": "level", "op": "!=", "value": "gold"}, 3),
        ({"type": "contact", "value": "olga"}, 1),
        ({"type": "contact", "op": "!=", "value": "olga"}, 3),
        ({"type": "latency", "op": ">=", "value": 2}, 1),
        ({"type": "last check", "op": ">=", "value": "-1m"}, 1),
        ({"type": "duration", "op": ">=", "value": "1h"}, 3),
        ({"type": "duration", "op": "<=", "value": "1h"}, 1),
        ({"type": "comment", "op": "~", "value": "disk"}, 1),
        ({"type": "downtime duration", "op": ">=", "value": "1h"}, 1),
        ({"type": "dependency", "value": "db;http"}, 1),
    ],
)
def test_kinds_of_text_filters(web, text, count):
    web.service(
        "x",
        "special",
        plugin_output="else",
        custom_variables={"LEVEL": "gold"},
        contacts=["olga"],
        latency=3.5,
        last_check=NOW - 10,
        last_state_change=NOW - 60,
        comments_with_info=[[1, "ann", "new disks"]],
        downtimes_with_info=[[1, "ann", "c", 0, 100, 4000, 1, 0, 0]],
        depends_exec=[["db", "http"]],
    )
    found = web.calculate(searched("threshold", "services", text))
    assert f"/{count} services up" in found.status_text


@each(
    ("search", "words"),
    [
        ([], "a list of 1 to 50 searches"),
        ([5], "search 1: expected an object"),
        ({"hostprops": -1}, "hostprops: expected 0 to 1048575"),
        ({"servicestatustypes": "many"}, "servicestatustypes: expected 0 to 31"),
        ({"text_filter": {}, "hoststatustypes": 16}, "hoststatustypes: expected 0 to 15"),
        ({"text_filter": [WEB] * 51}, "a list of at most 50 objects"),
        ({"text_filter": [{"type": "colour"}]}, "type: expected one of search, host,"),
        ({"text_filter": [{"type": []}]}, "type: expected one of search, host,"),
        ({"text_filter": [{**WEB, "op": ">"}]}, "op: expected one of = != ~ !~ >= <="),
        ({"text_filter": [{**WEB, "op": []}]}, "op: expected one of = != ~ !~ >= <="),
        ({"text_filter": [{**WEB, "value": []}]}, "value: expected a text or a number"),
        ({"text_filter": [{**WEB, "value": "("}]}, "statusfilter: host"),
        ({"text_filter": [{"type": "custom variable"}]}, "the name of a variable"),
    ],
)
def test_what_is_no_search(search, words):
    with pytest.raises(BadRequest) as caught:
        parse(["statusfilter", "worst", "both", search])
    assert words in caught.value.description


@pytest.mark.parametrize(
    ("search", "count"),
    [
        ({"servicestatustypes": 16}, 1),
        ({"servicestatustypes": 4 + 8}, 2),
        ({"servicestatustypes": 31}, 3),
        ({"hoststatustypes": 4}, 1),
        ({"serviceprops": 4}, 1),
        ({"serviceprops": 8}, 2),
    ],
)
def test_states_and_properties_of_searches(web, search, count):
    web.services[1][1]["host_state"] = 1
    for _, one in web.services:
        one["host_has_been_checked"] = 1
    found = web.calculate(searched("threshold", "services", **search))
    assert f"/{count} services up" in found.status_text
