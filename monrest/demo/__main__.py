"""``python -m monrest.demo``: the embedded core on its own, as a test bench and a demo.

It simulates a core: nothing is checked, no contact is notified. It answers Livestatus on a Unix
socket and prints ``ready`` when it does; SIGTERM ends it and removes the socket, SIGHUP makes it
read its object files again. A request that a real core does not survive ends it too, with status 1
and the line at fault; so do files that do not load. With
``--check-config`` it only says what is wrong with object files, and with ``--restart`` it then
makes a running core read them again.
"""

from __future__ import annotations

import argparse
import gc
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from twisted.internet.error import CannotListenError

from monrest.base.clock import MachineClock, measure_spans
from monrest.demo.inventory import ObjectConfigError
from monrest.demo.service import DemoCore, report

ENDED = "the core has ended: "
"""The text before the reason when the core ends by itself."""

_PATIENCE = 10.0
"""Seconds for a core to take an order."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m monrest.demo",
        description="A simulated core that speaks Livestatus: a test bench and a demo.",
    )
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--socket", metavar="PATH", help="Unix socket to listen on")
    does.add_argument(
        "--check-config", type=Path, metavar="PATH", help="check object files and end"
    )
    parser.add_argument(
        "--restart",
        metavar="PATH",
        help="after a check without errors: socket of a core to restart",
    )
    parser.add_argument(
        "--objects", type=Path, metavar="PATH", help="folder of object files, or a main file"
    )
    parser.add_argument("--hosts", type=int, metavar="N", help="invent a site with N hosts")
    parser.add_argument("--services", type=int, metavar="M", help="and M services")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of all accidents")
    parser.add_argument(
        "--history", type=float, default=2, metavar="DAYS", help="days of log to invent"
    )
    return parser.parse_args()


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def _check(path: Path, core: str | None) -> int:
    """Print what is wrong with object files; without errors restart the core at a socket."""
    status, text = report(path)
    if status == 0 and core is not None:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_PATIENCE)
                connection.connect(core)
                order = f"COMMAND [{int(MachineClock().now())}] RESTART_PROCESS\n\n"
                connection.sendall(order.encode("ascii"))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        except OSError as error:
            status, text = 1, f"{text}Error: cannot restart the core: {error.strerror}\n"
    sys.stdout.write(text)
    return status


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 1 when it cannot start."""
    options = _arguments()
    if options.check_config is not None:
        sys.exit(_check(options.check_config, options.restart))
    from twisted.internet import reactor

    core: Any = reactor
    measure_spans(core)
    service = DemoCore(
        reactor,
        MachineClock(),
        options.socket,
        objects_dir=options.objects,
        seed=options.seed,
        hosts=options.hosts,
        services=options.services,
        history_days=options.history,
        on_end=lambda: core.callLater(0, core.stop),
    )
    # Making a large site with the collector on takes twice as long.
    gc.disable()
    try:
        service.startService()
    except (ObjectConfigError, CannotListenError, OSError) as error:
        sys.exit(f"cannot start the demo core:\n{error}")
    core.addSystemEventTrigger("before", "shutdown", service.stopService)
    # A site is many small objects that stay: keep them out of every collection.
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 50, 50)
    signal.signal(signal.SIGHUP, lambda *_: core.callFromThread(service.reload))
    core.callWhenRunning(_say_ready)
    core.run()
    if service.ended:
        sys.exit(f"{ENDED}{service.ended}")


if __name__ == "__main__":
    main()
