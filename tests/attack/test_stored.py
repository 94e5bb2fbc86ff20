"""What users store is bounded: no list takes more than 50 MB."""

import json
from pathlib import Path

import pytest
from harness.daemon import site
from harness.processes import alive

MOST = 50 << 20
"""What a list may need above an idle daemon, and how long its answer may be."""

FEW = 16 << 20
"""What may be needed by one that has no documents in it."""


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    """A daemon whose requests have time."""
    return shared.daemon(
        [site("s1", embedded)],
        sections={
            "server": {"request_timeout": 120},
            "bp": {"refresh_interval": 0},
            "auth.roles": {
                "broadcasts": ["mallory"],
                "business_processes": ["mallory"],
                "reports": ["mallory"],
            },
        },
    ).start()


class Peak:
    """The most memory that a daemon had since this was made, above what it had then."""

    def __init__(self, daemon):
        self.process = Path("/proc") / str(daemon.process.pid)
        (self.process / "clear_refs").write_text("5")
        self.before = self.kilobytes("VmRSS")

    def kilobytes(self, name):
        lines = (self.process / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))

    def bytes(self):
        return (self.kilobytes("VmHWM") - self.before) << 10


def stored(daemon, user, path, record, most):
    """Store a record again and again until that is refused; how many there are and the refusal."""
    body = json.dumps(record)
    with daemon.client(user) as client:
        for count in range(most + 1):
            answer = client.request(
                "POST", path, body=body, headers={"Content-Type": "application/json"}
            )
            if answer.status != 200:
                return count, answer
    raise AssertionError(f"{most} records of {len(body)} bytes were stored")


def listed(daemon, path):
    """Read a list; the memory that it took and the length of the answer."""
    peak = Peak(daemon)
    with daemon.client() as client:
        answer = client.get(path)
    assert answer.status == 200, answer
    print(path, peak.bytes() >> 20, len(answer.body) >> 20)
    return peak.bytes(), len(answer.body)


PANELS = {
    "empty objects": [{}] * 45_000,
    "short texts": ["ab"] * 80_000,
    "a character of four bytes": "a" * 400_000 + "\N{GRINNING FACE}",
    "one long text": "a" * 900_000,
    "many keys": {f"k{at}": at for at in range(20_000)},
}


def test_dashboards(daemon):
    many = {"tab": {"xdata": {"title": "small"}}}
    count, refusal = stored(daemon, "many", "/mon/panorama", many, 600)
    assert (count, refusal.json["message"]) == (500, "too many dashboards")
    for kind, value in PANELS.items():
        # Each user stores what they can, until there is no room for anybody.
        record = {"tab": {"xdata": {"title": kind}}, "panlet_1": {"xdata": {"x": value}}}
        count, refusal = stored(daemon, f"mallory {kind}", "/mon/panorama", record, 100)
        assert refusal.status == 409, refusal
        assert "expected at most 6 MB of a user and 24 MB in all (panorama.memory)" in refusal.text
        assert count < 10
    memory, size = listed(daemon, "/mon/panorama")
    assert memory < MOST
    assert size < MOST
    # Who wants numbers gets them without any document, of which the database looks at one by one.
    assert listed(daemon, "/mon/panorama?columns=nr,user")[0] < FEW
    with daemon.client("stranger") as client:
        peak = Peak(daemon)
        assert client.rows("/mon/panorama") == []
        assert peak.bytes() < FEW


def test_broadcasts_and_reports(daemon):
    dense = "<a href=/>" * 990
    count, refusal = stored(daemon, "mallory", "/mon/broadcasts", {"text": dense}, 200)
    assert (refusal.status, count <= 100) == (409, True), refusal
    assert listed(daemon, "/mon/broadcasts")[0] < MOST
    assert listed(daemon, "/mon/broadcasts?columns=file,author")[0] < FEW
    record = {"template": "sla_host.tt", "params": {"host": "web01", "x": [{}] * 45_000}}
    count, refusal = stored(daemon, "mallory", "/mon/reports", record, 100)
    assert (refusal.status, count < 5) == (409, True), refusal
    assert listed(daemon, "/mon/reports")[0] < MOST


def chain(count, reach):
    """A process whose nodes each depend on the next ``reach`` ones."""
    nodes = [
        {
            "id": f"node{at}",
            "label": f"n{at} " + "x" * 900,
            "function": "worst()",
            "depends": [f"node{to}" for to in range(at + 1, min(count, at + reach) + 1)],
        }
        for at in range(1, count)
    ]
    text = "CRITICAL " + "y" * 5000
    last = {"id": f"node{count}", "label": "last", "function": ["fixed", "CRITICAL", text]}
    return {"name": f"Chain {count} {reach}", "nodes": [*nodes, last]}


def test_business_processes(daemon):
    with daemon.client("mallory") as client:
        dense = client.post_json("/mon/bp", chain(1000, 30))
        assert dense.status == 400
        assert "at most 20000 in depends of all nodes" in dense.text
        heavy = [
            {"label": "n", "function": ["status", "web01", rf"\pL\pL\pL{at}", "~"]}
            for at in range(2000)
        ]
        refused = client.post_json("/mon/bp", {"name": "Heavy", "nodes": heavy})
        assert refused.status == 400, refused
        assert "smaller or fewer regular expressions" in refused.text
        number = alive(client, chain(1000, 20))
        peak = Peak(daemon)
        answer = client.post_json(f"/mon/bp/{number}/refresh", {})
        assert answer.status == 200, answer
        assert len(answer.body) < 4 << 20
        assert peak.bytes() < MOST
    assert listed(daemon, "/mon/bp")[0] < MOST
    wide = {
        "name": "Wide",
        "nodes": [{"label": f"n{at}", "function": "worst()"} for at in range(4900)],
    }
    count, refusal = stored(daemon, "mallory", "/mon/bp", wide, 10)
    assert (refusal.status, count < 5) == (409, True), refusal
    memory, size = listed(daemon, "/mon/bp")
    assert memory < MOST
    assert size < MOST
    assert listed(daemon, "/mon/bp?columns=id,name,status")[0] < FEW
