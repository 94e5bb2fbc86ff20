"""What the API says of a core, compared with what the core itself says: any core, whatever it holds.

Names and numbers come from the core. A core that works changes meanwhile, so what may change is asked
until two answers agree.
"""

import csv
import io
import time
from collections import Counter

import pytest
from harness.client import segment
from harness.waiting import until

from tests.table import each

FEW = 5
KEYS = {
    "hosts": ("name",),
    "services": ("host_name", "description"),
    "hostgroups": ("name",),
    "servicegroups": ("name",),
    "contacts": ("name",),
    "contactgroups": ("name",),
    "commands": ("name",),
    "timeperiods": ("name",),
    "comments": ("id",),
    "downtimes": ("id",),
}
CONFIGURED = {
    "hosts": "name alias address display_name notes groups parents contact_groups",
    "services": "host_name description display_name notes groups host_address",
    "contacts": "name alias email",
    "timeperiods": "name alias",
    "hostgroups": "name alias members",
    "contactgroups": "name alias members",
}
"""Columns that only a new configuration changes."""


def held(core, table, *columns, **more):
    """Rows as the core itself has them, sorted."""
    lines = [f"Filter: {line}" for line in more.get("filters", ())]
    return sorted(core.ask("\n".join([f"GET {table}", f"Columns: {' '.join(columns)}", *lines])))


def told(client, path, *columns, **parameters):
    """The same columns by the API, sorted."""
    rows = client.rows(path, {"columns": ",".join(columns), **parameters})
    return sorted([row[name] for name in columns] for row in rows)


def agree(one, other, what):
    until(lambda: one() == other(), what)


def some(names):
    """A few of many, the same in every run: the first, the last and some between."""
    names = sorted(names)
    return names[:: max(1, len(names) // FEW)][:FEW] + names[-1:]


@pytest.fixture(scope="module")
def hosts(core):
    return [row[0] for row in held(core, "hosts", "name")]


@each("table", KEYS)
def test_every_object_is_there(core, client, table):
    keys = KEYS[table]
    agree(lambda: told(client, f"/{table}", *keys), lambda: held(core, table, *keys), table)


@pytest.mark.parametrize("table", CONFIGURED)
def test_configured_values(core, client, table):
    columns = CONFIGURED[table].split()

    def plain(rows):
        return sorted(
            [sorted(one) if isinstance(one, list) else one or "" for one in row] for row in rows
        )

    assert plain(told(client, f"/{table}", *columns)) == plain(held(core, table, *columns))


def test_states(core, client):
    for table, keys in (("hosts", ["name"]), ("services", ["host_name", "description"])):
        columns = [*keys, "state", "has_been_checked", "acknowledged", "scheduled_downtime_depth"]

        def checked(rows):
            # An object that was never checked has a state of its own on some kinds of cores.
            return [[int(v) if isinstance(v, bool) else v for v in row] for row in rows if row[-3]]

        agree(
            lambda: checked(told(client, f"/{table}", *columns)),  # noqa: B023
            lambda: checked(held(core, table, *columns)),  # noqa: B023
            f"states of {table}",
        )


def test_single_objects(core, client, hosts):
    for name in some(hosts):
        assert told(client, f"/hosts/{segment(name)}", "name") == [[name]]
        services = held(core, "services", "description", filters=[f"host_name = {name}"])
        assert told(client, f"/hosts/{segment(name)}/services", "description") == services
        for (description,) in services[:FEW]:
            path = f"/services/{segment(name)}/{segment(description)}"
            assert told(client, path, "host_name", "description") == [[name, description]]
    assert client.rows("/hosts/no%20such%20host") == []


def test_filters_sort_and_pages(core, client, hosts):
    for name in some(hosts):
        assert client.values("/hosts", "name", **{"name[ne]": name}) == [
            one for one in client.values("/hosts", "name") if one != name
        ]
        others = held(core, "services", "host_name", "description")
        assert told(client, "/services", "host_name", "description", **{"host_name[ne]": name}) == [
            row for row in others if row[0] != name
        ]
    for (group,) in held(core, "hostgroups", "name")[:FEW]:
        members = held(core, "hosts", "name", filters=[f"groups >= {group}"])
        assert told(client, "/hosts", "name", **{"groups[gte]": group}) == members
    names = client.values("/hosts", "name")
    assert names == sorted(names)
    assert client.values("/hosts", "name", sort="-name") == names[::-1]
    assert client.values("/hosts", "name", limit="3", offset="1") == names[1:4]


def test_groups_and_counts(core, client, hosts):
    counted = client.rows("/services", {"columns": "host_name,count(*) as n"})
    expected = Counter(row[0] for row in held(core, "services", "host_name", "description"))
    assert {row["host_name"]: row["n"] for row in counted} == expected
    assert client.rows("/hosts/totals")["total"] == len(hosts)
    assert client.rows("/services/totals")["total"] == sum(expected.values())
    stats = client.rows("/checks/stats")
    assert stats["hosts_active_sum"] + stats["hosts_passive_sum"] == len(hosts)


def test_the_process(core, client):
    (row,) = client.rows("/processinfo", {"columns": "program_version,num_hosts,requests"})
    ((version,),) = core.ask("GET status\nColumns: program_version")
    assert row["program_version"] == version
    counters = client.rows("/processinfo/stats")
    assert counters["requests"] >= row["requests"] >= 0
    summed = client.rows("/processinfo", {"columns": "sum(requests),max(connections_rate)"})
    assert summed["sum(requests)"] >= counters["requests"]
    assert client.rows("/processinfo", {"requests[lt]": "0"}) == []


def test_the_log_of_a_past_hour(core, client):
    until_then = int(time.time()) - 120
    since = until_then - 3600
    bounds = [f"time >= {since}", f"time < {until_then}"]
    if core.name == "icinga2":
        bounds.append(f"time >= {since - 86400}")
    lines = Counter(row[0] for row in held(core, "log", "message", filters=bounds))
    rows = client.rows(
        "/logs",
        {"columns": "message,time", "time[gte]": str(since), "time[lt]": str(until_then)},
    )
    assert Counter(row["message"] for row in rows) == lines
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert {row["class"] for row in client.rows("/notifications")} <= {3}


def test_availability_adds_up(client, hosts):
    for name in some(hosts)[:2]:
        row = client.rows(f"/hosts/{segment(name)}/availability", {"timeperiod": "last24hours"})
        times = {
            key: value
            for key, value in row.items()
            if key.startswith("time_") and not key.endswith("_percent")
        }
        assert sum(times.values()) == 86400, times


def test_a_contact_sees_its_own(core, daemon, hosts):
    for (contact,) in some(held(core, "contacts", "name"))[:2]:
        seen = held(core, "hosts", "name", filters=[f"contacts >= {contact}"])
        with daemon.client(contact) as client:
            assert told(client, "/hosts", "name") == seen


def test_every_format_has_every_host(client, hosts):
    table = client.get("/csv/hosts", {"columns": "name"}).text
    assert [row[0] for row in csv.reader(io.StringIO(table), delimiter=";")][1:] == sorted(hosts)
    document = client.rows("/wrapped_json/hosts", {"columns": "name"})
    assert [row["name"] for row in document["data"]] == sorted(hosts)


@pytest.fixture(scope="module", autouse=True)
def mark(recorder):
    return recorder.mark()


def test_no_command_was_sent(recorder, mark):
    assert [one for one in recorder.since(mark) if one.startswith(b"COMMAND")] == []
