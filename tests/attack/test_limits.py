"""A key that is limited to roles stays so: whoever asked before, at whatever path.

Two daemons in front of one core are asked the same by a key of somebody and by a limited key of
the same user, in one order and in the other. Both keys get what they get alone.
"""

from __future__ import annotations

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.daemon import Daemon, site
from harness.expect import refused
from harness.federated import far_site, superuser_key
from harness.matrix import TABLE, TEST

from tests.examples import SHARE

HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"
LIMITS = {"boss": [HOSTS], "olga": [], "(api)": [HOSTS, SERVICES]}
"""To what the limited one of two keys is limited; boss administrates, olga may see all services."""
LINES = [line for line in TABLE if line.startswith("GET ") or TEST in TABLE[line][1]]


def lines_of(owner):
    """A third of the lines for each owner, so that each has its turn; all of them with MONREST_EXAMPLES=1."""
    turn = list(LIMITS).index(owner)
    return LINES if SHARE >= 1 else LINES[turn :: len(LIMITS)]


PASSING = frozenset({
    "localtime", "macros", "time", "last_used", "last_from", "percent", "start", "end",
    "remaining", "duration", "created", "active", "now", "heartbeat", "uptime", "response_time",
    "last_online", "last_check", "next_check", "last_update", "latency", "execution_time",
    "time_total", "job", "id", "hashed_key", "file", "digest", "digests",
})  # fmt: skip
"""What is another number at another moment or daemon."""


BUSY = ("/node-control/", "/nc/", "/logcache/", "/deliveries")
"""Paths that tell what goes on just now."""
COUNTED = ("availability", "outages", "/stats", "/mon/metrics")
"""Paths whose numbers are others a moment later."""


def stable(value, *, counted):
    """A document without what passes; lists in an order of their own."""
    if isinstance(value, dict):
        return {
            key: stable(one, counted=counted) for key, one in value.items() if key not in PASSING
        }
    if isinstance(value, list):
        return sorted((stable(one, counted=counted) for one in value), key=repr)
    if isinstance(value, (int, float)) and (counted or value > 1_000_000):
        return "a number"
    return value


class House:
    """A daemon, the ids of what is in it, and two keys of each owner."""

    def __init__(self, folder, core):
        self.daemon = Daemon(
            folder,
            [site("s1", core)],
            sections={
                "auth.roles": {"admin": ["admin", "boss"], "all_services": ["olga"]},
                "display": {"timezone": "UTC"},
            },
        )
        self.clients = []
        self.full, self.limited = {}, {}

    def open(self):
        """Start the daemon, and make what is in it."""
        self.daemon.start()
        for owner, roles in LIMITS.items():
            more = {"superuser": 1} if owner == "(api)" else {"username": owner}
            self.full[owner] = self.keyed(**more)
            self.limited[owner] = self.keyed(**more, roles=roles)
        with self.daemon.client() as admin:
            shown = {"groups": [{"*": "read-only"}]}
            process = {
                "name": "Shop",
                "nodes": [{"id": "node1", "label": "Shop", "function": "status('db01','ping')"}],
            }
            self.known = {
                "broadcast": "all",
                "comment": admin.rows("/comments?columns=id&host_name=web02")[0]["id"],
                "downtime": admin.rows("/downtimes?columns=id")[0]["id"],
                "recurring": admin.post_form("/mon/recurring_downtimes", [("host", "web02")]).json[
                    "file"
                ],
                "process": admin.post_json("/mon/bp", process).json["data"]["id"],
                "dashboard": admin.post_json("/mon/panorama", {"tab": {"xdata": shown}}).json["nr"],
                "report": admin.post_form("/mon/reports", [("template", "problems.tt")]).json["id"],
                "webhook": admin.post_json(
                    # What it sent, and what came of it, would be others a moment later.
                    "/mon/webhooks",
                    {"name": "x", "url": "http://192.0.2.10/", "enabled": 0},
                ).json["id"],
                "key": "0" * 64,
                "session": "0" * 64,
                "job": "1",
            }
            admin.post_form("/mon/broadcasts", [("file", "all"), ("name", "x"), ("text", "x")])

    def keyed(self, **given):
        """A client with a new key."""
        with self.daemon.client() as admin:
            made = admin.post_json("/mon/api_keys", given)
        client = self.daemon.client(None)
        client.key = made.json["private_key"]
        self.clients.append(client)
        return client

    def ask(self, client, line):
        """What a client gets for a line of the table."""
        method, _, _ = line.partition(" ")
        path, _, body = TABLE[line][1].format(**self.known).partition(" ")
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        answer = client.request(method, path, body=body or None, headers=headers)
        text = answer.text.replace(str(self.daemon.folder), "").replace(str(self.daemon.port), "")
        text = re.sub(r"COMMAND \[[0-9]+\]", "COMMAND [now]", text)
        if any(one in path for one in BUSY):
            return answer.status, "what the daemon is busy with"
        counted = any(one in path for one in COUNTED)
        return answer.status, stable(json.loads(text), counted=counted)

    def close(self):
        for client in self.clients:
            client.close()
        self.daemon.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def houses(embedded, tmp_path_factory):
    """Two daemons that know nothing of each other."""
    houses = [House(tmp_path_factory.mktemp("house"), embedded) for _ in range(2)]
    try:
        with ThreadPoolExecutor(2) as both:
            list(both.map(House.open, houses))
        yield houses
    finally:
        for house in houses:
            house.close()


@pytest.mark.parametrize("owner", LIMITS)
def test_no_answer_depends_on_who_asked_before(houses, owner) -> None:
    one, other = houses
    wrong, less = [], 0
    for line in lines_of(owner):
        limited = one.ask(one.limited[owner], line)
        full = other.ask(other.full[owner], line)
        if one.ask(one.full[owner], line) != full:
            wrong.append(f"{line}: unlimited after limited")
        if other.ask(other.limited[owner], line) != limited:
            wrong.append(f"{line}: limited after unlimited")
        less += limited != full
    assert wrong == []
    assert less > 5, "the limit leaves something out"


URL = {"template": "report_from_url.tt", "params": {"url": "/mon/r/hosts?columns=name"}}


def made_report(client):
    """The number of a new report of all hosts that its owner sees."""
    answer = client.post_json("/mon/reports", URL)
    assert answer.status == 200, answer
    return answer.json["id"]


def hosts_of(client, number):
    """What a report says, made now."""
    answer = client.get(f"/mon/reports/{number}/report?type=json")
    assert answer.status == 200, answer
    return sorted(row["name"] for row in answer.json)


def test_a_report_goes_as_far_as_who_wrote_it(houses) -> None:
    """Also after another one of the same owner that goes further, or less far."""
    reports = "authorized_for_reports"
    found = []
    for house, order in zip(houses, (("full", "limited"), ("limited", "full")), strict=True):
        clients = {
            "full": house.full["boss"],
            "limited": house.keyed(username="boss", roles=[reports]),
        }
        numbers = {name: made_report(client) for name, client in clients.items()}
        found.append({name: hosts_of(clients[name], numbers[name]) for name in order})
    assert found[0] == found[1]
    assert found[0]["limited"] == []
    assert "db01" in found[0]["full"]


def test_a_limited_key_has_none_of_its_owner_s_reports_that_go_further(houses) -> None:
    """Neither what they say nor the right to change them; the owner has all of them."""
    house = houses[0]
    full = house.full["boss"]
    wide, narrow = (house.keyed(username="boss", roles=roles) for roles in ([HOSTS], [SERVICES]))
    author = house.keyed(username="boss", roles=[HOSTS, "authorized_for_reports"])
    everything, hosts = made_report(full), made_report(author)
    assert hosts_of(full, everything)
    for client in (author, wide, narrow):
        for path in ("", "/report"):
            refused(client.get(f"/mon/reports/{everything}{path}"), 404, "no such report")
        refused(client.request("DELETE", f"/mon/reports/{everything}"), 404)
        assert everything not in client.values("/mon/reports", "nr")
    assert hosts_of(author, hosts) == hosts_of(full, hosts)
    refused(wide.get(f"/mon/reports/{hosts}"), 404)
    full.json("PATCH", f"/mon/reports/{everything}", {"is_public": 1})
    assert narrow.rows(f"/mon/reports/{everything}")["readonly"] == 1


@pytest.fixture(scope="module")
def near(houses, shared):
    """A daemon whose only site is one of the houses, at which it may act as anybody."""
    far = houses[0].daemon
    return shared.daemon(
        [far_site("far", far, superuser_key(far))],
        sections={"auth.roles": {"admin": ["admin", "boss"], "all_services": ["olga"]}},
    ).start()


FAR = [
    "/hosts?columns=name,check_command,custom_variables",
    "/services?columns=host_name,description,check_command",
    *(
        "/hosts/totals",
        "/services/totals",
        "/hosts/db01/commandline",
        "/commands",
        "/contacts?columns=name",
    ),
    *("/comments?columns=host_name,comment", "/downtimes?columns=host_name", "/processinfo"),
    *("/alerts?columns=host_name,state&time[gte]=-1d", "/hosts/db01/services?columns=description"),
    *("/hosts/outages?columns=host", "/config/objects", "/hostgroups/linux/stats", "/checks/stats"),
]


@pytest.mark.parametrize("owner", LIMITS)
def test_a_limit_holds_at_sites_of_another_instance(houses, near, owner) -> None:
    """There the user has all of his roles; the key that is used here does not."""
    more = {"superuser": 1} if owner == "(api)" else {"username": owner}
    with near.client() as admin, near.client(None) as client:
        client.key = admin.post_json("/mon/api_keys", {**more, "roles": LIMITS[owner]}).json[
            "private_key"
        ]
        direct = houses[0].limited[owner]
        for path in FAR:
            here, there = client.get(path), direct.get(path)
            found = [(one.status, stable(one.json, counted=True)) for one in (here, there)]
            if here.status == there.status == 200:
                assert found[0] == found[1], path
            else:
                assert here.status == there.status, (path, here, there)
        for command in ("hosts/db01/cmd/disable_host_check", "system/cmd/disable_notifications"):
            assert client.post_form(f"/{command}", [("test_only", "1")]).status == 403


def test_a_job_is_as_limited_as_who_asked_for_it(houses) -> None:
    """Its result is read by nobody who would have got less."""
    house = houses[0]
    full, limited = house.full["boss"], house.limited["boss"]
    paths = {}
    for name, client in (("full", full), ("limited", limited)):
        answer = client.get("/services?columns=host_name&background=1")
        paths[name] = answer.json["result_url"].removeprefix("/mon/r")
    assert len(full.rows(paths["full"])) > 0
    refused(limited.get(paths["full"]), 404, "no such job")
    assert limited.rows(paths["limited"]) == full.rows(paths["limited"]) == []
