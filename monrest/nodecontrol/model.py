"""Nodes: their facts and operations (docs/spec/nodecontrol.md). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from attrs import field, frozen

from monrest.base.values import Column
from monrest.config import ControlledNode
from monrest.store.stored import KEY, Shown, StoredRow, shown_time, shown_values, stored

GATHER: Final = "gather"
RUN_ALL: Final = "run_all"

FLAGS: Mapping[str, str] = {
    "install": "installing",
    "update": "updating",
    "cleanup": "cleaning",
    "os_update": "os_updating",
    "os_sec_update": "os_sec_updating",
    RUN_ALL: "run_all",
}
"""Operations, and the flag that is 1 while one is going on."""

FAILED_FLAGS: Mapping[str, str] = {
    "install": "installing_failed",
    "update": "updating_failed",
    "cleanup": "cleaning_failed",
}
"""Operations, and the flag that shows how the last one ended."""

GatherKind: TypeAlias = Literal["facts", "runtime"]

GATHER_KINDS: tuple[GatherKind, ...] = ("facts", "runtime")
"""``facts`` are all facts of a node, ``runtime`` those that change often."""

STEPS = ("install", "update", "cleanup")
"""The operations of ``run_all``, as far as there are commands for them."""

SUCCEEDED, FAILED, WARNED = 0, 1, 2
"""How an operation ended; WARNED: it succeeded, with errors or warnings in its output."""

_WARNED = re.compile(r"\[(?:ERROR|WARN|WARNING)\]")
_MOST_ENTRIES = 100_000
_LONGEST_TEXT = 100_000
_DEEPEST = 50


@stored("controlled_nodes")
@frozen(kw_only=True)
class Node(StoredRow):
    """A node by ``site``; times in seconds, 0 for never.

    ``data`` is what was gathered; a daemon gathers until ``gathering_until`` at most. ``operation``
    is what is done at present, with a step behind a colon: ``run_all:install``. It is done by
    ``job``, which is None from ``claimed`` until that one is stored.
    """

    site: Annotated[str, KEY]
    data: Mapping[str, Any] = field(factory=dict)
    gathered: Annotated[
        int, shown_time("when facts were gathered last, 0 for never", "last_gather_runtime")
    ] = 0
    facts_gathered: int = 0
    gathering_until: int = 0
    last_error: Annotated[str, Shown("what went wrong last")] = ""
    last_error_at: Annotated[int, shown_time("when that was, 0 for never", "last_error_ts")] = 0
    operation: str = ""
    job: int | None = None
    claimed: int = 0
    last_job: Annotated[
        int | None, Shown("background job of the last operation, empty for none", "number")
    ] = None

    def asked(self, what: GatherKind) -> int:
        """The time of the last attempt, successful or not."""
        return max(self.facts_gathered if what == "facts" else self.gathered, self.last_error_at)


@stored("node_logs")
@frozen(kw_only=True)
class Log(StoredRow):
    """The output of the last operation of a name on a node, and how it ended."""

    site: Annotated[str, KEY]
    name: Annotated[str, KEY, Shown("name of the operation")]
    failed: Annotated[int, Shown("0 it was fine, 1 it failed, 2 it warned", "number")]
    at: Annotated[int, shown_time("when it ended", "time")]
    output: Annotated[str, Shown("the end of what it wrote")] = ""


class GatherError(Exception):
    """No facts of a node; the text is the reason, in one line."""


FACTS = (
    Column("cm_fqdn", "string", "", "full name of the host, null when it is not known"),
    Column("cpu_cores", "number", "", "processors"),
    Column("cpu_perc", "number", "%", "how busy they are"),
    Column("dist_available_versions", "array_of_strings", "", "versions that could be installed"),
    Column("dist_cleanable", "array_of_strings", "", "installed versions that nothing uses"),
    Column("dist_disk_free", "number", "bytes", "free on the disk of the site"),
    Column("dist_disk_total", "number", "bytes", "size of the disk of the site"),
    Column("dist_site", "string", "", "name of the site on its host"),
    Column("dist_status", "object", "", "0 or 1 (does not run) by service, and OVERALL"),
    Column("dist_version", "string", "", "version that the site uses"),
    Column("dist_versions", "array_of_strings", "", "installed versions, newest first"),
    Column("machine_type", "string", "", "kind of guest, empty for none"),
    Column("memfree", "number", "MB", "free memory, caches included"),
    Column("memtotal", "number", "MB", "memory"),
    Column("os_name", "string", "", "name of the operating system"),
    Column("os_security", "array_of_strings", "", "packages with security updates"),
    Column("os_updates", "array_of_strings", "", "packages with updates"),
    Column("os_version", "string", "", "version of the operating system"),
)
"""The known keys of a gatherer's output; other keys are stored as they are."""

_FACTS = {column.name: column for column in FACTS}
_UNKNOWN: Mapping[str, Any] = {"string": "", "array_of_strings": [], "number": None, "object": {}}
"""The value of an unknown fact, by its type: a number is null, because 0 would be a value."""


def facts_of(output: bytes) -> dict[str, Any]:
    """Read the JSON object that a gatherer printed; GatherError names what is wrong with it.

    Unknown keys are kept.
    """
    try:
        document = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise GatherError(f"expected a JSON object: {error}") from None
    if not isinstance(document, dict):
        raise GatherError("expected a JSON object")
    for name, value in document.items():
        if expected := _expected(name, value):
            raise GatherError(f"{name}: expected {expected}")
    for name in ("os_security", "os_updates"):
        if name in document:
            document[name] = sorted(document[name])
    return document


def _expected(name: str, value: Any) -> str:
    """Return what was expected of a value, empty for a good one."""
    column = _FACTS.get(name)
    kind = column.type if column is not None else ""
    if kind == "string" and not _is_text(value):
        return "a text"
    if kind == "array_of_strings" and not (
        isinstance(value, list) and len(value) <= _MOST_ENTRIES and all(map(_is_text, value))
    ):
        return "a list of texts"
    if kind == "number":
        percent = name == "cpu_perc"
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value <= (100 if percent else math.inf):
            return "a number from 0 to 100" if percent else "a number from 0 on"
    if kind == "object" and not (
        isinstance(value, dict)
        and all(isinstance(item, int) and item in (0, 1) for item in value.values())
    ):
        return "an object of 0 and 1"
    # Other programs cannot read JSON that is nested more deeply.
    inner = [value]
    for _ in range(_DEEPEST + 1):
        inner = [item for outer in inner for item in _inside(outer)]
        if not inner:
            return ""
    return f"at most {_DEEPEST} levels of lists and objects"


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def outcome(status: int, output: str) -> int:
    """The outcome of a command with this ``output``."""
    if status != 0:
        return FAILED
    return WARNED if _WARNED.search(output) else SUCCEEDED


def command(settings: ControlledNode | None, operation: str) -> str:
    """Return the command of an operation on a node, empty for none."""
    return getattr(settings, operation) if settings is not None and operation in FLAGS else ""


def steps(settings: ControlledNode | None, operation: str) -> tuple[tuple[str, str], ...]:
    """Return what an operation consists of, as names and commands; nothing if it cannot be done."""
    names = STEPS if operation == RUN_ALL else (operation,)
    return tuple((name, text) for name in names if (text := command(settings, name)))


def node_record(node: Node, logs: Mapping[str, Log], now: float) -> dict[str, Any]:
    """A node as it is shown, without its commands and names in the configuration."""
    data = node.data
    row: dict[str, Any] = {
        column.name: data.get(column.name, _UNKNOWN[column.type]) for column in FACTS
    }
    row["cm_fqdn"] = data.get("cm_fqdn")
    present = node.operation.split(":")
    row |= {flag: int(name in present) for name, flag in FLAGS.items()}
    row |= {
        flag: logs[name].failed if name in logs else SUCCEEDED
        for name, flag in FAILED_FLAGS.items()
    }
    row |= {
        "facts": dict(data),
        "gathering": int(now < node.gathering_until),
        **shown_values(node),
        "logs": [
            {"name": name, "failed": log.failed, "time": log.at} for name, log in logs.items()
        ],
    }
    return row
