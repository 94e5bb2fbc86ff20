"""The parts of webhooks."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.events.service import Events
from monrest.webhooks.alerting import CoreProblems
from monrest.webhooks.endpoints import WebhookRecords
from monrest.webhooks.posting import Sender, resolver
from monrest.webhooks.service import Webhooks


def _webhooks(common: Common) -> Webhooks:
    clock, config = common.reactor, common.config.webhooks
    return Webhooks(
        database=common.database,
        clock=clock,
        wall=common.wall,
        threads=common.threads,
        duties=common.duties,
        source=common.the(Events),
        sender=Sender(reactor=clock, wall=common.wall, resolve=resolver(clock), config=config),
        owner=common.as_user,
        problems=CoreProblems(lambda: common.context),
        config=config,
    )


FAMILY = Family(
    life=Life(
        _webhooks, configure=lambda common, webhooks: webhooks.configure(common.config.webhooks)
    ),
    served=(
        Served(
            (*WebhookRecords.endpoints(), *declared(WebhookRecords)),
            lambda common: WebhookRecords(database=common.database, webhooks=common.the(Webhooks)),
        ),
    ),
)
