"""The daemon as a process: plugin, refusals, start, readiness, kill and restart."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from harness.client import Client
from harness.daemon import command_line, free_port, site
from harness.demo import Demo
from harness.lying import LyingSite
from harness.waiting import until

from monrest.cli.main import main
from tests.forks import REPOSITORY, TWISTD, ran


def run(*arguments, cwd=REPOSITORY):
    """Run Python with these arguments in ``cwd``."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True,
        timeout=300, check=False, cwd=cwd,
    )  # fmt: skip


def test_the_installed_plugin_is_found_from_anywhere_and_explains_its_options(tmp_path):
    twistd = ("-c", "from twisted.scripts.twistd import run; run()")
    listed = run(*twistd, "--help", cwd=tmp_path)
    assert any(line.split()[:1] == ["monrest"] for line in listed.stdout.splitlines())
    shown = run(*twistd, "monrest", "--help", cwd=tmp_path)
    assert "--config" in shown.stdout
    assert "--demo" in shown.stdout


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


def test_wrong_configurations_are_refused_by_both(tmp_path, subtests, capsys):
    config = tmp_path / "wrong.toml"
    for name, (text, words) in WRONG.items():
        config.write_text(text)
        checked = main(["check-config", str(config)]), "".join(capsys.readouterr())
        started = ran(command_line("--config", str(config)), program=TWISTD)
        for status, output in (checked, started):
            with subtests.test(name):
                assert status not in (0, None)
                assert "Traceback" not in output
                assert [word for word in words if word not in output] == [], output


@pytest.mark.parametrize("arguments", [[], ["--config", "/nonexistent/x.toml"], ["--nope"]])
def test_wrong_options_are_refused(arguments):
    status, output = ran(command_line(*arguments), program=TWISTD)
    assert status != 0
    assert "Traceback" not in output
    assert output.strip()


def test_a_port_in_use_ends_the_start(made, embedded):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listen = [f"tcp:{port}:interface=127.0.0.1"]
        daemon = made([site("s1", embedded)], sections={"server": {"listen": listen}})
        daemon.spawn()
        assert daemon.process.wait(300) != 0
    assert str(port) in daemon.log


def test_several_listeners_and_a_socket_of_its_own(made, embedded, tmp_path):
    path = tmp_path / "http"
    daemon = made([site("s1", embedded)])
    daemon.sections["server"]["listen"].append(f"unix:{path}")
    daemon.write_config()
    daemon.start()
    # The daemon's own user is its administrator there, unless a proxy speaks for another user.
    for more, status in ((b"", b"200"), (b"X-Forwarded-For: 192.0.2.1\r\n", b"401")):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(path))
            connection.sendall(b"GET /mon/r/hosts HTTP/1.0\r\n" + more + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.0 " + status)


def test_it_starts_while_its_sites_are_away(made, embedded, tmp_path):
    away = LyingSite(tmp_path / "away", embedded.socket)
    away.die()
    daemon = made([site("s1", away, timeout=2.0)]).start(connected=())
    with daemon.client() as client:
        assert client.get("/hosts").status in (502, 504)
        away.listen()
        until(lambda: client.get("/hosts").status == 200, "the site is found")
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

        daemon = made([site("s1", embedded)])
        daemon.spawn(NOTIFY_SOCKET=path)
        message("READY=1")
        with daemon.client() as client:
            assert client.get("/mon").status == 200
        daemon.hang_up()
        assert "MONOTONIC_USEC=" in message("RELOADING=1")
        message("READY=1")
        daemon.process.send_signal(signal.SIGTERM)
        message("STOPPING=1")
        daemon.process.wait(300)


def test_readiness_over_an_abstract_socket(made, embedded):
    name = f"monrest-test-{os.getpid()}-{free_port()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(f"\0{name}")
        notified.settimeout(20)
        made([site("s1", embedded)]).spawn(NOTIFY_SOCKET=f"@{name}")
        assert b"READY=1" in notified.recv(4096)


def test_secret_key_and_state_are_private_and_survive_a_kill(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    key = daemon.key
    assert len(key) >= 32
    assert key not in daemon.log
    assert (daemon.folder / "secret.key").stat().st_mode & 0o777 == 0o600
    assert (daemon.folder / "var").stat().st_mode & 0o777 == 0o700
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    daemon.start()
    assert daemon.key == key
    with daemon.client() as client:
        assert len(client.rows("/hosts?columns=name")) == 6


def test_a_demo_whose_port_is_taken_says_how_to_take_another(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = command_line("--demo", "--port", str(port))
        scratch = {**os.environ, "TMPDIR": str(tmp_path)}
        status, output = ran(line, program=TWISTD, env=scratch)
    assert status == 1
    text = f"127.0.0.1:{port}: Address already in use; make demo PORT=9000, or --port 9000, takes"
    assert text in output
    assert list(tmp_path.iterdir()) == []


def test_the_demo_serves_and_leaves_nothing_behind(tmp_path):
    demo = Demo(tmp_path, program="")
    try:
        address, port, key = demo.found()
        assert address == f"http://127.0.0.1:{port}/mon/r/"
        with Client(port, key) as client:
            until(lambda: client.rows("/sites")[0]["connected"] == 1, "the demo core is up")
            assert client.rows("/hosts/totals")["total"] == 20
            assert client.rows("/services/totals")["total"] == 100
            assert client.rows("/logs?limit=5")
            assert client.rows("/hostgroups")
        assert list(demo.scratch.iterdir())
    finally:
        demo.stop(signal.SIGINT)
    # What it says to try is not buried in a line for each request.
    assert "Z access " not in demo.output.read_text()
