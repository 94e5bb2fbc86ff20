"""Webhooks: list, create, change, delete, try out; what was sent (docs/spec/webhooks.md)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import cattrs
from attrs import evolve, frozen

from monrest.accounts.roles import grantable
from monrest.accounts.usernames import UserField, UserNames
from monrest.api.endpoint import (
    LIST_PARAMETERS,
    Context,
    Endpoint,
)
from monrest.api.fields import Number, fields_of
from monrest.api.lists import local_schema
from monrest.api.lists import select as select_rows
from monrest.api.records import DONE, Records, Save, first_number, number_of, record_columns
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, Conflict, Forbidden, NotFound
from monrest.base.values import ADMIN, Answer, Column, Document, Identity, RestRequest
from monrest.events.filter import near_column
from monrest.store.stored import shown_columns
from monrest.webhooks import store as statements
from monrest.webhooks.alerting import require_objects
from monrest.webhooks.following import filter_of
from monrest.webhooks.model import (
    ALERTMANAGER,
    FIELDS,
    Delivery,
    Webhook,
    WebhookSecret,
    checked,
    shown_delivery,
    webhook_record,
)
from monrest.webhooks.service import Webhooks
from monrest.webhooks.signature import new_secret
from monrest.webhooks.store import LIMITS

_OWNER = UserField("owner", "in whose name it looks; administrators may name another user")
_HOURS = Number(
    "hours",
    "for how long the present secret signs beside the new one",
    least=0,
    most=720,
    default=24,
)
_HOUR = 3600

COLUMNS = record_columns(Webhook, FIELDS, Column("owner", "string", "", "in whose name it looks"))
DELIVERY_COLUMNS = shown_columns(Delivery)
_DELIVERIES = local_schema("deliveries", DELIVERY_COLUMNS, ())
_MESSAGE = Column("message", "string", "", "what was done")
_SECRET = Column("secret", "string", "", "the secret, `whsec_…`, which is never shown again")


@frozen(kw_only=True, eq=False)
class WebhookRecords(Records[Webhook]):
    """Administrators deal with all webhooks, others with their own."""

    word = "webhook"
    title = "webhook"
    path = "/mon/webhooks"
    key = "id"
    summary = "webhooks"
    columns = COLUMNS
    fields = FIELDS
    limits = LIMITS
    further_parameters = (_OWNER,)
    key_column = Column("id", "number", "", "number of the new webhook")
    created = "successfully created webhook"
    # A secret is not kept as the result of a job is.
    verbs: ClassVar = {
        **Records.verbs,
        "create": {"columns": (*DONE, key_column, _SECRET), "at_once": True},
    }
    texts: ClassVar = {
        "list": "Administrators see all, others their own. A key or session that is limited to "
        "roles sees those that were made with no more roles than these.",
        "create": "The secret is in the answer and nowhere else: what is sent is signed with it "
        "as Standard Webhooks 1.0 says. Only public addresses are reached, and those of "
        "`webhooks.allow`.",
        "replace": "The secret stays. A webhook that was paused is resumed.",
        "change": "The body is merged into what is stored: null removes a field. A webhook that "
        "was paused is resumed.",
        "remove": "With all that it has not sent yet.",
    }

    webhooks: Webhooks

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[Webhook]:
        """The webhooks of the user; all for an administrator."""
        del context
        number = None if key is None else number_of(key)
        if key is not None and number is None:
            return []
        identity = request.identity

        stored = await self.database.run(statements.several(number))
        return [hook for hook in stored if _is_seen(hook, identity)]

    def name(self, hook: Webhook) -> str:
        return str(hook.number)

    async def rows(self, context: Context, hooks: Iterable[Webhook]) -> list[dict[str, Any]]:
        del context
        return [webhook_record(hook) for hook in hooks]

    def document(self, hook: Webhook) -> dict[str, Any]:
        """The document into which a patch is merged; values of headers stay hidden."""
        return {**hook.record, "headers": webhook_record(hook)["headers"]}

    async def create(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        with audited(request, "webhook create") as line:
            sent = fields_of(request)
            secret = WebhookSecret(key=new_secret())
            number = await self._add(context, request, sent, secret)
            line.target = str(number)
        value = {"message": self.created, "id": number, "count": 1, "secret": secret.key}
        return Document(value=value)

    async def add(self, context: Context, request: RestRequest, save: Save) -> int:
        """Store it with a new secret."""
        return await self._add(context, request, save.fields, WebhookSecret(key=new_secret()))

    async def _add(
        self,
        context: Context,
        request: RestRequest,
        fields: Mapping[str, Any],
        secret: WebhookSecret,
    ) -> int:
        record = await self._checked(fields, request)
        record["owner"] = _owner(context, request, fields, request.identity.user)
        values = {
            "record": record,
            "secrets": cattrs.unstructure([secret]),
            "limit": _limit(request),
            "token": secrets.token_hex(16),
            "position": str(int(context.wall.now())),
        }
        work = statements.add(
            *(first_number(fields.get("id")), record["owner"], values),
            context.config.webhooks.per_user,
        )
        return await self.database.change(work)

    async def replace(
        self, context: Context, request: RestRequest, old: Webhook, save: Save
    ) -> bool:
        """Store it; the limit is that of who wrote it last."""
        record = await self._checked(save.fields, request, old.record)
        record["owner"] = _owner(context, request, save.fields, old.owner)
        mine = record["owner"] == request.identity.user
        limit = _limit(request) if mine or old.limit is None else old.limit
        work = statements.replace(old, record, limit, context.wall.now())
        return await self.database.change(work)

    async def _checked(
        self,
        fields: Mapping[str, Any],
        request: RestRequest,
        old: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The record that is meant; BadRequest, also for a filter that no core understands."""
        record = checked(fields, old)
        try:
            wanted = filter_of(record["filter"])
            await self.webhooks.source.check(wanted, request.identity)
        except BadRequest as error:
            meant = near_column(error.description.rpartition(" ")[2])
            raise BadRequest("invalid filter", f"filter: {error.description}{meant}") from None
        if record["body"] == ALERTMANAGER:
            require_objects(wanted)
        granted = grantable(request.identity, record["roles"] or None)
        if record["roles"] and not granted:
            raise BadRequest("invalid roles", "roles: expected roles that you hold")
        return {**record, "roles": list(granted or ())}

    async def remove(self, old: Webhook) -> bool:
        return await self.database.change(statements.remove(old))

    @Endpoint(
        path="/mon/webhooks/<id>/test",
        methods=("POST",),
        description="send a message of the type `test` through a webhook",
        text="At once and once, also where it is paused or switched off. The answer has the "
        "message of the receiver.",
        shape="object",
        parameters=(),
        columns=(
            Column("error", "string", "", "what went wrong; else empty"),
            _MESSAGE,
            Column("status", "number", "", "status of the answer; null where there was none"),
            Column("taken", "boolean", "", "1: the receiver has it"),
        ),
        at_once=True,
    )
    async def test(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        hook = await self.find_one(context, request, where[0])
        with audited(request, "webhook test", where[0]):
            result = await self.webhooks.test(hook)
        return Document(
            value={
                "message": "the receiver took it" if result.taken else "the receiver took nothing",
                "taken": int(result.taken),
                "status": result.status,
                "error": result.error,
            }
        )

    @Endpoint(
        path="/mon/webhooks/<id>/resume",
        methods=("POST",),
        description="set a webhook going that is paused",
        text="All that waits is tried at once.",
        shape="object",
        parameters=(),
        columns=DONE,
    )
    async def resume(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        hook = await self.find_one(context, request, where[0])
        with audited(request, "webhook resume", where[0]):
            await self.database.change(statements.resume(hook.number))
        return Document(value={"message": "the webhook is resumed", "count": 1})

    @Endpoint(
        path="/mon/webhooks/<id>/rotate",
        methods=("POST",),
        description="replace the secret of a webhook",
        text="Both secrets sign what is sent for some hours, so that the receiver can be given the "
        "new one meanwhile.",
        shape="object",
        parameters=(_HOURS,),
        columns=(
            _MESSAGE,
            Column("old_until", "time", "", "until when the old one signs as well; 0: not"),
            _SECRET,
        ),
        at_once=True,
    )
    async def rotate(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        """Make another secret, beside which the present one signs for a while."""
        hook = await self.find_one(context, request, where[0])
        with audited(request, "webhook rotate", where[0]):
            hours = _HOURS.read(fields_of(request).get("hours"))
            now = context.wall.now()
            fresh = WebhookSecret(key=new_secret())
            kept = [evolve(hook.secrets[0], until=now + hours * _HOUR)] if hours else []
            if not await self.database.change(statements.keep_secrets(hook, [fresh, *kept])):
                raise Conflict("the webhook was changed meanwhile", "repeat this")
        value = {
            "message": "successfully made another secret",
            "secret": fresh.key,
            "old_until": int(now + hours * _HOUR) if hours else 0,
        }
        return Document(value=value)

    @Endpoint(
        path="/mon/webhooks/<id>/deliveries",
        description="messages of a webhook",
        text="Those that wait and the last 200 of the others, the newest first.",
        parameters=LIST_PARAMETERS,
        columns=DELIVERY_COLUMNS,
    )
    async def deliveries(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        hook = await self.find_one(context, request, where[0])
        deliveries = await self.database.run(statements.list_deliveries(hook.number))
        return await select_rows(context, request, _DELIVERIES, map(shown_delivery, deliveries))

    @Endpoint(
        path="/mon/webhooks/<id>/deliveries/<nr>/resend",
        methods=("POST",),
        description="send a message of a webhook again",
        text="It has the same id.",
        shape="object",
        parameters=(),
        columns=DONE,
    )
    async def resend(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        hook = await self.find_one(context, request, where[0])
        with audited(request, "webhook resend", f"{where[0]}/{where[1]}"):
            seq = number_of(where[1])
            if seq is None or not await self.database.change(statements.repeat(hook.number, seq)):
                raise NotFound("no such delivery")
        return Document(value={"message": "the message is sent again", "count": 1})


def _is_seen(hook: Webhook, identity: Identity) -> bool:
    """Whether it is the user's, made with no more roles than the user comes with."""
    limit = identity.limit
    if limit is not None and (hook.limit is None or not limit.issuperset(hook.limit)):
        return False
    return identity.may(ADMIN) or hook.owner == identity.user


def _owner(context: Context, request: RestRequest, fields: Mapping[str, Any], present: str) -> str:
    """Whose it is to be; Forbidden where a user who is no administrator names another."""
    wanted = fields.get("owner")
    if wanted in (None, "", present):
        return present
    name = UserNames(context.config.auth).read(str(wanted), "owner").name
    if not request.identity.may(ADMIN):
        raise Forbidden("permission denied", "owner: only administrators name another owner")
    return name


def _limit(request: RestRequest) -> tuple[str, ...] | None:
    limit = request.identity.limit
    return None if limit is None else tuple(sorted(limit))
