"""Availability and outages of primed cores."""

import time

import pytest
from harness.expect import HOSTS, SERVICES, refused
from harness.waiting import until

from tests.table import each

HOUR = {"start": "-1h"}
HOST_BUCKETS = {"time_up", "time_down", "time_unreachable"}
SERVICE_BUCKETS = {"time_ok", "time_warning", "time_critical", "time_unknown"}
INDETERMINATE = {
    *("time_indeterminate_nodata", "time_indeterminate_notrunning"),
    "time_indeterminate_outside_timeperiod",
}
EVERY_SERVICE = sorted((host, service) for host, service, _ in SERVICES)


def with_percent(names):
    return names | {f"{name}_percent" for name in names}


def fields(buckets):
    return with_percent(
        {*buckets, *(f"scheduled_{name}" for name in buckets), *INDETERMINATE}
        | {"scheduled_time_indeterminate"}
    )


def checked(row, buckets, seconds):
    """The sums of 1.1 hold."""
    whole = buckets | INDETERMINATE
    assert sum(row[name] for name in whole) == seconds
    assert sum(row[f"{name}_percent"] or 0 for name in whole) == pytest.approx(100)
    assert all(type(row[name]) is int for name in whole)


@pytest.fixture(scope="module", autouse=True)
def settled(client):
    """Some seconds since the states and the downtime came, so that no time is 0."""

    def lasts():
        hosts = {row["host"]: row for row in client.rows("/hosts/availability", HOUR)}
        services = {
            (row["host"], row["service"]): row
            for row in client.rows("/services/availability", HOUR)
        }
        return (
            hosts["router1"]["time_down"] > 0
            and hosts["web02"]["scheduled_time_down"] > 0
            and services["web01", "http"]["time_critical"] > 0
            and services["db01", "Disk /var"]["time_warning"] > 0
            and services["router1", "uplink 1+1"]["time_unknown"] > 0
            and services["web02", "ping"]["scheduled_time_critical"] > 0
        )

    until(lasts, "the states and the downtime last for a second")


@pytest.mark.parametrize("path", ["/hosts/availability", "/host/availability"])
def test_hosts(client, clean, path):
    rows = client.rows(path, HOUR)
    assert [row["host"] for row in rows] == sorted(HOSTS)
    for row in rows:
        assert set(row) == fields(HOST_BUCKETS) | {"host"}
        checked(row, HOST_BUCKETS, 3600)
    found = {row["host"]: row for row in rows}
    assert found["router1"]["time_down"] > 0
    assert found["web02"]["time_down"] > 0
    assert found["leaf01"]["time_unreachable"] + found["leaf01"]["time_down"] > 0
    assert found["web01"]["time_down"] == 0
    # The primed downtime of this host is on.
    assert 0 < found["web02"]["scheduled_time_down"] <= found["web02"]["time_down"]
    assert found["router1"]["scheduled_time_down"] == 0


def test_services(client, clean):
    rows = client.rows("/services/availability", HOUR)
    assert [(row["host"], row["service"]) for row in rows] == EVERY_SERVICE
    for row in rows:
        assert set(row) == fields(SERVICE_BUCKETS) | {"host", "service"}
        checked(row, SERVICE_BUCKETS, 3600)
    found = {(row["host"], row["service"]): row for row in rows}
    assert found["web01", "http"]["time_critical"] > 0
    assert found["db01", "Disk /var"]["time_warning"] > 0
    assert found["router1", "uplink 1+1"]["time_unknown"] > 0
    # Downtimes of a host are those of its services, too.
    assert found["web02", "ping"]["scheduled_time_critical"] > 0
    assert found["web01", "http"]["scheduled_time_critical"] == 0


def test_both_kinds_in_one_list(client, clean):
    rows = client.rows("/hosts/availability", {**HOUR, "type": "both"})
    assert [row["host"] for row in rows[: len(HOSTS)]] == sorted(HOSTS)
    assert [(row["host"], row["service"]) for row in rows[len(HOSTS) :]] == EVERY_SERVICE
    assert set(rows[0]) == fields(HOST_BUCKETS) | {"host"}
    assert set(rows[-1]) == fields(SERVICE_BUCKETS) | {"host", "service"}


@pytest.mark.parametrize(
    ("path", "buckets"),
    [
        ("/hosts/router1/availability", HOST_BUCKETS),
        ("/services/web01/http/availability", SERVICE_BUCKETS),
        ("/services/db01/Disk%20%2Fvar/availability", SERVICE_BUCKETS),
    ],
)
def test_single_objects(client, clean, path, buckets):
    row = client.rows(path, HOUR)
    assert set(row) == fields(buckets)
    checked(row, buckets, 3600)
    assert client.rows(path, {**HOUR, "columns": "time_indeterminate_outside_timeperiod"}) == {
        "time_indeterminate_outside_timeperiod": 0
    }
    assert client.rows(path, {**HOUR, "type": "nonsense"}).keys() == row.keys()


@each(
    ("path", "names"),
    [
        ("/hostgroups/web/availability", [("web01", None), ("web02", None)]),
        ("/hostgroups/idle/availability?type=services", [("pend01", "ping")]),
        ("/servicegroups/http/availability", [("web01", "http"), ("web02", "http")]),
        ("/servicegroups/http/availability?type=hosts", [("web01", None), ("web02", None)]),
        (
            "/servicegroups/http/availability?type=both",
            [("web01", None), ("web02", None), ("web01", "http"), ("web02", "http")],
        ),
        ("/hosts/availability?hostgroup=web", [("web01", None), ("web02", None)]),
        ("/hosts/availability?servicegroup=http&host=web01", [("web01", None)]),
        ("/hosts/availability?service=Disk%20/var", [("db01", None)]),
        ("/services/availability?hostgroup=idle", [("pend01", "ping")]),
        ("/services/availability?service=http", [("web01", "http"), ("web02", "http")]),
        ("/services/availability?q=host%3Dweb01%20and%20service%3Dhttp", [("web01", "http")]),
        ("/hosts/availability?q=groups%20%3E%3D%20web", [("web01", None), ("web02", None)]),
        ("/hosts/availability?q=time_down%20%3E%200%20and%20host%3Drouter1", [("router1", None)]),
        ("/hosts/availability?time_down[gt]=0&host=web01", []),
        ("/hosts/availability?host_name=web01", [("web01", None)]),
        ("/hosts/availability?name[~]=^web&time_down=0", [("web01", None)]),
        ("/hosts/availability?description=http", [("web01", None), ("web02", None)]),
        ("/hosts/availability?groups[gte]=web", [("web01", None), ("web02", None)]),
        ("/services/availability?host_name=db01&description[~]=^Disk", [("db01", "Disk /var")]),
        (
            "/services/availability?service_description=http&host_name[ne]=web02",
            [("web01", "http")],
        ),
        ("/services/availability?state=2&host_name=web01", [("web01", "http")]),
        ("/hosts/availability?host=nope", []),
        ("/hosts/availability?sort=-host&limit=1", [("web02", None)]),
    ],
)
def test_choosing(client, clean, path, names):
    joint = "&" if "?" in path else "?"
    rows = client.rows(f"{path}{joint}start=-1h")
    assert [(row["host"], row.get("service")) for row in rows] == names


def test_aggregation_and_formats(client):
    assert client.rows("/hosts/availability?columns=count(*):n") == {"n": len(HOSTS)}
    csv = client.get("/csv/hosts/availability?columns=host,time_up&limit=1&start=-1h")
    assert csv.body.decode().splitlines()[0].lstrip("#") == "host;time_up"
    csv = client.get("/csv/hosts/db01/availability?columns=time_down,time_up&start=-1h")
    assert {line.split(";")[0] for line in csv.body.decode().splitlines()} >= {"time_up"}
    wrapped = client.rows("/wrapped_json/hosts/availability?columns=time_up_percent&limit=1")
    (column,) = wrapped["meta"]["columns"]
    assert (column["name"], column["type"]) == ("time_up_percent", "number")
    assert column["config"]["unit"] == "%"


def test_outages(client, clean):
    now = int(time.time())
    rows = client.rows("/hosts/outages", {"start": "-1h", "end": str(now)})
    assert {row["host"] for row in rows} >= {"router1", "web02", "leaf01"}
    for row in rows:
        assert set(row) == {*("class", "type", "start", "end", "duration", "host", "plugin_output")}
        assert row["duration"] == row["end"] - row["start"] > 0
        assert row["class"] in ("down", "unreachable")
    (one,) = [row for row in rows if row["host"] == "router1"]
    assert (one["class"], one["type"], one["end"]) == ("down", "HOST DOWN (HARD)", now)
    assert one["plugin_output"] == "DOWN - no answer"
    rows = client.rows("/services/outages", {"start": "-1h", "class": "unknown"})
    assert [(row["host"], row["service"]) for row in rows] == [("router1", "uplink 1+1")]
    assert rows[0]["type"] == "SERVICE UNKNOWN (HARD)"


@each(
    ("path", "hosts", "services"),
    [
        ("/hosts/router1/outages", {"router1"}, set()),
        ("/hosts/rout*/outages", {"router1"}, set()),
        ("/hosts/router1/outages?type=services", set(), {"ping", "uplink 1+1"}),
        ("/hosts/router1/outages?type=both", {"router1"}, {"ping", "uplink 1+1"}),
        ("/services/router1/ping/outages", set(), {"ping"}),
        ("/services/router1/ping/outages?type=both", {"router1"}, {"ping"}),
        ("/services/rout*/*/outages", set(), {"ping", "uplink 1+1"}),
        ("/hostgroups/linux/outages?host=web01", set(), {"http"}),
        ("/servicegroups/pings/outages?host=router1", {"router1"}, {"ping"}),
        ("/services/outages?host_name=router1&description=ping", set(), {"ping"}),
        ("/services/outages?host[~]=rout&class=unknown", set(), {"uplink 1+1"}),
        ("/hosts/outages?host_name=router1", {"router1"}, set()),
        ("/hosts/db01/outages", set(), set()),
        ("/hosts/nope*/outages", set(), set()),
        ("/hosts/outages?q=duration%20%3C%200", set(), set()),
    ],
)
def test_outages_of_some(client, clean, path, hosts, services):
    rows = client.rows(path)
    assert {row["host"] for row in rows if "service" not in row} == hosts
    assert {row["service"] for row in rows if "service" in row} == services


def test_downtimes_count_or_not(client):
    now = int(time.time())
    span = {"start": str(now - 3600), "end": str(now)}
    counted = client.rows("/hosts/web02/outages", {**span, "withdowntimes": "1"})
    assert counted == client.rows("/hosts/web02/outages", span)
    excluded = client.rows("/hosts/web02/outages", {**span, "withdowntimes": "0"})
    row = client.rows("/hosts/web02/availability", span)
    assert sum(one["duration"] for one in counted) == row["time_down"]
    planned = row["time_down"] - row["scheduled_time_down"]
    assert sum(one["duration"] for one in excluded) == planned
    assert row == client.rows("/hosts/web02/availability", {**span, "withdowntimes": "0"})


def test_nothing_known_is_no_percentage(client):
    """Not 0 %, which would be an outage; and it is said."""
    before = {"start": "-401d", "end": "-400d"}
    states = ("time_up", "scheduled_time_up", "time_down", "time_unreachable")
    answer = client.get("/hosts/web01/availability", before)
    assert [answer.json[f"{one}_percent"] for one in states] == [None] * 4
    assert [answer.json[one] for one in states] == [0] * 4
    assert answer.json["time_indeterminate_nodata_percent"] == 100
    said = "availability: no state is known of 1 of 1 objects, their percentages are null"
    assert answer.headers["x-mon-warnings"] == said
    rows = client.rows("/services/availability", {**before, "strict": "1"})
    assert {row["time_ok_percent"] for row in rows} == {None}
    found = client.rows("/wrapped_json/services/availability", before)
    count = len(rows)
    assert found["meta"]["warnings"] == [said.replace("1 of 1", f"{count} of {count}")]
    columns = {**before, "columns": "host,time_up_percent", "name": "web01"}
    assert client.get("/csv/hosts/availability", columns).text == "#host;time_up_percent\nweb01;\n"
    assert "x-mon-warnings" not in client.get("/hosts/web01/availability", HOUR).headers


def test_assumed_states(client):
    # Before the core ran no state is known.
    before = {"start": "-401d", "end": "-400d", "columns": "host,time_up,time_indeterminate_nodata"}
    rows = client.rows("/hosts/availability", before)
    assert {(row["time_up"], row["time_indeterminate_nodata"]) for row in rows} == {(0, 86400)}
    rows = client.rows("/hosts/availability", {**before, "initialassumedhoststate": "3"})
    assert {(row["time_up"], row["time_indeterminate_nodata"]) for row in rows} == {(86400, 0)}
    present = {"start": "-401d", "end": "-400d", "initialassumedhoststate": "-1"}
    assert client.rows("/hosts/router1/availability", present)["time_down"] == 86400
    present["assumeinitialstates"] = "0"
    assert client.rows("/hosts/router1/availability", present)["time_down"] == 0


def test_time_period_of_the_core(client, core, clean):
    path = "/hosts/router1/availability"
    refused(client.get(path, {"rpttimeperiod": "nope"}), 400, "rpttimeperiod", "nope")
    always = client.get(path, {**HOUR, "rpttimeperiod": "24x7"})
    if core.name == "icinga2":  # which tells neither changes nor definitions
        refused(always, 400, "rpttimeperiod", "24x7")
    else:
        assert always.json["time_indeterminate_outside_timeperiod"] == 0
        # Far from the core's life the definition counts.
        far = client.rows(path, {"rpttimeperiod": "24x7", "start": "-90d", "end": "-89d"})
        assert far["time_indeterminate_nodata"] == 86400


@each(
    ("path", "message"),
    [
        ("/hosts/nope/availability", "no such host"),
        ("/hosts/web*/availability", "no such host"),
        ("/hosts/nope/outages", "no such host"),
        ("/services/web01/nope/availability", "no such service"),
        ("/services/nope/ping/outages", "no such service"),
        ("/hostgroups/nope/availability", "no such hostgroup"),
        ("/hostgroups/nope/outages", "no such hostgroup"),
        ("/servicegroups/nope/availability", "no such servicegroup"),
        ("/servicegroups/nope/outages", "no such servicegroup"),
    ],
)
def test_what_is_not_there(client, clean, path, message):
    refused(client.get(path), 404, message)


PATHS = [
    *("/hosts/availability", "/hosts/outages", "/services/outages", "/hosts/db01/availability"),
    *("/hostgroups/web/availability", "/services/db01/ping/outages"),
]


@each("path", PATHS)
@each(
    ("name", "value"),
    [
        ("start", "garbage"),
        ("start", "9" * 300),
        ("start", "-1e300"),
        ("start", "1\n\nCOMMAND [0] DISABLE_NOTIFICATIONS"),
        ("end", "5"),
        ("timeperiod", "nope"),
        ("timeperiod", "last0months"),
        ("includesoftstates", "perhaps"),
        ("withdowntimes", "\x00"),
        ("backtrack", "1e9"),
        ("logcache", "perhaps"),
        ("initialassumedhoststate", "x"),
        ("rpttimeperiod", "a\n\nGET hosts"),
        ("rpttimeperiod", "%s;|`"),
        ("breakdown", "days"),
        ("q", "time >"),
        ("q", "time = 5"),
        ("q", "nope_at_all = 5"),
        ("nope_at_all", "5"),
    ],
)
def test_hostile_arguments(client, clean, path, name, value):
    refused(client.get(path, {name: value}), 400, name if name != "q" else "")


def test_both_kinds_of_bounds(client):
    message = "use either timeperiod or start/end, not both."
    for path in PATHS:
        refused(client.get(path, {"timeperiod": "today", "start": "5"}), 400, message)
    refused(client.get("/hosts/outages", {"type": "hostile"}), 400, "type")


def test_a_contact_sees_his_own(olga, clean):
    assert [row["host"] for row in olga.rows("/hosts/availability", HOUR)] == ["web01"]
    seen = {(row["host"], row["service"]) for row in olga.rows("/services/availability", HOUR)}
    assert seen == {one for one in EVERY_SERVICE if one[0] == "web01"} | {("db01", "ping")}
    assert {row["host"] for row in olga.rows("/services/outages", HOUR)} == {"web01"}
    refused(olga.get("/hosts/router1/availability"), 404, "no such host")
    refused(olga.get("/hosts/router1/outages"), 404, "no such host")
    assert olga.rows("/hostgroups/idle/availability") == []
