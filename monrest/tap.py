"""``twistd monrest``: options, and the root service for them."""

from __future__ import annotations

import gc
import io
import linecache
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TextIO

from twisted.application.service import IService
from twisted.python.usage import Options as BaseOptions
from twisted.python.usage import UsageError

from monrest.base.clock import MachineClock, measure_spans
from monrest.base.log import LineObserver
from monrest.config import Config, ConfigError, load, loads

_HIGHEST_PORT = 65535
_DEMO_CONFIG = """
[server]
listen = ["tcp:{port}:interface=127.0.0.1", "unix:{folder}/monrest.sock"]
var_dir = "{folder}"

[log]
access = false

[auth.roles]
admin = ["admin"]

[webhooks]
allow = ["127.0.0.0/8", "::1"]

[[sites]]
id = "demo"
name = "Demo"
section = "Demo"
address = "unix:{folder}/live"

[sites.configtool]
core_conf = "{folder}/naemon.cfg"
obj_check_cmd = "{check}"
obj_reload_cmd = "{check} --restart {folder}/live"
"""
_DEMO_CORE = """\
# The embedded core of the demo reads the object files that are named here.
cfg_dir={folder}/objects
"""
_DEMO_REQUESTS = (
    "'{address}/hosts?columns=name,state,plugin_output&limit=5'",
    "'{address}/services/totals'",
    "-G '{address}/text/services' "
    "-d columns=host_name,description,state --data-urlencode 'q=state > 0'",
)
_DEMO_COMMANDS = (
    "r /hosts/totals",
    "r -t '/services?q=state>0&columns=host_name,description,plugin_output'",
    "events --snapshot   # what happens, as it happens; Ctrl-C ends it",
)


class Options(BaseOptions):
    """The options of the command line."""

    synopsis = "[--config FILE | --demo [--port PORT]] [--json-log]"
    longdesc = "A REST API in front of any number of Livestatus monitoring cores."
    optFlags: ClassVar[list[list[str]]] = [
        ["demo", "", "Run with an embedded, simulated core; leaves nothing behind."],
        ["json-log", "", "Log one JSON object per line instead of text."],
    ]
    optParameters: ClassVar[list[list[Any]]] = [
        ["config", "c", None, "The configuration file (TOML)."],
        ["port", "p", None, "With --demo: the port to listen on (default: 8080)."],
    ]

    config: Config | None = None

    def postOptions(self) -> None:
        """Read the configuration.

        UsageError for a wrong command line, which twistd answers with its usage. A wrong file is
        SystemExit with the reasons alone, because a usage would hide them.
        """
        if bool(self["demo"]) == (self["config"] is not None):
            raise UsageError("expected either --config FILE or --demo")
        if self["port"] is not None and not self["demo"]:
            raise UsageError("--port goes with --demo; otherwise use server.listen of the file")
        if self["demo"]:
            port = self["port"] or "8080"
            if not (port.isascii() and port.isdigit() and int(port) <= _HIGHEST_PORT):
                raise UsageError(f"--port: expected 0 to {_HIGHEST_PORT}, got {port!r}")
            return
        try:
            self.config = load(self["config"])
        except ConfigError as error:
            raise SystemExit(f"{self['config']} cannot be used:\n{error}") from None


def makeService(options: Options) -> IService:
    """Build the root service; the reactor is imported here and nowhere earlier."""
    _spare()
    # Threads make large answers: the reactor's thread waits no longer than this for its turn.
    sys.setswitchinterval(0.001)
    from twisted.internet import reactor

    measure_spans(reactor)
    from monrest.daemon.restart import Restart
    from monrest.daemon.service import Daemon
    from monrest.daemon.supervisor import Supervisor, processes

    observer = _observer(options)
    if options.config is not None:
        path = str(Path(options["config"]).resolve())
        twistd: Any = options.parent or {}
        restart = Restart(pidfile=twistd.get("pidfile") or "")
        if processes(options.config) > 1:
            return Supervisor(
                reactor=reactor,
                config=options.config,
                path=path,
                restart=restart,
                observer=observer,
                twistd=twistd,
            )
        return Daemon(
            config=options.config, reactor=reactor, path=path, observer=observer, restart=restart
        )

    from monrest.demo.service import DemoCore, demo_objects

    folder = tempfile.mkdtemp(prefix="monrest-demo-")
    core_conf = Path(folder, "naemon.cfg")
    core_conf.write_text(_DEMO_CORE.format(folder=folder))
    shutil.copytree(demo_objects(), Path(folder, "objects"))
    return Daemon(
        config=loads(_demo_config(options["port"] or "8080", folder)),
        reactor=reactor,
        observer=observer,
        core=DemoCore(reactor, MachineClock(), f"{folder}/live", objects_dir=core_conf),
        on_ready=lambda address, key: _announce(address, key, f"{folder}/monrest.sock"),
        on_stopped=lambda: shutil.rmtree(folder, ignore_errors=True),
        port_hint="; make demo PORT=9000, or --port 9000, takes another port",
    )


def _spare() -> None:
    """Make imports from now on cheap in time and memory.

    It stays, so that it is looked at for garbage only while it is new: everything else took a
    fifth of the start.
    """
    gc.set_threshold(10_000, 10, 1_000_000)
    if _forget_lines not in gc.callbacks:
        gc.callbacks.append(_forget_lines)


def _forget_lines(*_: object) -> None:
    """Free cached lines of code, 2 MB of those that attrs makes; a traceback reads them again."""
    linecache.clearcache()


def _demo_config(port: str, folder: str) -> str:
    """The configuration; the check command is this program, wherever it is started from."""
    code = Path(__file__).resolve().parent.parent
    command = f"PYTHONPATH={shlex.quote(str(code))} {shlex.quote(sys.executable)} -m monrest.demo"
    check = f"{command} --check-config {shlex.quote(f'{folder}/naemon.cfg')}"
    check = check.replace("\\", "\\\\").replace('"', '\\"')
    return _DEMO_CONFIG.format(port=port, folder=folder, check=check)


def _observer(options: Options) -> LineObserver | None:
    """Write our lines to standard output or ``--logfile``; None leaves twistd's own choice."""
    twistd: Any = options.parent or {}
    if twistd.get("syslog") or twistd.get("logger"):
        return None
    logfile = twistd.get("logfile")
    if not logfile and not twistd.get("nodaemon"):
        logfile = "twistd.log"
    stream: TextIO = sys.stdout
    if logfile and logfile != "-":
        stream = Path(logfile).open("a", encoding="utf-8")  # noqa: SIM115  open to the end
    elif isinstance(stream, io.TextIOWrapper):
        # Some locales have no letter for every name, and a line that cannot be written is lost.
        stream.reconfigure(errors="backslashreplace")
    return LineObserver(stream, as_json=bool(options["json-log"]), journal=is_journal(stream))


def is_journal(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ``stream`` goes to the journal of systemd, which takes priorities in lines."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # no file
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _announce(address: str, key: str, path: str) -> None:
    """Print where the demo is and what to paste; ``path`` is its Unix socket."""
    headers = f"-H 'X-Mon-Auth-Key: {key}' -H 'X-Mon-Auth-User: admin'"
    explorer = f"{address.removesuffix('/r')}/docs/#key={key}&user=admin"
    lines = [f"monrest demo: {address}/  key {key}  user admin", f"in a browser: {explorer}", ""]
    lines += [f"curl -s {headers} {text.format(address=address)}" for text in _DEMO_REQUESTS]
    command = Path(sys.executable).with_name("monrest")
    lines += ["", f"export MONREST_URL=unix:{path}   # needs no key here, or:"]
    lines += [f"export MONREST_URL={address} MONREST_KEY={key} MONREST_USER=admin"]
    lines += [f"{command} {text}" for text in _DEMO_COMMANDS]
    print("\n".join(lines), end="\n\n", file=sys.__stdout__, flush=True)
