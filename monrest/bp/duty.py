"""Who of the daemons of a database calculates business processes regularly (section 2.11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from attrs import define
from sqlalchemy import Connection

from monrest.store.database import Database

T = TypeVar("T")

DUTY = "business processes"


class Duty(Protocol):
    """The right of one daemon of a database to do something regularly."""

    def want(self, name: str) -> None:
        """Take part in doing ``name``."""

    def held(self, name: str) -> Any:
        """Give the token while this daemon may do ``name``, else None."""

    async def change(self, token: Any, work: Callable[[Connection], T]) -> T:
        """Do ``work`` in a transaction that changes nothing if ``token`` is void; raise then."""


@define(eq=False)
class Alone:
    """The duty of a daemon that has its database for itself."""

    database: Database

    def want(self, name: str) -> None:
        """Nobody else wants it."""

    def held(self, name: str) -> str:
        """Give the duty's name."""
        return name

    async def change(self, token: Any, work: Callable[[Connection], T]) -> T:
        """Do it."""
        del token
        return await self.database.change(work)
