"""Who sees and deletes which keys."""

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest, Forbidden, NotFound
from monrest.base.values import ADMIN, READ_ONLY, Identity
from tests.api.api_keys.room import ANN, CLI, NOW, ROOT, rows, shown
from tests.fakes.door import HOSTS
from tests.fakes.keystore import result


@pytest.fixture
def stocked(room):
    """Keys of ann, bob and a superuser, one second between them."""
    made = {}
    for name, stored in {
        "ann": {"user": "ann", "roles": (HOSTS,), "comment": "A"},
        "bob": {"user": "bob", "comment": "b"},
        "super": {"superuser": True, "force_user": "ann"},
    }.items():
        made[name] = result(room.keys.create(**stored))[0].hashed_key
        room.door.clock.advance(1)
    return made


@pytest.mark.parametrize(
    ("identity", "seen"),
    [
        (ROOT, ["ann", "bob", "super"]),
        (CLI, ["ann", "bob", "super"]),
        (ANN, ["ann"]),
        (evolve(ANN, roles=frozenset({READ_ONLY})), ["ann"]),
        (evolve(ROOT, roles=frozenset({HOSTS}), limit=frozenset({HOSTS})), []),
        (Identity(user="(api)", roles=frozenset({HOSTS}), limit=frozenset({HOSTS})), []),
        (Identity(user="nobody"), []),
    ],
)
def test_who_sees_what(room, stocked, identity, seen):
    listed = [row["hashed_key"] for row in rows(room.send(identity))]
    assert listed == [stocked[name] for name in seen]
    for name, hashed in stocked.items():
        if name in seen:
            assert room.send(identity, id=hashed).value["hashed_key"] == hashed
        else:
            with pytest.raises(NotFound, match="no such api key"):
                room.send(identity, id=hashed)


def test_fields_that_are_not_there_are_absent(room, stocked):
    always = {"comment", "created", "digest", "file", "hashed_key"}
    listed = dict(zip(stocked, rows(room.send(ROOT)), strict=True))
    assert set(listed["ann"]) == always | {"user", "roles"}
    assert set(listed["bob"]) == always | {"user"}
    assert set(listed["super"]) == always | {"superuser", "force_user"}
    assert listed["ann"] == {
        "comment": "A",
        "created": NOW,
        "digest": "SHA-256",
        "file": f"api_keys/{stocked['ann']}.SHA-256",
        "hashed_key": stocked["ann"],
        "roles": [HOSTS],
        "user": "ann",
    }
    for name, row in listed.items():
        assert room.send(ROOT, id=stocked[name]).value == row
    # Tables have all columns, and so has who names them.
    head = shown(room.send(ROOT, format="csv"), "csv").splitlines()[0].split(b";")
    assert {b"user", b"force_user", b"last_used", b"roles"} <= set(head)
    asked = rows(room.send(ROOT, columns="user,force_user"))
    assert asked[1] == {"user": "bob", "force_user": None}


def test_it_is_a_list_like_any_other(room, stocked):
    def names(**given):
        by_hash = {hashed: name for name, hashed in stocked.items()}
        return [by_hash[row["hashed_key"]] for row in rows(room.send(ROOT, **given))]

    assert names(sort="-created") == ["super", "bob", "ann"]
    assert names(limit=1, offset=1) == ["bob"]
    assert names(user="ANN") == ["ann"]
    assert names(q='superuser = 1 or comment = "b"') == ["bob", "super"]
    assert names(hashed_key=stocked["bob"]) == ["bob"]
    assert names(**{"roles[gte]": HOSTS}) == ["ann"]
    assert room.send(ROOT, columns="count(*) as n").value == {"n": 3}
    with pytest.raises(BadRequest, match="limit"):
        room.send(ROOT, limit="x")
    assert room.send(ROOT, id=stocked["ann"], columns="user").value == {"user": "ann"}


def test_the_last_use_is_shown(room):
    made = room.post(ANN)
    room.door.clock.advance(7)
    room.use(made)
    (row,) = rows(room.send(ANN))
    assert (row["last_used"], row["last_from"]) == (NOW + 7, "192.0.2.7")


@pytest.mark.parametrize("identity", [ROOT, CLI, ANN])
def test_deletion(room, stocked, identity):
    answer = room.send(identity, "DELETE", id=stocked["ann"])
    assert answer.value == {"message": "successfully removed 1 api key."}
    with pytest.raises(NotFound, match="no such api key"):
        room.send(ROOT, "DELETE", id=stocked["ann"])
    assert len(result(room.keys.several())) == 2


@pytest.mark.parametrize("id", ["bob", "super", "x", "../ann", "%00", "' OR 1=1 --", "a" * 5000])
def test_foreign_and_unknown_keys_are_not_deleted(room, stocked, audited, id):
    with pytest.raises(NotFound, match="no such api key"):
        room.send(ANN, "DELETE", id=stocked.get(id, id.replace("/", "%2F")))
    assert len(result(room.keys.several())) == 3
    assert [line["result"] for line in audited] == ["no such api key"]


@pytest.mark.parametrize(
    "identity",
    [
        evolve(ANN, roles=frozenset({READ_ONLY})),
        evolve(ROOT, roles=frozenset({ADMIN, READ_ONLY})),
        Identity(user="mute"),
    ],
)
def test_who_may_only_read_deletes_nothing(room, stocked, identity):
    room.contacts.silent = {"mute"}
    for hashed in (stocked["ann"], "unknown"):
        with pytest.raises(Forbidden) as refused:
            room.send(identity, "DELETE", id=hashed)
        assert "authorized_for_read_only forbids every change" in refused.value.description
    assert len(result(room.keys.several())) == 3


def test_a_deleted_key_is_refused_at_once(room):
    made = room.post(ANN)
    identity = room.use(made)
    room.send(identity, "DELETE", id=made["hashed_key"])  # by itself, too
    with pytest.raises(Forbidden, match="wrong authentication key"):
        room.use(made)
