"""Several workers of one daemon: what one does the next request sees at another; any may die."""

import errno
import os
import random
import re
import signal
import socket
import ssl
import stat
import threading
import time
from collections import Counter
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import pytest
from harness.client import InFlight
from harness.configured import Files
from harness.daemon import Daemon, free_port, sha, site
from harness.lying import LyingSite
from harness.nodes import Nodes
from harness.waiting import until
from harness.workers import client_of, gone, kill, living, processes, runs

from tests.fakes.certificates import Authority
from tests.live.test_database_away import key_client, session_client, with_passwords

MANY = 24
"""Recurring downtimes that come at once."""
DEATHS = 6
"""Of workers, while they come."""


def crew(lab, sites, url="", **sections):
    """A daemon with two workers, and passwords of admin and ann."""
    sections["server"] = {"workers": 2, "drain_timeout": 10, **sections.get("server", {})}
    if url:
        sections["database"] = {"url": url}
    sections["auth"] = {"lock_after_failed_logins": 2}
    daemon = with_passwords(lab.daemon(sites, sections=sections))
    with (daemon.folder / "htpasswd").open("a") as passwords:
        passwords.write(f"ann:{sha('sesame')}\n")
    return daemon


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request):
    if request.param == "sqlite":
        return ""
    server = request.getfixturevalue("postgres_server")
    return server.url(server.create())


@pytest.fixture(scope="module")
def daemon(url, shared, embedded):
    tool = Files(shared.folder()).tool()
    return crew(shared, [site("s1", embedded, configtool=tool)], url).start()


@pytest.fixture
def own(lab, embedded):
    """A function that makes a daemon with two workers, ended with the test."""

    def make(sites=(), **sections):
        return crew(lab, sites or [site("s1", embedded)], **sections)

    return make


@pytest.fixture(scope="module")
def pair(daemon):
    """A client of each worker."""
    clients = [client_of(daemon, number) for number in (1, 2)]
    yield clients
    for client in clients:
        client.close()


def test_a_key_is_good_at_every_worker_and_refused_by_all_when_it_is_deleted(daemon, pair):
    one, _ = pair
    for _ in range(3):
        key = key_client(daemon).key
        user = client_of(daemon, 2, lambda key=key: key_holder(daemon, key))
        hashed = sha256(user.key.encode()).hexdigest()
        assert user.get("/mon/whoami").status == 200
        assert one.request("DELETE", f"/mon/api_keys/{hashed}").status == 200
        assert user.get("/mon/whoami").status == 403
        user.close()


def key_holder(daemon, key):
    client = daemon.client(None)
    client.key = key
    return client


def test_a_session_ends_at_every_worker(daemon):
    one = client_of(daemon, 1, lambda: session_client(daemon))
    other = client_of(daemon, 2)
    other.credentials = one.credentials
    assert other.get("/mon/whoami").status == 200
    assert one.request("POST", "/mon/logout").status == 200
    assert other.get("/mon/whoami").status == 401
    one.close()
    other.close()


def test_whoever_is_locked_at_one_worker_is_locked_at_all(daemon, pair):
    one, other = pair
    olga = client_of(daemon, 2, lambda: daemon.client("olga"))
    for word, status in (("lock", 403), ("unlock", 200)) * 2:
        assert one.request("POST", f"/mon/users/olga/cmd/{word}").status == 200
        assert olga.get("/mon/whoami").status == status
        assert other.rows("/mon/users/olga")["locked"] == int(word == "lock")
    olga.close()


def test_wrong_passwords_at_two_workers_are_counted_together(daemon):
    statuses = []
    for number, password in ((1, "sesame"), (1, "wrong"), (2, "wrong"), (1, "sesame")):
        client = client_of(daemon, number)
        client.credentials = dict
        said = client.post_form("/mon/login", [("login", "ann"), ("password", password)])
        statuses.append(said.status)
        client.close()
    # The right password is then answered like a wrong one.
    assert statuses == [200, 401, 401, 401]


def test_a_job_of_one_worker_is_seen_at_the_other(daemon, pair):
    one, other = pair
    number = one.get("/hosts?background=1").json["job_id"]
    output = other.get(f"/mon/jobs/{number}/output?wait=30")
    assert (output.status, output.json) == (200, one.rows("/hosts"))
    # Who runs it is the node to users.
    node = int((daemon.folder / "var" / "node.id").read_text())
    second = other.get("/hosts?background=1").json["job_id"]
    assert [one.rows(f"/mon/jobs/{each}")["host_id"] for each in (number, second)] == [node, node]


@pytest.fixture(scope="module")
def held(embedded, shared):
    """A site whose answers can be held back."""
    return shared.keep(LyingSite(shared.folder() / "held", embedded.socket))


@pytest.fixture(scope="module")
def slow_crew(held, shared):
    """A daemon with two workers before it."""
    return crew(shared, [site("slow", held)]).start()


def test_a_job_is_canceled_at_another_worker(slow_crew, held):
    one, other = client_of(slow_crew, 1), client_of(slow_crew, 2)
    slow = held
    slow.lie(None, "hosts")
    slow.hold()
    number = one.get("/hosts?background=1").json["job_id"]
    assert slow.waiting.wait(300)
    ended = other.request("DELETE", f"/mon/jobs/{number}")
    assert (ended.status, ended.json["message"]) == (200, "canceled job")
    assert one.rows(f"/mon/jobs/{number}")["stderr"] == "canceled by admin"
    slow.release()


def test_what_is_staged_at_one_worker_is_listed_at_the_other(pair):
    for at in range(4):
        made = pair[at % 2].post_json(
            "/config/objects",
            {":TYPE": "host", ":FILE": "objects/b.cfg", "host_name": f"new{at}"},
        )
        assert made.status == 200, made
        for client in reversed(pair):
            found = client.rows("/config/objects", {":TYPE": "host", "host_name": f"new{at}"})
            assert len(found) == 1
    assert pair[0].request("POST", "/config/revert").status == 200
    assert pair[1].rows("/config/diff") == []


def test_figures_follow_at_every_worker(daemon, pair):
    one, other = pair
    before = other.rows("/mon/stats")["users_locked_total"]
    assert one.request("POST", "/mon/users/eve/cmd/lock").status == 200
    one.rows("/mon/users")
    assert other.rows("/mon/stats")["users_locked_total"] == before + 1
    assert one.request("POST", "/mon/users/eve/cmd/unlock").status == 200


def test_log_lines_say_which_worker(daemon, pair):
    for number, client in enumerate(pair, 1):
        path = f"/mon/r/mon/jobs/{number}{number}{number}"
        client.get(path.removeprefix("/mon/r"))
        line = until(lambda path=path: re.search(rf"access .*{path} .*", daemon.log), "the line")
        assert line[0].endswith(f" worker={number}")


class Asking(threading.Thread):
    """Four clients, each with a new connection for every request; what became of all of them.

    Each pauses between two requests: on two processors four that do not leave nothing for the rest.
    """

    def __init__(self, daemon, path="/hosts?columns=name"):
        super().__init__(daemon=True)
        self.daemon_, self.path = daemon, path
        self.statuses, self.refused, self.cut = Counter(), 0, 0
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(4)]
        for one in self.threads:
            one.start()

    def ask(self):
        while not self.ending.is_set():
            client = self.daemon_.client()
            try:
                status = client.get(self.path).status
                with self.lock:
                    self.statuses[status] += 1
            except ConnectionRefusedError:
                with self.lock:
                    self.refused += 1
            except OSError:
                with self.lock:
                    self.cut += 1
            client.close()
            self.ending.wait(0.1)

    def stop(self):
        self.ending.set()
        for one in self.threads:
            one.join(60)
        return self


@pytest.fixture(scope="module")
def reloaded_crew(embedded, shared):
    return crew(shared, [site("s1", embedded)]).start()


@pytest.fixture
def reloaded(reloaded_crew):
    """A daemon with one site at first, whose configuration a test changes."""
    if len(reloaded_crew.sites) > 1:
        del reloaded_crew.sites[1:]
        reloaded_crew.reload()
    return reloaded_crew


def test_workers_are_reloaded_one_after_another_and_nobody_is_refused(reloaded):
    daemon = reloaded
    asking = Asking(daemon)
    for number in range(2):
        mark = len(daemon.log)
        daemon.sites.append(site(f"more{number}", "unix:/nonexistent/live"))
        daemon.write_config()
        daemon.hang_up()
        until(
            lambda mark=mark: daemon.log[mark:].count("configuration read again") == 2, "both have"
        )
        for worker in (1, 2):
            with client_of(daemon, worker) as client:
                assert len(client.rows("/sites")) == number + 2
    asking.stop()
    assert (set(asking.statuses), asking.refused, asking.cut) == ({200}, 0, 0)


def test_a_worker_that_is_being_started_hears_of_a_reload(reloaded):
    daemon = reloaded
    mark = len(daemon.log)
    before = set(living(daemon))
    kill(processes(daemon)[2])
    (new,) = until(lambda: set(living(daemon)) - before, "another one is started", pause=0)
    os.kill(new, signal.SIGSTOP)
    daemon.sites.append(site("more", "unix:/nonexistent/live"))
    daemon.write_config()
    daemon.hang_up()
    until(lambda: "configuration read again" in daemon.log[mark:], "the other one has")
    os.kill(new, signal.SIGCONT)
    for worker in (1, 2):
        with client_of(daemon, worker) as client:
            until(lambda client=client: len(client.rows("/sites")) == 2, "it knows both sites")


def test_a_wrong_configuration_is_told_once_and_changes_nothing(reloaded):
    daemon = reloaded
    good = daemon.config.read_text()
    for text, said in (
        (good + "[bogus]\n", "bogus"),
        (good.replace("workers = 2", "workers = 3"), "server.workers: cannot change"),
    ):
        mark = len(daemon.log)
        daemon.config.write_text(text)
        daemon.hang_up()
        until(lambda mark=mark: "stays in force" in daemon.log[mark:], "it is refused")
        assert daemon.log[mark:].count("stays in force") == 1
        assert said in daemon.log[mark:]
    daemon.config.write_text(good)


def test_a_killed_worker_begins_anew_and_only_its_requests_fail(slow_crew, held):
    daemon, slow = slow_crew, held
    one, other = client_of(daemon, 1), client_of(daemon, 2)
    one.rows("/hosts?columns=name")
    other.rows("/hosts?columns=name")
    slow.lie(None, "services")
    slow.hold()
    outcomes = {1: [], 2: []}
    threads = [
        threading.Thread(target=answers, args=(client, outcomes[number]))
        for number, client in ((1, one), (2, other))
    ]
    for thread in threads:
        thread.start()
    assert slow.waiting.wait(300)
    until(lambda: len(slow.open) >= 2, "both ask the core")
    first = processes(daemon)[1]
    kill(first)
    until(lambda: processes(daemon)[1] != first, "it began anew")
    slow.release()
    for thread in threads:
        thread.join(60)
    assert outcomes == {1: ["cut"], 2: [200]}
    assert f"worker 1 (process {first}) has ended by signal SIGKILL" in daemon.log


def answers(client, found):
    """Ask once over the connection that there is."""
    try:
        client.connection.request("GET", "/mon/r/services", headers=client.credentials())
        found.append(client.connection.getresponse().status)
    except OSError:
        found.append("cut")


def refuses(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_workers_end_with_their_parent_and_finish_what_they_have(own, slow):
    daemon = own([site("slow", slow)]).start()
    node = (daemon.folder / "var" / "node.id").read_text()
    slow.lie(None, "hosts")
    slow.hold()
    request = InFlight(daemon, "/hosts?columns=name")
    assert slow.waiting.wait(300)
    workers = living(daemon)
    assert len(workers) == 2
    daemon.process.kill()
    daemon.process.wait(300)
    until(lambda: sum(runs(pid) for pid in workers) == 1, "the one without a request is gone")
    until(lambda: refuses(daemon.port), "the other one takes nobody new")
    # A daemon that is started now is the same node, and finds its port free.
    again = Daemon(daemon.folder, daemon.sites, sections=daemon.sections)
    again.port = daemon.port
    again.sections["server"]["listen"] = daemon.sections["server"]["listen"]
    again.write_config()
    again.spawn()
    until(lambda: again.log.count("2 workers listen") == 2, "it listens")
    assert (daemon.folder / "var" / "node.id").read_text() == node
    slow.release()
    assert request.result().status == 200
    until(lambda: gone(workers), "all are gone")
    assert again.stop() == -signal.SIGTERM


def test_the_end_waits_for_requests_and_leaves_nothing(own, slow):
    path = Path(f"/tmp/monrest-{os.getpid()}.sock")
    daemon = own([site("slow", slow)])
    daemon.sections["server"]["listen"].append(f"unix:{path}:mode=620")
    daemon.write_config()
    daemon.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o620
    first = processes(daemon)[2]
    kill(first)
    until(lambda: processes(daemon)[2] != first, "it began anew")
    assert stat.S_IMODE(path.stat().st_mode) == 0o620
    slow.lie(None, "hosts")
    slow.hold()
    request = InFlight(daemon, "/hosts?columns=name")
    assert slow.waiting.wait(300)
    workers = living(daemon)
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: not path.exists(), "it takes nobody any more")
    slow.release()
    assert request.result().status == 200
    assert daemon.stop() == -signal.SIGTERM
    assert gone(workers)
    assert "Traceback" not in daemon.log


def test_a_start_that_cannot_be_ends_with_a_message(own):
    daemon = own()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", daemon.port))
        taken.listen()
        daemon.spawn()
        assert daemon.process.wait(300) == 1
    assert f"cannot listen on tcp:{daemon.port}" in daemon.log


def test_the_service_manager_hears_of_the_parent_alone(own, tmp_path):
    daemon = own()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        daemon.start(
            NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="2000000", WATCHDOG_PID=""
        )
        assert manager.recv(200) == b"READY=1"
        assert manager.recv(200) == b"STATUS=2 workers, 1 sites configured"
        assert manager.recv(200) == b"WATCHDOG=1"
        # A worker that stands still is not one that lives.
        first = processes(daemon)[1]
        os.kill(first, signal.SIGSTOP)
        until(lambda: processes(daemon)[1] != first, "another one is there")
        assert "worker 1 is ended: it gives no sign of life" in daemon.log
        daemon.stop()
        said = [manager.recv(200)]
        while said[-1] != b"STOPPING=1":
            said.append(manager.recv(200))
        assert set(said) == {b"WATCHDOG=1", b"STOPPING=1"}


@pytest.mark.parametrize("workers", [1, 2])
def test_certificates_are_read_again(own, tmp_path, workers):
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")
    certificate, key = first.sign("localhost")
    daemon = own(server={"workers": workers})
    port = free_port()
    daemon.sections["server"]["listen"].append(
        f"ssl:{port}:interface=127.0.0.1:privateKey={key}:certKey={certificate}"
    )
    daemon.write_config()
    daemon.start()
    assert handshake(port, first)
    assert not handshake(port, second)
    second.sign("localhost")
    daemon.hang_up()
    until(lambda: daemon.log.count("configuration read again") == workers, "it is reloaded")
    assert all(handshake(port, second) for _ in range(10))


def handshake(port, authority):
    context = ssl.create_default_context(cafile=authority.ca_file)
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=300) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            wrapped.sendall(b"GET /mon/r/mon/ready HTTP/1.1\r\nHost: x\r\n\r\n")
            # Ready or not: it is the certificate that counts.
            return wrapped.recv(20).startswith(b"HTTP/1.1 ")
    except ssl.SSLError:
        return False


def test_nothing_scheduled_is_lost_or_done_twice_when_workers_die(lab):
    told_core = lab.core()
    daemon = crew(lab, [site("s1", told_core)]).start()
    name = "scheduled"
    at = int(time.time() + 10) // 60 * 60 + 60
    when = datetime.fromtimestamp(at)
    schedule = [{"type": "day", "minute": when.minute, "hour": when.hour}]
    with daemon.client() as client:
        for number in range(MANY):
            fields = {"host": "web01", "schedule": schedule, "comment": f"{name} {number}"}
            assert client.post_json("/mon/recurring_downtimes", fields).status == 200
    chance, deaths = random.Random(7), 0
    until(lambda: time.time() > at - 3, "their time is near", pause=0.25)
    asking = Asking(daemon)

    def told():
        rows = told_core.ask("GET downtimes\nColumns: comment")
        return Counter(comment for (comment,) in rows if comment.startswith(f"{name} "))

    try:
        while len(told()) < MANY:
            assert time.time() < at + 240, "\n".join(
                line for line in daemon.log.splitlines() if " access " not in line
            )
            if deaths < DEATHS:
                kill(chance.choice(list(processes(daemon).values())))
                deaths += 1
            else:
                asking.ending.set()
            until(lambda: len(living(daemon)) == 2, "both live")
            time.sleep(chance.random() * 2)
    finally:
        asking.stop()
        workers = living(daemon)
        daemon.stop()
    assert set(told().values()) == {1}
    assert set(asking.statuses) <= {200}
    assert asking.refused == 0
    # One of each of four clients' requests may be with a worker that is killed.
    assert asking.cut <= 4 * deaths
    assert gone(workers)


def test_a_cluster_has_nodes_and_not_workers(tmp_path_factory, postgres_server, embedded, lab):
    cluster = lab.keep(
        Nodes(
            tmp_path_factory.mktemp("crews"),
            postgres_server,
            [site("s1", embedded)],
            count=2,
            cluster={"restart_notice": 0.5},
        )
    )
    for node in cluster.nodes:
        node.sections["server"].update({"workers": 2, "drain_timeout": 5})
        node.write_config()
    cluster.start()
    ids = [cluster.id_of(at) for at in (0, 1)]
    first = cluster.nodes[0]
    clients = [client_of(first, number) for number in (1, 2)]
    for client in clients:
        until(
            lambda client=client: sorted(client.values("/mon/cluster", "node_id")) == sorted(ids),
            "each worker knows both nodes",
        )
    # Maintenance of one worker is that of the node.
    one, other = clients
    path = f"/mon/cluster/{ids[0]}/maintenance"
    for method, status in (("POST", 503), ("DELETE", 200)):
        assert one.request(method, path).status == 200
        assert [client.get("/mon/ready").status for client in clients] == [status, status]
    before = [(node.process.pid, set(processes(node).values())) for node in cluster.nodes]
    assert one.request("POST", "/mon/cluster/restart").status == 200
    one.close()
    other.close()

    def states():
        with cluster.nodes[0].client() as client:
            try:
                return client.values("/mon/cluster/restart", "state")
            except (OSError, AssertionError):
                return []

    until(lambda: states() == ["done", "done"], "both were restarted", seconds=120)
    for node, (pid, workers) in zip(cluster.nodes, before, strict=True):
        assert node.process.pid == pid
        assert gone(workers)
        assert not workers & set(living(node))
