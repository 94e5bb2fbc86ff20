"""API keys: list, read, create, delete (docs/spec/accounts.md, "Keys")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from monrest.accounts.keys import Keys, check_number
from monrest.accounts.model import ApiKey
from monrest.accounts.roles import grantable
from monrest.accounts.usernames import UserField, UserNames
from monrest.api.endpoint import Context, Endpoint
from monrest.api.fields import Fields, Flag, NameList, Text, collected
from monrest.api.records import Records
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, Forbidden
from monrest.base.values import (
    ADMIN,
    INTERNAL,
    ROLES,
    Answer,
    Column,
    Document,
    RestRequest,
)
from monrest.config.check import full_role
from monrest.query.parse import RESERVED
from monrest.query.scan import UNPRINTABLE
from monrest.store.stored import shown_columns, shown_values


def _check_role(parameter: str, name: str) -> None:
    if full_role(name) not in ROLES:
        short = ", ".join(role.removeprefix("authorized_for_") for role in ROLES)
        raise BadRequest(
            "unknown role",
            f"{parameter}: {full_role(name)[:80]!r}: expected names out of {short}",
        )


_COMMENT = Text(
    "comment",
    "what the key is for",
    longest=1000,
    refused=UNPRINTABLE,
    expected=("up to {longest} characters without control characters",) * 3,
)
_ROLES = NameList(
    "roles",
    "all that the key may give, repeatable or a list; roles that you do not hold are left out, and "
    "no role at all when the list is empty",
    most=100,
    check=_check_role,
    number="at most {most} names",
    title="too many roles",
)
_USERNAME = UserField("username", "whose key it is; needs the role admin")
_SUPERUSER = Flag(
    "superuser", "1: a key without a user, which acts for any user; needs the role admin"
)
_FORCE_USER = UserField(
    "force_user",
    "the only user for whom a superuser key acts, with the roles of the key if it has any; needs "
    "the role admin",
)
_CREATION = (_COMMENT, _ROLES, _USERNAME, _SUPERUSER, _FORCE_USER)

_FILE = Column("file", "string", "", "where it is kept: table and record in the database")
COLUMNS = shown_columns(ApiKey, _FILE)
_MESSAGE = Column("message", "string", "", "what was done")
_CREATED = (
    Column("file", "string", "", "where the key is kept: table and record in the database"),
    Column("hashed_key", "string", "", "hash of the key, its id"),
    _MESSAGE,
    Column("private_key", "string", "", "the key itself, which is never shown again"),
)


@frozen(eq=False, kw_only=True)
class KeyRecords(Records[ApiKey]):
    """API keys: administrators deal with all of them, others with their own."""

    word = "api key"
    title = "key"
    path = "/mon/api_keys"
    key = "id"
    summary = "API keys"
    columns = COLUMNS
    optional = frozenset({"force_user", "last_from", "last_used", "roles", "superuser", "user"})
    done = (_MESSAGE,)
    verbs: ClassVar = {
        "list": {"text": "Administrators see all of them, others their own."},
        "one": {"description": "one API key by its hash"},
        "remove": {
            "description": "delete an API key",
            "text": "It is refused from then on.",
        },
    }

    keys: Keys

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[ApiKey]:
        del context
        identity = request.identity
        return await self.keys.several(None if identity.may(ADMIN) else identity.user, key)

    def name(self, key: ApiKey) -> str:
        return key.hashed_key

    async def rows(self, context: Context, keys: Iterable[ApiKey]) -> list[dict[str, Any]]:
        """The keys as they are shown; None where the interface leaves a field out."""
        del context
        return [{"file": key.file, **shown_values(key)} for key in keys]

    async def remove(self, old: ApiKey) -> bool:
        return await self.keys.delete(old.hashed_key)

    @Endpoint(
        path="/mon/api_keys",
        methods=("POST",),
        description="make an API key",
        text="The key is in the answer and nowhere else, since only its hash is stored. A key "
        "that is made with a restricted key is restricted to the same roles at least.",
        shape="object",
        parameters=_CREATION,
        columns=_CREATED,
        at_once=True,
    )
    async def create(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        with audited(request, "key create") as line:
            key, plain = await self._create(context, request)
            line.target = key.hashed_key
            line.details = {
                "owner": key.user,
                "superuser": key.superuser,
                "force_user": key.force_user,
                # Details that are empty are left out, and this key is not without restriction.
                "roles": "none" if key.roles == () else key.roles,
                "comment": key.comment,
            }
        value = {
            "message": "successfully created api key",
            "file": key.file,
            "hashed_key": key.hashed_key,
            "private_key": plain,
        }
        return Document(value=value)

    async def _create(self, context: Context, request: RestRequest) -> tuple[ApiKey, str]:
        """Check whether the user may have such a key, then make it."""
        identity, auth = request.identity, context.config.auth
        if not auth.api_keys_enabled:
            raise BadRequest("api keys are disabled", "auth.api_keys_enabled is off")
        most = auth.max_api_keys_per_user
        if most <= 0:
            raise Forbidden("no permission to create api keys")
        check_number(await self.keys.owned(identity.user), most)
        asked = _read(request)
        username, force_user = asked["username"], asked["force_user"]
        if identity.user in INTERNAL and not username:
            asked["superuser"] = 1
        superuser = bool(asked["superuser"])
        if not identity.may(ADMIN):
            for name in ("username", "superuser", "force_user"):
                if asked[name]:
                    raise Forbidden(
                        "no permission to create api keys",
                        f"{name} requires the role admin{identity.why_not(ADMIN)}",
                    )
        if superuser and username:
            raise BadRequest(
                "contradicting parameters", "username: expected none together with superuser"
            )
        if force_user and not superuser:
            raise BadRequest(
                "contradicting parameters", "force_user: expected superuser=1 beside it"
            )
        names = UserNames(auth)
        user = names.read(username, "username").name if username else identity.user
        return await self.keys.create(
            user=None if superuser else user,
            superuser=superuser,
            force_user=names.read(force_user, "force_user").name if force_user else None,
            roles=grantable(identity, asked["roles"]),
            comment=asked["comment"],
            creator=identity.user,
            most=most,
        )


def _read(request: RestRequest) -> dict[str, Any]:
    """The fields of a creation; ``roles`` are full names, None where none were given."""
    given = collected(pair for pair in request.parameters if pair[0] not in RESERVED)
    expected = tuple(parameter.name for parameter in _CREATION)
    for name, value in given.items():
        if name not in expected:
            raise BadRequest(
                "unknown parameter", f"{name[:80]!r}: expected one of {', '.join(expected)}"
            )
        if name != "roles" and isinstance(value, list):
            raise BadRequest("too many values", f"{name}: expected one value, got {len(value)}")
    # An empty list is no value at all and yet means something: a key that gives no role.
    body = request.document
    if isinstance(body, Mapping) and body.get("roles") == []:
        given["roles"] = []
    values = Fields(_CREATION).values(given)
    return values | {"roles": tuple(map(full_role, values["roles"])) if "roles" in given else None}
