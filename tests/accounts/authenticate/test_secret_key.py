"""The secret key, and roles and names of those for whom it is used."""

import pytest

from monrest.base.errors import BadRequest, Forbidden, NotAuthenticated
from monrest.base.names import Names
from monrest.base.values import ADMIN, Caller
from tests.fakes.door import HOSTS, KEY, SECRET, STRANGER, USER, Session
from tests.fakes.keystore import result


@pytest.mark.parametrize(
    "headers",
    [
        {KEY: SECRET},
        {KEY: f" {SECRET} "},
        {"authorization": f"Bearer {SECRET}"},
        {"authorization": f"bearer  {SECRET}"},
        {"authorization": "Bearer wrong", KEY: SECRET},
        {"authorization": "Digest x", KEY: SECRET},
    ],
)
def test_the_secret_key_acts_for_the_user(door, headers):
    identity = door.ask({**headers, USER: "ann"})
    assert (identity.user, identity.source, identity.roles) == ("ann", "secret_key", {HOSTS})
    assert (identity.superuser, identity.limit, identity.key) == (False, None, "")
    assert not identity.may(ADMIN)


@pytest.mark.parametrize(
    ("headers", "error", "message"),
    [
        ({}, NotAuthenticated, "login required: no or invalid credentials used."),
        ({USER: "ann"}, NotAuthenticated, "login required"),
        ({"authorization": "Bearer", USER: "ann"}, Forbidden, "wrong authentication key"),
        ({"authorization": "", USER: "ann"}, NotAuthenticated, "login required"),
        ({"authorization": "Digest x", USER: "ann"}, NotAuthenticated, "login required"),
        ({"authorization": "Bearer ", USER: "ann"}, Forbidden, "wrong authentication key"),
        *(
            ({KEY: wrong, USER: "ann"}, Forbidden, "wrong authentication key")
            for wrong in (
                *("wrong", "", SECRET + "\u00fc", SECRET[:-1], SECRET.upper(), SECRET + "_1"),
                *(f"{SECRET},{SECRET}", f"{SECRET}, x", "a" * 100_000, "' OR 1=1 --"),
            )
        ),
        ({KEY: "wrong", "authorization": f"Bearer {SECRET}", USER: "ann"}, Forbidden, "wrong auth"),
        ({KEY: SECRET}, BadRequest, "Authentication by secret key requires X-Mon-Auth-User header"),
        ({KEY: SECRET, USER: "  "}, BadRequest, "Authentication by secret key requires"),
        *(
            ({KEY: SECRET, USER: bad}, BadRequest, "invalid user name: X-Mon-Auth-User")
            for bad in ("a\nb", "a\x00", "a\u2028b", "a" * 256, "../x", "a/b", "(api)", "(cli)")
        ),
    ],
)
def test_refusals(door, headers, error, message):
    with pytest.raises(error) as refused:
        door.ask(headers)
    assert str(refused.value).startswith(message)
    assert SECRET not in str(refused.value)


def test_the_words_of_the_site_are_in_the_headers(door):
    door.configure(names=Names(app="abc"))
    assert door.ask({"x-abc-auth-key": SECRET, "x-abc-auth-user": "ann"}).user == "ann"
    with pytest.raises(BadRequest, match="requires X-Abc-Auth-User header"):
        door.ask({"x-abc-auth-key": SECRET})
    door.sessions.known["v"] = Session()
    assert door.ask({"cookie": "abc_auth=v"}).source == "cookie"
    with pytest.raises(NotAuthenticated):
        door.ask({"cookie": "mon_auth=v"})


def test_secrets_are_not_printed(door):
    assert SECRET not in repr(door.authenticator)
    assert "t0ken" not in repr(result(door.authenticator.authenticate(signed_in(door))))


def signed_in(door):
    door.sessions.known["v"] = Session()
    return Caller(headers={"cookie": "mon_auth=v"}, address=STRANGER)


def test_roles_of_contact_groups_are_added(door):
    door.configure(
        roles={"reports": ("ann",)},
        contactgroup_roles={"all_hosts": ("ops-*",), "admin": ("wheel",), "broadcasts": ("*",)},
    )
    always = {"authorized_for_reports", "authorized_for_broadcasts"}
    for groups, more in (
        ((), set()),
        (("ops-night",), {HOSTS}),
        (("wheel",), {ADMIN}),
        ((), set()),
    ):
        door.groups.groups = groups
        assert door.ask({KEY: SECRET, USER: "ann"}).roles == always | more


def test_groups_are_not_asked_without_need(door):
    door.ask({KEY: SECRET, USER: "ann"})
    assert door.groups.asked == []


def test_names_are_changed_and_the_original_is_kept(door):
    door.configure(lowercase_user=True, user_replace=("@example\\.com$", ""))
    identity = door.ask({KEY: SECRET, USER: "Ann@Example.com"})
    assert (identity.user, identity.original, identity.roles) == ("ann", "Ann@Example.com", {HOSTS})
    # The owner of a key has got his name already.
    assert door.ask({KEY: door.make(user="Bob@example.com")}).user == "Bob@example.com"


def test_many_users_are_not_remembered_for_ever(door):
    for number in range(5000):
        door.ask({KEY: SECRET, USER: f"user{number}"})
    assert len(door.authenticator._held) <= 4096
