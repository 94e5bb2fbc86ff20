"""What happens in one part and others want to know of, without either knowing the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

from attrs import define, field

Said = ParamSpec("Said")


@define(eq=False)
class Notice(Generic[Said]):
    """Something that happens again and again; calling it tells all who hear it, in their order."""

    _hearers: list[Callable[Said, object]] = field(factory=list, init=False)

    def hear(self, hearer: Callable[Said, object]) -> None:
        """Have ``hearer`` called from now on."""
        self._hearers.append(hearer)

    def __call__(self, *said: Said.args, **named: Said.kwargs) -> None:
        for hearer in self._hearers:
            hearer(*said, **named)
