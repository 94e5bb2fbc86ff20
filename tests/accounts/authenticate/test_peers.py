"""Who needs no secret: users of trusted proxies, of Unix sockets, the default user; locked ones."""

import pytest

from monrest.base.errors import BadRequest, Forbidden, NotAuthenticated
from monrest.base.values import ADMIN, READ_ONLY, ROLES, Caller
from tests.accounts.authenticate.given import PROXY, basic
from tests.fakes.door import HOSTS, KEY, SECRET, STRANGER, USER, Session
from tests.fakes.keystore import result


def test_the_user_of_a_trusted_proxy(door):
    door.configure(remote_user_header="X-Remote-User", trusted_proxies=("10.0.0.0/8",))
    identity = door.ask({"x-remote-user": " ann "}, address=PROXY)
    assert (identity.user, identity.source, identity.roles) == ("ann", "basic auth", {HOSTS})
    with pytest.raises(BadRequest, match="invalid user name: X-Remote-User"):
        door.ask({"x-remote-user": "(cli)"}, address=PROXY)
    # It has looked at the password itself and passes it on.
    assert door.ask({"x-remote-user": "ann", **basic("ann", "x")}, address=PROXY).user == "ann"


@pytest.mark.parametrize(
    ("header", "where"),
    [
        ("X-Remote-User", {"address": STRANGER}),
        ("X-Remote-User", {"address": ""}),
        ("X-Remote-User", {"uid": 33}),
        ("", {"address": PROXY}),
        ("X-Other", {"address": PROXY}),
    ],
)
@pytest.mark.parametrize(
    "forged", [{}, {"x-forwarded-for": "127.0.0.1"}, {"x-forwarded-for": PROXY, "via": "1.1 x"}]
)
def test_the_user_header_of_anybody_else_is_nothing(door, audited, header, where, forged):
    door.configure(remote_user_header=header, trusted_proxies=("10.0.0.0/8", "127.0.0.1"))
    with pytest.raises(NotAuthenticated, match="login required"):
        door.ask({"x-remote-user": "root", **forged}, **where)
    assert audited == []


def test_a_client_behind_a_trusted_proxy_is_not_the_proxy(door):
    """The neighbour counts and not the address that he names."""
    door.configure(remote_user_header="X-Remote-User", trusted_proxies=(PROXY,))
    forged = Caller(headers={"x-remote-user": "root"}, address=STRANGER, client=PROXY)
    with pytest.raises(NotAuthenticated):
        result(door.authenticator.authenticate(forged))


@pytest.mark.parametrize("uid", [0, 1000])
def test_local_administration(door, uid):
    identity = door.ask(uid=uid)
    assert (identity.user, identity.source, identity.superuser) == ("(cli)", "cli", True)
    assert all(identity.may(role) for role in ROLES if role != READ_ONLY)
    assert not identity.may(READ_ONLY)
    named = door.ask({USER: "ann"}, uid=uid)
    assert (named.user, named.roles, named.superuser) == ("ann", {HOSTS}, False)
    with pytest.raises(BadRequest, match="invalid user name"):
        door.ask({USER: "../x"}, uid=uid)


@pytest.mark.parametrize("where", [{"uid": 33}, {"uid": 1}, {"address": ""}, {"address": PROXY}])
def test_nobody_else_is_local(door, where):
    for headers in ({}, {USER: "ann"}):
        with pytest.raises(NotAuthenticated):
            door.ask(headers, **where)


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"]
)
def test_who_comes_through_a_proxy_that_runs_as_root_is_not_root(door, header):
    with pytest.raises(NotAuthenticated):
        door.ask({header: "x"}, uid=0)


def test_the_default_user(door):
    door.configure(default_user="ann")
    for where in ({"address": STRANGER}, {"uid": 33}):
        identity = door.ask({USER: "root"}, **where)
        assert (identity.user, identity.source, identity.roles) == (
            "ann",
            "default_user_name",
            {HOSTS},
        )
    assert door.ask(uid=0).user == "(cli)"


WAYS = {
    "secret key": lambda door: {"headers": {KEY: SECRET, USER: "ann"}},
    "key": lambda door: {"headers": {KEY: door.make(user="ann")}},
    "superuser key": lambda door: {"headers": {KEY: door.make(superuser=True), USER: "ann"}},
    "forced user": lambda door: {
        "headers": {KEY: door.make(superuser=True, force_user="ann", roles=(ADMIN,))}
    },
    "cookie": lambda door: {"headers": {"cookie": "mon_auth=v"}},
    "password": lambda door: {"headers": basic("ann", "pw")},
    "proxy": lambda door: {"headers": {"x-user": "ann"}, "address": PROXY},
    "unix": lambda door: {"headers": {USER: "ann"}, "uid": 0},
    "default": lambda door: {},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_locked_users_are_refused_on_every_way(door, way):
    door.configure(
        default_user="ann",
        remote_user_header="X-User",
        trusted_proxies=(PROXY,),
        locked_message="go away",
    )
    door.sessions.known["v"] = Session()
    door.passwords.known = {"ann": "pw"}
    asked = way(door)
    assert door.ask(**asked).user == "ann"
    door.users.locked = {"ann"}
    with pytest.raises(Forbidden, match=r"^go away$"):
        door.ask(**asked)
    door.users.locked = {"bob"}
    assert door.ask(**asked).user == "ann"


def test_internal_users_cannot_be_locked(door):
    door.users.locked = {"(api)", "(cli)"}
    assert door.ask(uid=0).user == "(cli)"
    assert door.ask({KEY: door.make(superuser=True)}).user == "(api)"
    assert door.ask({KEY: door.make(superuser=True, roles=(HOSTS,))}).user == "(api)"
