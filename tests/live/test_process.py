"""The daemon as a process: start, refusals, reload, drain, kill, readiness, plugin."""

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from harness.cores import EmbeddedCore
from harness.daemon import REPOSITORY, Daemon, free_port, site
from harness.lying import LyingSite
from harness.waiting import until

MAIN = "import sys; from monrest.cli.main import main; sys.exit(main())"


@pytest.fixture
def made(tmp_path):
    """A function that makes a daemon (not started), stopped at the end."""
    daemons = []

    def make(sites, **more):
        folder = tmp_path / f"daemon{len(daemons)}"
        folder.mkdir()
        daemons.append(Daemon(folder, sites, **more))
        return daemons[-1]

    yield make
    for daemon in daemons:
        if daemon.process is not None:
            daemon.stop(signal.SIGKILL)


@pytest.fixture
def slow(embedded, tmp_path):
    """A site whose answers can be held back."""
    slow = LyingSite(tmp_path / "slow", embedded.socket)
    yield slow
    slow.close()


class InFlight:
    """A request that runs in a thread."""

    def __init__(self, daemon, path):
        self.response = self.error = None
        self.thread = threading.Thread(target=self.run, args=(daemon, path), daemon=True)
        self.thread.start()

    def run(self, daemon, path):
        try:
            with daemon.client() as client:
                self.response = client.get(path)
        except Exception as error:
            self.error = error

    def result(self):
        self.thread.join(30)
        assert self.error is None, self.error
        assert self.response is not None
        return self.response


def run(*arguments, **more):
    """Run Python with these arguments from the repository's folder."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True,
        timeout=60, check=False, **more,
    )  # fmt: skip


# ------------------------------------------------------------------ plugin and check-config


def test_twistd_knows_the_plugin():
    listed = run("-c", "from twisted.scripts.twistd import run; run()", "--help")
    assert any(line.split()[:1] == ["monrest"] for line in listed.stdout.splitlines())


def test_twistd_explains_the_options():
    shown = run("-c", "from twisted.scripts.twistd import run; run()", "monrest", "--help")
    assert "--config" in shown.stdout
    assert "--demo" in shown.stdout


def test_check_config_accepts(made, embedded):
    daemon = made([site("s1", f"unix:{embedded.socket}")])
    checked = run("-c", MAIN, "check-config", str(daemon.config))
    assert checked.returncode == 0, checked
    assert "Traceback" not in checked.stderr


WRONG = {
    "unknown key": ("[server]\nlisten_on = 1\n", ["server", "listen_on"]),
    "unknown table": ("[sever]\n", ["sever"]),
    "wrong type": ('[server]\nrequest_timeout = "40"\n', ["server.request_timeout", "number"]),
    "text for a flag": ('[auth]\napi_keys_enabled = "false"\n', ["auth.api_keys_enabled"]),
    "not a list": ('[server]\nlisten = "tcp:1"\n', ["server.listen"]),
    "bad endpoint": ('[server]\nlisten = ["nonsense:1"]\n', ["server.listen"]),
    "site without address": ('[[sites]]\nid = "a"\nname = "A"\n', ["sites", "address"]),
    "bad address": ('[[sites]]\nid = "a"\nname = "A"\naddress = "ftp:x"\n', ["sites", "address"]),
    "same id twice": (
        '[[sites]]\nid = "a"\nname = "A"\naddress = "unix:/x"\n'
        '[[sites]]\nid = "a"\nname = "B"\naddress = "unix:/y"\n',
        ["sites", "a"],
    ),
    "negative time-out": (
        '[[sites]]\nid = "a"\nname = "A"\naddress = "unix:/x"\ntimeout = -1\n',
        ["sites", "timeout"],
    ),
    "not TOML": ("[server\n", ["line 1"]),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_wrong_configurations_are_refused_by_both(tmp_path, text, words):
    config = tmp_path / "wrong.toml"
    config.write_text(text)
    checked = run("-c", MAIN, "check-config", str(config))
    assert checked.returncode not in (0, None), checked
    started = run(
        *("-c", "from twisted.scripts.twistd import run; run()", "--nodaemon", "--pidfile="),
        *("monrest", "--config", str(config)),
    )
    assert started.returncode not in (0, None), started
    for output in (checked.stdout + checked.stderr, started.stdout + started.stderr):
        assert "Traceback" not in output
        for word in words:
            assert word in output, output


@pytest.mark.parametrize("arguments", [[], ["--config", "/nonexistent/x.toml"], ["--nope"]])
def test_wrong_options_are_refused(arguments):
    started = run(
        *("-c", "from twisted.scripts.twistd import run; run()", "--nodaemon", "--pidfile="),
        *("monrest", *arguments),
    )
    assert started.returncode != 0
    assert "Traceback" not in started.stdout + started.stderr
    assert (started.stdout + started.stderr).strip()


def test_check_config_of_a_missing_file():
    checked = run("-c", MAIN, "check-config", "/nonexistent/x.toml")
    assert checked.returncode != 0
    assert "/nonexistent/x.toml" in checked.stdout + checked.stderr
    assert "Traceback" not in checked.stderr


def test_the_client_does_not_import_twisted():
    code = "import sys, monrest.cli.main; sys.exit('twisted.internet.reactor' in sys.modules)"
    assert run("-c", code).returncode == 0


# ------------------------------------------------------------------ start


def test_a_port_in_use_ends_the_start(made, embedded):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listen = [f"tcp:{port}:interface=127.0.0.1"]
        daemon = made(
            [site("s1", f"unix:{embedded.socket}")], sections={"server": {"listen": listen}}
        )
        daemon.spawn()
        assert daemon.process.wait(30) != 0
    assert str(port) in daemon.log


def test_several_listeners_and_a_socket_of_its_own(made, embedded, tmp_path):
    path = tmp_path / "http"
    daemon = made([site("s1", f"unix:{embedded.socket}")])
    daemon.sections["server"]["listen"].append(f"unix:{path}")
    daemon.write_config()
    daemon.start()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(b"GET /mon/r/hosts HTTP/1.0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


def test_secret_key_and_state_are_private(made, embedded):
    daemon = made([site("s1", f"unix:{embedded.socket}")]).start()
    key = daemon.folder / "secret.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(daemon.key) >= 32
    assert (daemon.folder / "var").stat().st_mode & 0o777 == 0o700
    assert daemon.key not in daemon.log


def test_it_starts_while_its_sites_are_away(made, embedded, tmp_path):
    away = LyingSite(tmp_path / "away", embedded.socket)
    away.die()
    daemon = made([site("s1", f"unix:{away.path}", timeout=2.0)]).start(connected=())
    with daemon.client() as client:
        assert client.get("/hosts").status in (502, 504)
        away.listen()
        until(lambda: client.get("/hosts").status == 200, "the site is found", seconds=30)
    away.close()


def test_a_start_without_sites(made):
    daemon = made([]).start()
    with daemon.client() as client:
        assert client.rows("/sites") == []
        assert client.get("/hosts").status in (200, 400)
        assert client.get("/mon/whoami").status == 200


def test_readiness_reload_and_stop_are_notified(made, embedded, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(path)
        notified.settimeout(20)

        def message(word):
            while word not in (text := notified.recv(4096).decode()):
                pass
            return text

        daemon = made([site("s1", f"unix:{embedded.socket}")])
        daemon.spawn(NOTIFY_SOCKET=path)
        message("READY=1")
        with daemon.client() as client:
            assert client.get("/mon").status == 200
        daemon.hang_up()
        assert "MONOTONIC_USEC=" in message("RELOADING=1")
        message("READY=1")
        daemon.process.send_signal(signal.SIGTERM)
        message("STOPPING=1")
        daemon.process.wait(30)


def test_readiness_over_an_abstract_socket(made, embedded):
    name = f"monrest-test-{os.getpid()}-{free_port()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(f"\0{name}")
        notified.settimeout(20)
        made([site("s1", f"unix:{embedded.socket}")]).spawn(NOTIFY_SOCKET=f"@{name}")
        assert b"READY=1" in notified.recv(4096)


def test_kill_and_restart(made, embedded):
    daemon = made([site("s1", f"unix:{embedded.socket}")]).start()
    key = daemon.key
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    daemon.start()
    assert daemon.key == key
    with daemon.client() as client:
        assert len(client.rows("/hosts?columns=name")) == 6


def test_the_core_is_restarted_below_the_daemon(made, ready, tmp_path):
    core = ready(EmbeddedCore(tmp_path))
    daemon = made([site("s1", f"unix:{core.socket}", timeout=3.0)]).start()
    with daemon.client() as client:
        assert client.rows("/hosts/totals")["total"] == 6
        core.process.kill()
        core.process.wait(20)
        until(lambda: client.get("/hosts").status == 502, "the core is missed")
        core.stop()
        ready(core)
        until(lambda: client.get("/hosts").status == 200, "the core is back", seconds=40)
        assert client.rows("/hosts/totals")["total"] == 6
    core.stop()


# ------------------------------------------------------------------ reload


def test_reload_adds_changes_and_removes_sites(made, embedded):
    first = site("one", f"unix:{embedded.socket}")
    daemon = made([first]).start()
    with daemon.client() as client:
        daemon.sites = [first, site("two", f"unix:{embedded.socket}", section="Later")]
        daemon.write_config()
        daemon.hang_up()
        daemon.wait_connected({"one", "two"})
        assert client.values("/sites", "id") == ["one", "two"]
        assert len(client.rows("/hosts?columns=name")) == 12

        daemon.sites[1] = site("two", f"unix:{embedded.socket}", name="New name", hidden=True)
        daemon.write_config()
        daemon.hang_up()
        until(lambda: "New name" in client.values("/sites", "name"), "the change is in force")
        assert len(client.rows("/hosts?columns=name")) == 6
        assert len(client.rows("/sites/two/hosts?columns=name")) == 6

        daemon.sites = [daemon.sites[1]]
        daemon.write_config()
        daemon.hang_up()
        until(lambda: client.values("/sites", "id") == ["two"], "the first site is gone")
        assert client.get("/sites/one/hosts").status == 400


def test_reload_drops_no_request(made, embedded, slow):
    keep = site("keep", f"unix:{embedded.socket}")
    daemon = made([keep, site("slow", f"unix:{slow.path}")]).start()
    slow.lie(None, "services")
    slow.hold()
    held = InFlight(daemon, "/services?columns=peer_key")
    assert slow.waiting.wait(20)

    wrong, stop = [], threading.Event()

    def traffic():
        with daemon.client() as client:
            while not stop.is_set():
                response = client.get("/hosts?columns=name,peer_key")
                if response.status != 200 or "x-mon-failed-sites" in response.headers:
                    wrong.append(response)

    threads = [threading.Thread(target=traffic) for _ in range(3)]
    for thread in threads:
        thread.start()
    with daemon.client() as client:
        for number in range(6):
            daemon.sites = [keep] if number % 2 == 0 else [keep, site("new", keep["address"])]
            daemon.write_config()
            daemon.hang_up()
            expected = [entry["id"] for entry in daemon.sites]
            until(lambda ids=expected: client.values("/sites", "id") == ids, "the reload is done")
        stop.set()
        for thread in threads:
            thread.join(30)
        slow.release()
        rows = held.result().json
    assert wrong == []
    assert sorted({row["peer_key"] for row in rows}) == ["keep", "slow"]
    assert len(rows) == 22


def test_a_bad_reload_changes_nothing(made, embedded):
    daemon = made([site("one", f"unix:{embedded.socket}")]).start()
    good = daemon.config.read_text()
    for text in ("[server\n", good + "\n[[sites]]\nid = 5\n", good + "\nbogus = 1\n"):
        before = len(daemon.log)
        daemon.config.write_text(text)
        daemon.hang_up()
        until(lambda size=before: len(daemon.log) > size, "the refusal is logged")
        with daemon.client() as client:
            assert client.values("/sites", "id") == ["one"]
            assert len(client.rows("/hosts?columns=name")) == 6
    assert "sites" in daemon.log
    assert "bogus" in daemon.log
    assert "Traceback" not in daemon.log


def test_many_hang_ups_in_a_row(made, embedded):
    daemon = made([site("one", f"unix:{embedded.socket}")]).start()
    for _time in range(20):
        daemon.hang_up()
    with daemon.client() as client:
        for _time in range(20):
            assert len(client.rows("/hosts?columns=name")) == 6
    assert daemon.process.poll() is None


# ------------------------------------------------------------------ stop


def test_sigterm_lets_a_running_request_finish(made, slow):
    daemon = made([site("slow", f"unix:{slow.path}")]).start()
    slow.lie(None, "services")
    slow.hold()
    held = InFlight(daemon, "/services")
    assert slow.waiting.wait(20)
    daemon.process.send_signal(signal.SIGTERM)

    def closed():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", daemon.port)) != 0

    until(closed, "no new connection is taken")
    assert daemon.process.poll() is None
    slow.release()
    response = held.result()
    assert response.status == 200
    assert len(response.json) == 11
    assert response.headers.get("connection", "").lower() == "close"
    assert daemon.process.wait(30) in (0, -signal.SIGTERM)
    assert "Traceback" not in daemon.log


def test_sigterm_with_idle_connections_is_quick(made, embedded):
    daemon = made([site("s1", f"unix:{embedded.socket}")]).start()
    with daemon.client() as client:
        assert client.get("/hosts").status == 200
        assert daemon.stop(seconds=15) in (0, -signal.SIGTERM)


def test_the_drain_has_a_limit(made, slow):
    daemon = made(
        [site("slow", f"unix:{slow.path}")], sections={"server": {"drain_timeout": 1}}
    ).start()
    slow.lie(None, "services")
    slow.hold()
    InFlight(daemon, "/services")
    assert slow.waiting.wait(20)
    assert daemon.stop(seconds=20) in (0, -signal.SIGTERM)


def test_a_request_that_takes_too_long(made, slow):
    daemon = made(
        [site("slow", f"unix:{slow.path}", timeout=30.0)],
        sections={"server": {"request_timeout": 1}},
    ).start()
    slow.lie(None, "services")
    slow.hold()
    response = InFlight(daemon, "/services").result()
    assert response.status == 504
    assert set(response.json) == {"code", "message", "description"}
    assert "background" in response.json["description"]


def test_the_access_log(made, embedded):
    daemon = made([site("s1", f"unix:{embedded.socket}")]).start()
    with daemon.client() as client:
        client.get("/hosts?columns=name&name=web01", headers={"X-Request-Id": "find-me-0815"})
    until(lambda: "find-me-0815" in daemon.log, "the request is logged")
    (line,) = [line for line in daemon.log.splitlines() if "find-me-0815" in line]
    assert "/mon/r/hosts" in line
    assert "name=web01" not in line
    assert "200" in line
    assert "admin" in line
