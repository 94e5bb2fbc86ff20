"""Signals: one part publishes, others listen, and neither knows the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

from attrs import define, field

Values = ParamSpec("Values")


@define(eq=False)
class Signal(Generic[Values]):
    """Something that happens again and again; calling it calls all hearers in their order."""

    _hearers: list[Callable[Values, object]] = field(factory=list, init=False)

    def hear(self, hearer: Callable[Values, object]) -> None:
        self._hearers.append(hearer)

    def __call__(self, *values: Values.args, **named: Values.kwargs) -> None:
        for hearer in self._hearers:
            hearer(*values, **named)
