"""A site as one user sees it: the files on disk with the user's staged changes.

Views only compute, and may take a while: they belong into a thread.

Rules: docs/spec/objectconfig.md, "Staged changes and the disk".
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field, frozen
from twisted.internet.defer import DeferredLock

from monrest.base.concurrency import Threads
from monrest.config import ConfigTool
from monrest.objectconfig import store
from monrest.objectconfig.diff import merge
from monrest.objectconfig.document import ConfigFile
from monrest.objectconfig.model import Marks, Overlay, SiteModel, load
from monrest.objectconfig.save import digest
from monrest.objectconfig.store import StagedFile, Stash
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
