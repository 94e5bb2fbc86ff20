"""What one request holds of large answers: room for rows, and bytes (docs/spec/memory.md)."""

from __future__ import annotations

from types import TracebackType

from attrs import define, field

from monrest.base.errors import Unavailable
from monrest.base.spool import Share, Spools
from monrest.livestatus.framing import PackedRows
from monrest.sites.site import Site


@define(eq=False)
class Packing:
    """The packed rows of each site; a failure within its ``with`` lets all of it go.

    Nothing is held for an answer that will not be given, however long its error is kept.
    """

    share: Share
    spools: Spools
    _sites: dict[str, PackedRows] = field(factory=dict, init=False)

    def of(self, site: Site) -> PackedRows:
        """Give those of a site."""
        if site.id not in self._sites:
            self._sites[site.id] = PackedRows(self.share, self.spools)
        return self._sites[site.id]

    def holds_something(self) -> bool:
        """Whether anything is packed or in the room, or was dropped."""
        return self.share.size > 0 or any(one.size or one.dropped for one in self._sites.values())

    @property
    def size(self) -> int:
        """Bytes of all that is packed."""
        return sum(one.size for one in self._sites.values())

    def check(self) -> None:
        """Raise Unavailable if something was dropped."""
        if any(one.dropped for one in self._sites.values()):
            raise Unavailable(
                "no room for large answers", "the disk is full: ask for fewer rows", seconds=10
            )

    def let_go(self) -> None:
        """Hold nothing any more."""
        self.share.release()
        for one in self._sites.values():
            one.forget()

    def __enter__(self) -> None:
        """Begin to hold something."""

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is not None:
            self.let_go()
