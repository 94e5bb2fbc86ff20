"""API keys: for whom they act, what they may, when they are refused."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.accounts.roles import EVERYTHING, grantable
from monrest.base.errors import BadRequest, Forbidden, Unavailable
from monrest.base.values import ADMIN, READ_ONLY, ROLES
from tests.accounts.authenticate.given import PROXY
from tests.examples import examples
from tests.fakes.door import HOSTS, KEY, SECRET, SERVICES, STRANGER, USER, Session
from tests.fakes.keystore import result


def test_a_user_s_key_acts_as_its_owner_whatever_is_asked(door):
    plain = door.make(user="ann")
    for more in ({}, {USER: "root"}, {USER: "../x"}, {USER: "(cli)"}):
        identity = door.ask({KEY: plain, **more})
        assert (identity.user, identity.source, identity.roles) == ("ann", "api_key", {HOSTS})
        assert not identity.superuser
        assert identity.key == result(door.keys.find(plain)).hashed_key
    assert door.ask({"authorization": f"Bearer {plain}"}).user == "ann"


@pytest.mark.parametrize(
    ("key", "asked", "user", "roles"),
    [
        ({"user": "root", "roles": (HOSTS,)}, None, "root", {HOSTS}),
        ({"user": "root", "roles": ()}, None, "root", set()),
        ({"user": "ann", "roles": (HOSTS, SERVICES)}, None, "ann", {HOSTS}),
        ({"user": "ann", "roles": (ADMIN,)}, None, "ann", set()),
        ({"user": "ann", "roles": (HOSTS, READ_ONLY)}, None, "ann", {HOSTS, READ_ONLY}),
        ({"user": "shy", "roles": (HOSTS,)}, None, "shy", {READ_ONLY}),
        ({"superuser": True}, "ann", "ann", {HOSTS}),
        ({"superuser": True}, "nobody", "nobody", set()),
        ({"superuser": True}, None, "(api)", EVERYTHING),
        ({"superuser": True, "roles": (SERVICES,)}, None, "(api)", {SERVICES}),
        ({"superuser": True, "roles": (READ_ONLY,)}, None, "(api)", {READ_ONLY}),
        ({"superuser": True, "roles": (SERVICES,)}, "ann", "ann", set()),
        ({"superuser": True, "roles": (SERVICES,)}, "root", "root", {SERVICES}),
        ({"superuser": True, "force_user": "ann"}, "root", "ann", {HOSTS}),
        ({"superuser": True, "force_user": "ann", "roles": (SERVICES,)}, "root", "ann", {SERVICES}),
        ({"superuser": True, "force_user": "ann", "roles": ()}, None, "ann", set()),
        (
            {"superuser": True, "force_user": "shy", "roles": (HOSTS,)},
            None,
            "shy",
            {HOSTS, READ_ONLY},
        ),
    ],
)
def test_roles_of_keys(door, key, asked, user, roles):
    door.configure(roles={"admin": ("root",), "all_hosts": ("ann",), "read_only": ("shy",)})
    identity = door.ask({KEY: door.make(**key), **({USER: asked} if asked else {})})
    assert (identity.user, identity.roles) == (user, roles)
    limit = key.get("roles")
    assert identity.limit == (None if limit is None else frozenset(limit))
    # Whoever is limited has no power beside his roles.
    assert identity.superuser is (user == "(api)" and limit is None)
    assert {one for one in ROLES if identity.may(one)} == set(roles) | (
        EVERYTHING if ADMIN in roles else set()
    )


def test_a_superuser_key_falls_back_on_the_default_user(door):
    door.configure(default_user="ann")
    assert door.ask({KEY: door.make(superuser=True)}).user == "ann"


def test_a_superuser_key_refuses_impossible_names(door):
    with pytest.raises(BadRequest, match="invalid user name: X-Mon-Auth-User"):
        door.ask({KEY: door.make(superuser=True), USER: "(cli)"})


def test_api_keys_can_be_switched_off(door):
    plain = door.make(user="ann")
    door.configure(api_keys_enabled=False)
    with pytest.raises(Forbidden, match="wrong authentication key"):
        door.ask({KEY: plain})
    assert door.ask({KEY: SECRET, USER: "ann"}).user == "ann"


def test_a_wrong_key_decides_alone(door):
    """Whatever else would have let him in."""
    door.configure(default_user="ann", remote_user_header="X-User", trusted_proxies=(PROXY,))
    door.sessions.known["v"] = Session()
    others = {"cookie": "mon_auth=v", "x-user": "root"}
    for where in ({"address": PROXY}, {"uid": 0}):
        assert door.ask(others, **where).user
        for wrong in ("", "wrong", "0" * 64 + "_1"):
            with pytest.raises(Forbidden, match="wrong authentication key"):
                door.ask({**others, KEY: wrong}, **where)


def test_a_revoked_key_is_refused_at_once(door):
    plain = door.make(user="ann")
    identity = door.ask({KEY: plain})
    result(door.keys.delete(identity.key))
    with pytest.raises(Forbidden, match="wrong authentication key"):
        door.ask({KEY: plain})


def test_who_lost_a_role_lost_it_for_his_keys(door):
    plain = door.make(user="ann")
    assert door.ask({KEY: plain}).roles == {HOSTS}
    door.configure(roles={})
    assert door.ask({KEY: plain}).roles == frozenset()


def test_while_the_database_is_away(door):
    plain, other = door.make(user="ann"), door.make(user="bob")
    door.ask({KEY: plain})
    door.store.down = True
    assert door.ask({KEY: plain}).user == "ann"
    assert door.ask({KEY: SECRET, USER: "ann"}).user == "ann"
    with pytest.raises(Unavailable):
        door.ask({KEY: other})
    assert door.ask({KEY: plain}).confirmed
    door.clock.advance(5)
    assert not door.ask({KEY: plain}).confirmed
    door.clock.advance(55)
    with pytest.raises(Unavailable):
        door.ask({KEY: plain})


def test_without_locks_only_the_secret_key_reads(door):
    """Nobody knows then who is locked."""
    plain = door.make(user="ann")
    door.users.away = True
    identity = door.ask({KEY: SECRET, USER: "ann"})
    assert (identity.user, identity.roles, identity.confirmed) == ("ann", {HOSTS}, False)
    with pytest.raises(Unavailable):
        door.ask({KEY: plain})
    with pytest.raises(Unavailable):
        door.ask({USER: "ann"}, uid=0)
    assert door.ask({}, uid=0).confirmed, "internal users are never locked"


def test_the_use_of_a_key_is_noted_and_its_refusal_audited(door, audited):
    plain = door.make(user="ann")
    identity = door.ask({KEY: plain})
    assert result(door.keys.several(hashed=identity.key))[0].last_from == STRANGER
    assert audited == []
    wrong = "0" * 64 + "_1"
    with pytest.raises(Forbidden):
        door.ask({KEY: wrong, USER: "root"})
    (line,) = audited
    assert (line["action"], line["client"]) == ("key refused", STRANGER)
    assert wrong not in str(line)
    assert "root" not in str(line)  # nobody has shown that he is root


OPTIONAL_ROLES = st.none() | st.lists(st.sampled_from(ROLES), unique=True).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    st.frozensets(st.sampled_from(ROLES)),
    st.fixed_dictionaries(
        {
            "superuser": st.booleans(),
            "force_user": st.none() | st.just("ann"),
            "roles": OPTIONAL_ROLES,
        }
    ),
    OPTIONAL_ROLES,
    st.sampled_from([None, "ann", "bob"]),
)
def test_a_child_key_never_holds_more_than_its_maker(door, held, key, asked, as_user):
    """Made with a key, used in the same way as the key that made it."""
    door.configure(roles=dict.fromkeys(held, ("ann",)))
    context = {} if as_user is None else {USER: as_user}
    parent = door.ask({KEY: door.make(user="ann", **key), **context})
    granted = grantable(parent, asked)
    child = door.ask({KEY: door.make(user=parent.user, **{**key, "roles": granted}), **context})
    may = {one for one in ROLES if child.may(one)} - {READ_ONLY}
    assert may <= {one for one in ROLES if parent.may(one)}
    assert not child.superuser or parent.superuser
    if parent.limit is not None:
        assert child.limit is not None
        assert child.limit - {READ_ONLY} <= parent.limit
