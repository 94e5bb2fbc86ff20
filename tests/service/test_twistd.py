"""``twistd monrest``: options, logs, the demo."""

import io
import json
from pathlib import Path

import pytest
import treq
from twisted.application.service import Application, IServiceCollection
from twisted.internet import reactor
from twisted.logger import ILogObserver
from twisted.python.usage import UsageError
from twisted.web.client import Agent

from monrest.base.log import LineObserver
from monrest.config import load
from monrest.daemon.service import Daemon
from monrest.tap import Options, makeService


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
    path.write_text("[server]\nworkers = 65\n")
    with pytest.raises(SystemExit, match=r"server\.workers: expected 0 to 64, got 65"):
        options("--config", str(path))
    # The reasons stand alone: the text of SystemExit is all that twistd prints.
    with pytest.raises(SystemExit) as ended:
        options("--config", "/nonexistent/x.toml")
    assert ended.value.code == (
        "/nonexistent/x.toml cannot be used:\n"
        "/nonexistent/x.toml: cannot be read: No such file or directory; "
        "`monrest config example` prints one"
    )
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
    assert lines[1] == "in a browser: http://127.0.0.1:8080/mon/docs/#key=KEY&user=admin"
    assert any(line.startswith("export MONREST_URL=unix:/tmp/d/monrest.sock ") for line in lines)
    assert len([line for line in lines if "/monrest r " in line]) == 2
    requests = [line for line in lines if line.startswith("curl ")]
    assert len(requests) == 3
    for line in requests:
        assert "-H 'X-Mon-Auth-Key: KEY' -H 'X-Mon-Auth-User: admin'" in line
