"""The composed daemon in this process: start, requests, reload, stop, demo."""

import gc
import io
import json
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
import pytest_twisted
import treq
from twisted.application.service import Application, IServiceCollection
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, globalLogPublisher
from twisted.python.usage import UsageError
from twisted.web.client import Agent

from monrest.config import load, loads
from monrest.config.fixed import fixed_while_running
from monrest.listeners import StartError, prepare_var_dir
from monrest.log import LineObserver
from monrest.service import Daemon
from monrest.systemd import Notifier
from monrest.tap import Options, makeService
from tests.fakes.audited import audited

__all__ = ["audited"]

SITE = '[[sites]]\nid = "{id}"\nname = "{name}"\naddress = "unix:{folder}/none"\n'


class Told:
    """Keeps the messages to the service manager."""

    def __init__(self):
        self.messages = []

    def notifier(self):
        told = self.messages

        class Keeping(Notifier):
            def _send(self, message):
                told.append(message.split("\n")[0])

        return Keeping("somewhere", lambda: 1)


class Running:
    """A daemon on a configuration file of its own."""

    def __init__(self, folder):
        self.folder, self.told, self.stops = Path(folder), Told(), 0
        self.path = self.folder / "monrest.toml"
        self.listen = "tcp:0:interface=127.0.0.1"
        self.daemon = None

    def write(self, *sites, more=""):
        text = f'[server]\nlisten = ["{self.listen}"]\nvar_dir = "{self.folder}/var"\n{more}\n'
        text += '[auth.roles]\nadmin = ["admin"]\n'
        for name in sites:
            text += SITE.format(id=name, name=name.upper(), folder=self.folder)
        self.path.write_text(text)

    def start(self, *sites, more=""):
        self.write(*sites, more=more)
        self.daemon = Daemon(
            config=load(self.path),
            reactor=reactor,
            path=str(self.path),
            notifier=self.told.notifier(),
            on_stopped=self.stopped,
        )
        self.daemon.startService()
        return self

    def stopped(self):
        self.stops += 1

    @property
    def key(self):
        return (self.folder / "var" / "secret.key").read_text().strip()

    async def get(self, path, root="/mon/r"):
        number = self.daemon.ports[0].getHost().port
        headers = {"X-Mon-Auth-Key": self.key, "X-Mon-Auth-User": "admin", "Connection": "close"}
        client = treq.client.HTTPClient(Agent(reactor))
        response = await client.get(f"http://127.0.0.1:{number}{root}{path}", headers=headers)
        return response.code, json.loads(await response.content())

    async def reload(self):
        self.daemon.reload()
        while self.daemon._reloading is not None:
            await self.daemon._reloading
            await turn()

    def site_ids(self):
        return [site.id for site in self.daemon.registry.sites]


def turn():
    done = Deferred()
    reactor.callLater(0, done.callback, None)
    return done


@pytest.fixture
def running(tmp_path):
    handler, thresholds = signal.getsignal(signal.SIGHUP), gc.get_threshold()
    made = Running(tmp_path)
    yield made
    if made.daemon is not None and made.daemon.running:
        pytest_twisted.blockon(made.daemon.stopService())
    signal.signal(signal.SIGHUP, handler)
    gc.set_threshold(*thresholds)


async def test_start_and_stop(running):
    running.start()
    assert running.told.messages[0] == "READY=1"
    status, document = await running.get("/mon/whoami")
    assert (status, document["id"]) == (200, "admin")
    assert stat.S_IMODE((running.folder / "var").stat().st_mode) == 0o700
    number = running.daemon.ports[0].getHost().port
    assert running.stops == 0
    await running.daemon.stopService()
    assert running.told.messages[-1] == "STOPPING=1"
    assert running.stops == 1
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", number)) != 0


async def test_a_database_that_hangs_holds_up_the_stop_once(running):
    running.start()
    daemon, hanging = running.daemon, Deferred()
    waiting = []

    async def flush():
        waiting.append(hanging)
        await hanging

    daemon.keys.flush = daemon.sessions.flush = flush
    stopping = daemon.stopService()
    while len(waiting) < 2:
        await turn()
    assert not stopping.called
    hanging.callback(None)
    await stopping
    assert running.stops == 1


async def test_the_collector_is_told_to_rest(running):
    running.start()
    assert gc.get_threshold() == (100_000, 50, 50)
    assert gc.get_freeze_count() > 1000


async def test_a_site_that_is_away_is_no_obstacle(running):
    running.start("a")
    status, document = await running.get("/hosts")
    assert status == 502
    assert document["description"].startswith("a: ")
    assert str(running.folder) not in document["description"]


async def test_reload_takes_sites_in_and_out(running, audited):
    running.start("a", "b")
    kept = running.daemon.registry.sites[1]
    running.write("b", "c")
    await running.reload()
    assert running.site_ids() == ["b", "c"]
    assert running.daemon.registry.sites[0] is kept
    assert [m for m in running.told.messages if not m.startswith("STATUS")] == [
        "READY=1", "RELOADING=1", "READY=1",
    ]  # fmt: skip
    status, rows = await running.get("/sites")
    assert (status, [row["id"] for row in rows]) == (200, ["b", "c"])
    (line,) = audited
    assert (line["action"], line["target"]) == ("configuration reload", str(running.path))
    assert line["result"] == "ok"


async def test_reload_puts_everything_in_force(running):
    running.start()
    running.write(more='request_timeout = 5\n[names]\napp = "abc"')
    await running.reload()
    assert running.daemon.site.limits.request_timeout == 5.0
    assert (await running.get("/", root="/mon/r"))[0] == 404
    assert running.daemon.sessions.cookie_name == "abc_auth"


@pytest.fixture
def problems():
    """The problems that the daemon logs."""
    seen = []

    def see(event):
        if "problem" in event:
            seen.append(event["problem"])

    globalLogPublisher.addObserver(see)
    yield seen
    globalLogPublisher.removeObserver(see)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[server\n", "not valid TOML"),
        ("[server]\nbogus = 1\n", "server.bogus: unknown key"),
        ('[server]\nvar_dir = "/srv"\nlisten = ["tcp:0:interface=127.0.0.1"]\n', "server.var_dir"),
    ],
)
async def test_a_bad_reload_changes_nothing(running, problems, text, problem, audited):
    running.start("a")
    before = running.daemon.config, running.daemon.site.resource
    running.path.write_text(text)
    await running.reload()
    assert problem in problems[0]
    assert (running.daemon.config, running.daemon.site.resource) == before
    assert running.site_ids() == ["a"]
    assert [line["result"] for line in audited] == ["refused"]
    assert running.told.messages[-1] == "READY=1"


async def test_a_reload_during_a_reload_is_remembered(running):
    running.start("a")
    running.write("b")
    running.daemon.reload()
    running.write("c")
    running.daemon.reload()
    running.daemon.reload()
    while running.daemon._reloading is not None:
        await turn()
    assert running.site_ids() == ["c"]
    assert running.told.messages.count("RELOADING=1") == 2


async def test_hang_up_means_reload(running):
    running.start("a")
    running.write("b")
    os.kill(os.getpid(), signal.SIGHUP)
    while running.site_ids() != ["b"]:
        await turn()
    while running.daemon._reloading is not None:
        await turn()


async def test_stopping_waits_for_a_reload(running):
    running.start("a")
    running.daemon.reload()
    await running.daemon.stopService()
    assert running.daemon._reloading is None
    running.daemon.reload()
    assert running.daemon._reloading is None


def test_what_is_fixed_is_named():
    old = loads("")
    new = loads('[server]\nlisten = ["tcp:1"]\nvar_dir = "/srv"\n')
    assert [line.split(":")[0] for line in fixed_while_running(old, new)] == [
        "server.listen",
        "server.var_dir",
        "database.url",
    ]
    assert fixed_while_running(old, loads("[server]\nrequest_timeout = 1\n")) == []


# ------------------------------------------------------------------ a start that fails


async def refused_start(running):
    with pytest.raises(SystemExit) as ended:
        running.start()
    assert running.stops == 1
    daemon, running.daemon = running.daemon, None
    await daemon.registry.stopService()
    await daemon.threads.stopService()
    for port in daemon.ports:
        await port.stopListening()
    return str(ended.value)


async def test_a_port_in_use(running):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        running.listen = f"tcp:{number}:interface=127.0.0.1"
        message = await refused_start(running)
    assert f"127.0.0.1:{number}: Address already in use" in message


async def test_a_socket_that_systemd_did_not_pass(running):
    running.listen = "systemd:domain=INET:index=7"
    assert "no such socket was passed by systemd" in await refused_start(running)


async def test_a_key_file_that_is_none(running, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing")
    running.listen = f"ssl:0:privateKey={bad}"
    assert "expected a private key and its certificate" in await refused_start(running)


async def test_a_secret_key_that_is_none(running):
    (running.folder / "var").mkdir()
    (running.folder / "var" / "secret.key").write_text("not a key\n")
    assert "secret.key: expected one line" in await refused_start(running)


def test_a_folder_that_cannot_be_made(running):
    (running.folder / "file").write_text("")
    with pytest.raises(StartError, match=r"server\.var_dir"):
        prepare_var_dir(running.folder / "file" / "var")


def test_the_folder_is_made_private(tmp_path):
    prepare_var_dir(tmp_path / "a" / "b")
    prepare_var_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


# ------------------------------------------------------------------ twistd monrest


def options(*arguments):
    made = Options()
    made.parent = {"nodaemon": True}
    made.parseOptions(list(arguments))
    return made


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --config FILE or --demo"),
        (("--demo", "--config", "x"), "either --config FILE or --demo"),
        (("--config", "/nonexistent/x.toml"), "/nonexistent/x.toml: cannot be read"),
        (("--config", "/etc/passwd", "--port", "1"), "--port goes with --demo"),
        (("--demo", "--port", "x"), "--port: expected 0 to 65535"),
        (("--demo", "--port", "65536"), "--port: expected 0 to 65535"),
        (("--nope",), "nope"),
    ],
)
def test_wrong_options(arguments, message):
    with pytest.raises(UsageError, match=message):
        options(*arguments)


def test_the_configuration_is_read_before_anything_starts(tmp_path):
    path = tmp_path / "monrest.toml"
    path.write_text("[server]\nworkers = 3\n")
    with pytest.raises(UsageError, match=r"server\.workers: only 1 is supported"):
        options("--config", str(path))
    path.write_text("")
    daemon = makeService(options("--config", str(path), "--json-log"))
    assert daemon.path == str(path)
    assert daemon.observer.as_json
    assert not daemon.running


def test_our_log_lines_are_taken(running):
    running.write()
    observer = LineObserver(None)
    daemon = Daemon(config=load(running.path), reactor=reactor, observer=observer)
    application = Application("monrest")
    daemon.setServiceParent(application)
    assert ILogObserver(application) is observer
    assert list(IServiceCollection(application)) == [daemon]


@pytest.mark.parametrize("chosen", [{"syslog": True}, {"logger": "x.y"}])
def test_another_log_is_left_alone(chosen):
    made = options("--demo")
    made.parent.update(chosen)
    daemon = makeService(made)
    daemon.on_stopped()
    assert daemon.observer is None


def test_a_log_file(tmp_path):
    made = options("--demo")
    made.parent["logfile"] = str(tmp_path / "log")
    daemon = makeService(made)
    daemon.on_stopped()
    daemon.observer({"log_namespace": "monrest", "log_format": "hello"})
    assert (tmp_path / "log").read_text().endswith("info monrest: hello\n")


def test_a_terminal_that_has_few_letters(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    daemon = makeService(options("--demo"))
    daemon.on_stopped()
    daemon.observer({"log_namespace": "monrest", "log_format": "ü"})
    assert written.getvalue().endswith(b"info monrest: \\xfc\n")


async def test_the_demo_leaves_nothing_behind(running, monkeypatch):
    announced = []
    monkeypatch.setattr("monrest.tap._announce", lambda *told: announced.append(told))
    daemon = running.daemon = makeService(options("--demo", "--port", "0"))
    folder = Path(daemon.config.server.var_dir)
    daemon.observer = None
    daemon.startService()
    ((address, key, _path),) = announced
    headers = {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin", "Connection": "close"}
    client = treq.client.HTTPClient(Agent(reactor))
    response = await client.get(f"{address}/hosts/totals", headers=headers)
    assert (response.code, json.loads(await response.content())["total"]) == (200, 20)
    await daemon.stopService()
    assert not folder.exists()


def test_the_demo_says_what_to_try(capfd):
    from monrest.tap import _announce

    _announce("http://127.0.0.1:8080/mon/r", "KEY", "/tmp/d/monrest.sock")
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "monrest demo: http://127.0.0.1:8080/mon/r/  key KEY  user admin"
    assert any(line.startswith("export MONREST_URL=unix:/tmp/d/monrest.sock ") for line in lines)
    assert len([line for line in lines if "/monrest r " in line]) == 2
    requests = [line for line in lines if line.startswith("curl ")]
    assert len(requests) == 3
    for line in requests:
        assert "-H 'X-Mon-Auth-Key: KEY' -H 'X-Mon-Auth-User: admin'" in line
