"""The declaration of a family, and the parts that all families share.

Rules: docs/architecture.md, "A new family".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import define, field, frozen
from twisted.application.service import Service

from monrest.api.endpoint import Context, Endpoint
from monrest.base.answer_file import AnswerFiles
from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.daemon_node import DaemonNode
from monrest.base.meters import Meters
from monrest.base.metrics import Metrics
from monrest.base.room import RowRoom
from monrest.base.values import Caller, Identity
from monrest.base.workers import Workers
from monrest.config import Config
from monrest.sites.registry import Registry
from monrest.store.database import Database
from monrest.store.database_health import DatabaseHealth
from monrest.store.duties import Duties

AsUser: TypeAlias = Callable[[str, frozenset[str] | None], Awaitable[Identity]]
"""Returns the identity of a user who is not here, with at most these roles; None: all of theirs."""

Kind = TypeVar("Kind", bound=Service)


@define(eq=False, kw_only=True, repr=False)
class Common:
    """The parts that all families share, each made once for the life of a process.

    ``config``, ``key`` (the secret one, which the nodes of a cluster share) and ``context`` are
    those in force, ``path`` is the file of the configuration, if it has one, ``folder`` that of the
    state. ``who`` returns the identity of a caller. ``machine`` is the clock of this machine and
    ``wall`` that of all daemons that share the database. ``node`` is this daemon and ``process``
    this process of it; both are known when families are opened. ``answers`` are the threads that
    make large answers. ``connect`` returns another database and its clock. ``does``: whether this
    process has the duty of a name, which one of all has. ``may_restart`` returns what is in the way
    of a restart, empty for nothing.
    """

    reactor: Any
    machine: WallClock
    config: Config
    path: str
    who: Callable[[Caller], Awaitable[Identity]]
    as_user: AsUser
    folder: Path = field(init=False)
    key: str = field(init=False)
    context: Context = field(init=False)
    node: DaemonNode = field(init=False)
    process: DaemonNode = field(init=False)
    workers: Workers = field(init=False)
    wall: WallClock = field(init=False)
    registry: Registry = field(init=False)
    threads: Threads = field(init=False)
    answers: Threads = field(init=False)
    files: AnswerFiles = field(init=False)
    room: RowRoom = field(init=False)
    database: Database = field(init=False)
    health: DatabaseHealth = field(init=False)
    duties: Duties = field(init=False)
    figures: Metrics = field(init=False)
    meters: Meters = field(init=False)
    connect: Callable[[str], tuple[Database, WallClock]] = field(init=False)
    does: Callable[[str], bool] = field(init=False)
    may_restart: Callable[[], Awaitable[str]] = field(init=False)
    restart: Callable[[], object] = field(init=False)
    _services: dict[type[Service], Service] = field(factory=dict, init=False)

    def the(self, kind: type[Kind]) -> Kind:
        """Return the service of another family, which stands before this one in the registry."""
        service = self._services[kind]
        assert isinstance(service, kind)
        return service


@frozen
class Served:
    """Some endpoints with the object whose methods answer there, made once for a configuration.

    None where a request has all that its handlers need.
    """

    endpoints: tuple[Endpoint, ...]
    handlers: Callable[[Common], object] = lambda _: None


@frozen
class Life(Generic[Kind]):
    """The service of a family, and the steps of its life.

    ``service`` makes it, once, and offers its figures; the steps are given what was made. ``open``
    gets it ready before the reactor turns: it may block, and may fail, which ends the start. Once
    the reactor runs it is started. ``configure`` gives it another configuration,
    ``leave`` announces that the daemon stops after so many seconds; then it is stopped.
    """

    service: Callable[[Common], Kind]
    open: Callable[[Common, Kind], object] = lambda _common, _service: None
    configure: Callable[[Common, Kind], Awaitable[None] | None] = lambda _common, _service: None
    leave: Callable[[Kind, float], Coroutine[Any, Any, None] | None] = lambda _service, _seconds: (
        None
    )


@frozen
class Family:
    """All that a family is made of: what it answers, and what it does by itself, if anything."""

    served: tuple[Served, ...]
    life: Life[Any] | None = None
