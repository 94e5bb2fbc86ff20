"""Methods that are written once, as coroutines, and called in two ways.

An object of the kind ``Blocking`` runs its coroutines to their end within the call: they never
suspend, because the sockets below them block. One of the kind ``Awaited`` returns them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

P = ParamSpec("P")
T = TypeVar("T")
KindT = TypeVar("KindT")


class Blocking:
    """The kind of what returns results."""


class Awaited:
    """The kind of what returns coroutines and asynchronous generators."""


class Called(Generic[KindT]):
    """An object with methods that are an ``Operation`` or a ``Stream``."""

    kind: type[KindT]


class Operation(Generic[P, T]):
    """Decorates a coroutine function that is a method."""

    def __init__(self, work: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._work = work

    @overload
    def __get__(self, of: Called[Blocking], owner: object = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, of: Called[Awaited], owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, of: Any, owner: object = None) -> Any:
        return _bound(self._work, of, finish)


class Stream(Generic[P, T]):
    """Decorates an asynchronous generator function that is a method."""

    def __init__(self, work: Callable[Concatenate[Any, P], AsyncGenerator[T, None]]) -> None:
        self._work = work

    @overload
    def __get__(
        self, of: Called[Blocking], owner: object = None
    ) -> Callable[P, Generator[T, None, None]]: ...

    @overload
    def __get__(
        self, of: Called[Awaited], owner: object = None
    ) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, of: Any, owner: object = None) -> Any:
        return _bound(self._work, of, iterate)


def _bound(work: Callable[..., Any], of: Any, run: Callable[[Any], Any]) -> Any:
    if of is None:
        return work
    bound = MethodType(work, of)
    if of.kind is Awaited:
        return bound
    return wraps(bound)(lambda *arguments, **named: run(bound(*arguments, **named)))


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("a coroutine below a blocking client was suspended")


def iterate(work: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """The items of an asynchronous generator that never suspends."""
    try:
        while True:
            yield finish(cast(Any, work.__anext__()))
    except StopAsyncIteration:
        return
    finally:
        finish(cast(Any, work.aclose()))
