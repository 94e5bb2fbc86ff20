"""Staged changes of object files: per site and person, in the database, until saved or reverted.

One person's changes of one site are made one after the other, several that wait in one transaction;
another daemon on the same database that was faster is noticed by the version of the stash, and the
change is made again on what it left (docs/spec/objectconfig.md, "Staged changes and the disk").
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, pause, shielded
from monrest.base.errors import Unavailable
from monrest.base.signals import Signal
from monrest.config import ConfigTool
from monrest.objectconfig import save, store
from monrest.objectconfig.diff import unified
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.personal_view import Disk, PersonalView, edited, view_of
from monrest.objectconfig.save import (
    ChangedOnDiskError,
    Saved,
    SavedFile,
    SaveRoom,
    Writable,
    Write,
    meaning,
)
from monrest.objectconfig.site_commands import Hooks
from monrest.objectconfig.site_files import readonly_file
from monrest.objectconfig.store import (
    StagedBy,
    StagedFile,
    Stash,
    StashChange,
    StashOvertakenError,
    WrittenFile,
    packed,
    packed_marks,
)
from monrest.store.database import Database

T = TypeVar("T")

_ATTEMPTS = 50
_VIEWS = 32


@frozen(kw_only=True)
class ConfigSite:
    """A site that takes part: its id and name, and the settings of its object configuration."""

    id: str
    name: str
    tool: ConfigTool


@frozen(kw_only=True)
class DiffRow:
    """The row of GET /config/diff but for the site."""

    file: str
    output: str


@define(eq=False)
class _Desk:
    """What one person does with one site: one thing at a time."""

    lock: DeferredLock = field(factory=DeferredLock)
    waiting: list[tuple[Callable[[Editor], Any], Deferred[Any]]] = field(factory=list)


@define(eq=False)
class Staging(Service):
    """``reactor`` runs threads and hooks and tells the time; ``var_dir`` is the state folder.

    ``saved`` gets the id of each site that was saved, and the user.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    database: Database
    var_dir: Path
    threads: Threads = field(default=None, kw_only=True)
    saved: Signal[[str, str]] = field(factory=Signal, kw_only=True)
    _disks: dict[str, Disk] = field(init=False, factory=dict)
    _desks: WeakValueDictionary[tuple[str, str], _Desk] = field(
        init=False, factory=WeakValueDictionary
    )
    _views: OrderedDict[tuple[str, str], PersonalView] = field(init=False, factory=OrderedDict)
    _running: set[Deferred[None]] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        if self.threads is None:
            self.threads = Threads(self.reactor, 3, "object configuration")

    def startService(self) -> None:
        """Begin to work in threads; saves that were interrupted have been ended."""
        super().startService()
        self.threads.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when everything that was begun has ended."""
        super().stopService()

        async def stop() -> None:
            await DeferredList(list(self._running))
            await self.threads.stopService()

        return Deferred.fromCoroutine(stop())

    async def view(self, site: ConfigSite, user: str) -> PersonalView:
        """What ``user`` sees of a site: files on disk as they are now, with their changes."""
        version = await self.database.run(store.version_of(site.id, user))
        return await self._view(site, user, version)

    async def edit(self, site: ConfigSite, user: str, change: Callable[[Editor], T]) -> T:
        """Make a change in a thread and give its result; it is stored when this returns.

        What ``change`` raises comes out, and then nothing of it is stored. ``change`` may be
        called more than once, each time with another editor. Unavailable when the database is,
        or other processes are faster again and again.
        """
        if not self.running:
            raise _stopping()
        desk = self._desk(site, user)
        result: Deferred[T] = Deferred()
        desk.waiting.append((change, result))
        if len(desk.waiting) == 1:
            running = self._run(self._change_waiting(site, user, desk))
            running.addErrback(lambda failure: self.log.failure("staging failed", failure))
        return await result

    async def diff(
        self, site: ConfigSite, user: str, *, ignore_whitespace: bool = False
    ) -> list[DiffRow]:
        """One row for each changed file, in the order of files: disk against staged."""
        view = await self.view(site, user)

        def rows() -> list[DiffRow]:
            found = []
            for path in sorted(view.staged):
                file, loaded = view.staged[path], view.disk.loaded.get(path)
                stamp = None if loaded is None else loaded.stamp
                times = (0 if stamp is None else stamp.mtime_ns, file.staged * 1_000_000_000)
                output = unified(
                    path,
                    view.base(path),
                    file.content,
                    times,
                    ignore_whitespace=ignore_whitespace,
                )
                found.append(DiffRow(file=path, output=output))
            return found

        return await self.threads.run(rows)

    async def save(self, site: ConfigSite, user: str, hooks: Hooks) -> Saved:
        """Write what ``user`` staged to the disk: all files or none.

        Raises ChangedOnDiskError (409) naming the files that were changed meanwhile, Forbidden,
        and Unavailable; then nothing was written. A hook that fails is in the result.
        """
        return await self._run(self._alone(site, user, partial(self._save, site, user, hooks)))

    async def revert(self, site: ConfigSite, user: str) -> None:
        await self._run(self._alone(site, user, partial(self._drop, site, user)))

    async def refresh(self, site: ConfigSite, user: str) -> tuple[str, ...]:
        """Drop what ``user`` staged in files with conflicts (``refreshdata=1``); their paths."""
        return await self._run(self._alone(site, user, partial(self._refresh, site, user)))

    async def overview(self, sites: Iterable[str]) -> list[StagedBy]:
        return await self.database.run(store.overview(tuple(sites)))

    def _run(self, work: Coroutine[Deferred[Any], Any, T]) -> Deferred[T]:
        """Run work to its end, also for a client that does not wait any more."""
        if not self.running:
            work.close()
            raise _stopping()

        async def counted() -> T:
            ended: Deferred[None] = Deferred()
            self._running.add(ended)
            try:
                return await work
            finally:
                self._running.discard(ended)
                ended.callback(None)

        return shielded(counted())

    def _desk(self, site: ConfigSite, user: str) -> _Desk:
        desk = self._desks.get((site.id, user))
        if desk is None:
            desk = self._desks[site.id, user] = _Desk()
        return desk

    def _disk(self, site: ConfigSite) -> Disk:
        disk = self._disks.get(site.id)
        if disk is None or disk.tool != site.tool:
            disk = self._disks[site.id] = Disk(
                site=site.id, tool=site.tool, threads=self.threads, database=self.database
            )
        return disk

    async def _alone(
        self, site: ConfigSite, user: str, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        desk = self._desk(site, user)
        async with desk.lock:
            return await work()

    async def _view(self, site: ConfigSite, user: str, version: str) -> PersonalView:
        disk = await self._disk(site).read()
        known = self._views.get((site.id, user))
        if known is not None and known.version == version and known.disk is disk:
            self._views.move_to_end((site.id, user))
            return known
        staged = Stash()
        if version:
            staged = await self.database.run(store.read(site.id, user))
        view = await self.threads.run(lambda: view_of(disk, staged))
        if view.settled is not None:
            # Left behind, it would come back as a change when the file on disk is taken back.
            with suppress(StashOvertakenError):
                version = await self.database.change(store.store(site.id, user, view.settled))
                view = view.when_settled(version)
        self._remember(site, user, view)
        return view

    def _remember(self, site: ConfigSite, user: str, view: PersonalView) -> None:
        if not view.version:
            self._views.pop((site.id, user), None)
            return
        self._views[site.id, user] = view
        self._views.move_to_end((site.id, user))
        if len(self._views) > _VIEWS:
            self._views.popitem(last=False)

    async def _change_waiting(self, site: ConfigSite, user: str, desk: _Desk) -> None:
        """Make all changes that wait as one transaction."""
        async with desk.lock:
            waiting, desk.waiting = desk.waiting, []
            try:
                _, results = await self._change(site, user, [change for change, _ in waiting])
            except Exception:  # noqa: BLE001  each that waits gets it
                results = [Failure()] * len(waiting)
        for (_, waiter), result in zip(waiting, results, strict=True):
            waiter.callback(result)

    async def _change(
        self, site: ConfigSite, user: str, changes: Sequence[Callable[[Editor], Any]]
    ) -> tuple[PersonalView, Sequence[Any]]:
        """Make changes and store them with what was merged; the view then, and their results."""
        for attempt in range(_ATTEMPTS):
            view = await self.view(site, user)
            now = int(self.wall.now())
            done = await self.threads.run(partial(edited, view, tuple(changes), now))
            if done.change is not None:
                try:
                    version = await self.database.change(store.store(site.id, user, done.change))
                except StashOvertakenError:
                    await pause(self.reactor, 0.002 * attempt)
                    continue
                view = view.after(done.model, done.staged, version)
                self._remember(site, user, view)
            return view, done.results
        raise _overtaken()

    async def _save(self, site: ConfigSite, user: str, hooks: Hooks) -> Saved:
        """Save what is staged. Without any change nothing is done, and no hook is run.

        Saves of a site wait for each other, half a minute at most; then SaveRunningError.
        """
        disk = self._disk(site)
        try:
            async with disk.saving:
                room = await self.threads.run(lambda: SaveRoom.of(self.var_dir, site.id))
                with ExitStack() as stack:
                    tool = disk.tool
                    shared = [path for path in (tool.core_conf, *tool.obj_dir[:1]) if path]
                    await save.lock(self.reactor, stack, room, shared)
                    # An interrupted save is completed before the files are read.
                    async with disk.lock:
                        await self.threads.run(lambda: save.recover(room))
                    # Merges with the disk are stored now: after a kill, and by other processes,
                    # the saved text must be found in the stash.
                    view, _ = await self._change(site, user, ())
                    return await self._save_view(room, disk, view, user, hooks)
        except OSError as error:
            raise meaning(error) from error

    async def _save_view(
        self, room: SaveRoom, disk: Disk, view: PersonalView, user: str, hooks: Hooks
    ) -> Saved:
        """Save between its hooks; the caller has the locks. Further errors as of ``save.write``."""
        if not view.staged:
            return Saved()
        if view.conflicts:
            raise ChangedOnDiskError(view.conflicts)
        files = view.disk.files
        for path in view.staged:
            # It may have become read-only since.
            on_disk = view.disk.loaded.get(path)
            if files.is_readonly(path) or (on_disk is not None and on_disk.readonly):
                raise readonly_file(path)
        root = files.root
        staged = tuple(view.staged[path] for path in sorted(view.staged))
        allowed = Writable(
            folders=files.folders,
            files=frozenset(found.path for found in files.files if not found.readonly),
        )
        writes = tuple(
            Write(path=file.path, base_hash=file.base_hash, content=file.content) for file in staged
        )
        # The command before saving is for saves that take place.
        await self.threads.run(lambda: save.check(writes, allowed))
        before = await hooks.run(self.reactor, "pre", root)
        if before.failed:
            return Saved(problem=f"the command before saving failed: {before.output}")
        note = {"time": int(self.wall.now()), "user": user}
        writing = partial(save.write, room, writes, allowed, note=note)
        warnings = await self._write(disk, staged, user, writing)
        after = await hooks.run(self.reactor, "post", root)
        return Saved(
            files=tuple(SavedFile(path=file.path, action=file.action) for file in staged),
            problem=f"the command after saving failed: {after.output}" if after.failed else "",
            warnings=warnings,
        )

    async def _write(
        self,
        disk: Disk,
        staged: Sequence[StagedFile],
        user: str,
        writing: Callable[[], tuple[str, ...]],
    ) -> tuple[str, ...]:
        """Do the ``writing`` of staged files between what the database has to know of it."""
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

        ids, written = await self.threads.run(prepared)
        disk.keep(marks)
        # Before the files: a process that reads them must find the ids, and ids of files that
        # are not there do no harm.
        await self.database.change(store.keep_ids(disk.site, ids))
        async with disk.lock:
            warnings = await self.threads.run(writing)
        try:
            await self.database.change(store.saved(disk.site, user, written))
        except Unavailable as error:
            # The files are written. What disk and stash agree on is staged no more when next seen.
            self.log.warn("saved, but the stash cannot be cleared yet: {reason}", reason=str(error))
        return warnings

    async def _drop(self, site: ConfigSite, user: str) -> None:
        await self.database.change(store.drop(site.id, user))
        self._views.pop((site.id, user), None)

    async def _refresh(self, site: ConfigSite, user: str) -> tuple[str, ...]:
        for attempt in range(_ATTEMPTS):
            view = await self.view(site, user)
            if view.conflicts:
                dropped = StashChange(version=view.version, forgotten=view.conflicts)
                try:
                    await self.database.change(store.store(site.id, user, dropped))
                except StashOvertakenError:
                    # What was staged anew meanwhile may be no conflict any more.
                    await pause(self.reactor, 0.002 * attempt)
                    continue
            return view.conflicts
        raise _overtaken()


def _overtaken() -> Unavailable:
    return Unavailable("cannot stage the change", "others change the same files all the time")


def _stopping() -> Unavailable:
    return Unavailable("service is stopping", "try again later")
