"""Who may submit commands, and who may only read."""

import pytest
from twisted.internet.defer import Deferred

from monrest.api.rights import is_read_only, may_submit
from monrest.base.values import ADMIN, READ_ONLY, Contact, Identity
from monrest.config import Config
from monrest.config.sections import CommandsConfig
from tests.fakes.sites import outcome


class Known:
    def __init__(self, may):
        self.may = may

    async def of(self, user):
        assert user
        return Contact(can_submit_commands=self.may)


COMMAND_ROLES = [f"authorized_for_{one}_commands" for one in ("all_host", "all_service", "system")]


@pytest.mark.parametrize(
    ("roles", "contact", "configured", "submits", "read_only"),
    [
        ((), True, True, True, False),
        ((), True, False, True, False),
        ((), False, True, False, True),
        ((), None, True, True, False),
        ((), None, False, False, True),
        ((READ_ONLY,), True, True, False, True),
        ((READ_ONLY,), None, True, False, True),
        ((ADMIN,), False, False, True, False),
        ((ADMIN, READ_ONLY), True, True, True, True),
        *(((role,), False, False, True, False) for role in COMMAND_ROLES),
        *(((role, READ_ONLY), True, True, True, True) for role in COMMAND_ROLES),
        (("authorized_for_all_hosts",), False, True, False, True),
    ],
)
def test_who_may_submit_commands(roles, contact, configured, submits, read_only):
    identity = Identity(user="ann", roles=frozenset(roles))
    config = Config(commands=CommandsConfig(can_submit_commands=configured))
    for ask, expected in ((may_submit, submits), (is_read_only, read_only)):
        found = outcome(Deferred.fromCoroutine(ask(identity, Known(contact), config)))
        assert found == [expected]


def test_the_internal_users_may_submit():
    cli = Identity(user="(cli)", superuser=True)
    assert outcome(Deferred.fromCoroutine(may_submit(cli, Known(False), Config()))) == [True]
