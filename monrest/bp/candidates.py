"""Which processes a file of objects is to have: all, or those that a core takes.

Rules: docs/spec/bp.md, "Export".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from attrs import define, field, frozen

from monrest.base.concurrency import Threads
from monrest.base.errors import RestError
from monrest.bp.export import CoreObject, Exported, together
from monrest.bp.objectfile import block, joined, split

MOST_TRIED = 5
"""Processes that are tried one by one when a core refuses all of them together."""


class FailedError(RestError):
    """The objects did not reach the core."""

    def __init__(self, reason: str) -> None:
        super().__init__("reload command failed", reason.strip())


class RefusedError(FailedError):
    """The check command has something against the objects."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the check command refuses the objects: {reason}")


@frozen
class Refusal:
    """What of a process the check command refused, and why."""

    objects: tuple[CoreObject, ...]
    reason: str


@define(eq=False, kw_only=True)
class Candidates:
    """All processes, and the file: what it has, how it is written, and what looks at it.

    ``put`` replaces one content by another, and blocks; ``check`` says what a core has against
    the file, None for nothing.
    """

    wanted: Sequence[Exported]
    old: bytes | None
    form: str
    threads: Threads
    put: Callable[[bytes | None, bytes | None], None]
    check: Callable[[], Awaitable[str | None]]
    current: bytes | None = field(init=False)

    @current.default
    def _as_it_is(self) -> bytes | None:
        return self.old

    async def content(self, held: Collection[str]) -> bytes:
        """Give the file with all processes; those that are ``held`` stay in it as they are."""

        def work() -> bytes:
            given = together(one for one in self.wanted if one.number not in held)
            blocks = [block(one, self.form) for one in given]
            blocks += [text for number, text in split(self.old) if number in held]
            return joined(blocks, self.form)

        return await self.threads.run(work)

    async def write(self, content: bytes | None) -> None:
        """Make the file have this content."""
        if content != self.current:
            before = self.current
            await self.threads.run(lambda: self.put(before, content))
            self.current = content

    async def tried(self, content: bytes) -> str | None:
        """Write it and say what the check command has against it."""
        await self.write(content)
        return await self.check()

    async def accepted(
        self, refused: Collection[str], writer: str, reason: str
    ) -> dict[str, Refusal]:
        """Write what the check command takes when it does not take all, and give what it refuses.

        ``refused`` were refused before and are not tried again, ``writer`` is tried first.
        ``reason`` is what it has against all. Raises RefusedError when no process of which it sees
        something new is to blame.
        """
        suspects = {one.number: one for one in await self._suspects() if one.number not in refused}
        reasons = dict.fromkeys(suspects, reason)
        held = {*refused, *suspects}
        good = await self.content(held)
        if not suspects:
            raise RefusedError(reason)
        if good != self.old:
            without = await self.tried(good)
            if without is not None:
                raise RefusedError(without)
        tried = sorted(suspects, key=lambda number: number != writer) if len(suspects) > 1 else ()
        for number in tried[:MOST_TRIED]:
            content = await self.content(held - {number})
            refusal = await self.tried(content)
            if refusal is None:
                held.remove(number)
                good = content
            else:
                reasons[number] = refusal
        await self.write(good)
        return {
            number: Refusal(one.objects, reasons[number])
            for number, one in suspects.items()
            if number in held
        }

    async def _suspects(self) -> list[Exported]:
        """Give the processes of which the file did not have everything before."""

        def work() -> list[Exported]:
            present = {text for _, text in split(self.old)}
            return [
                process
                for process in self.wanted
                if any(block(one, self.form) not in present for one in process.objects)
            ]

        return await self.threads.run(work)
