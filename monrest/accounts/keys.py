"""API keys: only their hashes are stored (docs/spec/accounts.md, "Keys")."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import define
from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from monrest.accounts.credentials import HashedKind, Use
from monrest.accounts.model import ApiKey, new_secret, secret_hash
from monrest.base.errors import Forbidden
from monrest.base.values import Caller

api_keys = ApiKey.table

_FORM = re.compile(r"[A-Za-z0-9]{1,128}(?:_1)?")


@define(eq=False)
class Keys(HashedKind[ApiKey]):
    """All API keys of the database."""

    mark = "keys"
    row = ApiKey
    owner = "user"

    async def find(self, plain: str) -> ApiKey | None:
        """Return the key of its plain text, None for an unknown one.

        Unavailable when the database is and nothing recent is known. ``last_used`` and
        ``last_from`` are as old as what is kept.
        """
        return await self.lookup(secret_hash(plain)) if _FORM.fullmatch(plain) else None

    def used(self, key: ApiKey, caller: Caller) -> None:
        """Note who used the key; stored within ten seconds, together with other uses."""
        client = caller.client or caller.address
        if caller.address and client != caller.address:
            client = f"{caller.address} ({client})"
        self.service.uses[self.mark, key.hashed_key] = Use(self.now(), client)

    def store(self, connection: Connection, uses: Mapping[str, Use]) -> None:
        rows = [
            {"hashed": hashed, "at": use.at, "client": use.client} for hashed, use in uses.items()
        ]
        connection.execute(_USED, rows)

    async def create(
        self,
        *,
        user: str | None = None,
        superuser: bool = False,
        force_user: str | None = None,
        roles: tuple[str, ...] | None = None,
        comment: str = "",
        creator: str = "",
        most: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and store it; the second value is the key itself, which is kept nowhere.

        Forbidden when ``creator`` owns ``most`` keys already (None: no limit).
        """
        plain = new_secret()
        key = ApiKey(
            hashed_key=secret_hash(plain),
            user=None if superuser else user,
            superuser=superuser,
            force_user=force_user if superuser else None,
            roles=roles,
            comment=comment,
            created=self.now(),
        )

        def store(connection: Connection) -> None:
            if most is not None:
                check_number(_owned(connection, creator), most)
            connection.execute(insert(api_keys), [key.values()])

        await self.service.database.change(store)
        return key, plain

    async def owned(self, user: str) -> int:
        """Count the keys that belong to ``user``."""
        return await self.service.database.run(lambda connection: _owned(connection, user))


_USED = (
    update(api_keys)
    .where(
        api_keys.c.hashed_key == bindparam("hashed"),
        or_(api_keys.c.last_used.is_(None), api_keys.c.last_used <= bindparam("at")),
    )
    .values(last_used=bindparam("at"), last_from=bindparam("client"))
)


def check_number(owned: int, most: int) -> None:
    """Raise Forbidden for a user who owns ``most`` keys already."""
    if owned >= most:
        raise Forbidden(f"maximum number of api keys ({most}) reached, cannot create more.")


def _owned(connection: Connection, user: str) -> int:
    query = select(func.count()).select_from(api_keys).where(api_keys.c.user == user)
    return int(connection.execute(query).scalar_one())
