"""A save from the view to the disk, with its hooks, alone for its site.

Rules: docs/spec/objectconfig.md, "Saving".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, pause
from monrest.base.errors import Unavailable
from monrest.objectconfig import stash
from monrest.objectconfig.disks import Disk
from monrest.objectconfig.files import readonly_file
from monrest.objectconfig.hooks import Hooks
from monrest.objectconfig.journal import SaveRoom, SaveRunningError
from monrest.objectconfig.save import ChangedOnDiskError, Writable, Write, check, recover, write
from monrest.objectconfig.stash import StagedFile, WrittenFile, packed, packed_marks
from monrest.objectconfig.views import PersonalView
from monrest.store.database import Database

log = Logger()

_PATIENCE = 30.0
_AGAIN = 0.1


@frozen(kw_only=True)
class SavedFile:
    """A file that was written: it was ``created``, ``changed`` or ``deleted``."""

    path: str
    action: str


@frozen(kw_only=True)
class Saved:
    """What a save did.

    ``problem`` is the hook that failed, with its output: without ``files`` the one before
    saving, and nothing was written; with them the one after it. ``warnings``: what of the old
    files could not be kept, such as their owner.
    """

    files: tuple[SavedFile, ...] = ()
    problem: str = ""
    warnings: tuple[str, ...] = ()


async def save(
    *,
    reactor: Any,
    wall: WallClock,
    database: Database,
    threads: Threads,
    disk: Disk,
    var_dir: Path,
    user: str,
    hooks: Hooks,
    look: Callable[[], Awaitable[PersonalView]],
) -> Saved:
    """Save what ``look`` shows. Without any change nothing is done, and no hook is run.

    ``look`` gives a view whose merges with the disk are stored: the saved text must be found in
    the stash, whoever looks for it after a kill or with another database connection.

    Saves of a site wait for each other, half a minute at most; then BusyError. Further errors
    as of ``save.write``.
    """
    async with disk.saving:
        room = await threads.run(lambda: SaveRoom.of(var_dir, disk.site))
        with ExitStack() as stack:
            tool = disk.tool
            shared = [path for path in (tool.core_conf, *tool.obj_dir[:1]) if path]
            await lock(reactor, stack, room, shared)
            # What an interrupted save has left over is completed before anybody looks at it.
            async with disk.lock:
                await threads.run(lambda: recover(room))
            view = await look()
            if not view.staged:
                return Saved()
            _check(view)
            root = view.disk.files.root
            work = _Writing.of(view)
            # The command before saving is for saves that take place.
            await threads.run(lambda: check(work.writes, work.allowed))
            before = await hooks.run(reactor, "pre", root)
            if before.failed:
                return Saved(problem=f"the command before saving failed: {before.output}")
            note = {"time": int(wall.now()), "user": user}
            saved = await _write(database, threads, room, disk, work, note)
            after = await hooks.run(reactor, "post", root)
            problem = f"the command after saving failed: {after.output}" if after.failed else ""
            return evolve(saved, problem=problem)


async def lock(reactor: Any, stack: ExitStack, room: SaveRoom, shared: Sequence[str]) -> None:
    """Take the locks of other processes too; they have no queue, so ask again and again.

    ``stack`` gives them back. Raises BusyError after half a minute.
    """
    end = reactor.seconds() + _PATIENCE
    while True:
        try:
            stack.enter_context(room.locked(shared))
        except SaveRunningError:
            if reactor.seconds() + _AGAIN > end:
                raise
            await pause(reactor, _AGAIN)
        else:
            return


def _check(view: PersonalView) -> None:
    """Look for what the stash alone tells: conflicts, and files that became read-only since."""
    if view.conflicts:
        raise ChangedOnDiskError(view.conflicts)
    for path in view.staged:
        on_disk = view.disk.loaded.get(path)
        if view.disk.files.is_readonly(path) or (on_disk is not None and on_disk.readonly):
            raise readonly_file(path)


@frozen
class _Writing:
    """The staged files of a view and what is to be written for them."""

    staged: tuple[StagedFile, ...]
    writes: tuple[Write, ...]
    allowed: Writable

    @classmethod
    def of(cls, view: PersonalView) -> _Writing:
        staged = tuple(view.staged[path] for path in sorted(view.staged))
        files = view.disk.files
        return cls(
            staged,
            tuple(
                Write(path=file.path, base_hash=file.base_hash, content=file.content)
                for file in staged
            ),
            Writable(
                folders=files.folders,
                files=frozenset(found.path for found in files.files if not found.readonly),
            ),
        )


async def _write(
    database: Database,
    threads: Threads,
    room: SaveRoom,
    disk: Disk,
    work: _Writing,
    note: dict[str, object],
) -> Saved:
    staged, user = work.staged, str(note["user"])
    marks = {
        (file.path, file.content_hash): file.marks
        for file in staged
        if file.content_hash is not None
    }

    def prepared() -> tuple[dict[str, tuple[str, bytes]], list[WrittenFile]]:
        ids = {path: (sha256, packed_marks(found)) for (path, sha256), found in marks.items()}
        return ids, [
            WrittenFile(
                path=file.path,
                base_hash=file.base_hash,
                content_hash=file.content_hash,
                content=packed(file.content),
            )
            for file in staged
        ]

    ids, written = await threads.run(prepared)
    disk.keep(marks)
    # Before the files: whoever reads them must find the ids, and without them they mean nothing.
    await database.change(stash.keep_ids(disk.site, ids))
    async with disk.lock:
        warnings = await threads.run(lambda: write(room, work.writes, work.allowed, note=note))
    try:
        await database.change(stash.saved(disk.site, user, written))
    except Unavailable as error:
        # The files are written. What disk and stash agree on is staged no more when next seen.
        log.warn("saved, but the stash cannot be cleared yet: {reason}", reason=str(error))
    files = tuple(SavedFile(path=file.path, action=file.action) for file in staged)
    return Saved(files=files, warnings=warnings)
