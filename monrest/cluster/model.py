"""Nodes: their stored rows, their answers, and the results of calls of this daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from attrs import frozen

from monrest.store.stored import KEY, StoredRow, stored

_LONGEST_TEXT = 1000


class PeerError(Exception):
    """A node did not answer as a node; the text says why, in short."""


@stored("cluster_nodes")
@frozen(kw_only=True)
class Member(StoredRow):
    """A node as it has entered itself in the database.

    ``id`` stays as long as its folder, ``run`` differs at every start. ``url`` is empty until it is
    known, ``maintenance`` when that began, 0 for none.
    """

    id: Annotated[int, KEY]
    run: int
    url: str = ""
    host: str
    pid: int
    version: str
    maintenance: int = 0


@frozen(kw_only=True)
class Pong:
    """The answer of a node to a call.

    ``time`` is its clock. ``ready``: requests should be sent to it. ``maintenance`` is since when
    it should not be, 0 for no maintenance.
    """

    time: float
    node_id: str
    run: int
    hostname: str
    version: str
    pid: int
    maintenance: int
    ready: bool

    @property
    def member(self) -> Member:
        """The node as far as it says what it is."""
        return Member(
            id=0,
            run=self.run,
            host=self.hostname,
            pid=self.pid,
            version=self.version,
            maintenance=self.maintenance,
        )

    @property
    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SHOWN}

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Pong:
        """Read an answer; PeerError when it is none."""
        given: dict[str, Any] = {}
        for name, kinds in _KINDS.items():
            item = value.get(name)
            if type(item) not in kinds or (isinstance(item, str) and len(item) > _LONGEST_TEXT):
                raise PeerError(f"wrong answer: {name}")
            given[name] = item
        return cls(**given)


_SHOWN = ("time", "node_id", "hostname", "version", "maintenance")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "time": (float, int),
    "node_id": (str,),
    "run": (int,),
    "hostname": (str,),
    "version": (str,),
    "pid": (int,),
    "maintenance": (int,),
    "ready": (bool,),
}


@frozen(kw_only=True)
class Seen:
    """The results of this daemon's own calls to a node; times in Unix seconds and seconds."""

    last_contact: float = 0.0
    response_time: float = 0.0
    last_error: str = ""
    pong: Pong | None = None


WAITING = "waiting"
ORDERED = "ordered"
LEAVING = "leaving"
DONE = "done"
FAILED = "failed"
SKIPPED = "skipped"
OPEN = (WAITING, ORDERED, LEAVING)


@stored("cluster_restarts")
@frozen(kw_only=True)
class RestartStep(StoredRow):
    """The restart of one node: ``run`` is what is to end, ``changed`` when it came to ``state``.

    Nodes are restarted in the order of ``position``.
    """

    position: Annotated[int, KEY]
    node: int
    run: int
    url: str
    state: str = WAITING
    message: str = ""
    changed: int = 0
