"""Staged changes of object files: per site and user, in the database, until saved or reverted.

One user's changes of one site are made one after the other, several that wait in one transaction
(50 at once in a file of 20,000 services take 0.9 seconds, one by one 8). Another daemon on the same
database that was faster is noticed by the version of the stash, and the change is made again on
what it left (docs/spec/objectconfig.md, "Staged changes and the disk").
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from attrs import define, evolve, field, frozen
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
from monrest.objectconfig.diff import merge, unified
from monrest.objectconfig.document import ConfigFile
from monrest.objectconfig.model import ConfigSite, Marks, Overlay, SiteModel, load
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.save import ChangedOnDiskError, SaveRoom, Writable, digest, meaning
from monrest.objectconfig.site_commands import Hooks
from monrest.objectconfig.site_files import readonly_file
from monrest.objectconfig.store import StagedBy, StagedFile, Stash, StashOvertakenError
from monrest.store.database import Database


@define(eq=False, kw_only=True)
class Disk:
    """The files of ``site`` (its id); readers share one reading that began after they asked.

    Only the holder of ``lock`` reads them or saves.
    """

    site: str
    tool: ConfigTool
    threads: Threads
    database: Database
    lock: DeferredLock = field(init=False, factory=DeferredLock)
    saving: DeferredLock = field(init=False, factory=DeferredLock)
    _model: SiteModel | None = field(init=False, default=None)
    _remembered: dict[tuple[str, str], Marks] = field(init=False, factory=dict)
    _begun: int = field(init=False, default=0)

    async def read(self) -> SiteModel:
        asked = self._begun
        async with self.lock:
            if self._begun == asked or self._model is None:
                self._begun += 1
                self._model = await self._load()
            return self._model

    def keep(self, marks: Mapping[tuple[str, str], Marks]) -> None:
        """Remember the ids of texts about to be saved, by path and SHA-256."""
        self._remembered.update(marks)

    async def _load(self) -> SiteModel:
        """Read what changed; ids that were kept for a text count more than its lines."""
        before = self._model
        if before is None:
            self._remembered |= await self.database.run(store.ids_of(self.site))
        remembered = self._remembered
        missing: dict[str, str] = {}

        def recorded(path: str, sha256: str) -> Marks | None:
            kept = remembered.get((path, sha256))
            if kept is None:
                missing[path] = sha256
            return kept

        model = await self.threads.run(lambda: load(self.tool, before, recorded))
        if before is not None and missing:
            # Another daemon may have saved them.
            kept = await self.database.run(store.ids_of(self.site, missing))
            if kept:
                remembered |= kept
                model = await self.threads.run(lambda: load(self.tool, before, recorded))
        self._remembered = {}
        return model


@frozen(kw_only=True)
class PersonalView:
    """A site as one user sees it, in ``model``; ``disk`` is the same site without staged changes.

    The base of a staged file is what is on disk now, but for the paths in ``conflicts``: those were
    changed on disk as well, and in a way that does not merge.
    """

    model: SiteModel
    disk: SiteModel = field(repr=False)
    stash: Stash = field(factory=Stash)
    conflicts: tuple[str, ...] = ()

    @property
    def staged(self) -> Mapping[str, StagedFile]:
        return self.stash.files

    def staged_with(self, model: SiteModel, now: int) -> dict[str, StagedFile]:
        """The staged files when the user sees ``model``; those with a new text are staged ``now``.

        A file without objects is deleted; but one that is named in the main file stays, since no
        core starts without it.
        """
        files: dict[str, StagedFile] = {}
        for path in sorted({*model.loaded, *self.model.loaded, *self.staged}):
            file = self._file(model, path, now)
            if file is not None:
                files[path] = file
        return files

    def _file(self, model: SiteModel, path: str, now: int) -> StagedFile | None:
        """The staged file of a path in ``model``; None when it is as on disk."""
        mine = self.staged.get(path)
        file = model.loaded.get(path)
        if file is self.model.loaded.get(path):
            return mine
        base = self.on_disk(path) if mine is None else mine.base
        content = None if file is None else file.document.data()
        if content != base and file is not None and file.document.empty and not self._named(path):
            content = None
        if content == base and path not in self.conflicts:
            return None
        if mine is not None and content == mine.content:
            return mine
        return StagedFile(
            path=path,
            base=base,
            base_hash=digest(base),
            content=content,
            content_hash=digest(content),
            marks=Marks() if file is None else file.marks(),
            staged=now,
        )

    def _named(self, path: str) -> bool:
        folders = self.disk.files.folders
        return not any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)

    def on_disk(self, path: str) -> bytes | None:
        file = self.disk.loaded.get(path)
        return None if file is None else file.document.data()


def view_of(disk: SiteModel, stash: Stash) -> PersonalView:
    """The stash over the files on disk: as it is, merged, or as a conflict.

    A merged file has the text on disk as its base, and one with the same text as the disk is not
    staged any more, so that the stash of the view may be another one than ``stash``, which then has
    to be stored.
    """
    texts: dict[str, Overlay | None] = {}
    staged: dict[str, StagedFile] = {}
    conflicts: set[str] = set()
    for path, file in stash.files.items():
        loaded = disk.loaded.get(path)
        present = None if loaded is None or loaded.stamp is None else loaded.stamp.sha256
        readable = path not in disk.unreadable
        if readable and present == file.content_hash:
            continue  # the same change was made on disk
        staged[path] = file
        if not readable or present != file.base_hash:
            merged = None if loaded is None else _merged(file, loaded.document.data())
            if merged is None:
                conflicts.add(path)
            elif merged.content_hash == present:
                del staged[path]
                continue
            else:
                staged[path] = merged
        content = staged[path].content
        texts[path] = None if content is None else Overlay(content, file.marks, file.content)
    model = disk.overlay(texts) if texts else disk
    for path, file in staged.items():
        mine = stash.files[path]
        if file is mine:
            continue
        if _broken(model, disk, mine):
            # Merged lines that are no definitions any more are no merge.
            conflicts.add(path)
            staged[path] = mine
            texts[path] = Overlay(mine.content or b"", mine.marks)
            model = disk.overlay(texts)
        else:
            staged[path] = evolve(file, marks=model.loaded[path].marks())
    if staged != stash.files:
        stash = evolve(stash, files=staged)
    return PersonalView(model=model, disk=disk, stash=stash, conflicts=tuple(sorted(conflicts)))


def _merged(file: StagedFile, present: bytes) -> StagedFile | None:
    if file.base is None or file.content is None:
        return None
    content = merge(file.base, file.content, present)
    if content is None:
        return None
    return evolve(
        file,
        base=present,
        base_hash=digest(present),
        content=content,
        content_hash=digest(content),
    )


def _broken(model: SiteModel, disk: SiteModel, mine: StagedFile) -> bool:
    """Whether a merged text has more mistakes than one of the two that it was made of."""
    assert mine.content is not None
    parts = (disk.loaded[mine.path].document, ConfigFile.parse(mine.path, mine.content))
    merged = model.loaded[mine.path].document
    return len(merged.problems) > min(len(part.problems) for part in parts)


T = TypeVar("T")

_ATTEMPTS = 50
_VIEWS = 32


@frozen(kw_only=True)
class Saved:
    """The files of a save, and the hook that failed in ``problem``, with its output.

    Without files it is the hook before saving, and nothing was written; with files the one after
    it. ``warnings`` names files whose owner could not be kept.
    """

    files: tuple[StagedFile, ...] = ()
    problem: str = ""
    warnings: tuple[str, ...] = ()


@define(eq=False)
class _Desk:
    """The work of one user on one site, one request at a time."""

    lock: DeferredLock = field(factory=DeferredLock)
    waiting: list[tuple[Callable[[Editor], Any], Deferred[Any]]] = field(factory=list)


@define(eq=False)
class Staging(Service):
    """``reactor`` runs threads and hooks, and is the clock; ``var_dir`` is the state folder.

    ``saved`` gets the id of each site that was saved, and the user.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    database: Database
    var_dir: Path
    threads: Threads = field(init=False)
    saved: Signal[[str, str]] = field(init=False, factory=Signal)
    _disks: dict[str, Disk] = field(init=False, factory=dict)
    _desks: WeakValueDictionary[tuple[str, str], _Desk] = field(
        init=False, factory=WeakValueDictionary
    )
    _views: OrderedDict[tuple[str, str], PersonalView] = field(init=False, factory=OrderedDict)
    _running: set[Deferred[None]] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        self.threads = Threads(self.reactor, 3, "object configuration")

    def startService(self) -> None:
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
        """A site as ``user`` sees it: files on disk as they are now, with the user's changes."""
        return await self._again(partial(self._view, site, user))

    async def edit(self, site: ConfigSite, user: str, change: Callable[[Editor], T]) -> T:
        """Make a change in a thread and return its result; it is stored when this returns.

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
    ) -> dict[str, str]:
        """The difference from disk to staged of each changed file, by path."""
        view = await self.view(site, user)

        def texts() -> dict[str, str]:
            differences = {}
            for path, file in sorted(view.staged.items()):
                loaded = view.disk.loaded.get(path)
                read = 0 if loaded is None or loaded.stamp is None else loaded.stamp.mtime_ns
                differences[path] = unified(
                    path,
                    view.on_disk(path),
                    file.content,
                    (read, file.staged * 1_000_000_000),
                    ignore_whitespace=ignore_whitespace,
                )
            return differences

        return await self.threads.run(texts)

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

    async def staged_by(self, sites: Iterable[str]) -> StagedBy:
        return await self.database.run(store.staged_by(tuple(sites)))

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
        return self._desks.setdefault((site.id, user), _Desk())

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
            return await self._again(work)

    async def _again(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do ``work`` again while other processes are faster. Raises Unavailable in the end."""
        for attempt in range(_ATTEMPTS):
            try:
                return await work()
            except StashOvertakenError:
                await pause(self.reactor, 0.002 * attempt)
        raise Unavailable("cannot stage the change", "others change the same files all the time")

    async def _view(self, site: ConfigSite, user: str) -> PersonalView:
        version = await self.database.run(store.version_of(site.id, user))
        # After the version: the disk is as new as any text that a stash was merged with.
        disk = await self._disk(site).read()
        former = self._views.get((site.id, user))
        if former is not None and former.stash.version == version and former.disk is disk:
            self._views.move_to_end((site.id, user))
            return former
        stash = await self.database.run(store.read(site.id, user)) if version else Stash()
        if stash.version != version:
            raise StashOvertakenError
        view = await self.threads.run(lambda: view_of(disk, stash))
        if view.stash is not stash:
            # A text is merged with the same disk once only, and what disk and stash have alike must
            # not come back as a change when the file on disk is taken back.
            view = evolve(view, stash=await self._replace(site, user, stash, view.staged))
        self._remember(site, user, view)
        return view

    async def _replace(
        self, site: ConfigSite, user: str, stash: Stash, files: Mapping[str, StagedFile]
    ) -> Stash:
        """Store ``files`` in the place of a stash. Raises StashOvertakenError."""
        before = stash.files
        gone = before.keys() - files.keys()
        changed = [file for path, file in files.items() if file != before.get(path)]
        if not gone and not changed:
            return stash
        rows = await self.threads.run(
            lambda: [store.row_of(file, before.get(file.path)) for file in changed]
        )
        work = store.replace(site.id, user, stash.version, rows, gone)
        return Stash(await self.database.change(work), files)

    def _remember(self, site: ConfigSite, user: str, view: PersonalView) -> None:
        if not view.stash.version:
            self._views.pop((site.id, user), None)
            return
        self._views[site.id, user] = view
        self._views.move_to_end((site.id, user))
        if len(self._views) > _VIEWS:
            self._views.popitem(last=False)

    async def _change_waiting(self, site: ConfigSite, user: str, desk: _Desk) -> None:
        async with desk.lock:
            waiting, desk.waiting = desk.waiting, []
            changes = [change for change, _ in waiting]
            try:
                results = await self._again(partial(self._change, site, user, changes))
            except Exception:  # noqa: BLE001  each that waits gets it
                results = [Failure()] * len(waiting)
        for (_, waiter), result in zip(waiting, results, strict=True):
            waiter.callback(result)

    async def _change(
        self, site: ConfigSite, user: str, changes: Sequence[Callable[[Editor], Any]]
    ) -> list[Any]:
        """Make changes one after the other and store them; returns a result or failure for each."""
        view = await self._view(site, user)
        now = int(self.wall.now())

        def edited() -> tuple[list[Any], SiteModel, dict[str, StagedFile]]:
            model = view.model
            results: list[Any] = []
            for change in changes:
                editor = Editor(model)
                try:
                    results.append(change(editor))
                except Exception:  # noqa: BLE001  it belongs to the request of this change
                    results.append(Failure())
                else:
                    model = editor.model
            return results, model, view.staged_with(model, now)

        results, model, staged = await self.threads.run(edited)
        stash = await self._replace(site, user, view.stash, staged)
        if stash is not view.stash:
            self._remember(site, user, evolve(view, model=model, stash=stash))
        return results

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
                    view = await self.view(site, user)
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
            files=frozenset(file.path for file in files.files if not file.readonly),
        )
        # The command before saving is for saves that take place.
        await self.threads.run(lambda: save.check(staged, allowed))
        before = await hooks.run(self.reactor, "pre", root)
        if before.failed:
            return Saved(problem=f"the command before saving failed: {before.output}")
        note = {"time": int(self.wall.now()), "user": user}
        writing = partial(save.write, room, staged, allowed, note=note)
        warnings = await self._write(disk, staged, user, writing)
        after = await hooks.run(self.reactor, "post", root)
        return Saved(
            files=staged,
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
        rows = await self.threads.run(lambda: [store.row_of(file) for file in staged])
        disk.keep(
            {
                (file.path, file.content_hash): file.marks
                for file in staged
                if file.content_hash is not None
            }
        )
        # Before the files: a process that reads them must find the ids, and ids of files that
        # are not there do no harm.
        await self.database.change(store.keep_ids(disk.site, rows))
        async with disk.lock:
            warnings = await self.threads.run(writing)
        try:
            await self.database.change(store.saved(disk.site, user, rows))
        except Unavailable as error:
            # The files are written. What disk and stash agree on is staged no more when next seen.
            self.log.warn("saved, but the stash cannot be cleared yet: {reason}", reason=str(error))
        return warnings

    async def _drop(self, site: ConfigSite, user: str) -> None:
        await self.database.change(store.drop(site.id, user))
        self._views.pop((site.id, user), None)

    async def _refresh(self, site: ConfigSite, user: str) -> tuple[str, ...]:
        view = await self._view(site, user)
        kept = {path: file for path, file in view.staged.items() if path not in view.conflicts}
        await self._replace(site, user, view.stash, kept)
        return view.conflicts


def _stopping() -> Unavailable:
    return Unavailable("service is stopping", "try again later")
