"""Which roles handlers ask for."""

import pytest

from monrest.api.endpoint import Endpoint, holds
from monrest.base.errors import Forbidden
from monrest.base.values import ADMIN, READ_ONLY, Identity
from monrest.commands.permissions import refusal
from tests.api.asking import ROOT, answer


@pytest.mark.parametrize(
    ("roles", "role", "held"),
    [
        ((), "admin", False),
        ((ADMIN,), "admin", True),
        ((ADMIN,), "authorized_for_reports", True),
        (("authorized_for_reports",), "authorized_for_reports", True),
        (("authorized_for_reports",), "admin", False),
        ((ADMIN,), READ_ONLY, False),
    ],
)
def test_roles(roles, role, held):
    assert holds(Identity(user="x", roles=frozenset(roles)), role) is held


def test_all_missing_roles_are_named():
    one = Endpoint(
        path="/x", description="", handler=None, roles=("admin", "authorized_for_reports")
    )
    with pytest.raises(Forbidden, match="certain roles: admin, authorized_for_reports"):
        one.check_roles(Identity(user="x", roles=frozenset({"authorized_for_reports"})))
    one.check_roles(ROOT)


ALL_HOSTS = "authorized_for_all_hosts"
LIMITED = {
    # limit, session: what stands behind the refusal
    (None, ""): "",
    ((ADMIN,), ""): "; the key allows it, its user ann does not hold it",
    (("authorized_for_reports",), ""): "; the key allows it, its user ann does not hold it",
    ((ALL_HOSTS,), ""): "; the key is limited to other roles",
    ((), "abc"): "; the session is limited to other roles",
}


@pytest.mark.parametrize(("limit", "session"), LIMITED)
def test_a_refusal_says_whether_the_key_or_its_user_is_the_reason(limit, session):
    one = Endpoint(path="/x", description="", handler=None, roles=("authorized_for_reports",))
    asking = Identity(
        user="ann", limit=None if limit is None else frozenset(limit), session=session
    )
    with pytest.raises(Forbidden) as caught:
        one.check_roles(asking)
    told = "this path requires certain roles: authorized_for_reports"
    assert caught.value.description == told + LIMITED[limit, session]


def test_so_does_the_refusal_of_a_command():
    asking = Identity(user="ann", limit=frozenset({ADMIN}))
    told = refusal(asking, "system", "", "", "").extra["help"]
    assert told.endswith("_commands; the key allows it, its user ann does not hold it")


def test_so_does_the_refusal_of_a_command_line(context):
    asking = Identity(user="ann", limit=frozenset({"authorized_for_configuration_information"}))
    with pytest.raises(Forbidden, match="; the key allows it, its user ann does not hold it"):
        answer(context, "/hosts/a/commandline", identity=asking)
