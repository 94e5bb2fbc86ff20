"""The parent of several workers: it makes what all of them share, starts them and looks after them.

It never runs a reactor and has no threads, so that it may fork at any time: a worker begins with
everything imported, and the memory for that is shared (docs/spec/workers.md).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import orjson
from attrs import define, field
from twisted.internet.protocol import Factory
from twisted.logger import Logger

from monrest.accounts.secret_key import SecretKeyError, read_or_create
from monrest.base.audit import audit
from monrest.base.daemon_node import DaemonNode
from monrest.base.workers import Workers, ended, marks
from monrest.config import Config, ConfigError
from monrest.config.sections import fixed_while_running
from monrest.daemon.garbage import keep
from monrest.daemon.inherited import Inherited
from monrest.daemon.listeners import StartError, bind, prepare_var_dir, release, spelled
from monrest.daemon.parent_line import ALIVE, LONGEST_MESSAGE, READY, RELOAD, STOP, ParentLine
from monrest.daemon.restart import read_again
from monrest.daemon.systemd import Notifier
from monrest.store.database import Database

_DAEMON = "(daemon)"
_LONGEST_PAUSE = 30.0
_STEADY = 60.0
"""Seconds after which a worker that ends is one that was well."""
_RELOAD_SECONDS = 60.0
"""Seconds for which the next worker waits with its reload for the one before."""
_LAST_SECONDS = 30.0
"""Seconds beyond the drain limit after which a worker that does not end is ended."""
_MOST_WAITING = 10_000
"""Messages for a worker that does not read; then it is ended."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


@define(eq=False)
class _Child:
    """A worker as its parent knows it; times by a clock that cannot be set.

    ``pid`` is 0 while there is no process, which begins again at ``due``.
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

    def hang_up(self) -> None:
        """Close the line."""
        if self.end is not None:
            self.end.close()
            self.end = None

    def over(self, now: float) -> float:
        """Take note that the process has ended; the seconds until the next one may begin."""
        self.pid, self.ready = 0, False
        self.hang_up()
        self.deaths = 0 if now - self.began >= _STEADY else self.deaths + 1
        pause = 0.0 if self.deaths <= 1 else min(2.0 ** (self.deaths - 2), _LONGEST_PAUSE)
        self.due = now + pause
        return pause

    def answers(self) -> None:
        """Take note that it is ready."""
        self.ready = True

    def lives(self, now: float) -> None:
        """Take note of a sign of life."""
        self.sign = now


@define(eq=False, kw_only=True)
class Parent:
    """``run`` returns in each worker, with what it inherits; in the parent it never returns.

    ``path`` is the configuration file. ``up`` is called when all workers answer for the first time,
    ``reloaded`` with a configuration that was read again.
    ``leave`` is what the process does at its end: after the workers have ended by the signal with
    that number, 0 where the node is to begin anew.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    config: Config
    count: int
    path: str
    up: Callable[[], object]
    reloaded: Callable[[Config], object]
    leave: Callable[[int], object]
    notifier: Notifier
    watchdog: float | None
    timer: Callable[[], float] = time.monotonic
    fork: Callable[[], int] = os.fork
    _children: tuple[_Child, ...] = field(init=False)
    _key: str = field(init=False, default="", repr=False)
    _node: DaemonNode = field(init=False)
    _ports: list[Any] = field(factory=list, init=False)
    _memory: memoryview = field(init=False)
    _wake: tuple[socket.socket, socket.socket] = field(init=False)
    _came: set[int] = field(factory=set, init=False)
    _is_up: bool = field(default=False, init=False)
    _ending: int | None = field(default=None, init=False)
    """The signal by which the parent ends, 0 when the node begins anew; None while it goes on."""
    _give_up: float = field(default=0.0, init=False)
    _reloading: deque[_Child] = field(factory=deque, init=False)
    _reload_until: float = field(default=0.0, init=False)
    _again: bool = field(default=False, init=False)
    _sign_due: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._children = tuple(_Child(number) for number in range(1, self.count + 1))
        self._memory = marks(self.count)

    def run(self) -> tuple[Inherited, ParentLine]:
        """Make what is shared, then start workers until the end; StartError and others."""
        self._prepare()
        self._wake = socket.socketpair()
        for one in self._wake:
            one.setblocking(False)
        for number in _SIGNALS:
            signal.signal(number, lambda number, _: self._came.add(number))
        signal.set_wakeup_fd(self._wake[1].fileno(), warn_on_full_buffer=False)
        # What is there stays for good: no collection looks at it, so that its memory stays shared.
        keep()
        while True:
            begun = self._start_due()
            if begun is not None:
                return begun
            if self._ending is not None and not any(child.pid for child in self._children):
                self._end()
            self._wait()
            self._look()

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
        now = self.timer()
        for child in self._children:
            if not child.pid and child.due <= now:
                near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                pid = self.fork()
                if not pid:
                    near.close()
                    return self._become(child, far)
                far.close()
                near.setblocking(False)
                child.begin(pid, near, now)
        return None

    def _become(self, own: _Child, end: socket.socket) -> tuple[Inherited, ParentLine]:
        """Be a worker: nothing of the parent's is left but what it inherits."""
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in self._wake:
            one.close()
        for child in self._children:
            # The others could not notice that the parent is gone while a worker has its ends.
            child.hang_up()
        bound = tuple(port.socket for port in self._ports)
        fresh(self.reactor)
        link = ParentLine(self.reactor, end)
        inherited = Inherited(
            workers=Workers(self.count, own.number, link.say, memory=self._memory),
            node=self._node,
            key=self._key,
            bound=bound,
            signs=self.watchdog,
        )
        return inherited, link

    def _wait(self) -> None:
        """Wait for a signal, a message, or the next thing that is due; take messages."""
        poll = select.poll()
        poll.register(self._wake[0], select.POLLIN)
        ends = {}
        for child in self._children:
            if child.end is not None:
                ends[child.end.fileno()] = child
                write = select.POLLOUT if child.waiting else 0
                poll.register(child.end, select.POLLIN | write)
        due = self._next_due()
        left = None if due is None else max(0.0, due - self.timer()) * 1000 + 1
        for number, event in poll.poll(left):
            if number == self._wake[0].fileno():
                with suppress(BlockingIOError):
                    self._wake[0].recv(4096)
                continue
            child = ends[number]
            if event & select.POLLOUT:
                self._send(child)
            if event & ~select.POLLOUT:
                self._take(child)

    def _next_due(self) -> float | None:
        due = []
        if self._ending is None:
            due += [child.due for child in self._children if not child.pid]
            if self.watchdog is not None:
                due.append(self._sign_due)
        else:
            due.append(self._give_up)
        if self._reloading:
            due.append(self._reload_until)
        return min(due, default=None)

    def _take(self, child: _Child) -> None:
        """Take all messages of a worker."""
        while child.end is not None:
            try:
                data = child.end.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                child.hang_up()
                return
            self._heard(child, data)

    def _heard(self, child: _Child, data: bytes) -> None:
        child.lives(self.timer())
        topic = orjson.loads(data)[0]
        if topic == READY:
            self._is_ready(child)
        elif topic != ALIVE:
            if topic == "node leaves":
                self._leaves()
            for other in self._children:
                if other is not child and other.ready:
                    self._tell(other, data)

    def _tell(self, child: _Child, data: bytes) -> None:
        child.waiting.append(data)
        if len(child.waiting) > _MOST_WAITING:
            self._kill(child, "it takes no messages")
        else:
            self._send(child)

    def _send(self, child: _Child) -> None:
        while child.waiting and child.end is not None:
            try:
                child.end.send(child.waiting[0])
            except BlockingIOError:
                return
            except OSError:
                child.waiting.clear()
                return
            child.waiting.popleft()

    def _look(self) -> None:
        """Do what signals and the time that has passed want."""
        came, self._came = self._came, set()
        self._reap()
        for number in (signal.SIGTERM, signal.SIGINT):
            if number in came and not self._ending:
                self._stop(number)
        if signal.SIGHUP in came and self._ending is None:
            self._reload()
        now = self.timer()
        if self._reloading and now >= self._reload_until:
            self._next_reload()
        if self._ending is not None:
            if now >= self._give_up:
                self._give_up = now + _LAST_SECONDS
                for child in self._children:
                    self._kill(child, "it does not end")
        elif self.watchdog is not None and now >= self._sign_due:
            self._sign_due = now + self.watchdog
            if self._is_up:
                self.notifier.watchdog()
            for child in self._children:
                if child.ready and now > child.sign + 2 * self.watchdog:
                    self._kill(child, "it gives no sign of life")

    def _reap(self) -> None:
        for child in self._children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._take(child)
                self._ended(child, os.waitstatus_to_exitcode(status))

    def _ended(self, child: _Child, status: int) -> None:
        pid, ready = child.pid, child.ready
        pause = child.over(self.timer())
        ended(self._memory, child.number, self.count)
        if self._reloading and self._reloading[0] is child:
            self._next_reload()
        elif child in self._reloading:
            self._reloading.remove(child)
        if self._ending is not None:
            return
        why = f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        if not self._is_up and not ready:
            self.log.error("worker {number} did not start: {why}", number=child.number, why=why)
            self._ending = -1
            self._end_all()
            return
        self.log.error(
            "worker {number} (process {pid}) has ended by {why}; it begins anew in {pause:g} s",
            number=child.number,
            pid=pid,
            why=why,
            pause=pause,
        )

    def _is_ready(self, child: _Child) -> None:
        if child.ready:
            if self._reloading and self._reloading[0] is child:
                self._next_reload()
            return
        child.answers()
        self.log.info("worker {number} is process {pid}", number=child.number, pid=child.pid)
        if not self._is_up and all(one.ready for one in self._children):
            self._is_up = True
            self.log.info(
                "{count} workers listen on {addresses}",
                count=self.count,
                addresses=", ".join(spelled(port.getHost()) for port in self._ports),
            )
            self._tell_ready()
            self.up()

    def _tell_ready(self) -> None:
        self.notifier.ready()
        self.notifier.status(f"{self.count} workers, {len(self.config.sites)} sites configured")

    def _kill(self, child: _Child, why: str) -> None:
        if child.pid:
            self.log.error("worker {number} is ended: {why}", number=child.number, why=why)
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.waiting.clear()

    def _reload(self) -> None:
        """Read the configuration again, and have one worker after the other do the same."""
        if self._reloading:
            self._again = True
            return
        self.notifier.reloading()
        try:
            config, key = read_again(self.path)
            problems: Sequence[str] = fixed_while_running(self.config, config)
        except ConfigError as error:
            problems = error.problems
        except (SecretKeyError, OSError) as error:
            problems = [f"auth.secret_key_file: {error}"]
        if problems:
            for problem in problems:
                self.log.warn("configuration not read again: {problem}", problem=problem)
            self.log.warn("the old configuration stays in force")
            audit(_DAEMON, None, "configuration reload", target=self.path, result="refused")
            self.notifier.ready()
            return
        self.config, self._key = config, key
        self.reloaded(config)
        # A worker that starts has the old one and hears of it as soon as it listens to its parent.
        self._reloading.extend(child for child in self._children if child.pid)
        self._next_reload(first=True)

    def _next_reload(self, *, first: bool = False) -> None:
        """Go on with the next worker, or be done; the one before had its time."""
        if not first:
            self._reloading.popleft()
        if self._reloading:
            self._reload_until = self.timer() + _RELOAD_SECONDS
            self._tell(self._reloading[0], orjson.dumps([RELOAD]))
            return
        self._tell_ready()
        if self._again:
            self._again = False
            self._reload()

    def _leaves(self) -> None:
        """Begin the restart of the node: workers end by themselves, when nothing is left to do."""
        if self._ending is None:
            self._ending = 0
            self.notifier.reloading()
            patience = self.config.cluster.restart_notice + 2 * self.config.server.drain_timeout
            self._give_up = self.timer() + patience + _LAST_SECONDS

    def _stop(self, number: int) -> None:
        self._ending = number
        self.notifier.stopping()
        self._end_all()

    def _end_all(self) -> None:
        """Have all workers end; they let requests finish and accept no new connection."""
        self._give_up = self.timer() + self.config.server.drain_timeout + _LAST_SECONDS
        for child in self._children:
            self._tell(child, orjson.dumps([STOP]))
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
        self.leave(self._ending or 0)
        raise AssertionError("the parent has ended")


def fresh(reactor: Any) -> None:
    """Make a reactor that has never run a new one, in a process that was forked."""
    # Closing what is shared with the parent changes nothing there.
    reactor._poller.close()
    reactor.__init__()
