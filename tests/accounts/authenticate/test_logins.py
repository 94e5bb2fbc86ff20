"""Cookies and passwords."""

import pytest

from monrest.base.errors import BadRequest, Forbidden, NotAuthenticated
from tests.accounts.authenticate.given import basic
from tests.fakes.door import HOSTS, KEY, SECRET, STRANGER, USER, Session


@pytest.mark.parametrize(
    "cookie", ["mon_auth=v", "a=b; mon_auth=v; c=d", ' mon_auth="v"', "xmon_auth=w;mon_auth=v"]
)
def test_a_session(door, cookie):
    door.sessions.known["v"] = Session()
    identity = door.ask({"cookie": cookie, USER: "root"})
    assert (identity.user, identity.source, identity.roles) == ("ann", "cookie", {HOSTS})
    assert (identity.session, identity.csrf_token) == ("5e55", "t0ken")
    assert identity.limit is None


def test_roles_of_a_session_restrict_it(door):
    door.sessions.known["v"] = Session(username="root", roles=(HOSTS,))
    identity = door.ask({"cookie": "mon_auth=v"})
    assert (identity.roles, identity.limit) == ({HOSTS}, {HOSTS})


def test_a_cookie_that_is_no_session(door):
    for cookie in ("mon_auth=gone", "mon_auth=gone; other=v"):
        with pytest.raises(NotAuthenticated, match="session is not valid"):
            door.ask({"cookie": cookie})
    for cookie in ("", "mon_auth=", "other=v", "mon_auth"):
        with pytest.raises(NotAuthenticated, match="login required"):
            door.ask({"cookie": cookie})
    # It is no reason to refuse who shows something better.
    assert door.ask({"cookie": "mon_auth=gone"}, uid=0).superuser


def test_a_key_comes_before_a_cookie(door):
    door.sessions.known["v"] = Session(username="root")
    identity = door.ask({"cookie": "mon_auth=v", KEY: door.make(user="ann")})
    assert (identity.user, identity.session, identity.csrf_token) == ("ann", "", "")


def test_a_password(door):
    door.passwords.known = {"ann": "p:w", "ü": "ü"}
    assert door.ask(basic("ann", "p:w")).source == "basic auth"
    assert door.ask(basic("ü", "ü")).user == "ü"
    assert door.ask({**basic("ann", "p:w"), USER: "root"}).user == "ann"


@pytest.mark.parametrize(
    "headers",
    [
        basic("ann", "wrong"),
        basic("nobody", "x"),
        basic("ann", ""),
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic YW5u"},
        {"authorization": "Basic /////w=="},
    ],
)
def test_a_wrong_password(door, headers):
    door.configure(default_user="root")
    door.passwords.known = {"ann": "pw"}
    with pytest.raises(NotAuthenticated, match="login required: no or invalid cred") as refused:
        door.ask(headers)
    assert refused.value.headers[-1][1].startswith('Basic realm="mon"')


def test_a_wrong_password_is_counted_and_audited(door, audited):
    door.passwords.known = {"ann": "right"}
    with pytest.raises(NotAuthenticated):
        door.ask(basic("ann", "s3cret-typo"))
    assert door.users.failures == [("ann", STRANGER, True)]
    assert door.users.passes == []
    (line,) = audited
    assert (line["action"], line["user"]) == ("login failed", "ann")
    assert "s3cret-typo" not in str(line)
    door.ask(basic("ann", "right"))
    assert len(door.users.failures) == len(audited) == 1
    assert door.users.passes == ["ann"]
    with pytest.raises(NotAuthenticated):
        door.ask(basic("made up", "x"))
    assert door.users.failures[-1] == ("made up", STRANGER, False)


def test_an_impossible_name_is_not_looked_up(door):
    door.passwords.known = {"../x": "pw"}
    with pytest.raises(BadRequest, match="invalid user name: Authorization"):
        door.ask(basic("../x", "pw"))
    assert door.passwords.asked == []


def test_without_a_password_file_basic_authentication_is_refused_clearly(door):
    door.configure(default_user="root")
    with pytest.raises(NotAuthenticated, match="htpasswd_file"):
        door.ask(basic("ann", "pw"))


def test_a_key_beside_a_password_decides(door):
    door.passwords.known = {"root": "pw"}
    key = door.make(user="ann")
    for password in ("pw", "wrong"):
        beside = basic("root", password)
        assert door.ask({**beside, KEY: key}).user == "ann"
        assert door.ask({**beside, KEY: SECRET, USER: "bob"}).user == "bob"
        with pytest.raises(Forbidden, match="wrong authentication key"):
            door.ask({**beside, KEY: "wrong"})
    assert door.passwords.asked == []
    # Of two keys the one in the header made for it.
    assert door.ask({"authorization": "Bearer wrong", KEY: key}).user == "ann"


BEARER, BASIC = 'Bearer realm="mon"', 'Basic realm="mon", charset="UTF-8"'
SCRIPTS = (
    {"sec-fetch-mode": "cors"},
    {"sec-fetch-mode": "same-origin"},
    {"x-requested-with": "XMLHttpRequest"},
)


def test_who_is_nobody_learns_how_to_come_in(door):
    """A script of a page is not told of passwords, for which its browser would ask the person."""
    nothing, wrong = {}, basic("ann", "wrong")
    gone = {"cookie": "mon_auth=gone"}
    navigates = {"sec-fetch-mode": "navigate"}
    for known in (None, {"ann": "right"}):
        door.passwords.known = known
        for headers in (nothing, wrong, gone):
            for more in ({}, navigates, *SCRIPTS):
                with pytest.raises(NotAuthenticated) as refused:
                    door.ask({**headers, **more})
                assert [name for name, _ in refused.value.headers] == ["WWW-Authenticate"] * len(
                    refused.value.headers
                )
                told = [value for _, value in refused.value.headers]
                asks = known is not None and more not in SCRIPTS
                assert told == [BEARER, *([BASIC] if asks else [])], (headers, more, known)
