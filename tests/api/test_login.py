"""/mon/login and /mon/logout, with everything behind them: from the password to the cookie."""

import pytest

from monrest.accounts.slowdown import WRONG
from monrest.base.errors import (
    BadRequest,
    Forbidden,
    NotAuthenticated,
    Unavailable,
)
from tests.fakes.accounts import basic
from tests.fakes.keystore import result

LOGIN, LOGOUT, WHOAMI = "/mon/login", "/mon/logout", "/mon/whoami"


def whoami(house, headers):
    return house.send("GET", WHOAMI, headers).value


def refused(house, error, *where, **given):
    with pytest.raises(error) as raised:
        house.send(*where, **given)
    return raised.value


@pytest.mark.parametrize(
    ("user", "password"), [("ann", "wrong"), ("ann", "Right"), ("nobody", "right"), ("Ann", "x")]
)
def test_wrong_is_the_same_for_everybody(house, user, password, audited):
    begun = house.clock.seconds()
    error = refused(house, NotAuthenticated, "POST", LOGIN, login=user, password=password)
    assert (error.message, error.description) == ("login failed", WRONG)
    assert error.headers == (("WWW-Authenticate", 'Bearer realm="mon"'),)
    assert house.clock.seconds() - begun == 0.5
    assert [(line["action"], line["user"], line["result"]) for line in audited] == [
        ("login failed", user, WRONG)
    ]
    assert result(house.sessions.several()) == []
    # Strangers are not stored.
    stored = [profile.name for profile in result(house.users.list())]
    assert stored == ([user] if user == "ann" else [])


@pytest.mark.parametrize("away", ["wrong password", "unknown user"])
def test_a_slow_database_does_not_tell_who_exists(house, away):
    """Only a failure of somebody who exists is written."""
    house.passwords.threads = type(house.passwords.threads)()
    house.store.held = True
    found = []
    name = "ann" if away == "wrong password" else "nobody"
    house.begin("POST", LOGIN, login=name, password="x").addErrback(found.append)
    house.clock.advance(0.25)
    house.store.release()
    assert found == []
    house.clock.advance(0.25)
    found[0].trap(NotAuthenticated)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "login is a required argument"),
        ({"login": "ann"}, "password is a required argument"),
        ({"password": "s3cret"}, "login is a required argument"),
        ({"login": "", "password": "s3cret"}, "login is a required argument"),
        ({"login": "ann", "password": ""}, "password is a required argument"),
        ({"login": ["ann", "bob"], "password": "s3cret"}, "login: expected one value, got 2"),
        ({"login": "ann", "username": "bob", "password": "s3cret"}, "expected one value"),
        ({"login": "ann", "password": ["s3cret", "b"]}, "password: expected one value, got 2"),
        ({"login": "ann", "password": "s3cret", "pass": "x"}, "'pass': expected only"),
        ({"login": "../ann", "password": "s3cret"}, "login: expected a name"),
        ({"login": "a\nb", "password": "s3cret"}, "login: expected"),
        ({"login": "(cli)", "password": "s3cret"}, "internal"),
        ({"login": "a" * 300, "password": "s3cret"}, "login: expected"),
    ],
)
def test_bad_requests(house, given, words):
    error = refused(house, BadRequest, "POST", LOGIN, **given)
    assert words in str(error)
    assert "s3cret" not in str(error)


def test_while_the_password_file_is_gone(house):
    house.path.unlink()
    refused(house, Unavailable, "POST", LOGIN, login="ann", password="right")
    refused(house, Unavailable, "POST", LOGIN, login="nobody", password="right")


def test_while_the_database_is_away(house, audited):
    house.store.down = True
    refused(house, Unavailable, "POST", LOGIN, login="ann", password="right")
    (line,) = audited
    assert (line["action"], line["user"]) == ("login failed", "ann")
    assert line["result"] not in ("", "ok")
    refused(house, NotAuthenticated, "POST", LOGIN, login="ann", password="wrong")
    house.store.down = False
    house.clock.advance(2)
    assert house.login()


def wrong(house, name="ann", password="wrong", headers=None, address="192.0.2.1"):
    """What a refused login says, after how many seconds."""
    begun = house.clock.seconds()
    found = []
    sent = house.begin("POST", LOGIN, headers, address=address, login=name, password=password)
    sent.addBoth(found.append)
    while not found:
        house.clock.advance(0.5)
    assert found[0].type is NotAuthenticated, found
    return found[0].value.message, found[0].value.description, house.clock.seconds() - begun


def test_too_many_failures_lock_passwords_from_that_address(house, audited):
    house.configure(lock_after_failed_logins=3)
    cookie, _ = house.login()
    attacker = "198.51.100.66"
    for _ in range(3):
        wrong(house, address=attacker)
    # The right password is answered as a wrong one, and as that of somebody who does not exist.
    for _ in range(3):
        wrong(house, "nobody", address=attacker)
    right = wrong(house, password="right", address=attacker)
    assert right[:2] == wrong(house, address=attacker)[:2]
    assert right == wrong(house, "nobody", address=attacker)
    assert "too many wrong passwords before" in [line["result"] for line in audited]
    with pytest.raises(NotAuthenticated, match="login required"):
        house.ask(basic("ann", "right"), address=attacker)
    # Sessions, keys and the secret key go on, and the user logs in from elsewhere.
    assert whoami(house, cookie)["id"] == "ann"
    assert whoami(house, house.as_user("ann"))["id"] == "ann"
    assert house.send("GET", "/mon/users/ann", house.as_user("root")).value["locked"] is False
    assert house.login()
    house.clock.advance(901)
    assert house.login(address=attacker)
    for _ in range(3):
        wrong(house, address=attacker)
    unlocked = house.send("POST", "/mon/users/ann/cmd/unlock", house.as_user("root"))
    assert unlocked.value == {"code": 200, "message": "ok - user has been unlocked"}
    assert house.ask(basic("ann", "right"), address=attacker).user == "ann"
    assert house.login(address=attacker)
    assert [line["action"] for line in audited][-2:] == ["user unlock", "login"]


def test_failures_from_many_addresses_lock_all_others(house):
    house.configure(lock_after_failed_logins=2)
    house.login()
    for number in range(20):
        wrong(house, address=f"198.51.100.{number}")
    assert wrong(house, password="right", address="203.0.113.1")[0] == "login failed"
    # The address from which the user came before is trusted, and ends the lock.
    assert house.login()
    assert house.login(address="203.0.113.1")


def test_who_does_not_know_the_password_does_not_learn_of_a_lock(house, audited):
    house.send("POST", "/mon/users/ann/cmd/lock", house.as_user("root"))
    refused(house, NotAuthenticated, "POST", LOGIN, login="ann", password="wrong")
    error = refused(house, Forbidden, "POST", LOGIN, login="ann", password="right")
    assert error.message == "account is locked, please contact an administrator"
    assert (audited[-1]["action"], audited[-1]["result"]) == ("login failed", "locked")


def test_a_planted_session_is_not_taken_over(house):
    planted = {"cookie": "mon_auth=" + "a" * 64 + "_1"}
    cookie, _ = house.login(headers=planted)
    assert cookie != planted
    refused(house, NotAuthenticated, "GET", WHOAMI, planted)


@pytest.mark.parametrize("value", ["ü", "", '"', "a" * 10_000, "\ud800"])
def test_odd_cookies_at_the_login(house, value):
    assert house.login(headers={"cookie": f"mon_auth={value}"})


def test_a_login_ends_the_session_that_the_browser_had(house):
    attacker, _ = house.login("bob")
    mine, _ = house.login("ann", headers=attacker)
    assert whoami(house, mine)["id"] == "ann"
    refused(house, NotAuthenticated, "GET", WHOAMI, attacker)


def test_logging_out_needs_the_token_and_a_session(house):
    cookie, token = house.login()
    _, other = house.login("bob")
    for given in ({}, {"CSRFtoken": "x"}, {"token": other}):
        refused(house, Forbidden, "POST", LOGOUT, cookie, **given)
    assert whoami(house, cookie)["id"] == "ann"
    refused(house, BadRequest, "POST", LOGOUT, house.as_user("ann"))
    house.send("POST", LOGOUT, {**cookie, "x-mon-csrf-token": token})
