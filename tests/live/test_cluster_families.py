"""All scheduled work of a cluster at once: it moves when its node is gone, and is counted."""

import re
import signal
import time
from collections import Counter
from datetime import datetime

import pytest
from harness.daemon import site
from harness.nodes import Nodes
from harness.recorder import Recorder
from harness.waiting import until

from tests.fakes.smtp import MailServer

REPORTS, DOWNTIMES, PROCESSES = "reports", "recurring downtimes", "business processes"
LOGS, NODES, JOBS, RESTART = "log cache", "nodecontrol", "old jobs", "cluster restart"
FAMILIES = (REPORTS, DOWNTIMES, PROCESSES, LOGS, NODES, JOBS, RESTART)
REPORTS_OF_EACH, DOWNTIMES_OF_EACH, MANY_DOWNTIMES = 5, 15, 60
IN_BUFFERS = 1
"""Lines that may be between the last look and the system call when a node is paused."""
SLOT = 60
PATIENCE = 300.0
SHOP = {"name": "web01", "nodes": [{"label": "http", "function": "status('db01', 'ping')"}]}
RESULT = re.compile(rb"PROCESS_HOST_CHECK_RESULT;web01;0;OK - business process")
HEADERS = {"Content-Type": "application/json"}


class World:
    """Three nodes with work of every family, a core and a mail server of their own."""

    def __init__(self, folder, server, core):
        self.core = core
        self.seen = Recorder(folder / "proxy", self.core.socket)
        self.mails = MailServer()
        self.planned = {}
        self.asked_file = folder / "asked"
        self.asked_file.touch()
        gather = f"date +%s >> {self.asked_file}; echo '{{}}'"
        self.nodes = Nodes(
            folder,
            server,
            [site("s1", self.seen)],
            cluster={"restart_notice": 1.0},
            logcache={"update_interval": 3.0, "first_import": 604800.0},
            mail={"host": "127.0.0.1", "port": self.mails.port},
            bp={"refresh_interval": 60},
            nodecontrol={
                "gather_schedule": "* * * * *",
                "nodes": [{"site": "s1", "gather": gather}],
            },
        )

    def start(self):
        self.nodes.start()
        with self.nodes.nodes[0].client() as client:
            assert client.post_json("/mon/bp", SHOP).status == 200
            assert client.request("PATCH", "/mon/bp/1", body="{}", headers=HEADERS).status == 200
        until(lambda: set(FAMILIES) <= self.nodes.holders().keys(), "each family is done by a node")
        return self

    def close(self):
        self.nodes.close()
        self.mails.close()
        self.seen.close()

    def plan(self, name, downtimes=DOWNTIMES_OF_EACH, reports=REPORTS_OF_EACH):
        """Let the time of many downtimes and reports come at once, and facts be old."""
        self.planned[name] = (
            {f"{name} {number}": 1 for number in range(downtimes)},
            {f"{name}{number}@example.org": 1 for number in range(reports)},
        )
        when = datetime.fromtimestamp(int(time.time()) // 60 * 60 - 3600)
        schedule = [{"type": "day", "minute": when.minute, "hour": when.hour}]
        with self.nodes.nodes[0].client() as client:
            for number in range(downtimes):
                fields = {"host": "web01", "schedule": schedule, "comment": f"{name} {number}"}
                response = client.post_json("/mon/recurring_downtimes", fields)
                assert response.status == 200, response
            for number in range(reports):
                fields = {
                    "name": f"{name} {number}", "template": "report_from_url.tt", "backends": "s1",
                    "to": f"{name}{number}@example.org", "send_types": schedule,
                    "params": {"url": "/mon/r/hosts?columns=name"},
                }  # fmt: skip
                response = client.post_json("/mon/reports", fields)
                assert response.status == 200, response
        early = int(time.time()) - 3700
        sql = self.nodes.sql
        sql(f"UPDATE recurring_downtimes SET next_at = {early} WHERE next_at > {early + 3700}")
        sql(f"UPDATE reports SET next_at = {early} WHERE next_at > {early + 3700}")

    def old_job(self, at):
        """A job whose result nobody is to see any more; its number."""
        with self.nodes.nodes[at].client() as client:
            number = client.get("/hosts?columns=name&background=1").json["job_id"]
            until(lambda: client.rows(f"/mon/jobs/{number}")["is_running"] == 0, "the job ends")
        self.nodes.sql(f"UPDATE jobs SET ended = ended - 7200 WHERE id = {number}")
        return number

    def told(self, name):
        found = self.core.ask("GET downtimes\nColumns: comment is_service")
        return Counter(comment for comment, _ in found if comment.startswith(f"{name} "))

    def mailed(self, name):
        sent = [address for mail in self.mails.mails for address in mail.recipients]
        return Counter(address for address in sent if address.startswith(name))

    def results(self):
        return sum(1 for request in self.seen.since(0) if RESULT.search(request))

    def asked(self):
        return [int(line) for line in self.asked_file.read_text().split()]

    def cached(self):
        return Counter(self.nodes.sql("SELECT time, message FROM logcache_lines"))

    def lines(self):
        return Counter(map(tuple, self.core.ask("GET log\nColumns: time message")))

    def check(self, name, more=0):
        """Everything that was planned is done, and once, but for so many downtimes."""
        downtimes, mails = self.planned[name]
        until(lambda: len(self.told(name)) == len(downtimes), "downtimes", seconds=PATIENCE)
        until(lambda: len(self.mailed(name)) == len(mails), "mails", seconds=PATIENCE, pause=0.2)
        open_ = "SELECT (SELECT count(*) FROM downtime_occurrences WHERE open), (SELECT count(*) FROM report_runs WHERE open)"
        until(lambda: self.nodes.sql(open_) == [(0, 0)], "nothing is left", seconds=PATIENCE)
        assert (set(self.told(name)), self.mailed(name)) == (set(downtimes), mails)
        assert sum(self.told(name).values()) <= len(downtimes) + more
        until(lambda: not self.lines() - self.cached(), "all lines", seconds=PATIENCE, pause=0.5)
        assert self.cached() == self.lines()
        failed = self.nodes.sql("SELECT failure, unsent FROM reports")
        assert set(failed) == {(None, None)}, failed


@pytest.fixture(scope="module")
def world(postgres_server, shared):
    return shared.keep(World(shared.folder(), postgres_server, shared.core())).start()


def busy(world, name):
    """Give work, and wait until it is under way with the mails at the server; who does reports."""
    world.mails.hold = "EHLO"
    world.mails.held.clear()
    world.mails.go.clear()
    world.plan(name)
    assert world.mails.held.wait(PATIENCE), "a mail is on its way"
    until(lambda: world.told(name), "downtimes have begun", seconds=PATIENCE)
    return world.nodes.holder(REPORTS)


def all_moved(world, gone):
    holders = world.nodes.holders()
    return all(holders.get(family) not in (None, gone) for family in FAMILIES)


def gone_and_followed(world, name, leave):
    """Take the node away that does reports; everything goes on at others."""
    gone = busy(world, name)
    held = {family for family, holder in world.nodes.holders().items() if holder == gone}
    until(lambda: not world.nodes.sql("SELECT 1 FROM controlled_nodes WHERE gathering_until > 0"),
          "facts are there", seconds=PATIENCE)  # fmt: skip
    began, results, asked = int(time.time()), world.results(), len(world.asked())
    leave(gone)
    world.mails.release()
    until(lambda: all_moved(world, gone), "all families are at others", seconds=PATIENCE)
    number = world.old_job(next(at for at in range(3) if at != gone))
    world.check(name)
    until(lambda: not world.nodes.sql(f"SELECT 1 FROM jobs WHERE id = {number}"), "old jobs go",
          seconds=PATIENCE)  # fmt: skip
    if PROCESSES in held:
        until(lambda: world.results() == results + 1, "processes are calculated", seconds=PATIENCE)
    if NODES in held:
        until(lambda: len(world.asked()) > asked, "facts are gathered", seconds=PATIENCE)
        # Beside what the dead node may have begun only what came due meanwhile.
        slots = int(time.time()) // SLOT - began // SLOT
        assert len(world.asked()) - asked <= 1 + slots
    return gone


def test_a_killed_node(world):
    def kill(at):
        world.nodes.nodes[at].kill()

    gone = gone_and_followed(world, "killed", kill)
    results = world.results()
    world.nodes.nodes[gone].start()
    until(world.nodes.all_known, "it is back", seconds=PATIENCE)
    world.check("killed")
    assert world.results() == results


def test_a_node_that_is_cut_off_from_the_database(world):
    gone = gone_and_followed(world, "cut", lambda at: world.nodes.to_database[at].drop())
    results = world.results()
    world.nodes.to_database[gone].mend()
    with world.nodes.nodes[gone].client() as client:
        until(lambda: client.get("/mon/reports").status == 200, "it is back", seconds=PATIENCE)
    until(world.nodes.all_known, "all know each other", seconds=PATIENCE)
    world.check("cut")
    assert world.results() == results
    assert "Traceback" not in world.nodes.nodes[gone].log


def test_a_restart_of_all_goes_on_when_its_driver_dies(world):
    """While everything is under way; the dead one comes back, which counts as its restart."""
    nodes = world.nodes
    busy(world, "restart")
    runs = set(nodes.sql("SELECT run FROM cluster_nodes"))
    with nodes.nodes[(nodes.holder(REPORTS) + 1) % 3].client() as client:
        assert client.request("POST", "/mon/cluster/restart").status == 200
    world.mails.release()
    states = "SELECT state FROM cluster_restarts ORDER BY position"
    until(lambda: nodes.sql(states)[0] == ("leaving",), "the first one leaves", pause=0.05)
    until(lambda: RESTART in nodes.holders(), "a node drives")
    driver = nodes.nodes[nodes.holder(RESTART)]
    driver.kill()
    driver.start()
    until(lambda: set(nodes.sql(states)) == {("done",)}, "all have restarted",
          seconds=2 * PATIENCE, pause=0.2)  # fmt: skip
    assert not runs & set(nodes.sql("SELECT run FROM cluster_nodes"))
    until(nodes.all_known, "all nodes know each other", seconds=PATIENCE)
    world.check("restart")
    for node in nodes.nodes:
        assert "Traceback" not in node.log


def test_a_paused_node(world):
    """It knows that it lost the duty; a core has no fence for what was in its buffers just then."""
    world.plan("paused", MANY_DOWNTIMES, 0)
    until(lambda: world.told("paused"), "it has begun", pause=0.02)
    paused = world.nodes.holder(DOWNTIMES)
    node = world.nodes.nodes[paused]
    before = len(node.log)
    node.send_signal(signal.SIGSTOP)
    until(lambda: all_moved(world, paused), "all families are at others", seconds=PATIENCE)
    world.check("paused", IN_BUFFERS)
    node.send_signal(signal.SIGCONT)
    until(world.nodes.all_known, "it goes on")
    until(lambda: "duties of another daemon now" in node.log[before:], "it knows")
    assert world.nodes.holder(DOWNTIMES) != paused
    world.check("paused", IN_BUFFERS)
