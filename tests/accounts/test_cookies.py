"""The cookie of a session: how it is set and found."""

import pytest

from monrest.accounts.credentials import Credentials
from monrest.accounts.sessions import Sessions, cookie_of
from monrest.base.names import Names
from monrest.base.values import Caller
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall


@pytest.fixture
def sessions(clock):
    """Without a store: nothing is read for a cookie."""
    return Sessions(Credentials(None, clock, Wall(clock), AuthConfig()))


@pytest.mark.parametrize(
    ("config", "caller", "expected"),
    [
        ({}, Caller(), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax"),
        ({}, Caller(secure=True), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax; Secure"),
        ({"cookie_secure": True}, Caller(), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax; Secure"),
        (
            {"cookie_domain": "example.org"},
            Caller(),
            "mon_auth=v; Path=/mon; Domain=example.org; HttpOnly; SameSite=Lax",
        ),
    ],
)  # fmt: skip
def test_the_cookie(sessions, config, caller, expected):
    sessions.service.config = AuthConfig(**config)
    assert sessions.cookie("v", caller) == ("Set-Cookie", expected)
    name, gone = sessions.expired_cookie(caller)
    assert name == "Set-Cookie"
    assert gone.startswith("mon_auth=; Path=/mon; ")
    assert "Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax" in gone
    # A browser takes away only what it finds under the same path and domain.
    assert ("Domain=example.org" in gone) == ("cookie_domain" in config)


def test_the_cookie_has_the_word_of_the_site(clock):
    credentials = Credentials(None, clock, Wall(clock), AuthConfig(), Names(app="abc"))
    sessions = Sessions(credentials)
    assert sessions.cookie("v", Caller())[1].startswith("abc_auth=v; Path=/abc; ")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mon_auth=v", "v"),
        ("a=b; mon_auth=v; c=d", "v"),
        (' mon_auth="v"', "v"),
        ("xmon_auth=w;mon_auth=v", "v"),
        ("mon_auth=a=b", "a=b"),
        ("mon_auth", ""),
        ("", ""),
        (";;=;", ""),
    ],
)
def test_finding_the_cookie(header, value):
    assert cookie_of({"cookie": header}, "mon_auth") == value
    assert cookie_of({}, "mon_auth") == ""
