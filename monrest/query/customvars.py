"""Custom variables: one shape for what cores send, columns of rows, who may see which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from attrs import field, frozen


def normalise(value: Any, names: Sequence[Any] = (), values: Sequence[Any] = ()) -> dict[str, str]:
    """Name to text, from a dictionary, a list of pairs, or a list of names and one of values."""
    if isinstance(value, Mapping) and value:
        return {str(name): _text(one) for name, one in value.items()}
    if isinstance(value, list) and value:
        return {
            str(one[0]): _text(one[1]) for one in value if isinstance(one, list) and len(one) > 1
        }
    return {str(name): _text(one) for name, one in zip(names or (), values or (), strict=False)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def columns(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """One key for each variable, its name in upper case behind ``prefix``."""
    return {prefix + name.upper(): value for name, value in variables.items()}


@frozen
class Visibility:
    """Which variables somebody may see, by names and patterns with ``*``."""

    patterns: tuple[str, ...]
    all_visible: bool = False
    _wanted: tuple[str, ...] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(
            self, "_wanted", tuple(one.removeprefix("_").upper() for one in self.patterns)
        )

    def visible(self, name: str, host: bool = False) -> bool:
        """Whether the variable shows; ``host``: a host's variable on a service."""
        if self.all_visible:
            return True
        full = ("HOST" if host else "") + name.upper()
        for pattern in self._wanted:
            if host and "*" in pattern and not pattern.startswith("HOST"):
                continue
            if fnmatchcase(full, pattern.replace("[", "[[]").replace("?", "[?]")):
                return True
        return False

    def filter(self, variables: Mapping[str, str], host: bool = False) -> dict[str, str]:
        """The visible ones."""
        if self.all_visible:
            return dict(variables)
        return {name: value for name, value in variables.items() if self.visible(name, host)}
