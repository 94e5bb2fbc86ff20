"""The root service where there are several workers: in each of them it is a daemon.

In the parent it looks after the workers, and never returns to run a reactor.
"""

from __future__ import annotations

import importlib
import os
import signal
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver

from monrest.base.clock import measure_spans
from monrest.base.log import LineObserver
from monrest.config import Config
from monrest.daemon.inherited import Inherited
from monrest.daemon.listeners import error_text
from monrest.daemon.parent import Parent
from monrest.daemon.parent_line import RELOAD, STOP, ParentLine, ParentNotifier
from monrest.daemon.restart import Restart
from monrest.daemon.service import IN_THE_WAY, Daemon, configure_log, introduce
from monrest.daemon.systemd import Notifier, watchdog_interval

_LATER = ("klein", "twisted.web.template", "werkzeug.routing")
"""What a daemon imports only when it starts; workers share the memory for it."""


def processes(config: Config) -> int:
    """Give how many workers there are: one for each processor where the configuration says 0."""
    return config.server.workers or len(os.sched_getaffinity(0))


@define(eq=False, kw_only=True, repr=False)
class Supervisor(Service):
    """``twistd`` are the options of the program, of which a worker leaves some to its parent."""

    reactor: Any
    config: Config
    path: str
    restart: Restart
    observer: LineObserver | None
    twistd: Any
    daemon: Daemon = field(init=False)
    _stopping: bool = field(default=False, init=False)

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and take over its log lines."""
        super().setServiceParent(parent)
        if self.observer is not None:
            parent.setComponent(ILogObserver, self.observer)

    def startService(self) -> None:
        """Look after workers until the end, or be one; ends the process when it cannot start."""
        super().startService()
        self._configure_log(self.config)
        introduce(Daemon.log, self.config, self.path)
        for name in _LATER:
            importlib.import_module(name)
        parent = Parent(
            reactor=self.reactor,
            config=self.config,
            count=processes(self.config),
            path=self.path,
            up=self._detach,
            reloaded=self._configure_log,
            leave=self._leave,
            notifier=Notifier.from_environment(),
            watchdog=watchdog_interval(),
        )
        try:
            inherited, link = parent.run()
        except IN_THE_WAY as error:
            raise SystemExit(f"monrest: {error_text(error)}") from None
        self._become(inherited, link, parent.config)

    def _become(self, inherited: Inherited, link: ParentLine, config: Config) -> None:
        measure_spans(self.reactor)
        # The file with the number of the process is the parent's.
        self.twistd["pidfile"] = ""
        self._detach(status=b"")
        if self.observer is not None:
            self.observer.name_worker(inherited.workers.number)
        self.daemon = Daemon(
            config=config,
            reactor=self.reactor,
            path=self.path,
            observer=self.observer,
            notifier=ParentNotifier(say=link.say),
            # It is the parent that begins anew, when all workers have ended.
            restart=lambda: None,
            inherited=inherited,
        )

        orders = {RELOAD: self.daemon.reload, STOP: self._stop}

        def orphaned() -> None:
            # Without a parent: what is started now is this node.
            self.daemon.parts.process.close()
            self.daemon.log.error("the parent is gone: this worker ends")
            self._stop()

        def running() -> None:
            # A service manager tells every process, and so does the parent: once is enough.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.reactor.callFromThread(self._stop))
            link.start(inherited.workers.heard, orphaned, orders)

        self.reactor.callWhenRunning(running)
        self.daemon.startService()

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self.reactor.stop()

    def stopService(self) -> Deferred[None]:
        """Stop the daemon of this worker."""
        super().stopService()
        return self.daemon.stopService()

    def _detach(self, status: bytes = b"0") -> None:
        """Tell the shell that started this in the background that all is well."""
        pipe, self.twistd["statusPipe"] = self.twistd.get("statusPipe"), None
        if pipe is not None:
            os.write(pipe, status)
            os.close(pipe)

    def _configure_log(self, config: Config) -> None:
        configure_log(self.observer, config.log)

    def _leave(self, number: int) -> None:
        """End by a signal, as a daemon without workers does; 0: begin anew."""
        if self.observer is not None:
            self.observer.flush()
        if number == 0:
            self.restart()
        self.restart.remove_pidfile()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
