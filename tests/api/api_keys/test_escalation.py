"""No key gives more than its maker has."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.accounts.roles import EVERYTHING
from monrest.base.errors import BadRequest, Forbidden
from monrest.base.values import ADMIN, READ_ONLY, ROLES
from tests.examples import examples
from tests.fakes.door import HOSTS, KEY, SERVICES, USER
from tests.fakes.keystore import result

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
        before = result(room.keys.several())
        with pytest.raises(Forbidden):
            room.post(identity, **asked)
        assert result(room.keys.several()) == before
        return
    made = room.post(identity, **asked)
    child = room.use(made, as_user)
    assert (child.user, child.roles) == (user, roles)
    assert identity.limit is None or child.limit is not None


ROLE_LISTS = st.none() | st.lists(st.sampled_from(ROLES), unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(80))
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
    key = result(room.keys.several(hashed=identity.key))[0]
    if key is not None and key.superuser and key.force_user is None:
        # Acts for whom it likes, within its limit.
        held |= EVERYTHING if limited is None else limited
    return held - {READ_ONLY}
