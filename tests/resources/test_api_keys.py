"""/mon/api_keys: checks and texts of section 5.5, and that no key gives more than its maker has."""

import orjson
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.logger import globalLogPublisher

from monrest.auth.contacts import Contact
from monrest.auth.roles import EVERYTHING, restricted
from monrest.config import AuthConfig, Config
from monrest.errors import BadRequest, Forbidden, NotFound, Unavailable
from monrest.log import AUDIT
from monrest.render.formats import RenderOptions, render
from monrest.resources.dispatch import dispatch
from monrest.values import ADMIN, READ_ONLY, ROLES, Caller, Identity, RestRequest
from tests.fakes.context import make_context
from tests.fakes.door import Door
from tests.fakes.keystore import result

HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"
COMMANDS = "authorized_for_all_host_commands"
NOW = 1_700_000_000
KEY, USER = "x-mon-auth-key", "x-mon-auth-user"
PATH = "/mon/api_keys"

ANN = Identity(user="ann", roles=frozenset({HOSTS}))
BOB = Identity(user="bob")
ROOT = Identity(user="root", roles=frozenset({ADMIN}))
CLI = Identity(user="(cli)", roles=EVERYTHING, source="cli", superuser=True)


class May:
    """Contacts, of whom some may not send commands."""

    def __init__(self):
        self.silent = set()

    async def of(self, user):
        return Contact(can_submit_commands=user not in self.silent)


class Room:
    """The resource with real keys; ``send`` is one request."""

    def __init__(self, folder):
        self.door = Door(folder)
        self.keys = self.door.keys
        self.contacts = May()
        self.configure()

    def configure(self, **auth):
        auth = {"roles": {"admin": ("root",), "all_hosts": ("ann",)}, **auth}
        self.door.configure(**auth)
        self.config = Config(auth=AuthConfig(**auth))

    def send(self, identity, method="GET", id=None, document=None, format="json", **given):
        path = PATH if id is None else f"{PATH}/{id}"
        values = {} if document is None else document
        pairs = [(name, value) for name, value in {**given, **values}.items()]
        request = RestRequest(
            method=method,
            path=path,
            segments=tuple(path.strip("/").split("/")),
            parameters=tuple(
                (name, str(one))
                for name, value in pairs
                for one in (value if isinstance(value, (list, tuple)) else [value])
            ),
            document=document,
            format=format,
            identity=identity,
            caller=Caller(method=method, address="192.0.2.7", client="192.0.2.7"),
        )
        context = make_context(
            self.door.clock, config=self.config, keys=self.keys, contacts=self.contacts
        )
        return result(dispatch(context, request))

    def post(self, identity, **given):
        return self.send(identity, "POST", **given).value

    def key(self, made):
        return result(self.keys.get(made["hashed_key"]))

    def use(self, made, as_user=None):
        return self.door.ask({KEY: made["private_key"], **({USER: as_user} if as_user else {})})


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path)
    yield made
    made.door.store.down = False
    result(made.door.store.stopService())


@pytest.fixture
def lines():
    seen = []

    def watch(event):
        if AUDIT in event:
            seen.append(event[AUDIT])

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)


def shown(answer, format="json"):
    return b"".join(render(answer, RenderOptions(format=format)).pieces)


def rows(answer):
    return orjson.loads(shown(answer))


# -------------------------------------------------------------------- making a key


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
        (evolve(ROOT, roles=frozenset({ADMIN, READ_ONLY})), {}, {}, Forbidden, "no permission to"),
        (
            evolve(ANN, roles=frozenset({COMMANDS, READ_ONLY})),
            {},
            {},
            Forbidden,
            "no permission to",
        ),
        (Identity(user="mute"), {}, {}, Forbidden, "no permission to create api keys"),
        (
            Identity(user="mute"),
            {},
            {"username": "x"},
            Forbidden,
            "no permission to create api keys$",
        ),
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
def test_refusals_make_no_key(room, lines, identity, auth, given, error, message):
    room.configure(**auth)
    room.contacts.silent = {"mute"}
    with pytest.raises(error, match=message):
        room.post(identity, **given)
    assert result(room.keys.list()) == []
    (line,) = lines
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


def test_what_was_made_is_audited(room, lines):
    made = room.post(ROOT, superuser=1, force_user="ann", roles=HOSTS)
    room.send(ROOT, "DELETE", id=made["hashed_key"])
    created, deleted = lines
    assert (created["action"], created["user"], created["client"], created["result"]) == (
        *("key create", "root", "192.0.2.7", "ok"),
    )
    assert created["target"] == deleted["target"] == made["hashed_key"]
    assert (created["force_user"], created["roles"]) == ("ann", (HOSTS,))
    assert (deleted["action"], deleted["result"]) == ("key delete", "ok")
    assert made["private_key"] not in str(lines)


def test_the_audit_tells_no_role_from_no_restriction(room, lines):
    room.post(ANN)
    room.send(ANN, "POST", document={"roles": []})
    assert [line.get("roles") for line in lines] == [None, "none"]


def test_the_database_is_away(room):
    room.door.store.down = True
    for method in ("GET", "POST"):
        with pytest.raises(Unavailable):
            room.send(ANN, method)


# -------------------------------------------------------------------- escalation

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
    "super, forced root, hosts only": (
        {"superuser": True, "force_user": "root", "roles": L_HOSTS},
        None,
    ),
    "super, forced bob, services": (
        {"superuser": True, "force_user": "bob", "roles": (SERVICES,)},
        "root",
    ),
}
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
    (
        "root",
        {"superuser": 1, "force_user": "bob", "roles": SERVICES},
        None,
        200,
        "bob",
        {SERVICES},
    ),
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
    *(
        ("super, hosts only", asked, None, 403, "", set())
        for asked in ({}, {"roles": ROLES}, FOR_ROOT, SUPER, FORCED)
    ),
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
]


@pytest.mark.parametrize(("maker", "asked", "as_user", "status", "user", "roles"), ATTEMPTS)
def test_escalation(room, maker, asked, as_user, status, user, roles):
    key, context = KINDS[maker]
    headers = {KEY: room.door.make(**key), **({USER: context} if context else {})}
    identity = room.door.ask(headers)
    if status != 200:
        before = result(room.keys.list())
        with pytest.raises(Forbidden):
            room.post(identity, **asked)
        assert result(room.keys.list()) == before
        return
    made = room.post(identity, **asked)
    child = room.use(made, as_user)
    assert (child.user, child.roles) == (user, roles)
    assert identity.limit is None or child.limit is not None


ROLE_LISTS = st.none() | st.lists(st.sampled_from(ROLES), unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(
    maker=st.sampled_from(sorted(KINDS)),
    roles=ROLE_LISTS,
    username=st.sampled_from([None, "ann", "bob", "root"]),
    superuser=st.booleans(),
    force_user=st.sampled_from([None, "ann", "root"]),
    as_user=st.sampled_from([None, "ann", "bob", "root"]),
    generations=st.integers(1, 3),
)
def test_no_child_may_more_than_its_maker(
    room, maker, roles, username, superuser, force_user, as_user, generations
):
    """However keys are made from keys: what the first may not, the last may not either."""
    key, context = KINDS[maker]
    headers = {KEY: room.door.make(**key), **({USER: context} if context else {})}
    identity = room.door.ask(headers)
    asked = {"roles": roles, "username": username, "force_user": force_user}
    asked = {name: value for name, value in asked.items() if value is not None}
    room.configure(max_api_keys_per_user=10_000)
    for _ in range(generations):
        power = reach(room, identity)
        try:
            made = room.post(identity, **asked, **({"superuser": 1} if superuser else {}))
        except (Forbidden, BadRequest):
            return
        identity = room.use(made, as_user)
        assert reach(room, identity) <= power


def reach(room, identity):
    """What an identity may, itself or by acting for somebody, except read_only."""
    held = {role for role in ROLES if identity.may(role)}
    limited = identity.limit
    key = result(room.keys.get(identity.key))
    if key is not None and key.superuser and key.force_user is None:
        # Acts for whom it likes, within its limit.
        held |= EVERYTHING if limited is None else limited
    return held - {READ_ONLY}


# -------------------------------------------------------------------- reading and deleting


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
    assert len(result(room.keys.list())) == 2


@pytest.mark.parametrize("id", ["bob", "super", "x", "../ann", "%00", "' OR 1=1 --", "a" * 5000])
def test_foreign_and_unknown_keys_are_not_deleted(room, stocked, lines, id):
    with pytest.raises(NotFound, match="no such api key"):
        room.send(ANN, "DELETE", id=stocked.get(id, id.replace("/", "%2F")))
    assert len(result(room.keys.list())) == 3
    assert [line["result"] for line in lines] == ["no such api key"]


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
        assert refused.value.message == "no permission to delete api keys"
    assert len(result(room.keys.list())) == 3


def test_a_deleted_key_is_refused_at_once(room):
    made = room.post(ANN)
    identity = room.use(made)
    room.send(identity, "DELETE", id=made["hashed_key"])  # by itself, too
    with pytest.raises(Forbidden, match="wrong authentication key"):
        room.use(made)
