"""Who asks: every method, their order, forged headers, locked users, limits of keys."""

import base64

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.logger import globalLogPublisher

from monrest.auth.roles import EVERYTHING, grantable
from monrest.errors import BadRequest, Forbidden, NotAuthenticated, Unavailable
from monrest.log import AUDIT
from monrest.names import Names
from monrest.values import ADMIN, READ_ONLY, ROLES, Caller
from tests.fakes.door import SECRET, STRANGER, Door, Session
from tests.fakes.keystore import result

HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"
KEY, USER = "x-mon-auth-key", "x-mon-auth-user"
PROXY = "10.0.0.1"


@pytest.fixture
def door(tmp_path):
    made = Door(tmp_path)
    yield made
    made.store.down = made.store.held = False
    result(made.store.stopService())


@pytest.fixture
def lines():
    """The fields of the audit lines that the test writes."""
    seen = []

    def watch(event):
        if AUDIT in event:
            seen.append(event[AUDIT])

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)


def basic(user, password):
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


# -------------------------------------------------------------------- secret key


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


# -------------------------------------------------------------------- roles and names


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
    assert len(door.authenticator._identities) <= 4096


# -------------------------------------------------------------------- API keys


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
    door.clock.advance(5)
    with pytest.raises(Unavailable):
        door.ask({KEY: plain})


def test_the_use_of_a_key_is_noted_and_its_refusal_audited(door, lines):
    plain = door.make(user="ann")
    identity = door.ask({KEY: plain})
    assert result(door.keys.get(identity.key)).last_from == STRANGER
    assert lines == []
    wrong = "0" * 64 + "_1"
    with pytest.raises(Forbidden):
        door.ask({KEY: wrong, USER: "root"})
    (line,) = lines
    assert (line["action"], line["client"]) == ("key refused", STRANGER)
    assert wrong not in str(line)
    assert "root" not in str(line)  # nobody has shown that he is root


# -------------------------------------------------------------------- cookies


@pytest.mark.parametrize(
    "cookie", ["mon_auth=v", "a=b; mon_auth=v; c=d", ' mon_auth="v"', "xmon_auth=w;mon_auth=v"]
)
def test_a_session(door, cookie):
    door.sessions.known["v"] = Session()
    identity = door.ask({"cookie": cookie, USER: "root"})
    assert (identity.user, identity.source, identity.roles) == ("ann", "cookie", {HOSTS})
    assert (identity.session, identity.csrf_token) == ("5e55", "t0ken")
    assert identity.limit is None


def test_roles_of_a_session_restrict_it(door):
    door.sessions.known["v"] = Session(username="root", roles=(HOSTS,))
    identity = door.ask({"cookie": "mon_auth=v"})
    assert (identity.roles, identity.limit) == ({HOSTS}, {HOSTS})


def test_a_cookie_that_is_no_session(door):
    for cookie in ("mon_auth=gone", "mon_auth=gone; other=v"):
        with pytest.raises(NotAuthenticated, match="session is not valid"):
            door.ask({"cookie": cookie})
    for cookie in ("", "mon_auth=", "other=v", "mon_auth"):
        with pytest.raises(NotAuthenticated, match="login required"):
            door.ask({"cookie": cookie})
    # It is no reason to refuse who shows something better.
    assert door.ask({"cookie": "mon_auth=gone"}, uid=0).superuser


def test_a_key_comes_before_a_cookie(door):
    door.sessions.known["v"] = Session(username="root")
    identity = door.ask({"cookie": "mon_auth=v", KEY: door.make(user="ann")})
    assert (identity.user, identity.session, identity.csrf_token) == ("ann", "", "")


# -------------------------------------------------------------------- basic authentication


def test_a_password(door):
    door.passwords.known = {"ann": "p:w", "ü": "ü"}
    assert door.ask(basic("ann", "p:w")).source == "basic auth"
    assert door.ask(basic("ü", "ü")).user == "ü"
    assert door.ask({**basic("ann", "p:w"), USER: "root"}).user == "ann"


@pytest.mark.parametrize(
    "headers",
    [
        basic("ann", "wrong"),
        basic("nobody", "x"),
        basic("ann", ""),
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic YW5u"},
        {"authorization": "Basic /////w=="},
    ],
)
def test_a_wrong_password(door, headers):
    door.configure(default_user="root")
    door.passwords.known = {"ann": "pw"}
    with pytest.raises(NotAuthenticated, match="login required: no or invalid cred") as refused:
        door.ask(headers)
    assert dict(refused.value.headers)["WWW-Authenticate"].startswith('Basic realm="mon"')


def test_a_wrong_password_is_counted_and_audited(door, lines):
    door.passwords.known = {"ann": "right"}
    with pytest.raises(NotAuthenticated):
        door.ask(basic("ann", "s3cret-typo"))
    assert door.users.failures == [("ann", STRANGER, True)]
    assert door.users.passes == []
    (line,) = lines
    assert (line["action"], line["user"]) == ("login failed", "ann")
    assert "s3cret-typo" not in str(line)
    door.ask(basic("ann", "right"))
    assert len(door.users.failures) == len(lines) == 1
    assert door.users.passes == ["ann"]
    with pytest.raises(NotAuthenticated):
        door.ask(basic("made up", "x"))
    assert door.users.failures[-1] == ("made up", STRANGER, False)


def test_an_impossible_name_is_not_looked_up(door):
    door.passwords.known = {"../x": "pw"}
    with pytest.raises(BadRequest, match="invalid user name: Authorization"):
        door.ask(basic("../x", "pw"))
    assert door.passwords.asked == []


def test_without_a_password_file_basic_authentication_is_refused_clearly(door):
    door.configure(default_user="root")
    with pytest.raises(NotAuthenticated, match="htpasswd_file") as refused:
        door.ask(basic("ann", "pw"))
    assert refused.value.headers == ()


def test_a_password_beside_a_key_is_refused(door):
    door.passwords.known = {"root": "pw"}
    for key in (SECRET, door.make(user="ann"), "wrong"):
        with pytest.raises(BadRequest, match="contradicting credentials"):
            door.ask({**basic("root", "pw"), KEY: key, USER: "ann"})
    assert door.passwords.asked == []


# -------------------------------------------------------------------- proxies


def test_the_user_of_a_trusted_proxy(door):
    door.configure(remote_user_header="X-Remote-User", trusted_proxies=("10.0.0.0/8",))
    identity = door.ask({"x-remote-user": " ann "}, address=PROXY)
    assert (identity.user, identity.source, identity.roles) == ("ann", "basic auth", {HOSTS})
    with pytest.raises(BadRequest, match="invalid user name: X-Remote-User"):
        door.ask({"x-remote-user": "(cli)"}, address=PROXY)
    # It has looked at the password itself and passes it on.
    assert door.ask({"x-remote-user": "ann", **basic("ann", "x")}, address=PROXY).user == "ann"


@pytest.mark.parametrize(
    ("header", "where"),
    [
        ("X-Remote-User", {"address": STRANGER}),
        ("X-Remote-User", {"address": ""}),
        ("X-Remote-User", {"uid": 33}),
        ("", {"address": PROXY}),
        ("X-Other", {"address": PROXY}),
    ],
)
@pytest.mark.parametrize(
    "forged", [{}, {"x-forwarded-for": "127.0.0.1"}, {"x-forwarded-for": PROXY, "via": "1.1 x"}]
)
def test_the_user_header_of_anybody_else_is_nothing(door, lines, header, where, forged):
    door.configure(remote_user_header=header, trusted_proxies=("10.0.0.0/8", "127.0.0.1"))
    with pytest.raises(NotAuthenticated, match="login required"):
        door.ask({"x-remote-user": "root", **forged}, **where)
    assert lines == []


def test_a_client_behind_a_trusted_proxy_is_not_the_proxy(door):
    """The neighbour counts and not the address that he names."""
    door.configure(remote_user_header="X-Remote-User", trusted_proxies=(PROXY,))
    forged = Caller(headers={"x-remote-user": "root"}, address=STRANGER, client=PROXY)
    with pytest.raises(NotAuthenticated):
        result(door.authenticator.authenticate(forged))


# -------------------------------------------------------------------- Unix sockets


@pytest.mark.parametrize("uid", [0, 1000])
def test_local_administration(door, uid):
    identity = door.ask(uid=uid)
    assert (identity.user, identity.source, identity.superuser) == ("(cli)", "cli", True)
    assert all(identity.may(role) for role in ROLES if role != READ_ONLY)
    assert not identity.may(READ_ONLY)
    named = door.ask({USER: "ann"}, uid=uid)
    assert (named.user, named.roles, named.superuser) == ("ann", {HOSTS}, False)
    with pytest.raises(BadRequest, match="invalid user name"):
        door.ask({USER: "../x"}, uid=uid)


@pytest.mark.parametrize("where", [{"uid": 33}, {"uid": 1}, {"address": ""}, {"address": PROXY}])
def test_nobody_else_is_local(door, where):
    for headers in ({}, {USER: "ann"}):
        with pytest.raises(NotAuthenticated):
            door.ask(headers, **where)


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"]
)
def test_who_comes_through_a_proxy_that_runs_as_root_is_not_root(door, header):
    with pytest.raises(NotAuthenticated):
        door.ask({header: "x"}, uid=0)


# -------------------------------------------------------------------- the rest


def test_the_default_user(door):
    door.configure(default_user="ann")
    for where in ({"address": STRANGER}, {"uid": 33}):
        identity = door.ask({USER: "root"}, **where)
        assert (identity.user, identity.source, identity.roles) == (
            "ann",
            "default_user_name",
            {HOSTS},
        )
    assert door.ask(uid=0).user == "(cli)"


WAYS = {
    "secret key": lambda door: {"headers": {KEY: SECRET, USER: "ann"}},
    "key": lambda door: {"headers": {KEY: door.make(user="ann")}},
    "superuser key": lambda door: {"headers": {KEY: door.make(superuser=True), USER: "ann"}},
    "forced user": lambda door: {
        "headers": {KEY: door.make(superuser=True, force_user="ann", roles=(ADMIN,))}
    },
    "cookie": lambda door: {"headers": {"cookie": "mon_auth=v"}},
    "password": lambda door: {"headers": basic("ann", "pw")},
    "proxy": lambda door: {"headers": {"x-user": "ann"}, "address": PROXY},
    "unix": lambda door: {"headers": {USER: "ann"}, "uid": 0},
    "default": lambda door: {},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_locked_users_are_refused_on_every_way(door, way):
    door.configure(
        default_user="ann",
        remote_user_header="X-User",
        trusted_proxies=(PROXY,),
        locked_message="go away",
    )
    door.sessions.known["v"] = Session()
    door.passwords.known = {"ann": "pw"}
    asked = way(door)
    assert door.ask(**asked).user == "ann"
    door.users.locked = {"ann"}
    with pytest.raises(Forbidden, match=r"^go away$"):
        door.ask(**asked)
    door.users.locked = {"bob"}
    assert door.ask(**asked).user == "ann"


def test_internal_users_cannot_be_locked(door):
    door.users.locked = {"(api)", "(cli)"}
    assert door.ask(uid=0).user == "(cli)"
    assert door.ask({KEY: door.make(superuser=True)}).user == "(api)"
    assert door.ask({KEY: door.make(superuser=True, roles=(HOSTS,))}).user == "(api)"


OPTIONAL_ROLES = st.none() | st.lists(st.sampled_from(ROLES), unique=True).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
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
