"""A site as one user sees it: the files on disk with the user's staged changes.

Views only compute, and may take a while: they belong into a thread.

Rules: docs/spec/objectconfig.md, "Staged changes and the disk".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import DeferredLock
from twisted.python.failure import Failure

from monrest.base.concurrency import Threads
from monrest.config import ConfigTool
from monrest.objectconfig import store
from monrest.objectconfig.diff import merge
from monrest.objectconfig.document import ConfigFile
from monrest.objectconfig.model import Marks, Overlay, SiteModel, load
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.save import digest
from monrest.objectconfig.store import StagedFile, Stash, StashChange, row_of
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
    _known: dict[tuple[str, str], Marks] = field(init=False, factory=dict)
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
        self._known.update(marks)

    async def _load(self) -> SiteModel:
        """Read what changed; ids that were kept for a text count more than its lines."""
        before = self._model
        if before is None:
            self._known |= await self.database.run(store.ids_of(self.site))
        known = self._known
        missing: dict[str, str] = {}

        def recorded(path: str, sha256: str) -> Marks | None:
            found = known.get((path, sha256))
            if found is None:
                missing[path] = sha256
            return found

        model = await self.threads.run(lambda: load(self.tool, before, recorded))
        if before is not None and missing:
            # Another daemon may have saved them.
            found = await self.database.run(store.ids_of(self.site, missing))
            if found:
                known |= found
                model = await self.threads.run(lambda: load(self.tool, before, recorded))
        self._known = {}
        return model


T = TypeVar("T")


@frozen(kw_only=True)
class PersonalView:
    """A site as one user sees it.

    ``model``: the files with the staged changes. ``disk``: the same site without them.
    ``staged``: what is staged, by path; its ``base`` is what is on disk now, but for the paths
    in ``conflicts``: those were changed on disk as well, and in a way that does not merge.
    ``version``: of the stash.
    """

    model: SiteModel
    disk: SiteModel = field(repr=False)
    staged: Mapping[str, StagedFile] = field(factory=dict)
    conflicts: tuple[str, ...] = ()
    version: str = ""
    _stored: Mapping[str, StagedFile] = field(factory=dict, repr=False, alias="stored")

    def changed(
        self, model: SiteModel, now: int
    ) -> tuple[dict[str, StagedFile], StashChange | None]:
        """Give what is staged when ``model`` is, and what to store for it; None is nothing.

        Files are staged at ``now`` when their text differs from what this view has. A file
        without objects is deleted; but one that is named in the main file stays, since no core
        starts without it.
        """
        rows: list[Mapping[str, Any]] = []
        kept: dict[str, StagedFile] = {}
        for path in sorted({*model.loaded, *self.model.loaded, *self.staged}):
            file = self._file(model, path, now)
            if file is None:
                continue
            kept[path] = file
            if file != self._stored.get(path):
                rows.append(row_of(file, self._stored.get(path)))
        forgotten = tuple(path for path in self._stored if path not in kept)
        if not rows and not forgotten:
            return kept, None
        return kept, StashChange(version=self.version, rows=tuple(rows), forgotten=forgotten)

    @property
    def settled(self) -> StashChange | None:
        """What to store because disk and stash say the same; None when there is no such file."""
        gone = tuple(path for path in self._stored if path not in self.staged)
        return StashChange(version=self.version, forgotten=gone) if gone else None

    def when_settled(self, version: str) -> PersonalView:
        """Give the view when that is stored as ``version``."""
        stored = {path: file for path, file in self._stored.items() if path in self.staged}
        return evolve(self, version=version, stored=stored)

    def after(
        self, model: SiteModel, staged: Mapping[str, StagedFile], version: str
    ) -> PersonalView:
        """Give the view when ``staged`` is stored as ``version``."""
        return evolve(self, model=model, staged=staged, version=version, stored=staged)

    def _file(self, model: SiteModel, path: str, now: int) -> StagedFile | None:
        """The staged file of a path in ``model``; None when it is as on disk."""
        mine = self.staged.get(path)
        file = model.loaded.get(path)
        if file is self.model.loaded.get(path):
            return mine
        base = self.base(path) if mine is None else mine.base
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

    def base(self, path: str) -> bytes | None:
        file = self.disk.loaded.get(path)
        return None if file is None else file.document.data()


def view_of(disk: SiteModel, stash: Stash) -> PersonalView:
    """Put staged files over the disk's: as they are, merged, or as a conflict."""
    texts: dict[str, Overlay | None] = {}
    staged: dict[str, StagedFile] = {}
    conflicts: list[str] = []
    for path, file in stash.files.items():
        loaded = disk.loaded.get(path)
        present = None if loaded is None or loaded.stamp is None else loaded.stamp.sha256
        known = path not in disk.unreadable
        if known and present == file.content_hash:
            continue  # the same change was made on disk
        merged = file
        if not known or present != file.base_hash:
            found = None if loaded is None else _merged(file, loaded.document.data())
            if found is None:
                conflicts.append(path)
            elif found.content_hash == present:
                continue
            else:
                merged = found
        staged[path] = merged
        texts[path] = None
        if merged.content is not None:
            texts[path] = Overlay(merged.content, file.marks, file.content)
    model = disk.overlay(texts) if texts else disk
    for path, file in staged.items():
        if file is not stash.files[path]:
            staged[path] = evolve(file, marks=model.loaded[path].marks())
            if _broken(model, disk, stash.files[path]):
                conflicts.append(path)
    if broken := [path for path in conflicts if staged[path] is not stash.files[path]]:
        # Merged lines that are no definitions any more are no merge.
        staged |= {path: stash.files[path] for path in broken}
        for path in broken:
            file = stash.files[path]
            texts[path] = None if file.content is None else Overlay(file.content, file.marks)
        model = disk.overlay(texts)
    return PersonalView(
        model=model,
        disk=disk,
        staged=staged,
        conflicts=tuple(sorted(conflicts)),
        version=stash.version,
        stored=stash.files,
    )


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


@frozen(kw_only=True)
class Edited(Generic[T]):
    """What came of several edits: a result or a failure for each, and what is to be stored."""

    results: tuple[T | Failure, ...]
    model: SiteModel
    staged: Mapping[str, StagedFile]
    change: StashChange | None


def edited(view: PersonalView, changes: tuple[Callable[[Editor], T], ...], now: int) -> Edited[T]:
    """Make changes one after the other; one that fails leaves nothing behind."""
    model = view.model
    results: list[T | Failure] = []
    for make in changes:
        editor = Editor(model)
        try:
            result = make(editor)
        except Exception:  # noqa: BLE001  it belongs to the request of this change
            results.append(Failure())
        else:
            results.append(result)
            model = editor.model
    staged, change = view.changed(model, now)
    return Edited(results=tuple(results), model=model, staged=staged, change=change)
