"""/mon/api_keys: who makes, sees and deletes which keys, and that none gives more than its maker has."""

import orjson
import pytest
from attrs import evolve

from monrest.accounts.roles import EVERYTHING, restricted
from monrest.base.errors import BadRequest, Forbidden, NotFound, Unavailable
from monrest.base.values import ADMIN, READ_ONLY, ROLES, Caller, Identity, RestRequest
from monrest.render.formats import RenderOptions, render
from tests.fakes.accounts import HERE, HOSTS, KEY, SERVICES, USER
from tests.fakes.keystore import NOW, result
from tests.table import each

PATH = "/mon/api_keys"
ANN = Identity(user="ann", roles=frozenset({HOSTS}))
BOB = Identity(user="bob")
ROOT = Identity(user="root", roles=frozenset({ADMIN}))
CLI = Identity(user="(cli)", roles=EVERYTHING, source="cli", superuser=True)


def send(house, identity, method="GET", id=None, document=None, format="json", **given):
    path = PATH if id is None else f"{PATH}/{id}"
    values = {**given, **(document or {})}
    request = RestRequest(
        method=method,
        path=path,
        segments=tuple(path.strip("/").split("/")),
        parameters=tuple(
            (name, str(one))
            for name, value in values.items()
            for one in (value if isinstance(value, (list, tuple)) else [value])
        ),
        document=document,
        format=format,
        identity=identity,
        caller=Caller(method=method, address=HERE, client=HERE),
    )
    return result(house.context.dispatch(house.context, request))


def post(house, identity, **given):
    return send(house, identity, "POST", **given).value


def stored(house, made):
    return result(house.keys.several(hashed=made["hashed_key"]))[0]


def use(house, made, as_user=None):
    return house.ask({KEY: made["private_key"], **({USER: as_user} if as_user else {})})


def shown(answer, format="json"):
    return b"".join(render(answer, RenderOptions(format=format)).pieces)


def rows(answer):
    return orjson.loads(shown(answer))


@each(
    ("identity", "auth", "given", "error", "message"),
    [
        (ROOT, {"api_keys_enabled": False, "max_api_keys_per_user": 0}, {}, BadRequest, "api keys are disabled"),
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
)  # fmt: skip
def test_refusals_make_no_key(house, audited, identity, auth, given, error, message):
    house.configure(**auth)
    del audited[:]
    with pytest.raises(error, match=message):
        post(house, identity, **given)
    assert result(house.keys.several()) == []
    (line,) = audited
    assert (line["action"], line["user"]) == ("key create", identity.user)
    assert line["result"] not in ("", "ok")


def test_the_number_of_keys(house):
    house.configure(max_api_keys_per_user=2)
    made = [post(house, ANN) for _ in range(2)]
    # Before what she may not: the order of the checks.
    for asked in ({}, {"username": "bob"}):
        with pytest.raises(Forbidden) as refused:
            post(house, ANN, **asked)
        assert refused.value.message == (
            "maximum number of api keys (2) reached, cannot create more."
        )
    post(house, BOB)
    # The maker's own keys count, not those of whom he makes them for.
    for _ in range(3):
        post(house, ROOT, username="ann")
        post(house, ROOT, superuser=1)
        post(house, CLI)
    send(house, ANN, "DELETE", id=made[0]["hashed_key"])
    with pytest.raises(Forbidden, match="maximum number"):
        post(house, ANN)


@each(
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
def test_roles_of_a_new_key(house, given, roles):
    made = send(house, ANN, "POST", **given).value
    assert stored(house, made).roles == roles
    assert use(house, made).roles == restricted(
        ANN.roles, None if roles is None else frozenset(roles)
    )


def test_names_are_changed_as_everywhere(house):
    house.configure(lowercase_user=True)
    assert stored(house, post(house, ROOT, username="ANN")).user == "ann"
    assert stored(house, post(house, ROOT, superuser=1, force_user="ANN")).force_user == "ann"


def test_what_was_made_is_audited(house, audited):
    made = post(house, ROOT, superuser=1, force_user="ann", roles=HOSTS)
    send(house, ROOT, "DELETE", id=made["hashed_key"])
    created, deleted = audited
    assert (created["action"], created["user"], created["client"], created["result"]) == (
        *("key create", "root", "192.0.2.7", "ok"),
    )
    assert created["target"] == deleted["target"] == made["hashed_key"]
    assert (created["force_user"], created["roles"]) == ("ann", (HOSTS,))
    assert (deleted["action"], deleted["result"]) == ("key delete", "ok")
    assert made["private_key"] not in str(audited)


def test_the_audit_tells_no_role_from_no_restriction(house, audited):
    post(house, ANN)
    send(house, ANN, "POST", document={"roles": []})
    assert [line.get("roles") for line in audited] == [None, "none"]


def test_the_database_is_away(house):
    house.store.down = True
    for method in ("GET", "POST"):
        with pytest.raises(Unavailable):
            send(house, ANN, method)


@pytest.fixture
def stocked(house):
    """Keys of ann, bob and a superuser, one second between them."""
    made = {}
    for name, stored in {
        "ann": {"user": "ann", "roles": (HOSTS,), "comment": "A"},
        "bob": {"user": "bob", "comment": "b"},
        "super": {"superuser": True, "force_user": "ann"},
    }.items():
        made[name] = result(house.keys.create(**stored))[0].hashed_key
        house.clock.advance(1)
    return made


@each(
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
def test_who_sees_what(house, stocked, identity, seen):
    listed = [row["hashed_key"] for row in rows(send(house, identity))]
    assert listed == [stocked[name] for name in seen]
    for name, hashed in stocked.items():
        if name in seen:
            assert send(house, identity, id=hashed).value["hashed_key"] == hashed
        else:
            with pytest.raises(NotFound, match="no such api key"):
                send(house, identity, id=hashed)


def test_fields_that_are_not_there_are_absent(house, stocked):
    always = {"comment", "created", "digest", "file", "hashed_key"}
    listed = dict(zip(stocked, rows(send(house, ROOT)), strict=True))
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
        assert send(house, ROOT, id=stocked[name]).value == row
    # Tables have all columns, and so has who names them.
    head = shown(send(house, ROOT, format="csv"), "csv").splitlines()[0].split(b";")
    assert {b"user", b"force_user", b"last_used", b"roles"} <= set(head)
    asked = rows(send(house, ROOT, columns="user,force_user"))
    assert asked[1] == {"user": "bob", "force_user": None}


@pytest.mark.parametrize("id", ["bob", "super", "x", "../ann", "%00", "' OR 1=1 --", "a" * 5000])
def test_foreign_and_unknown_keys_are_not_deleted(house, stocked, audited, id):
    with pytest.raises(NotFound, match="no such api key"):
        send(house, ANN, "DELETE", id=stocked.get(id, id.replace("/", "%2F")))
    assert len(result(house.keys.several())) == 3
    assert [line["result"] for line in audited] == ["no such api key"]


L_HOSTS = (HOSTS,)
KINDS = {
    # name: (the key with which the maker asks, the user whose context he asks for)
    "ann": ({"user": "ann"}, None),
    "ann, hosts only": ({"user": "ann", "roles": L_HOSTS}, None),
    "ann, nothing": ({"user": "ann", "roles": ()}, None),
    "root": ({"user": "root"}, None),
    "root, hosts only": ({"user": "root", "roles": L_HOSTS}, None),
    "root, admin only": ({"user": "root", "roles": (ADMIN,)}, None),
    "root, reads only": ({"user": "root", "roles": (READ_ONLY,)}, None),
    "super": ({"superuser": True}, None),
    "super as ann": ({"superuser": True}, "ann"),
    "super, hosts only": ({"superuser": True, "roles": L_HOSTS}, None),
    "super, hosts only, as root": ({"superuser": True, "roles": L_HOSTS}, "root"),
    "super, hosts only, as ann": ({"superuser": True, "roles": L_HOSTS}, "ann"),
    "super, forced root, hosts only": ({"superuser": True, "force_user": "root", "roles": L_HOSTS}, None),
    "super, forced bob, services": ({"superuser": True, "force_user": "bob", "roles": (SERVICES,)}, "root"),
}  # fmt: skip
ADMIN_KEY = {"roles": ADMIN}
FOR_ROOT = {"username": "root"}
SUPER = {"superuser": 1}
FORCED = {"superuser": 1, "force_user": "root"}
FORCED_ADMIN = {**FORCED, "roles": [ADMIN, HOSTS]}

ATTEMPTS = [
    # maker, what he asks for, how the new key is used -> status, user and effective roles
    ("ann", {}, None, 200, "ann", {HOSTS}),
    ("ann", ADMIN_KEY, None, 200, "ann", set()),
    ("ann", {"roles": ROLES}, None, 200, "ann", {HOSTS, READ_ONLY}),
    ("ann", {}, "root", 200, "ann", {HOSTS}),
    *(("ann", asked, None, 403, "", set()) for asked in (FOR_ROOT, SUPER, FORCED, FORCED_ADMIN)),
    ("ann, hosts only", {}, None, 200, "ann", {HOSTS}),
    ("ann, hosts only", {"roles": SERVICES}, None, 200, "ann", set()),
    ("ann, hosts only", SUPER, None, 403, "", set()),
    ("ann, nothing", {}, None, 200, "ann", set()),
    ("ann, nothing", {"roles": HOSTS}, None, 200, "ann", set()),
    ("root", {}, None, 200, "root", {ADMIN}),
    ("root", {"roles": HOSTS}, None, 200, "root", {HOSTS}),
    ("root", {"username": "ann"}, None, 200, "ann", {HOSTS}),
    ("root", {"username": "ann", "roles": ADMIN}, None, 200, "ann", set()),
    ("root", SUPER, None, 200, "(api)", EVERYTHING),
    ("root", FORCED, "ann", 200, "root", {ADMIN}),
    ("root", {"superuser": 1, "force_user": "bob", "roles": SERVICES}, None, 200, "bob", {SERVICES}),
    ("root", {"superuser": 1, "roles": ""}, None, 200, "(api)", set()),
    # The hole of the reference: without roles the new key was unrestricted.
    ("root, hosts only", {}, None, 200, "root", {HOSTS}),
    ("root, hosts only", ADMIN_KEY, None, 200, "root", set()),
    ("root, hosts only", {"roles": ROLES}, None, 200, "root", {HOSTS, READ_ONLY}),
    *(
        ("root, hosts only", asked, None, 403, "", set())
        for asked in (FOR_ROOT, SUPER, FORCED, FORCED_ADMIN, {"username": "ann"})
    ),
    ("root, admin only", {}, None, 200, "root", {ADMIN}),
    ("root, admin only", {"roles": [ADMIN, HOSTS]}, None, 200, "root", {ADMIN}),
    ("root, admin only", SUPER, None, 200, "(api)", {ADMIN}),
    ("root, admin only", SUPER, "ann", 200, "ann", set()),
    ("root, admin only", FORCED_ADMIN, None, 200, "root", {ADMIN}),
    ("root, admin only", {"superuser": 1, "force_user": "bob"}, None, 200, "bob", {ADMIN}),
    *(("root, reads only", asked, None, 403, "", set()) for asked in ({}, SUPER, FOR_ROOT)),
    ("super", {}, None, 200, "(api)", EVERYTHING),
    ("super", {}, "ann", 200, "ann", {HOSTS}),
    ("super", {"username": "ann"}, "root", 200, "ann", {HOSTS}),
    ("super as ann", {}, "root", 200, "ann", {HOSTS}),
    *(("super as ann", asked, None, 403, "", set()) for asked in (FOR_ROOT, SUPER, FORCED)),
    # What it may not ask for it does not get by asking for nothing either.
    *(("super, hosts only", asked, None, 403, "", set()) for asked in ({}, {"roles": ROLES}, FOR_ROOT, SUPER, FORCED)),
    ("super, hosts only, as root", {}, None, 200, "root", {HOSTS}),
    ("super, hosts only, as root", {"roles": ADMIN}, "root", 200, "root", set()),
    ("super, hosts only, as root", FORCED, None, 403, "", set()),
    ("super, hosts only, as ann", {}, "root", 200, "ann", {HOSTS}),
    ("super, forced root, hosts only", {}, None, 200, "root", {HOSTS}),
    ("super, forced root, hosts only", ADMIN_KEY, None, 200, "root", set()),
    ("super, forced root, hosts only", FORCED_ADMIN, None, 403, "", set()),
    # What a forced user got from his key only is not his in a key of his own.
    ("super, forced bob, services", {}, None, 200, "bob", set()),
    ("super, forced bob, services", {}, "root", 200, "bob", set()),
    ("super, forced bob, services", SUPER, None, 403, "", set()),
]  # fmt: skip


@each(("maker", "asked", "as_user", "status", "user", "roles"), ATTEMPTS)
def test_escalation(house, maker, asked, as_user, status, user, roles):
    house.configure(max_api_keys_per_user=1000)
    key, context = KINDS[maker]
    headers = {KEY: house.make(**key), **({USER: context} if context else {})}
    identity = house.ask(headers)
    if status != 200:
        before = result(house.keys.several())
        with pytest.raises(Forbidden):
            post(house, identity, **asked)
        assert result(house.keys.several()) == before
        return
    made = post(house, identity, **asked)
    child = use(house, made, as_user)
    assert (child.user, child.roles) == (user, roles)
    assert identity.limit is None or child.limit is not None
