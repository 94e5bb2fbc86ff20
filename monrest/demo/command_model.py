"""What an external command is: its arguments and the function that obeys it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import frozen

from monrest.demo.core import Core
from monrest.demo.simulation import Simulation

Values: TypeAlias = dict[str, Any]
"""Arguments by name; an object argument is the object itself."""

Obey: TypeAlias = Callable[[Core, Simulation, Values], None]


class CommandError(Exception):
    """A command that the core refuses; the text is for the client."""


@frozen
class Argument:
    """One argument. ``type`` is an object type, id, ulong, int, bool, timestamp or str.

    ``optional`` arguments may be empty or missing, and are then None or empty text.
    """

    name: str
    type: str
    optional: bool = False


@frozen
class CommandSpec:
    """A command: its arguments in order and the function that obeys."""

    arguments: tuple[Argument, ...]
    obey: Obey


def arguments(text: str) -> tuple[Argument, ...]:
    """``host_name:host;comment:str?`` to arguments; a question mark makes one optional."""
    found = []
    for item in filter(None, text.split(";")):
        name, _, kind = item.partition(":")
        found.append(Argument(name, kind.rstrip("?"), kind.endswith("?")))
    return tuple(found)
