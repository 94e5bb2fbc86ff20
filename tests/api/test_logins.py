"""/mon/login, /mon/logout, /mon/sessions, /mon/whoami, /mon/users, from the password to the cookie."""

import pytest

from monrest.accounts.slowdown import WRONG
from monrest.accounts.user_endpoints import COLUMNS
from monrest.base.errors import (
    BadRequest,
    Forbidden,
    NotAuthenticated,
    NotFound,
    Unavailable,
)
from monrest.base.values import ADMIN, Contact, SiteProblem
from tests.fakes.accounts import basic
from tests.fakes.keystore import result
from tests.table import each

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
def test_a_wrong_password_is_answered_as_a_wrong_name(house, user, password, audited):
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
    """Only failures of users who exist are written."""
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


@each(
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
    # The right password is answered as a wrong one, and as that of a user who does not exist.
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


@each("value", ["ü", "", '"', "a" * 10_000, "\ud800"])
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


PATH = "/mon/sessions"


def listed(house, path, headers, **given):
    """The rows of a list, as a client sees them."""
    answer = house.send("GET", path, headers, **given)
    names = [one.name for one in answer.columns]
    return [
        dict(zip(names, row, strict=False)) | dict(answer.expand(row) if answer.expand else {})
        for row in answer.rows
    ]


def sessions_of(house, headers, **given):
    return listed(house, PATH, headers, **given)


def test_users_see_their_own_sessions(house):
    ann, token = house.login("ann")
    house.clock.advance(1)
    bob, _ = house.login("bob")
    assert [row["username"] for row in sessions_of(house, house.as_user("root"))] == ["ann", "bob"]
    (row,) = sessions_of(house, bob)
    assert set(row) == {
        *("active", "address", "digest", "fake", "file", "hashed_key", "oauth_groups"),
        *("roles", "username"),
    }
    assert row["address"] == "192.0.2.7"
    assert row["digest"] == "SHA-256"
    assert row["roles"] == []
    assert row["file"] == f"sessions/{row['hashed_key']}.SHA-256"
    everything = str(sessions_of(house, house.as_user("root")))
    for secret in (token, ann["cookie"].partition("=")[2], bob["cookie"].partition("=")[2]):
        assert secret not in everything
    assert sessions_of(house, house.as_user("eve")) == []


def test_one_session(house):
    ann, _ = house.login("ann")
    (row,) = sessions_of(house, ann)
    path = f"{PATH}/{row['hashed_key']}"
    assert house.send("GET", path, ann).value == row
    assert house.send("GET", path, house.as_user("root")).value == row
    assert house.send("GET", path, ann, columns="username:u").value == {"u": "ann"}
    for headers, other in (
        (house.as_user("bob"), path),
        (ann, f"{PATH}/{'0' * 64}"),
        (house.as_user("root"), f"{PATH}/%00"),
        (house.as_user("root"), f"{PATH}/{ann['cookie'].partition('=')[2]}"),
    ):
        with pytest.raises(NotFound, match="no such session"):
            house.send("GET", other, headers)


def user_of(house, headers):
    return whoami(house, headers)["id"]


def over(house, headers):
    with pytest.raises(NotAuthenticated, match="session is not valid"):
        user_of(house, headers)


def changed(*houses, **passwords):
    """Give the password file of all these daemons another content; they look each second."""
    houses[0].write(**passwords)
    for house in houses:
        house.clock.advance(1)


def test_who_is_taken_out_of_the_password_file_has_no_session(house):
    """On no daemon; the sessions of others go on, and keys do, which belong to a name."""
    other = house.another()
    ann, _ = house.login("ann")
    bob, _ = house.login("bob")
    key = house.send("POST", "/mon/api_keys", house.as_user("ann")).value["private_key"]
    for one in (house, other):
        assert (user_of(one, ann), user_of(one, bob)) == ("ann", "bob")
    changed(house, other, bob="right", cid="right")
    for one in (house, other):
        over(one, ann)
        assert user_of(one, bob) == "bob"
        assert [row["username"] for row in sessions_of(one, one.as_user("root"))] == ["bob"]
        assert user_of(one, {"x-mon-auth-key": key}) == "ann"
    changed(house, other, ann="another")
    over(house, ann)
    over(other, ann)


def test_another_password_ends_a_session(house):
    ann, _ = house.login("ann")
    changed(house, ann="right", bob="right", cid="right")
    assert user_of(house, ann) == "ann"
    changed(house, ann="new", bob="right")
    over(house, ann)
    again, _ = house.login("ann", "new")
    assert user_of(house, again) == "ann"
    over(house, ann)


def test_a_password_file_that_cannot_be_read_ends_no_session(house):
    ann, _ = house.login("ann")
    content = house.path.read_text()
    house.path.unlink()
    house.clock.advance(1)
    with pytest.raises(Unavailable, match="password file"):
        user_of(house, ann)
    house.path.write_text(content)
    house.clock.advance(1)
    assert user_of(house, ann) == "ann"


def test_without_a_password_file_there_are_no_sessions(house):
    ann, _ = house.login("ann")
    house.configure(htpasswd_file="")
    over(house, ann)


ANN = Contact(groups=frozenset({"b", "a"}), alias="Ann", email="ann@example.org")
HOSTS = "authorized_for_all_hosts"


def account(house, user="ann"):
    return whoami(house, house.as_user(user))


def users_of(house, user="root", **given):
    return listed(house, "/mon/users", house.as_user(user), **given)


def get(house, name, user="root"):
    return house.send("GET", f"/mon/users/{name}", house.as_user(user)).value


def order(house, name, word, user="root"):
    return house.send("POST", f"/mon/users/{name}/cmd/{word}", house.as_user(user))


def patch(house, name, user="ann", **given):
    return house.send("PATCH", f"/mon/users/{name}", house.as_user(user), **given).value


def test_users_choose_their_zone(house):
    assert patch(house, "ann", tz="Asia/Tokyo") == {
        "code": 200,
        "message": "ok - user has been changed",
    }
    assert (account(house)["tz"], get(house, "ann")["tz"]) == ("Asia/Tokyo", "Asia/Tokyo")
    patch(house, "ann")
    assert account(house)["tz"] == "Asia/Tokyo"
    patch(house, "ann", user="root", tz="")
    assert account(house)["tz"] is None


NO_ZONES = [
    *("Server Setting", "Local Browser", "Europe", "Europe/Atlantis", "../etc/passwd", "a\0b"),
    *("/usr/share/zoneinfo/UTC", "UTC;", "zone.tab", "x" * 5000, "\ud800", "Europe.Berlin"),
]


def test_what_is_no_zone_is_refused(house):
    for text in NO_ZONES:
        with pytest.raises(BadRequest, match="tz: expected a time zone"):
            patch(house, "ann", tz=text)
    with pytest.raises(BadRequest, match="'alias': expected only tz"):
        patch(house, "ann", alias="x")
    with pytest.raises(BadRequest):
        patch(house, "ann", tz=["UTC", "UTC"])
    assert account(house)["tz"] is None


def test_a_stored_zone_that_is_none_is_that_of_the_server(house):
    """As other programs store it."""
    for text in ("Server Setting", "Local Browser", "Europe"):
        result(house.users.set_zone("ann", text))
        assert account(house)["tz"] is None
        assert result(house.users.get("ann")).zone is None


def test_who_changes_whom(house):
    house.directory.known["bob"] = Contact(alias="Bob", can_submit_commands=True)
    with pytest.raises(NotFound, match="no such user"):
        patch(house, "bob", tz="UTC")
    with pytest.raises(NotFound, match="no such user"):
        patch(house, "made up", user="root", tz="UTC")
    patch(house, "bob", user="root", tz="UTC")
    assert get(house, "bob")["tz"] == "UTC"
    house.directory.known["ann"] = Contact(can_submit_commands=False)
    with pytest.raises(Forbidden, match="read_only forbids every change"):
        patch(house, "ann", tz="UTC")


def test_whoami_tells_the_name_before_it_was_changed(house):
    house.configure(lowercase_user=True)
    who = account(house, "ANN")
    assert (who["id"], who["original_username"]) == ("ann", "ANN")


def test_users_of_all_sources(house):
    house.configure(
        roles={
            "admin": ("root",),
            "reports": ("rep1, rep2", "team-*", "*"),
            "all_hosts": ("ann",),
        }
    )
    house.directory.known = {"ann": ANN, "con": Contact(alias="C", email=""), "x*y": ANN}
    order(house, "locked", "lock")
    found = {row["id"]: row for row in users_of(house)}
    assert list(found) == sorted(["ann", "bob", "con", "locked", "rep1", "rep2", "root"])
    for row in found.values():
        assert set(row) - {"last_login"} == {one.name for one in COLUMNS} - {"last_login"}
    assert found["ann"]["groups"] == ["a", "b"]
    assert HOSTS in found["ann"]["roles"]
    assert ADMIN in found["root"]["roles"]
    assert found["locked"]["locked"] is True
    assert found["bob"]["locked"] is False
    for name in ("ann", "con", "locked", "rep1", "root"):
        assert get(house, name)["roles"] == found[name]["roles"]


def test_roles_of_contact_groups(house):
    house.configure(roles={"admin": ("root",)}, contactgroup_roles={"all_hosts": ("a",)})
    house.directory.known["ann"] = ANN
    assert get(house, "ann")["roles"] == [HOSTS]
    assert {row["id"]: row["roles"] for row in users_of(house)}["ann"] == [HOSTS]


@each("name", ["nobody", "*", "a*", "%00", "%0A", "(cli)", "%ED%A0%80", "..%2Fx"])
def test_unknown_users(house, name):
    for method, path in (
        ("GET", f"/mon/users/{name}"),
        ("POST", f"/mon/users/{name}/cmd/unlock"),
    ):
        with pytest.raises(NotFound, match="no such user"):
            house.send(method, path, house.as_user("root"))


def test_sites_that_fail_are_told(house):
    problem = SiteProblem("a", "A", "gone")
    house.directory.problems = (problem,)
    answer = house.send("GET", "/mon/users", house.as_user("root"))
    assert answer.failed_sites == (problem,)
    assert len(answer.rows) == 3


def test_users_while_the_password_file_is_gone(house):
    house.path.unlink()
    assert [row["id"] for row in users_of(house)] == ["ann", "root"]


def test_users_that_only_keys_know_can_be_locked(house):
    order(house, "from-a-proxy", "lock")
    with pytest.raises(Forbidden, match="locked"):
        account(house, "from-a-proxy")


@each("name", ["(cli)", "%0Ax", "a%2Fb", "x" * 300])
def test_names_that_cannot_be_locked(house, name, audited):
    with pytest.raises(BadRequest, match="invalid user name"):
        order(house, name, "lock")
    assert audited[-1]["result"] == "invalid user name"
    assert result(house.users.list()) == []


def test_locking_takes_no_parameters(house):
    with pytest.raises(BadRequest, match="'until'"):
        house.send("POST", "/mon/users/ann/cmd/lock", house.as_user("root"), until="tomorrow")


def test_locking_while_the_database_is_away(house, audited):
    account(house, "root")
    house.store.down = True
    with pytest.raises(Unavailable):
        order(house, "ann", "lock")
    assert audited[-1]["action"] == "user lock"
    assert audited[-1]["result"] != "ok"
