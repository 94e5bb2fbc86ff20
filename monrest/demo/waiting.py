"""Requests that wait for something to happen."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.demo.core import Core
from monrest.demo.filters import Every, Predicate, RequestError, compile_filter
from monrest.demo.request import Request


def must_wait(request: Request) -> bool:
    """Whether a request says to wait for what is not so yet. Raises RequestError 400."""
    if not request.wait_conditions and not request.wait_trigger:
        return False
    if not request.wait_conditions:
        return True
    subject = _subject(request)
    if subject is None:
        raise RequestError(400, "WaitCondition needs a WaitObject")
    return not _condition(request)(subject)


def _subject(request: Request) -> object:
    find = request.table.wait_object
    if request.wait_object is None and find is not None:
        return find("")
    return request.wait_object


def _condition(request: Request) -> Predicate:
    return compile_filter(Every(tuple(request.wait_conditions)))


@define(eq=False)
class Waiting:
    """One waiting request. ``done`` is called once: when it happened, or at the time-out."""

    core: Core
    clock: IReactorTime
    request: Request
    done: Callable[[], None]
    _undo: Callable[[], None] | None = None
    _calls: list[IDelayedCall] = field(factory=list)

    def start(self) -> None:
        """Listen to the core and start the time-out."""
        self._undo = self.core.wait(self._wake)
        if self.request.wait_timeout:
            self._later(self.request.wait_timeout / 1000)

    def stop(self) -> None:
        """Wait no longer and do nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
        for call in self._calls:
            if call.active():
                call.cancel()

    def _later(self, seconds: float) -> None:
        self._calls.append(self.clock.callLater(seconds, self._go))

    def _go(self) -> None:
        self.stop()
        self.done()

    def _wake(self, happened: str) -> None:
        request = self.request
        if request.wait_trigger not in ("", "all", happened):
            return
        if not request.wait_conditions or _condition(request)(_subject(request)):
            # Not at once: the change that wakes us is still being made.
            self.core.clock.callLater(0, self._go_if_waiting)

    def _go_if_waiting(self) -> None:
        if self._undo is not None:
            self._go()
