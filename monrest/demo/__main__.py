"""``python -m monrest.demo``: the embedded core on its own, as a test bench and a demo.

It simulates a core: nothing is checked, nobody is notified. It answers Livestatus on a Unix
socket and prints ``ready`` when it does; SIGTERM ends it and removes the socket.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import cast

from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IReactorCore

from monrest.demo.service import DemoCore
from monrest.objectconfig.parser import ObjectConfigError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m monrest.demo",
        description="A simulated core that speaks Livestatus: a test bench and a demo.",
    )
    parser.add_argument("--socket", required=True, metavar="PATH", help="Unix socket to listen on")
    parser.add_argument("--objects", type=Path, metavar="DIR", help="object files (etc/demo)")
    parser.add_argument("--hosts", type=int, metavar="N", help="invent a site with N hosts")
    parser.add_argument("--services", type=int, metavar="M", help="and M services")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of all accidents")
    parser.add_argument(
        "--history", type=float, default=2, metavar="DAYS", help="days of log to invent"
    )
    parser.add_argument("--listen-tcp", type=int, metavar="PORT", help="also 127.0.0.1:PORT")
    return parser.parse_args()


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 1 when it cannot start."""
    options = _arguments()
    from twisted.internet import reactor

    service = DemoCore(
        reactor,
        options.socket,
        objects_dir=options.objects,
        seed=options.seed,
        hosts=options.hosts,
        services=options.services,
        history_days=options.history,
        tcp_port=options.listen_tcp,
    )
    # Making a large site with the collector on takes twice as long.
    gc.disable()
    try:
        service.startService()
    except (ObjectConfigError, CannotListenError, OSError) as error:
        sys.exit(f"cannot start the demo core:\n{error}")
    core = cast("IReactorCore", reactor)
    core.addSystemEventTrigger("before", "shutdown", service.stopService)
    # A site is many small objects that stay: keep them out of every collection.
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 50, 50)
    core.callWhenRunning(_say_ready)
    core.run()


if __name__ == "__main__":
    main()
