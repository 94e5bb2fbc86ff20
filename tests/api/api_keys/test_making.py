"""POST /mon/api_keys: checks and texts."""

import pytest

from monrest.accounts.roles import restricted
from monrest.base.errors import BadRequest, Forbidden, Unavailable
from monrest.base.values import ADMIN, READ_ONLY
from tests.api.api_keys.room import ANN, BOB, CLI, ROOT, shown
from tests.fakes.door import HOSTS, SERVICES
from tests.fakes.keystore import result


def test_the_answer_shows_the_key_once(room):
    answer = room.send(ANN, "POST", comment="cron")
    made = answer.value
    assert set(made) == {"message", "file", "hashed_key", "private_key"}
    assert made["message"] == "successfully created api key"
    assert made["file"] == f"api_keys/{made['hashed_key']}.SHA-256"
    assert room.use(made).user == "ann"
    everything = shown(room.send(ROOT)) + shown(room.send(ROOT, id=made["hashed_key"]))
    assert made["hashed_key"].encode() in everything
    assert made["private_key"].encode() not in everything
    assert room.key(made).comment == "cron"


@pytest.mark.parametrize(
    ("identity", "auth", "given", "error", "message"),
    [
        (
            ROOT,
            {"api_keys_enabled": False, "max_api_keys_per_user": 0},
            {},
            BadRequest,
            "api keys are disabled",
        ),
        (ROOT, {"max_api_keys_per_user": 0}, {}, Forbidden, "no permission to create api keys"),
        (CLI, {"max_api_keys_per_user": 0}, {}, Forbidden, "no permission to create api keys"),
        (ANN, {}, {"username": "bob"}, Forbidden, "username requires the role admin"),
        (ANN, {}, {"username": "ann"}, Forbidden, "username requires the role admin"),
        (ANN, {}, {"superuser": 1}, Forbidden, "superuser requires the role admin"),
        (ANN, {}, {"force_user": "root"}, Forbidden, "force_user requires the role admin"),
        (ANN, {}, {"superuser": 1, "force_user": "root"}, Forbidden, "superuser requires"),
        (ROOT, {}, {"superuser": 1, "username": "ann"}, BadRequest, "username: expected none"),
        (ROOT, {}, {"force_user": "ann"}, BadRequest, "force_user: expected superuser=1"),
        (ROOT, {}, {"username": "../x"}, BadRequest, "username: expected"),
        (ROOT, {}, {"username": "(cli)"}, BadRequest, "username: expected"),
        (ROOT, {}, {"superuser": 1, "force_user": "(api)"}, BadRequest, "force_user: expected"),
        (ANN, {}, {"superuser": "maybe"}, BadRequest, "superuser: expected 0 or 1"),
        (ANN, {}, {"comment": ["a", "b"]}, BadRequest, "comment: expected one value, got 2"),
        (ANN, {}, {"comment": "a\nb"}, BadRequest, "comment: expected up to"),
        (ANN, {}, {"comment": "a" * 1001}, BadRequest, "comment: expected up to"),
        (ROOT, {}, {"username": ["ann", "bob"]}, BadRequest, "username: expected one value"),
        (ANN, {}, {"roles": "nosuchrole"}, BadRequest, "roles: 'authorized_for_nosuchrole'"),
        (ANN, {}, {"roles": ",".join([HOSTS] * 1000)}, BadRequest, "at most 100 names"),
        (ANN, {}, {"roles": [HOSTS] * 101}, BadRequest, "at most 100 names"),
        (ANN, {}, {"role": HOSTS}, BadRequest, "'role': expected one of comment, roles"),
        (ANN, {}, {"Roles": HOSTS}, BadRequest, "'Roles': expected one of"),
    ],
)
def test_refusals_make_no_key(room, audited, identity, auth, given, error, message):
    room.configure(**auth)
    room.contacts.silent = {"mute"}
    with pytest.raises(error, match=message):
        room.post(identity, **given)
    assert result(room.keys.several()) == []
    (line,) = audited
    assert (line["action"], line["user"]) == ("key create", identity.user)
    assert line["result"] not in ("", "ok")


def test_the_number_of_keys(room):
    room.configure(max_api_keys_per_user=2)
    made = [room.post(ANN) for _ in range(2)]
    # Before what she may not: the order of the checks.
    for asked in ({}, {"username": "bob"}):
        with pytest.raises(Forbidden) as refused:
            room.post(ANN, **asked)
        assert refused.value.message == (
            "maximum number of api keys (2) reached, cannot create more."
        )
    room.post(BOB)
    # The maker's own keys count, not those of whom he makes them for.
    for _ in range(3):
        room.post(ROOT, username="ann")
        room.post(ROOT, superuser=1)
        room.post(CLI)
    room.send(ANN, "DELETE", id=made[0]["hashed_key"])
    with pytest.raises(Forbidden, match="maximum number"):
        room.post(ANN)


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ({}, None),
        ({"roles": HOSTS}, (HOSTS,)),
        ({"roles": "all_hosts"}, (HOSTS,)),
        ({"roles": [HOSTS, SERVICES, ADMIN]}, (HOSTS,)),
        ({"roles": f"{HOSTS}, {READ_ONLY}"}, (HOSTS, READ_ONLY)),
        ({"roles": SERVICES}, ()),
        ({"roles": ""}, ()),
        ({"document": {"roles": []}}, ()),
        ({"document": {"roles": [HOSTS]}}, (HOSTS,)),
        ({"document": {"comment": "x"}}, None),
    ],
)
def test_roles_of_a_new_key(room, given, roles):
    made = room.send(ANN, "POST", **given).value
    assert room.key(made).roles == roles
    assert room.use(made).roles == restricted(
        ANN.roles, None if roles is None else frozenset(roles)
    )


def test_names_are_changed_as_everywhere(room):
    room.configure(lowercase_user=True)
    assert room.key(room.post(ROOT, username="ANN")).user == "ann"
    assert room.key(room.post(ROOT, superuser=1, force_user="ANN")).force_user == "ann"


def test_what_was_made_is_audited(room, audited):
    made = room.post(ROOT, superuser=1, force_user="ann", roles=HOSTS)
    room.send(ROOT, "DELETE", id=made["hashed_key"])
    created, deleted = audited
    assert (created["action"], created["user"], created["client"], created["result"]) == (
        *("key create", "root", "192.0.2.7", "ok"),
    )
    assert created["target"] == deleted["target"] == made["hashed_key"]
    assert (created["force_user"], created["roles"]) == ("ann", (HOSTS,))
    assert (deleted["action"], deleted["result"]) == ("key delete", "ok")
    assert made["private_key"] not in str(audited)


def test_the_audit_tells_no_role_from_no_restriction(room, audited):
    room.post(ANN)
    room.send(ANN, "POST", document={"roles": []})
    assert [line.get("roles") for line in audited] == [None, "none"]


def test_the_database_is_away(room):
    room.door.store.down = True
    for method in ("GET", "POST"):
        with pytest.raises(Unavailable):
            room.send(ANN, method)
