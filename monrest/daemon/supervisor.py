"""The root service where there are several workers: it makes what all share, and looks after them.

The parent never runs a reactor and has no threads, so that it may fork at any time: a worker begins
with everything imported, and the memory for that is shared (docs/spec/workers.md).
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import orjson
from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.logger import ILogObserver, Logger

from monrest.accounts.secret_key import read_or_create
from monrest.base.clock import measure_spans
from monrest.base.daemon_node import DaemonNode
from monrest.base.log import LineObserver
from monrest.base.workers import Workers, ended, marks
from monrest.config import Config, ConfigError
from monrest.daemon.garbage import keep
from monrest.daemon.listeners import (
    StartError,
    bind,
    error_text,
    prepare_var_dir,
    release,
    spelled,
)
from monrest.daemon.restart import Restart, read_again, refuse_reload
from monrest.daemon.service import IN_THE_WAY, Daemon, configure_log, introduce
from monrest.daemon.systemd import Notifier, watchdog_interval
from monrest.daemon.worker import (
    ALIVE,
    LONGEST_MESSAGE,
    READY,
    Inherited,
    ParentLine,
    ParentNotifier,
)
from monrest.store.database import Database

_LATER = ("klein", "twisted.web.template", "werkzeug.routing")
"""Modules that a daemon imports only when it starts; workers share their memory."""
_LOOK_SECONDS = 0.25
"""Between two looks at signals and at what is due; messages are seen at once."""
_LONGEST_PAUSE = 30.0
_STEADY = 60.0
"""Seconds after which a worker that ends is one that was well."""
_RELOAD_SECONDS = 60.0
"""Seconds for which the next worker waits with its reload for the one before."""
_LAST_SECONDS = 30.0
"""Seconds beyond the drain limit after which a worker that does not end is ended."""
_MOST_WAITING = 10_000
"""Messages for a worker that does not read; then it is ended."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def processes(config: Config) -> int:
    """The number of workers: one for each processor where the configuration has 0."""
    return config.server.workers or len(os.sched_getaffinity(0))


@define(eq=False)
class Worker:
    """A worker as its parent knows it; times by a clock that cannot be set.

    ``pid`` is 0 while there is no process, which begins again at ``due``. ``sign`` is the time of
    its last message.
    """

    number: int
    pid: int = 0
    end: socket.socket | None = None
    ready: bool = False
    began: float = 0.0
    due: float = 0.0
    deaths: int = 0
    sign: float = 0.0
    waiting: deque[bytes] = field(factory=deque)

    def begin(self, pid: int, end: socket.socket, now: float) -> None:
        """Take note of the process."""
        self.pid, self.end, self.ready = pid, end, False
        self.began = self.sign = now
        self.waiting.clear()

    def over(self, now: float) -> float:
        """Take note that the process has ended; the seconds until the next one may begin."""
        self.pid, self.ready = 0, False
        self.hang_up()
        self.deaths = 0 if now - self.began >= _STEADY else self.deaths + 1
        pause = 0.0 if self.deaths <= 1 else min(2.0 ** (self.deaths - 2), _LONGEST_PAUSE)
        self.due = now + pause
        return pause

    def answers(self) -> None:
        """Take note that it answers requests."""
        self.ready = True

    def lives(self, now: float) -> None:
        """Take note of a message."""
        self.sign = now

    def hang_up(self) -> None:
        """Close the line."""
        if self.end is not None:
            self.end.close()
            self.end = None

    def signal(self, number: int) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


@define(eq=False, kw_only=True, repr=False)
class Supervisor(Service):
    """In the parent ``startService`` never returns; in each worker it starts the daemon.

    ``path`` is the configuration file. ``twistd`` are the options of the program, of which a worker
    leaves some to its parent.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    config: Config
    path: str
    restart: Restart
    observer: LineObserver | None
    twistd: Any
    daemon: Daemon = field(init=False)
    notifier: Notifier = field(factory=Notifier.from_environment)
    watchdog: float | None = field(factory=watchdog_interval)
    _workers: tuple[Worker, ...] = field(init=False)
    _key: str = field(init=False, default="", repr=False)
    _node: DaemonNode = field(init=False)
    _ports: list[Any] = field(factory=list, init=False)
    _memory: memoryview = field(init=False)
    _came: set[int] = field(factory=set, init=False)
    _is_up: bool = field(default=False, init=False)
    _ending: int | None = field(default=None, init=False)
    """The signal by which the parent ends, 0 when the node restarts; None while it runs."""
    _give_up: float = field(default=0.0, init=False)
    _reloading: deque[Worker] = field(factory=deque, init=False)
    """The worker that reads its configuration again, and those that do so after it."""
    _reload_until: float = field(default=0.0, init=False)
    _again: bool = field(default=False, init=False)
    _sign_due: float = field(default=0.0, init=False)
    _stopping: bool = field(default=False, init=False)

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and take over its log lines."""
        super().setServiceParent(parent)
        if self.observer is not None:
            parent.setComponent(ILogObserver, self.observer)

    def startService(self) -> None:
        """Look after workers until the end, or be one; ends the process when it cannot start."""
        super().startService()
        configure_log(self.observer, self.config.log)
        introduce(Daemon.log, self.config, self.path)
        for name in _LATER:
            importlib.import_module(name)
        try:
            inherited, line = self._look_after_workers()
        except IN_THE_WAY as error:
            raise SystemExit(f"monrest: {error_text(error)}") from None
        self._become(inherited, line)

    def stopService(self) -> Deferred[None]:
        """Stop the daemon of this worker."""
        super().stopService()
        return self.daemon.stopService()

    def _look_after_workers(self) -> tuple[Inherited, ParentLine]:
        """Make what is shared, then start workers until the end; returns in each of them."""
        count = processes(self.config)
        self._workers = tuple(Worker(number) for number in range(1, count + 1))
        self._memory = marks(count)
        self._prepare()
        for number in _SIGNALS:
            signal.signal(number, lambda number, _: self._came.add(number))
        # What is there stays for good: no collection looks at it, so that its memory stays shared.
        keep()
        while True:
            inheritance = self._start_due()
            if inheritance is not None:
                return inheritance
            if self._ending is not None and not any(worker.pid for worker in self._workers):
                self._end()
            self._wait()
            self._reap()
            self._obey()
            self._watch(time.monotonic())

    def _prepare(self) -> None:
        config = self.config
        prepare_var_dir(Path(config.server.var_dir))
        self._key = read_or_create(Path(config.auth.secret_key_file))
        for url in dict.fromkeys((config.database.url, config.logcache.url)):
            if url:
                Database(self.reactor, url, patience=60.0).migrate()
        self._node = DaemonNode.open(Path(config.server.var_dir))
        for text in config.server.listen:
            self._ports.append(bind(self.reactor, text, Factory()))

    def _start_due(self) -> tuple[Inherited, ParentLine] | None:
        """Start workers whose time has come; what a worker inherits, in its process."""
        if self._ending is not None:
            return None
        now = time.monotonic()
        for worker in self._workers:
            if not worker.pid and worker.due <= now:
                near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                # Python forgets a signal that comes to a process which was just forked.
                signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
                pid = os.fork()
                if not pid:
                    near.close()
                    return self._inherit(worker, far)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
                far.close()
                near.setblocking(False)
                worker.begin(pid, near, now)
        return None

    def _inherit(self, own: Worker, end: socket.socket) -> tuple[Inherited, ParentLine]:
        """The part of the parent that this worker keeps; all else of the parent is closed."""
        # A reload that comes while the worker starts is noted, and obeyed when it runs.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for worker in self._workers:
            # The others could not notice that the parent is gone while a worker has its ends.
            worker.hang_up()
        bound = tuple(port.socket for port in self._ports)
        # A reactor that has never run becomes a new one. Closing what it shares with the parent
        # changes nothing there.
        self.reactor._poller.close()
        self.reactor.__init__()
        line = ParentLine(self.reactor, end)
        inherited = Inherited(
            workers=Workers(len(self._workers), own.number, line.send, memory=self._memory),
            node=self._node,
            key=self._key,
            bound=bound,
            signs=self.watchdog,
        )
        return inherited, line

    def _become(self, inherited: Inherited, line: ParentLine) -> None:
        """Start the daemon of this worker."""
        measure_spans(self.reactor)
        # The file with the number of the process is the parent's.
        self.twistd["pidfile"] = ""
        self._detach(status=b"")
        if self.observer is not None:
            self.observer.name_worker(inherited.workers.number)
        self.daemon = Daemon(
            config=self.config,
            reactor=self.reactor,
            path=self.path,
            observer=self.observer,
            notifier=ParentNotifier(send=line.send),
            # The parent restarts, when all workers have ended.
            restart=lambda: None,
            inherited=inherited,
        )

        def stop() -> None:
            # A service manager signals every process, and so does the parent: once is enough.
            if not self._stopping:
                self._stopping = True
                self.reactor.stop()

        def orphaned() -> None:
            # Without a parent: what is started now is this node.
            self.daemon.parts.process.close()
            self.daemon.log.error("the parent is gone: this worker ends")
            stop()

        def running() -> None:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.reactor.callFromThread(stop))
            line.listen(inherited.workers.heard, orphaned)
            if signal.SIGHUP in self._came:
                self.daemon.reload()

        self.daemon.startService()
        self.reactor.callWhenRunning(running)

    def _detach(self, status: bytes = b"0") -> None:
        """Notify the shell that started this in the background that all is well."""
        pipe, self.twistd["statusPipe"] = self.twistd.get("statusPipe"), None
        if pipe is not None:
            os.write(pipe, status)
            os.close(pipe)

    def _wait(self) -> None:
        """Wait for a message or the next look; take messages."""
        poll = select.poll()
        ends = {worker.end.fileno(): worker for worker in self._workers if worker.end is not None}
        for number, worker in ends.items():
            poll.register(number, select.POLLIN | (select.POLLOUT if worker.waiting else 0))
        for number, event in poll.poll(_LOOK_SECONDS * 1000):
            worker = ends[number]
            if event & select.POLLOUT:
                self._send(worker)
            if event & ~select.POLLOUT:
                self._take(worker)

    def _take(self, worker: Worker) -> None:
        """Take all messages of a worker; those that are not for the parent go to the others."""
        while worker.end is not None:
            try:
                data = worker.end.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                worker.hang_up()
                return
            worker.lives(time.monotonic())
            topic = orjson.loads(data)[0]
            if topic == READY:
                self._is_ready(worker)
                continue
            if topic == ALIVE:
                continue
            if topic == "node leaves":
                self._leaves()
            for other in self._workers:
                if other is not worker and other.ready:
                    other.waiting.append(data)
                    self._send(other)

    def _send(self, worker: Worker) -> None:
        while worker.waiting and worker.end is not None:
            try:
                worker.end.send(worker.waiting[0])
            except BlockingIOError:
                if len(worker.waiting) > _MOST_WAITING:
                    self._kill(worker, "it takes no messages")
                return
            except OSError:
                worker.waiting.clear()
                return
            worker.waiting.popleft()

    def _reap(self) -> None:
        for worker in self._workers:
            if not worker.pid:
                continue
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._take(worker)
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: Worker, status: int) -> None:
        pid, ready = worker.pid, worker.ready
        pause = worker.over(time.monotonic())
        ended(self._memory, worker.number, len(self._workers))
        if self._reloading and self._reloading[0] is worker:
            self._next_reload()
        elif worker in self._reloading:
            self._reloading.remove(worker)
        if self._ending is not None:
            return
        why = f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        if not self._is_up and not ready:
            self.log.error("worker {number} did not start: {why}", number=worker.number, why=why)
            self._end_all(-1)
            return
        self.log.error(
            "worker {number} (process {pid}) has ended by {why}; it starts again in {pause:g} s",
            number=worker.number,
            pid=pid,
            why=why,
            pause=pause,
        )

    def _obey(self) -> None:
        """Do what the signals want that have come."""
        came, self._came = self._came, set()
        for number in (signal.SIGTERM, signal.SIGINT):
            if number in came and not self._ending:
                self.notifier.stopping()
                self._end_all(number)
        if signal.SIGHUP in came and self._ending is None:
            self._reload()

    def _watch(self, now: float) -> None:
        """Do what is due, and end workers that do not do what they should."""
        if self._reloading and now >= self._reload_until:
            self._next_reload()
        if self._ending is not None:
            if now >= self._give_up:
                self._give_up = now + _LAST_SECONDS
                for worker in self._workers:
                    self._kill(worker, "it does not end")
        elif self.watchdog is not None and now >= self._sign_due:
            self._sign_due = now + self.watchdog
            if self._is_up:
                self.notifier.watchdog()
            for worker in self._workers:
                if worker.ready and now > worker.sign + 2 * self.watchdog:
                    self._kill(worker, "it gives no sign of life")

    def _kill(self, worker: Worker, why: str) -> None:
        if worker.pid:
            self.log.error("worker {number} is ended: {why}", number=worker.number, why=why)
            worker.signal(signal.SIGKILL)
            worker.waiting.clear()

    def _is_ready(self, worker: Worker) -> None:
        """A worker answers requests, for the first time or after a reload."""
        if worker.ready:
            if self._reloading and self._reloading[0] is worker:
                self._next_reload()
            return
        worker.answers()
        self.log.info("worker {number} is process {pid}", number=worker.number, pid=worker.pid)
        if not self._is_up and all(worker.ready for worker in self._workers):
            self._is_up = True
            self.log.info(
                "{count} workers listen on {addresses}",
                count=len(self._workers),
                addresses=", ".join(spelled(port.getHost()) for port in self._ports),
            )
            self._notify_ready()
            self._detach()

    def _notify_ready(self) -> None:
        self.notifier.ready()
        self.notifier.status(
            f"{len(self._workers)} workers, {len(self.config.sites)} sites configured"
        )

    def _reload(self) -> None:
        """Read the configuration again, and have one worker after the other do the same."""
        if self._reloading:
            self._again = True
            return
        self.notifier.reloading()
        try:
            self.config, self._key = read_again(self.path, self.config)
        except ConfigError as error:
            refuse_reload(self.log, self.path, error)
            self.notifier.ready()
            return
        configure_log(self.observer, self.config.log)
        # A worker that starts has the old one.
        self._reloading.extend(worker for worker in self._workers if worker.pid)
        self._begin_reload()

    def _begin_reload(self) -> None:
        """Let the first of the waiting workers read the configuration, or end the reload."""
        if self._reloading:
            self._reload_until = time.monotonic() + _RELOAD_SECONDS
            self._reloading[0].signal(signal.SIGHUP)
            return
        self._notify_ready()
        if self._again:
            self._again = False
            self._reload()

    def _next_reload(self) -> None:
        self._reloading.popleft()
        self._begin_reload()

    def _leaves(self) -> None:
        """Begin the restart of the node: workers end by themselves, when nothing is left to do."""
        if self._ending is None:
            self._ending = 0
            self.notifier.reloading()
            patience = self.config.cluster.restart_notice + 2 * self.config.server.drain_timeout
            self._give_up = time.monotonic() + patience + _LAST_SECONDS

    def _end_all(self, number: int) -> None:
        """End all workers; they finish their requests and accept no new connection."""
        self._ending = number
        self._give_up = time.monotonic() + self.config.server.drain_timeout + _LAST_SECONDS
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        self._close()

    def _close(self) -> None:
        ports, self._ports = self._ports, []
        for port in ports:
            release(port)

    def _end(self) -> None:
        """End the process as it was asked to."""
        self._close()
        self._node.close()
        if self._ending == -1:
            raise StartError("the workers did not start")
        self.log.info("stopped")
        number = self._ending or 0
        if number == 0:
            self.restart()
        # As a daemon without workers ends.
        self.restart.remove_pidfile()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        raise AssertionError("the parent has ended")
