"""Who holds read_only changes nothing, whatever else they hold: every endpoint that changes something."""

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.base.errors import Forbidden, RestError
from monrest.base.values import ADMIN, API, READ_ONLY, Contact, Identity
from monrest.daemon.families import ENDPOINTS
from tests.api.asking import ROOT, request
from tests.fakes.context import KnownContacts, make_context
from tests.fakes.keystore import result
from tests.table import each

REASON = "the role authorized_for_read_only forbids every change"
OWN_SESSION = {("POST", "/mon/login"), ("POST", "/mon/logout")}
CHANGES = [(method, one.path) for one in ENDPOINTS for method in one.methods if method != "GET"]
READERS = (
    Identity(user="boss", roles=frozenset({ADMIN, READ_ONLY})),
    Identity(user=API, superuser=True, roles=frozenset({READ_ONLY})),
    evolve(ROOT, roles=frozenset({READ_ONLY, "authorized_for_system_commands"})),
)


class Mute(KnownContacts):
    """Nobody may send commands."""

    async def of(self, user):
        return Contact(can_submit_commands=False)


def refusal(method, path, identity, **given):
    """What the refusal says of reading, empty for any other end."""
    context = make_context(Clock(), **given)
    segments = ["x" if one.startswith("<") else one for one in path.strip("/").split("/")]
    asked = request("/" + "/".join(segments), identity=identity, method=method)
    try:
        result(context.dispatch(context, asked))
    except Forbidden as error:
        return error.description
    except (RestError, Exception):  # the family has nothing in this context
        return ""
    return ""


def test_there_are_such_endpoints():
    assert len(CHANGES) > 90
    assert set(CHANGES) >= OWN_SESSION


@each("method, path", CHANGES)
def test_who_may_only_read_changes_nothing(audited, method, path):
    for identity in READERS:
        del audited[:]
        if (method, path) in OWN_SESSION:
            assert refusal(method, path, identity) != REASON
            assert not [line for line in audited if line["action"] == "change refused"]
            continue
        assert refusal(method, path, identity) == REASON
        (line,) = audited
        assert (line["action"], line["user"]) == ("change refused", identity.user)
        assert line["target"].startswith(f"{method} /")


@each("method, path", [one for one in CHANGES if one not in OWN_SESSION])
def test_who_may_not_send_commands_only_reads(method, path):
    found = refusal(method, path, Identity(user="ann"), contacts=Mute())
    assert found.startswith((REASON, "this path requires certain roles"))


@pytest.mark.parametrize("path", ["/hosts", "/services/a/b", "/mon/jobs", "/config/objects/x"])
def test_a_post_that_only_reads_is_no_change(path):
    """The router takes it for the GET."""
    if path == "/config/objects/x":
        assert refusal("POST", path, READERS[0]) == REASON
        return
    assert refusal("POST", path, READERS[0]) == ""
    assert refusal("GET", path, READERS[0]) == ""
