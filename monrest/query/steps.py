"""Work in steps: what lets others run in between, and how much of it one answer may do.

Expressions come from clients and texts from plugins, so nothing here trusts that a row is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import thread_time
from typing import Any, NoReturn, TypeAlias, TypeVar

from attrs import define, field

from monrest.base.errors import BadRequest

T = TypeVar("T")

Aside: TypeAlias = Callable[[], Any]
"""A call that takes long in one piece and may run in a thread."""

Steps: TypeAlias = Generator[Any, Any, T]
"""Work that yields at points where something else may run, and returns its result.

It yields None, or an ``Aside`` that whoever drives it calls to send back what comes out.
"""

CAREFUL = 25
"""Rows a turn where expressions of clients run: a pattern may take a millisecond for a text."""

TURN = 100_000
"""Characters of work after which others have their turn: two or three milliseconds."""

MOST_WORK = 67_108_864
"""Characters that the functions and long searches of one answer may work through: some seconds."""

A_SECOND = 50_000_000
"""Characters of a second in a thread."""

MOST_WORK_ON_A_ROW = 2_097_152
"""Characters that the functions of one row may look at and make: rows are written in one go."""

A_CALL = 16
"""What calling a function costs, in characters."""


def finished(steps: Steps[T]) -> T:
    """The result of steps between which nobody else has to run, as in a thread."""
    value = None
    while True:
        try:
            step = steps.send(value)
        except StopIteration as end:
            result: T = end.value
            return result
        value = None if step is None else step()


@define(eq=False)
class Budget:
    """How much work the functions of one answer may still do, counted in characters.

    Functions within functions, many of them and many rows multiply; each alone is harmless.
    """

    left: int = MOST_WORK
    _floor: int = field(default=0, init=False)

    def renew(self) -> None:
        """Another answer begins: each row of a stream is one by itself."""
        self.left = MOST_WORK

    def begin(self) -> None:
        """The work for another row begins."""
        self._floor = max(0, self.left - MOST_WORK_ON_A_ROW)

    def spend(self, work: int) -> None:
        """Take ``work`` from the budget; raises BadRequest when nothing is left of it."""
        self.left -= work
        if self.left < self._floor:
            self._refuse()

    def spend_in_steps(self, work: int) -> None:
        """The same for work that yields by itself, so that one row may take any part of it."""
        self._floor = max(0, self._floor - work)
        self.spend(work)

    def aside(self, call: Callable[[], T]) -> Steps[T]:
        """The result of a call that may take long, at the price of the time that it took."""
        used = 0.0

        def timed() -> T:
            nonlocal used
            begun = thread_time()
            try:
                return call()
            finally:
                used = thread_time() - begun

        result: T = yield timed
        self.spend_in_steps(int(used * A_SECOND))
        return result

    def metered(self, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """``read`` at the price of a call and of the text or list that it makes."""

        def apply(row: Any) -> Any:
            value = read(row)
            kind = type(value)
            if kind is str:
                self.left -= A_CALL + len(value)
            else:
                self.left -= A_CALL if kind is not list else A_CALL * (1 + len(value))
            if self.left < self._floor:
                self._refuse()
            return value

        return apply

    def _refuse(self) -> NoReturn:
        limit, instead = MOST_WORK_ON_A_ROW, "for one row, make shorter texts"
        if self.left <= 0:
            limit, instead = MOST_WORK, "in one answer, select fewer rows or make shorter texts"
        raise BadRequest(
            "error during request",
            f"functions and regular expressions work through at most {limit} characters {instead}",
        )
