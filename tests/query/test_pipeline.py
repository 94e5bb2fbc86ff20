"""What queries over the example hosts find, and what bounds the texts that they make."""

from __future__ import annotations

from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest, ClientLeftError
from monrest.base.values import Capabilities
from monrest.query import limit as module
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames, TableSchema, secret
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.parse import parse_query
from monrest.query.plan import SitePlan, layout, plan
from tests.query.pipeline import (
    DISK,
    EVERYBODY,
    HOSTS,
    NAEMON,
    NO_CONTACT,
    NOW,
    S1,
    column,
    host,
    names,
    run,
)
from tests.table import each


@each(
    ("params", "expected"),
    [
        ("columns→max(_NUM)", {"max(_NUM)": "10"}),
        ("columns→name,substr(name,-2)&substr(name,-2)→01&sort→-name&limit→1",
         [{"name": "web01", "substr(name,-2)": "01"}]),
        ("columns→uniq(state) as s,count(*) as n", [{"s": 0, "n": 2}, {"s": 1, "n": 2}]),
        ("columns→uniq(state)&sort→-uniq(state)", [{"uniq(state)": 1}, {"uniq(state)": 0}]),
        ("columns→uniq(name) as n&uniq(name)[~]→^web", [{"n": "web01"}, {"n": "web02"}]),
        ("columns→uniq(state,num_services)&name[~]→^web",
         [{"state": 0, "num_services": 4}, {"state": 1, "num_services": 2}]),
        ("columns→(num_services num_services_ok)*2 as x&name→web01", [{"x": 14}]),
        ("columns→age(last_check)/60 as m,upper(num_services num_services_ok) as u&name→web01",
         [{"m": 1, "u": "7"}]),
        ("columns→name&perf_data_expanded[!~]→^rta", [{"name": "web02"}]),
        ("columns→name&perf_data_expanded[~~]→PL=100", [{"name": "router1"}]),
        ("columns→max(state) as m,name&max(state)→Down,unreachable",
         [{"m": 1, "name": "router1"}, {"m": 1, "name": "web02"}]),
        ("columns→uniq(state)&uniq(state)[gt]→up", [{"uniq(state)": 1}]),
        ("columns→count(*),state&sort→-state", [{"count(*)": 2, "state": 1}, {"count(*)": 2, "state": 0}]),
        ("columns→count(*) as n,state&sort→-n,state&limit→1", [{"n": 2, "state": 0}]),
        ("columns→count(*) as n,sum(num_services) as n,state&count(*)[gt]→2", []),
        ("columns→_WORKER&limit→1&sort→-_WORKER", [{"_WORKER": "remote"}]),
        ("columns→num_services+_NUM as x,(num_services+_NUM)*2 as y&name→web01", [{"x": 14, "y": 28}]),
        ("columns→num_services num_services_ok as x&name→web01", [{"x": 7}]),
        ("columns→avg(calc(latency,*,1000)) as ms&name→web01", {"ms": 875.0}),
        ("columns→min(age(last_check)) as a", {"a": 60}),
        ("columns→peer_key,peer_section&name→db01", [{"peer_key": "s1", "peer_section": "Default"}]),
        ("columns→last_state_change_order&name→router1", [{"last_state_change_order": 77}]),
        ("columns→id&name→db01", [{"id": 4}]),
        ("columns→used-01,rta-1&name→disk", [{"used-01": 7, "rta-1": 4}]),
        ("columns→name,name as name&name→db01", [{"name": "db01"}]),
        ("columns→groups,count(*)", [
            {"groups": [], "count(*)": 1}, {"groups": ["linux"], "count(*)": 1},
            {"groups": ["web", "linux"], "count(*)": 2}]),
        ("columns→missing,count(*)", [{"missing": "", "count(*)": 4}]),
    ],
)  # fmt: skip
def test_selection_and_aggregation(params: str, expected: Any) -> None:
    sites = {"s1": [*S1, DISK]} if "disk" in params else None
    assert run(params, sites) == expected


def test_columns_of_all_kinds_are_calculated_with_each_other() -> None:
    """A declared one, a custom variable, a label of performance data, one of a site, none."""
    kinds = ("num_services", "_NUM", "pl", "rta_unit", "peer_key", "last_check", "groups", "nope")
    forms = ("{}+{}", "({}-{})*2", "{}*({}+1)", "max({}/{})", "upper({}+{})", "concat({},{})")
    for a, b, form in product(kinds, kinds, forms):
        text = form.format(a, b)
        assert run(f"columns→{text} as x,name&sort→{text},{a}&limit→1"), text


@pytest.mark.parametrize(
    ("params", "message", "description"),
    [
        ("columns→count(*)&avg(state)[gt]→1", "possible typo in filter", "avg(state)"),
        ("columns→max(state),name&max(state)→critical", "error during request", "max(state)"),
        ("columns→max(state),name&max(state)→pending", "error during request", "max(state)"),
        ("columns→min(last_check),name&min(last_check)→soon", "error during request", "min(last_check)"),
        ("columns→state+1&state+1→many", "error during request", "state+1"),
        ("q→duration = 5", "error during request", "duration"),
        ("columns→count(*),state&q→\"count(*)\" > 2 or state = 1", "error during request", "top-level and"),
    ],
)  # fmt: skip
def test_refusals_name_what_is_wrong(params: str, message: str, description: str) -> None:
    with pytest.raises(BadRequest) as caught:
        run(params)
    assert caught.value.message == message
    assert description in caught.value.description


def test_an_alias_that_is_a_real_column_means_the_column() -> None:
    assert [row["state"] for row in run("columns→name as state&state→1")] == ["router1", "web02"]


def test_a_label_never_overwrites_a_column() -> None:
    rows = [host("h", 0, [], [], perf_data="state=9 a=1 a=2")]
    (row,) = run("", sites={"s1": rows})
    assert row["state"] == 0
    assert row["a"] == 1


def test_what_may_not_be_seen_is_masked_everywhere() -> None:
    (row,) = run("name→web01", view=NO_CONTACT)
    assert row["check_command"] == "ping"
    assert row["custom_variables"] == {"WORKER": "local"}
    assert row["custom_variable_names"] == ["WORKER"]
    assert row["custom_variable_values"] == ["local"]
    assert "_NUM" not in row
    assert names("_NUM[gt]→5", view=NO_CONTACT) == []
    assert names("check_command[regex]→200", view=NO_CONTACT) == []
    assert run("columns→_NUM,check_command&name→web01", view=NO_CONTACT) == [
        {"_NUM": None, "check_command": "ping"}
    ]


def test_rows_of_several_sites_follow_the_configured_order_and_sort_over_all() -> None:
    two = {"s1": S1, "s2": [host("aaa", 2, [], []), host("web01", 0, [], [])]}
    assert names("", sites=two) == ["db01", "router1", "web01", "web02", "aaa", "web01"]
    assert names("sort→name&limit→2", sites=two) == ["aaa", "db01"]
    assert names("limit→2&offset→3", sites=two) == ["web02", "aaa"]
    assert run("columns→peer_name,count(*)", sites=two) == [
        {"peer_name": "S1", "count(*)": 4},
        {"peer_name": "S2", "count(*)": 2},
    ]


GROUPS = TableSchema(
    name="hostgroups",
    table="hosts",
    columns={
        one.name: one
        for one in [
            column("name", "string", "string"),
            column("alias", "string", "string"),
            column("num_hosts", "int", "number"),
            column("worst_host_state", "int", "number"),
            column("members", "list", "array_of_strings"),
        ]
    },
    order=("name",),
    merge="groups",
)


def test_groups_of_several_sites_are_one_row_and_filters_see_the_sum() -> None:
    def group(count: int, worst: int, members: list[str], alias: str) -> dict[str, Any]:
        return {
            "name": "web", "alias": alias, "num_hosts": count, "worst_host_state": worst,
            "members": members,
        }  # fmt: skip

    sites = {"s1": [group(2, 0, ["a", "b"], "first")], "s2": [group(3, 2, ["c"], "second")]}
    core = evolve(NAEMON, tables={"hosts": dict.fromkeys(GROUPS.columns, "string")})
    (row,) = run("num_hosts[gt]→4", sites=sites, schema=GROUPS, core=core)
    assert row == {
        "name": "web", "alias": "first", "num_hosts": 5, "worst_host_state": 2,
        "members": ["a", "b", "c"], "peer_key": ["s1", "s2"], "peer_name": ["S1", "S2"],
        "peer_section": ["Default", "Default"],
    }  # fmt: skip


def test_plans_need_the_table() -> None:
    bound = bind(
        parse_query(()), ColumnNames(HOSTS, {}), EVERYBODY, Moment(now=NOW, zone=ZoneInfo("UTC"))
    )
    shape = layout(bound, [])
    assert plan(bound, shape, Capabilities(kind="naemon", tables={}, key="x")) is None
    assert isinstance(plan(bound, shape, NAEMON), SitePlan)


@each(
    ("name", "kind"),
    [
        ("check_command", "command"),
        ("host_check_command", "command"),
        ("current_service_check_command", "command"),
        ("check_command_expanded", "command line"),
        ("current_command_line", "command line"),
        ("custom_variables", "variables"),
        ("current_host_custom_variables", "variables"),
        ("service_custom_variable_names", "names"),
        ("current_contact_custom_variable_values", "values"),
        ("original_attributes", "other"),
        ("vars_variables", "other"),
        ("checks_enabled", ""),
        ("event_handler", "command"),
        ("current_host_event_handler", "command"),
        ("event_handler_enabled", ""),
        ("host_notification_commands", "commands"),
        ("current_contact_service_notification_commands", "commands"),
        ("message", "event"),
        ("options", "event"),
        ("command_name", "event"),
        ("peer_addr", "address"),
        ("peer_last_error", "address"),
        ("peer_name", ""),
        ("address", ""),
        ("name", ""),
    ],
)
def test_secrets_are_known_under_every_prefix(name: str, kind: str) -> None:
    assert secret(name) == kind
    assert NO_CONTACT.masks(name) is bool(kind)
    assert not EVERYBODY.masks(name)


NESTED = "{}'x'{}".format("concat(" * 19, ",".join(["", *["lower(alias))"] * 19]))


@pytest.mark.parametrize(
    "params",
    [
        "columns→concat(concat(alias,alias),alias) as a",
        f"columns→{NESTED} as a",
        "columns→" + ",".join(f"upper(alias) as a{at}" for at in range(400)),
        "columns→concat(alias,'x') as a&sort→-a",
        "columns→concat(alias,name) as a,count(*) as n",
        "columns→max(fmt('%s%s', alias, alias)) as a",
    ],
)
def test_texts_made_of_many_rows_are_bounded_in_all(
    monkeypatch: pytest.MonkeyPatch, params: str
) -> None:
    rows = {"s1": [host(f"h{at}", 0, [], [], alias="ALIAS" * 20) for at in range(60)]}
    assert run(params, rows)
    monkeypatch.setattr(module, "MOST_MADE", 5_000)
    with pytest.raises(BadRequest, match="functions make at most 5000 characters in one answer"):
        run(params, rows)
    assert run("columns→concat(alias,name) as a", {"s1": rows["s1"][:20]})


def test_the_processor_time_of_one_answer_is_bounded_in_all_its_parts() -> None:
    limit = Limit()
    for _ in range(3):
        with limit:
            limit.check()
    assert limit.seconds < module.SECONDS
    limit.seconds = 0.0
    with limit, pytest.raises(BadRequest, match="2 seconds of processor time"):
        limit.check()


def test_work_ends_when_the_client_has_left() -> None:
    with Limit(left=lambda: True) as limit, pytest.raises(ClientLeftError):
        limit.check()
