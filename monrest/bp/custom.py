"""Functions and filters of one's own, in Python files of a folder (docs/spec/bp.md, "Functions").

``def NAME_function(context, process, node, args, children, livedata)`` returns ``(status, short)``
and, if wanted, a text and a dictionary of attributes of the node. ``def NAME_filter(stage,
context, process, node, children, outcome)`` is called before the function (stage ``input``, where
it may change the dictionaries in ``children``) and after it (``output``, where it may change the
dictionary ``outcome``). They run in a thread; what they raise is the text of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from attrs import evolve, field, frozen

from monrest.base.values import Row
from monrest.bp.core_rows import CoreRows
from monrest.bp.function import text_at
from monrest.bp.model import ProcessDefinition, ProcessNode
from monrest.bp.node_functions import NodeOutcome, failed
from monrest.bp.node_state import PENDING, ChildState, NodeState

_NO_OUTPUT = "(no output)"
_EXTRA = (
    "last_check",
    "last_state_change",
    "acknowledged",
    "scheduled_downtime_depth",
    "output",
    "long_output",
)


@frozen(eq=False)
class LiveView:
    """The rows of the cores for custom functions; rows are dictionaries by column."""

    _live: CoreRows

    def host(self, name: str) -> dict[str, Any] | None:
        """Return a host that some node of a process names."""
        return _named(self._live.hosts.get(name), self._live.host_index)

    def service(self, host: str, description: str) -> dict[str, Any] | None:
        """Return a service of a host that some node of a process names."""
        return _named(self._live.services.get((host, description)), self._live.service_index)


def _named(row: Row | None, index: Mapping[str, int]) -> dict[str, Any] | None:
    # Other nodes read the same rows, and code of one's own may change what it gets.
    return None if row is None else {name: deepcopy(row[at]) for name, at in index.items()}


@frozen(eq=False)
class NodeContext:
    """The context of custom code: ``now``, process and node."""

    now: float
    number: str
    process: ProcessDefinition
    node: ProcessNode

    def arguments(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        context = {"now": self.now, "id": self.number}
        return context, self.process.document(), self.node.document()


@frozen(eq=False)
class Extensions:
    """The functions of a folder; ``stamp`` identifies its state, ``problems`` are its errors."""

    functions: Mapping[str, Callable[..., Any]] = field(factory=dict)
    filters: Mapping[str, Callable[..., Any]] = field(factory=dict)
    stamp: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()

    def call(
        self,
        arguments: Sequence[Any],
        about: NodeContext,
        children: Sequence[ChildState],
        live: CoreRows,
    ) -> NodeOutcome:
        name = text_at(arguments, 0)
        function = self.functions.get(name)
        if function is None:
            return failed(f"no file found for custom function: {name}", short="UNKNOWN")
        items = [_child(child) for child in children]
        try:
            return _outcome(
                function(*about.arguments(), list(arguments[1:]), items, LiveView(live))
            )
        except Exception as error:  # noqa: BLE001  code of others: the node has what happened
            return failed(str(error) or type(error).__name__, short="UNKNOWN")

    def before(self, name: str, about: NodeContext, children: list[ChildState]) -> None:
        """Let a filter change the children, in place; one that is missing is no filter."""
        function = self.filters.get(name)
        if function is not None:
            changed = [_child(child) for child in children]
            function("input", *about.arguments(), changed, None)
            children[:] = [_item(child) for child in changed]

    def after(
        self,
        name: str,
        about: NodeContext,
        children: Sequence[ChildState],
        outcome: NodeOutcome,
    ) -> NodeOutcome:
        function = self.filters.get(name)
        if function is None:
            return outcome
        changed = outcome._asdict()
        function("output", *about.arguments(), [_child(child) for child in children], changed)
        extra = {key: changed[key] for key in _EXTRA}
        return _outcome((changed["status"], changed["short"], changed["text"], extra))


EMPTY = Extensions(MappingProxyType({}), MappingProxyType({}))


def _status(given: Any) -> int:
    status = int(given)
    if not 0 <= status <= PENDING:
        raise ValueError(f"expected a status from 0 to {PENDING}, got {status}")
    return status


def _outcome(given: Any) -> NodeOutcome:
    status, short, *more = given
    outcome = NodeOutcome(
        status=_status(status),
        short=str(short or "") or _NO_OUTPUT,
        text=str((more[0] if more else "") or ""),
    )
    extra = more[1] if len(more) > 1 else None
    return outcome if not extra else outcome._replace(**{k: extra[k] for k in _EXTRA if k in extra})


def _child(item: ChildState) -> dict[str, Any]:
    label, state = item
    return {"label": label, **state._asdict()}


def _item(given: Mapping[str, Any]) -> ChildState:
    return str(given["label"]), NodeState(
        status=_status(given["status"]),
        status_text=str(given["status_text"]),
        acknowledged=int(bool(given["acknowledged"])),
        scheduled_downtime_depth=int(bool(given["scheduled_downtime_depth"])),
    )


def load(folder: str, former: Extensions = EMPTY) -> Extensions:
    """Read the files of a folder, in the order of their names, unless they are ``known`` already.

    Blocks. Files that cannot be read or run are left out and named in ``problems``. While the
    folder cannot be read, what is known stays.
    """
    if not folder:
        return EMPTY
    try:
        # Not glob, for which a folder that must not be read is an empty one.
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix == ".py")
        stamp = tuple((str(path), path.stat().st_mtime_ns) for path in paths)
    except OSError as error:
        # With no stamp of any folder it is read again as soon as it can be.
        return evolve(former, stamp=(("", 0),), problems=(f"{folder}: {error.strerror}",))
    if former is not EMPTY and former.stamp == stamp:
        return former
    functions: dict[str, Callable[..., Any]] = {}
    filters: dict[str, Callable[..., Any]] = {}
    problems: list[str] = []
    for path in paths:
        try:
            names = _run(path)
        except Exception as error:  # noqa: BLE001  code of others: the log has what happened
            problems.append(f"{path}: {type(error).__name__}: {error}")
            continue
        for name, value in names.items():
            if callable(value) and name.endswith("function"):
                functions[name] = value
            elif callable(value) and name.endswith("filter"):
                filters[name] = value
    return Extensions(functions, filters, stamp, tuple(problems))


def _run(path: Path) -> dict[str, Any]:
    module = ModuleType(f"monrest_bp_{path.stem}")
    module.__file__ = str(path)
    # With their assertions, however the daemon was started.
    exec(compile(path.read_bytes(), path, "exec", optimize=0), vars(module))  # noqa: S102
    return vars(module)
