"""Columns: renames, functions, calculations, aggregation, to_rows, sort, limit (6 to 9)."""

import pytest
from harness.expect import HOSTS, refused

from tests.table import each

WEB01 = [
    ("name", {"name": "web01"}),
    ("name:n", {"n": "web01"}),
    ("name as n, state AS s", {"n": "web01", "s": 0}),
    ("name:a:b", {"a:b": "web01"}),
    ("name as n:x", {"n:x": "web01"}),
    ("`name`", {"name": "web01"}),
    ("`pl` as loss", {"loss": 0}),
    ("name,,state,", {"name": "web01", "state": 0}),
    ("name,state:name", {"name": 0}),
    ("nope", {"nope": None}),
    ("*", {"*": None}),
    ("name as a b", {"name as a b": None}),
    ("host_name", {"host_name": "web01"}),
    ("_WORKER,_NONE", {"_WORKER": "local", "_NONE": None}),
    ("custom_variables", {"custom_variables": {"SIZE": "2", "WORKER": "local"}}),
    ("rta,rta_unit,pl,pl_unit", {"rta": 0.03, "rta_unit": "ms", "pl": 0, "pl_unit": "%"}),
    ("peer_key,peer_name", {"peer_key": "s1", "peer_name": "Site One"}),
    ("upper(name)", {"upper(name)": "WEB01"}),
    ("uc(alias)", {"uc(alias)": "WEB 01 · Ü"}),
    ("lc(alias) as x", {"x": "web 01 · ü"}),
    ("lower(state)", {"lower(state)": "0"}),
    ("lower(nope)", {"lower(nope)": None}),
    ("substr(name,3)", {"substr(name,3)": "01"}),
    ("substring(name,-2)", {"substring(name,-2)": "01"}),
    ("substr(name,0,-1)", {"substr(name,0,-1)": "web0"}),
    ("substr(name,1,2)", {"substr(name,1,2)": "eb"}),
    ("substr(name,99)", {"substr(name,99)": None}),
    ("upper(substr(name,0,3)) as x", {"x": "WEB"}),
    ("calc(rta,*,1000) as us", {"us": 30.0}),
    ("calc(rta,'*',1000) as us", {"us": 30.0}),
    ("calc(rta,/,0) as x", {"x": None}),
    ("s(name,'[0-9]+','X')", {"s(name,'[0-9]+','X')": "webX"}),
    ("s(name,/0/,'') as x", {"x": "web1"}),
    ("s(name,'(w)','$1') as x", {"x": "$1eb01"}),
    ("concat(name,';',state)", {"concat(name,';',state)": "web01;0"}),
    ("concat('Host: ',name) as x", {"x": "Host: web01"}),
    ("concat(name,' (',upper(name),')') as x", {"x": "web01 (WEB01)"}),
    ("concat(name,nope) as x", {"x": "web01"}),
    ("fmt('%s is %d',name,state)", {"fmt('%s is %d',name,state)": "web01 is 0"}),
    ("fmt('%.1f|%5s|%%',rta,name) as x", {"x": "0.0|web01|%"}),
    ("unit(rta,s) as x", {"x": 0.03}),
    ("utc(0)", {"utc(0)": "1970-01-01 00:00:00 UTC"}),
    ("utc(86400,'%Y-%m-%d') as x", {"x": "1970-01-02"}),
    ("duration(90) as x", {"x": "1m 30s"}),
    ("duration(0.0123) as x", {"x": "12ms"}),
    ("duration(31622461) as x", {"x": "1y 1d"}),
    ("hoststate(state) as x", {"x": "UP"}),
    ("hoststate(2) as x,servicestate(2) as y", {"x": "UNREACHABLE", "y": "CRITICAL"}),
    ("num_services*2", {"num_services*2": 8}),
    ("2*num_services-1*3 as x", {"x": 21}),
    ("num_services/3 as x", {"x": pytest.approx(4 / 3)}),
    ("num_services/0 as x", {"x": ""}),
    ("num_services*1.5 as x", {"x": 6.0}),
    ("num_services+1 as x", {"x": 5}),
    ("state+num_services as x", {"x": 4}),
    ("(num_services+2)*3 as x", {"x": 18}),
    ("2*(num_services-state) as x", {"x": 8}),
    ('utc(3600,"%H:%M:%S"):b', {"b": "01:00:00"}),
    ("check_command as c", {"c": "command"}),
]


@each(("columns", "expected"), WEB01)
def test_columns_of_one_host(client, differences, columns, expected):
    if expected == {"c": "command"}:
        expected = {"c": differences["check_command"]}
    assert client.rows("/hosts/web01", {"columns": columns}) == [expected]


def test_columns_repeated_are_joined(client):
    assert client.rows("/hosts/web01?columns=name&columns=state") == [{"name": "web01", "state": 0}]


def test_age_counts_from_now(client):
    (row,) = client.rows("/hosts/web01", {"columns": "age(last_check) as a"})
    assert type(row["a"]) is int
    assert 0 <= row["a"] < 3600


def test_performance_data_expanded_is_all_text(client):
    (row,) = client.rows("/hosts/web01", {"columns": "perf_data_expanded"})
    first = {
        "parent": "", "name": "rta", "value": "0.030", "unit": "ms", "warn": "3000.000",
        "crit": "5000.000", "min": "0", "max": "",
    }  # fmt: skip
    rta, loss = row["perf_data_expanded"]
    assert rta.pop("orig").startswith("rta=0.030ms")
    assert rta == first
    assert (loss["name"], loss["value"], loss["warn"], loss["crit"]) == ("pl", "0", "80", "100")


def test_rows_without_performance_data_have_no_such_keys(client):
    (row,) = client.rows("/hosts/web02")
    assert "rta" not in row
    assert not row.get("perf_data_expanded")
    (row,) = client.rows("/hosts/db01")
    assert (row["rta"], row["rta_unit"]) == (12.5, "ms")


def test_performance_data_of_the_host_on_services(client):
    columns = "rta,host_rta,host_pl_unit,host_perf_data_expanded"
    (row,) = client.rows("/services/db01/ping", {"columns": columns})
    assert (row["rta"], row["host_rta"], row["host_pl_unit"]) == (12.5, 12.5, "%")
    assert [entry["name"] for entry in row["host_perf_data_expanded"]] == ["rta", "pl"]


def test_labels_with_special_characters(client):
    assert client.values("/services/db01/Disk%20%2Fvar", "/var") == [80]
    rows = client.rows("/services/db01/Disk%20%2Fvar", {"columns": "`/var` as used,`/var_unit`"})
    assert rows == [{"used": 80, "/var_unit": "%"}]


AGGREGATES = [
    ("count(*)", {}, {"count(*)": 6}),
    ("count(*):n,state", {}, [{"n": 3, "state": 0}, {"n": 2, "state": 1}, {"n": 1, "state": 2}]),
    ("count()", {}, {"count()": 6}),
    ("count(nope)", {}, {"count(nope)": 6}),
    ("sum(state),min(state),max(state)", {}, {"sum(state)": 4, "min(state)": 0, "max(state)": 2}),
    ("avg(num_services) as a", {"name[~]": "^web"}, {"a": 3.0}),
    (
        "sum(state),avg(state),min(state),max(state),count(*)",
        {"name": "nope"},
        {
            "sum(state)": 0, "avg(state)": None, "min(state)": None, "max(state)": None,
            "count(*)": 0,
        },
    ),
    ("count(*),state", {"name": "nope"}, []),
    ("avg(name),max(name),sum(name)", {}, {"avg(name)": None, "max(name)": None, "sum(name)": 0}),
    ("avg(pl)", {}, {"avg(pl)": 40.0}),
    ("sum(num_services*2) as x", {}, {"x": 22}),
    ("max(calc(rta,*,1000)) as x", {}, {"x": 12500.0}),
    ("uniq(),state", {}, [{"state": 0}, {"state": 1}, {"state": 2}]),
    ("state,uniq(*)", {}, [{"state": 0}, {"state": 1}, {"state": 2}]),
    ("uniq()", {}, {}),
    ("uniq(state)", {}, [{"uniq(state)": 0}, {"uniq(state)": 1}, {"uniq(state)": 2}]),
    ("uniq(to_rows(groups)) as g", {}, [{"g": "idle"}, {"g": "linux"}, {"g": "web"}]),
    ("count(*),_WORKER", {}, [
        {"_WORKER": "", "count(*)": 4}, {"_WORKER": "local", "count(*)": 1},
        {"_WORKER": "remote", "count(*)": 1},
    ]),
    ("upper(substr(name,0,3)) as x,count(*) as n", {"state": "0"}, [
        {"n": 1, "x": "DB0"}, {"n": 1, "x": "PEN"}, {"n": 1, "x": "WEB"},
    ]),
    ("to_rows(groups) as g,count(*)", {}, [
        {"count(*)": 1, "g": "idle"}, {"count(*)": 3, "g": "linux"}, {"count(*)": 2, "g": "web"},
    ]),
    ("count(to_rows(groups))", {}, {"count(to_rows(groups))": 6}),
    ("uniq(),as_rows(groups) as g", {}, [{"g": "idle"}, {"g": "linux"}, {"g": "web"}]),
    ("count(*),state", {"count(*)[gt]": "2"}, [{"count(*)": 3, "state": 0}]),
    ("avg(num_services),state", {"avg(num_services)[gte]": "2"}, [
        {"avg(num_services)": pytest.approx(7 / 3), "state": 0},
        {"avg(num_services)": 2.0, "state": 1},
    ]),
    ("count(*),state", {"q": "`count(*)` > 2"}, [{"count(*)": 3, "state": 0}]),
    ("count(*)", {"count(*)[gt]": "100"}, {}),
    ("count(*) as n,state", {"sort": "-n", "limit": "1"}, [{"n": 3, "state": 0}]),
    ("count(*) as n,state", {"sort": "n"}, [
        {"n": 1, "state": 2}, {"n": 2, "state": 1}, {"n": 3, "state": 0},
    ]),
    ("count(*),state", {"sort": "-count(*)", "offset": "1"}, [
        {"count(*)": 2, "state": 1}, {"count(*)": 1, "state": 2},
    ]),
    ("count(*)", {"limit": "1"}, {"count(*)": 6}),
]  # fmt: skip


@each(("columns", "filters", "expected"), AGGREGATES)
def test_aggregation_of_hosts(client, columns, filters, expected):
    assert client.rows("/hosts", {"columns": columns, **filters}) == expected


def test_aggregation_over_performance_data_of_services(client):
    expected = [
        {"host_name": "db01", "n": 2}, {"host_name": "pend01", "n": 1},
        {"host_name": "router1", "n": 2}, {"host_name": "web01", "n": 4},
        {"host_name": "web02", "n": 2},
    ]  # fmt: skip
    assert client.rows("/services", {"columns": "host_name,count(*) as n"}) == expected
    assert client.rows("/services", {"columns": "max(time)"}) == {"max(time)": 3}


def test_to_rows(client):
    rows = client.rows("/hosts", {"columns": "name,to_rows(services) as svc", "name": "web02"})
    assert sorted(row["svc"] for row in rows) == ["http", "ping"]
    assert {row["name"] for row in rows} == {"web02"}
    rows = client.rows("/hosts", {"columns": "name,upper(to_rows(services)) as svc"})
    assert "leaf01" not in {row["name"] for row in rows}
    assert len(rows) == 11
    assert {"name": "db01", "svc": "DISK /VAR"} in rows


def test_filter_on_expanded_elements(client):
    parameters = {"columns": "name,to_rows(services) as s", "to_rows(services)[sregex]": "^h"}
    assert client.rows("/hosts", parameters) == [
        {"name": "web01", "s": "http"},
        {"name": "web02", "s": "http"},
    ]
    parameters = {"columns": "name,to_rows(services) as s", "services[gte]": "http", "limit": "100"}
    assert len(client.rows("/hosts", parameters)) == 6


SORTS = [
    ({"sort": "-name"}, list(reversed(HOSTS))),
    ({"sort": "-state,name"}, ["leaf01", "router1", "web02", "db01", "pend01", "web01"]),
    ({"sort": " state , -name "}, ["web01", "pend01", "db01", "web02", "router1", "leaf01"]),
    ({"sort": "+state"}, ["db01", "pend01", "web01", "router1", "web02", "leaf01"]),
    ({"sort": "pl,name"}, ["leaf01", "pend01", "web02", "web01", "db01", "router1"]),
    ({"sort": "-pl,name"}, ["router1", "db01", "web01", "leaf01", "pend01", "web02"]),
    ({"sort": "_WORKER"}, ["db01", "leaf01", "pend01", "router1", "web01", "web02"]),
    ({"sort": "-_SIZE,name", "limit": "2"}, ["db01", "web01"]),
    ({"sort": "-name", "limit": "2"}, ["web02", "web01"]),
    ({"sort": "name", "limit": "2", "offset": "1"}, ["leaf01", "pend01"]),
    ({"limit": "2", "offset": "4"}, ["web01", "web02"]),
    ({"limit": "3"}, ["db01", "leaf01", "pend01"]),
    ({"offset": "4"}, ["web01", "web02"]),
    ({"offset": "99"}, []),
    ({"limit": "0"}, list(HOSTS)),
    ({"limit": ""}, list(HOSTS)),
    ({"limit": "1000000000"}, list(HOSTS)),
    ({"offset": "1000000000"}, []),
    ({"sort": "nope"}, list(HOSTS)),
    ({"sort": "groups,name"}, ["leaf01", "router1", "pend01", "db01", "web01", "web02"]),
    ({"sort": "-state", "limit": "1", "name[~]": "^web"}, ["web02"]),
    ({"sort": "-last_check", "limit": "1", "name": "pend01"}, ["pend01"]),
]


@each(("parameters", "expected"), SORTS)
def test_sort_limit_offset(client, parameters, expected):
    assert client.values("/hosts", "name", **parameters) == expected


def test_sort_by_alias_and_by_expression(client):
    columns = "name,substr(name,-2) as tail,lower(name)"
    rows = client.rows("/hosts", {"columns": columns, "sort": "-tail,name", "limit": "2"})
    assert [row["name"] for row in rows] == ["router1", "web02"]
    rows = client.rows("/hosts", {"columns": columns, "sort": "-lower(name)", "limit": "1"})
    assert [row["name"] for row in rows] == ["web02"]
    rows = client.rows("/hosts", {"columns": "name,num_services*-1 as x", "sort": "name"})
    assert len(rows) == 6


def test_limit_repeated_takes_the_last(client):
    assert len(client.rows("/hosts?limit=1&limit=3")) == 3


@each(
    ("columns", "description"),
    [
        ("upper(foo(name))", "unknown function: foo"),
        ("name,upper(", "expected closing bracket in upper("),
        ("upper(substr(name,1)", "expected closing bracket in upper(substr(name,1)"),
        ("upper()", "usage: upper(column)"),
        ("lc(name,state)", "usage: lower(column)"),
        ("substr(name,1,2,3)", "usage: substr(column, start[, length])"),
        ("calc(name,+)", "usage: calc(column, 'operator', 'value')"),
        ("s(name,'x')", "usage: s(column, 'regexp', 'replacement')"),
        ("concat()", "usage: concat(column or 'text', ...)"),
        ("unit()", "usage: unit(column, unit)"),
        ("unit(,ms)", "usage: unit(column, unit)"),
        ("utc()", "usage: utc(column[, format])"),
        ("date(a,b,c)", "usage: date(column[, format])"),
        ("sum()", "usage: sum(column)"),
        ("avg(a,b)", "usage: avg(column)"),
        ("count(a,b)", "usage: count(*)"),
        ("to_rows()", "usage: to_rows(column)"),
        ("sum(avg(state))", "aggregation function must be the outermost one"),
        ("concat('x',count(*))", "aggregation function must be the outermost one"),
        ("to_rows(groups),upper(as_rows(groups))", "only one disaggregation function allowed"),
        ("concat(to_rows(a),to_rows(b))", "only one disaggregation function allowed"),
        ("to_rows(upper(x))", "disaggregation function must be the innermost one"),
        ("to_rows(to_rows(x))", "disaggregation function must be the innermost one"),
        ("to_rows('x')", "disaggregation function must be the innermost one"),
        ("to_rows(a+b)", "disaggregation function must be the innermost one"),
        ("calc(name,'%',1)", "unsupported operator, use one of: + - * /"),
        ("calc(name,'+-',1)", "unsupported operator, use one of: + - * /"),
        ("calc(state,^,2)", "unsupported operator, use one of: + - * /"),
        ("s(name,'','x')", "usage: s(column, 'regexp', 'replacement')"),
        ("s(name,'//','x')", "usage: s(column, 'regexp', 'replacement')"),
        ("name,upper(s(name,'(','x'))", "invalid regex in (: missing )"),
        ("s(name,'/(/','x')", "invalid regex in (: missing )"),
        ("s(name,'(?=a)','x')", "invalid regex in (?=a): invalid perl operator"),
        ("fmt('%n',name)", "fmt: %n is not accepted"),
        ("fmt('%5hhn',name)", "fmt: %n is not accepted"),
        ("fmt('%1000d',name)", "fmt: width and precision are at most 999"),
        ("fmt('%.1000f',name)", "fmt: width and precision are at most 999"),
        (f"fmt('%{'9' * 5000}d',name)", "fmt: width and precision are at most 999"),
        (f"date(state,'{'%c' * 600}')", "date: the format has at most 1024 characters"),
        (",".join(["name"] * 501), "at most 500 items are accepted, got 501"),
        ("lower(" * 21 + "name" + ")" * 21, "at most 20 functions may be nested"),
    ],
)
def test_wrong_columns_are_refused(client, columns, description):
    document = refused(client.get("/hosts", {"columns": columns}), 400)
    assert document["message"] == "error during request"
    assert document["description"].removeprefix("columns: ") == description


@each("name", ["limit", "offset"])
@each("value", ["-1", "+1", "abc", "1.5", "0x10", "1e3", "1 2", "1_0", "9" * 20, "\u0661"])
def test_wrong_limits_are_refused(client, name, value):
    words = [f"{name} must be a non-negative integer"]
    refused(client.get("/hosts", {name: value}), 400, *words)


@each("wrapper", ["{}", "age({})", "duration({})", "utc({})", "hoststate({})"])
@each(
    "value",
    [
        *("calc(calc(num_services,*,1e308),*,1e308)", "calc(num_services,*,-1e308)"),
        *("999999999999999999*999999999999999999*999999999999999999", "substr(name,1e400)"),
        *("calc(num_services,/,1e-320)", "substr(name,-1e400,1e400)", "num_services*1e400"),
    ],
)
def test_numbers_beyond_all_bounds(client, wrapper, value):
    parameters = {"columns": f"name,{wrapper.format(value)} as x"}
    assert [row["name"] for row in client.rows("/hosts", parameters)] == list(HOSTS)
    parameters = {"columns": f"sum({wrapper.format(value)}) as x,max({value}) as y"}
    assert set(client.rows("/hosts", parameters)) == {"x", "y"}
    for prefix in ("csv", "text", "xls", "wrapped_json"):
        parameters = {"columns": wrapper.format(value), "sort": wrapper.format(value)}
        assert client.get(f"/{prefix}/hosts", parameters).status == 200
