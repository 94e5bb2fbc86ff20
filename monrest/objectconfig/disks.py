"""The object files of a site as they are on disk, read again only where they changed."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field
from twisted.internet.defer import DeferredLock

from monrest.base.concurrency import Threads
from monrest.config import ConfigTool
from monrest.objectconfig import stash
from monrest.objectconfig.identity import Marks
from monrest.objectconfig.model import SiteModel, load
from monrest.store.database import Database


@define(eq=False, kw_only=True)
class Disk:
    """The files of ``site`` (its id); readers share one reading that began after they asked.

    Whoever holds ``lock`` is the only one to read, and the only one who saves.
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
        """Give the site as it is on disk now."""
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
            self._known |= await self.database.run(stash.ids_of(self.site))
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
            found = await self.database.run(stash.ids_of(self.site, missing))
            if found:
                known |= found
                model = await self.threads.run(lambda: load(self.tool, before, recorded))
        self._known = {}
        return model
