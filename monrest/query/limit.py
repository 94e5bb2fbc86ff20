"""The limit of one answer: its processor time, and the texts that its functions make.

Expressions come from clients and texts from plugins, so nothing here trusts that a row is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any, Self

from attrs import define, field

from monrest.base.errors import BadRequest, ClientLeftError

SECONDS = 2.0
"""Processor time of the functions and patterns of one answer."""

SECONDS_OF_A_ROW = 0.0005
"""Further seconds for each row of the cores."""

MOST_MADE = 67_108_864
"""Characters that the functions of one answer make: all of them may be in memory together."""


@define(eq=False)
class Limit:
    """Limits one answer, wherever it is made: ``with limit:`` in each thread that works on it.

    ``left`` says whether the client has left.
    """

    left: Callable[[], bool] = bool
    seconds: float = SECONDS
    size: int = field(default=0, init=False)
    _end: float = field(default=0.0, init=False)

    def __enter__(self) -> Self:
        self._end = thread_time() + self.seconds
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self._end - thread_time()

    def more(self, rows: int) -> None:
        """Allow the time that so many rows may take."""
        self._end += rows * SECONDS_OF_A_ROW

    def renew(self) -> None:
        """Begin another answer: each row of a stream is one by itself."""
        self.seconds, self.size = SECONDS, 0

    def check(self) -> None:
        """Raise BadRequest past the limit, ClientLeftError when the client has left."""
        if self.left():
            raise ClientLeftError
        if thread_time() > self._end:
            raise BadRequest(
                "error during request",
                f"functions and regular expressions have {SECONDS:g} seconds of processor time for "
                "one answer: select fewer rows or make shorter texts",
            )

    def counted(self, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """``read``, whose texts and lists count."""

        def apply(row: Any) -> Any:
            value = read(row)
            if type(value) is str or type(value) is list:
                self.size += len(value)
                if self.size > MOST_MADE:
                    raise BadRequest(
                        "error during request",
                        f"functions make at most {MOST_MADE} characters in one answer: "
                        "select fewer rows or make shorter texts",
                    )
            return value

        return apply
