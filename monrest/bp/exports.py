"""What of all processes is to be in a core's configuration, and what no core would take of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, TypeAlias

from attrs import define, field
from twisted.logger import Logger

from monrest.base.concurrency import Threads, shielded
from monrest.bp import forbidden
from monrest.bp.deliver import sole
from monrest.bp.export import Exported, exported
from monrest.bp.exporter import Exporter
from monrest.bp.store import Check, Stored
from monrest.config import BpConfig
from monrest.sites.registry import Sites
from monrest.sites.site import Site

Load: TypeAlias = Callable[[], Awaitable[Iterable[Stored]]]


@define(eq=False, kw_only=True)
class Exports:
    """``left_out`` names live processes that the last export could not have, with the reason."""

    log: ClassVar[Logger] = Logger()

    sites: Sites
    threads: Threads
    exporter: Exporter
    left_out: tuple[str, ...] = field(default=(), init=False)

    async def export(
        self, config: BpConfig, app: str, load: Load, writer: int | None = None
    ) -> None:
        """Have the configuration of the core hold the objects of all live processes.

        Those that it would not take are left out, named, and hold up no other one. Raises
        RestError when that fails, or when ``writer`` is one of them.
        """
        unusable: list[str] = []

        async def objects() -> tuple[Exported, ...]:
            illegal = await self._illegal(config)
            found: list[Exported] = []
            for one in await load():
                problem = one.broken or next(forbidden.problems(one.definition, illegal), "")
                if one.draft:
                    continue
                if problem:
                    unusable.append(f"{one.definition.name} ({one.id}): {problem}")
                else:
                    found.append(exported(one.id, one.definition, app))
            return tuple(found)

        number = "" if writer is None else str(writer)
        site = self._site(config)
        refused = await shielded(self.exporter.export(config, site, objects, f"({app})", number))
        self._tell((*unusable, *refused))

    async def check(self, config: BpConfig) -> Check:
        """Give what refuses a definition that the core would not take."""
        illegal = await self._illegal(config)
        return lambda definition: forbidden.check(definition, illegal)

    def _site(self, config: BpConfig) -> Site | None:
        return sole(config.result_backend, self.sites.sites)

    async def _illegal(self, config: BpConfig) -> str:
        site = self._site(config)
        tool = site.config.configtool if site else None
        return await self.threads.run(lambda: forbidden.characters(config, tool))

    def _tell(self, left_out: tuple[str, ...]) -> None:
        """Log which processes are not in the core's configuration, once each."""
        for text in left_out:
            if text not in self.left_out:
                self.log.warn("business process not exported: {text}", text=text)
        self.left_out = left_out
