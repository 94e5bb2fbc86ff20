"""Which roles handlers ask for."""

import pytest

from monrest.api.endpoint import Endpoint, holds
from monrest.base.errors import Forbidden
from monrest.base.values import ADMIN, READ_ONLY, Identity
from tests.api.asking import ROOT, answer
from tests.api.endpoints.given import ANN


def test_commands_need_the_admin_role(context, asked):
    for path in ("/commands", "/commands/ping", "/command/ping"):
        with pytest.raises(Forbidden) as caught:
            answer(context, path, identity=ANN)
        assert caught.value.message == "not authorized"
        assert caught.value.description == "this path requires certain roles: admin"
    assert asked == []
    answer(context, "/commands", identity=Identity(user="bob", roles=frozenset({ADMIN})))
    assert len(asked) == 1


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


def test_command_lines_need_their_role(context):
    for path in ("/hosts/a/commandline", "/services/a/b/commandline"):
        with pytest.raises(Forbidden, match="not authorized to view the command line"):
            answer(context, path, identity=ANN)
