"""Who is asking: keys, cookies, passwords, proxies, Unix sockets, and who is refused."""

from ipaddress import ip_network

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.accounts.authenticate import Proxies
from monrest.accounts.roles import EVERYTHING
from monrest.base.errors import BadRequest, Forbidden, NotAuthenticated, Unavailable
from monrest.base.values import ADMIN, READ_ONLY, ROLES, Caller, Contact
from tests.examples import examples
from tests.fakes.accounts import HERE, HOSTS, KEY, SECRET, SERVICES, USER, House, basic, sha
from tests.fakes.keystore import result
from tests.table import each

PROXY = "10.0.0.1"
WRONG_KEY = "0" * 64 + "_1"


@each(
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
def test_the_secret_key_acts_for_the_user(house, headers):
    found = house.ask({**headers, USER: "ann"})
    assert (found.user, found.source, found.roles) == ("ann", "secret_key", {HOSTS})
    assert (found.superuser, found.limit, found.key) == (False, None, "")
    assert not found.may(ADMIN)


@each(
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
def test_refusals(house, headers, error, message):
    with pytest.raises(error) as refused:
        house.ask(headers)
    assert str(refused.value).startswith(message)
    assert SECRET not in str(refused.value)


def test_the_words_of_the_site_are_in_the_headers(house):
    house.configure(app="abc")
    assert house.ask({"x-abc-auth-key": SECRET, "x-abc-auth-user": "ann"}).user == "ann"
    with pytest.raises(BadRequest, match="requires X-Abc-Auth-User header"):
        house.ask({"x-abc-auth-key": SECRET})


def test_secrets_are_not_printed(house):
    cookie, token = house.login()
    assert SECRET not in repr(house.authenticator)
    assert token not in repr(house.ask(cookie))


def test_roles_of_contact_groups_are_added(house):
    house.configure(
        roles={"reports": ("ann",)},
        contactgroup_roles={"all_hosts": ("ops-*",), "admin": ("wheel",), "broadcasts": ("*",)},
    )
    always = {"authorized_for_reports", "authorized_for_broadcasts"}
    for groups, more in ((), set()), (("ops-night",), {HOSTS}), (("wheel",), {ADMIN}), ((), set()):
        house.directory.known["ann"] = Contact(groups=frozenset(groups))
        assert house.ask(house.as_user("ann")).roles == always | more


def test_names_are_changed_and_the_original_is_kept(house):
    house.configure(lowercase_user=True, user_replace=("@example\\.com$", ""))
    found = house.ask(house.as_user("Ann@Example.com"))
    assert (found.user, found.original, found.roles) == ("ann", "Ann@Example.com", {HOSTS})
    # The owner of a key has got his name already.
    assert house.ask({KEY: house.make(user="Bob@example.com")}).user == "Bob@example.com"


def test_many_users_are_not_remembered_for_ever(house, monkeypatch):
    monkeypatch.setattr("monrest.accounts.authenticate._REMEMBERED", 20)
    for number in range(50):
        house.ask(house.as_user(f"user{number}"))
    assert len(house.authenticator._held) <= 20


def test_a_user_s_key_acts_as_its_owner_for_any_name(house):
    plain = house.make(user="ann")
    for more in ({}, {USER: "root"}, {USER: "../x"}, {USER: "(cli)"}):
        found = house.ask({KEY: plain, **more})
        assert (found.user, found.source, found.roles) == ("ann", "api_key", {HOSTS})
        assert not found.superuser
        assert found.key == result(house.keys.find(plain)).hashed_key
    assert house.ask({"authorization": f"Bearer {plain}"}).user == "ann"


FORCED = {"superuser": True, "force_user": "ann"}


@each(
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
        (FORCED, "root", "ann", {HOSTS}),
        ({**FORCED, "roles": (SERVICES,)}, "root", "ann", {SERVICES}),
        ({**FORCED, "roles": ()}, None, "ann", set()),
        ({**FORCED, "force_user": "shy", "roles": (HOSTS,)}, None, "shy", {HOSTS, READ_ONLY}),
    ],
)
def test_roles_of_keys(house, key, asked, user, roles):
    house.configure(roles={"admin": ("root",), "all_hosts": ("ann",), "read_only": ("shy",)})
    found = house.ask({KEY: house.make(**key), **({USER: asked} if asked else {})})
    assert (found.user, found.roles) == (user, roles)
    limit = key.get("roles")
    assert found.limit == (None if limit is None else frozenset(limit))
    # A limited superuser has no power beside the roles.
    assert found.superuser is (user == "(api)" and limit is None)
    assert {one for one in ROLES if found.may(one)} == set(roles) | (
        EVERYTHING if ADMIN in roles else set()
    )


def test_a_superuser_key_without_a_name(house):
    house.configure(default_user="ann")
    assert house.ask({KEY: house.make(superuser=True)}).user == "ann"
    with pytest.raises(BadRequest, match="invalid user name: X-Mon-Auth-User"):
        house.ask({KEY: house.make(superuser=True), USER: "(cli)"})


def test_a_wrong_key_decides_alone(house):
    """Also beside credentials that would do."""
    house.configure(default_user="ann", remote_user_header="X-User", trusted_proxies=(PROXY,))
    cookie, _ = house.login()
    others = {**cookie, "x-user": "root"}
    for where in ({"address": PROXY}, {"uid": 0}):
        assert house.ask(others, **where).user
        for wrong in ("", "wrong", WRONG_KEY):
            with pytest.raises(Forbidden, match="wrong authentication key"):
                house.ask({**others, KEY: wrong}, **where)


def test_who_lost_a_role_lost_it_for_his_keys(house):
    plain = house.make(user="ann")
    assert house.ask({KEY: plain}).roles == {HOSTS}
    house.configure(roles={})
    assert house.ask({KEY: plain}).roles == frozenset()


def test_without_locks_only_the_secret_key_reads(house):
    """It is not known then which users are locked."""
    plain = house.make(user="ann")
    house.store.down = True
    found = house.ask(house.as_user("ann"))
    assert (found.user, found.roles, found.confirmed) == ("ann", {HOSTS}, False)
    with pytest.raises(Unavailable):
        house.ask({KEY: plain})
    with pytest.raises(Unavailable):
        house.ask({USER: "ann"}, uid=0)
    assert house.ask({}, uid=0).confirmed, "internal users are never locked"


def test_the_use_of_a_key_is_noted_and_its_refusal_audited(house, audited):
    plain = house.make(user="ann")
    found = house.ask({KEY: plain})
    assert result(house.keys.several(hashed=found.key))[0].last_from == HERE
    assert audited == []
    with pytest.raises(Forbidden):
        house.ask({KEY: WRONG_KEY, USER: "root"})
    (line,) = audited
    assert (line["action"], line["client"]) == ("key refused", HERE)
    assert WRONG_KEY not in str(line)
    assert "root" not in str(line)  # the caller has not shown to be root


def owner(house, limit):
    """The identity of what is done in the name of ann, such as her reports."""
    return result(house.authenticator.of_user("ann", limit))


@each("limits", [(None, frozenset({HOSTS})), (frozenset({HOSTS}), None)])
def test_work_in_a_user_s_name_has_its_own_limit(house, limits):
    house.configure(roles={"admin": ("ann",)})
    full = {limit: owner(house, limit).roles for limit in limits}
    assert full == {None: {ADMIN}, frozenset({HOSTS}): {HOSTS}}


LIMITS = st.none() | st.frozensets(st.sampled_from((HOSTS, SERVICES, ADMIN, READ_ONLY)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.lists(LIMITS, min_size=2, max_size=6), st.frozensets(st.sampled_from(ROLES)))
def test_no_answer_depends_on_the_ones_before(tmp_path_factory, limits, held):
    """Keys, forced keys, sessions, passwords and owners, with any limits in any order."""
    house = House(tmp_path_factory.mktemp("house"), roles=dict.fromkeys(held, ("ann",)))
    house.write(ann="right")
    password = sha("right")
    ways = [lambda: house.ask(basic("ann", "right")), lambda: house.ask(house.as_user("ann"))]
    for limit in limits:
        roles = None if limit is None else tuple(sorted(limit))
        key = {KEY: house.make(user="ann", roles=roles)}
        forced = {KEY: house.make(superuser=True, force_user="ann", roles=roles)}
        session = house.sessions.create("ann", Caller(), password, roles=roles)
        cookie = {"cookie": f"mon_auth={result(session)[1]}"}
        ways += [
            lambda key=key: house.ask(key),
            lambda forced=forced: house.ask(forced),
            lambda cookie=cookie: house.ask(cookie),
            lambda limit=limit: owner(house, limit),
        ]
    alone = []
    for way in ways:
        house.configure(**house.auth)
        alone.append(way())
    assert [way() for way in ways] == alone
    assert [way() for way in reversed(ways)] == alone[::-1]
    house.store.stopService()


def test_a_session(house):
    cookie, token = house.login()
    found = house.ask({**cookie, USER: "root"})
    assert (found.user, found.source, found.roles) == ("ann", "cookie", {HOSTS})
    assert (found.session, found.csrf_token) == (
        result(house.sessions.several())[0].hashed_id,
        token,
    )
    assert found.limit is None


def test_a_cookie_that_is_no_session(house):
    for cookie in ("mon_auth=gone", "mon_auth=gone; other=v"):
        with pytest.raises(NotAuthenticated, match="session is not valid"):
            house.ask({"cookie": cookie})
    for cookie in ("", "mon_auth=", "other=v", "mon_auth"):
        with pytest.raises(NotAuthenticated, match="login required"):
            house.ask({"cookie": cookie})
    # It is no reason to refuse who shows something better.
    assert house.ask({"cookie": "mon_auth=gone"}, uid=0).superuser


def test_a_key_comes_before_a_cookie(house):
    cookie, _ = house.login("root")
    found = house.ask({**cookie, KEY: house.make(user="ann")})
    assert (found.user, found.session, found.csrf_token) == ("ann", "", "")


def test_a_password(house):
    house.write(ann="p:w", ü="ü")
    assert house.ask(basic("ann", "p:w")).source == "basic auth"
    assert house.ask(basic("ü", "ü")).user == "ü"
    assert house.ask({**basic("ann", "p:w"), USER: "root"}).user == "ann"


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
def test_a_wrong_password(house, headers):
    house.configure(default_user="root")
    with pytest.raises(NotAuthenticated, match="login required: no or invalid cred") as refused:
        house.ask(headers)
    assert refused.value.headers[-1][1].startswith('Basic realm="mon"')


def test_an_impossible_name_is_not_looked_up(house, audited):
    with pytest.raises(BadRequest, match="invalid user name: Authorization"):
        house.ask(basic("../x", "pw"))
    assert audited == []


def test_a_key_beside_a_password_decides(house, audited):
    key = house.make(user="ann")
    for password in ("right", "wrong"):
        beside = basic("root", password)
        assert house.ask({**beside, KEY: key}).user == "ann"
        assert house.ask({**beside, **house.as_user("bob")}).user == "bob"
        with pytest.raises(Forbidden, match="wrong authentication key"):
            house.ask({**beside, KEY: "wrong"})
    assert {line["action"] for line in audited} == {"key refused"}
    # Of two keys the one in the header made for it.
    assert house.ask({"authorization": "Bearer wrong", KEY: key}).user == "ann"


BEARER, BASIC = 'Bearer realm="mon"', 'Basic realm="mon", charset="UTF-8"'
SCRIPTS = (
    {"sec-fetch-mode": "cors"},
    {"sec-fetch-mode": "same-origin"},
    {"x-requested-with": "XMLHttpRequest"},
)


@pytest.mark.parametrize("passwords", [True, False])
def test_anonymous_callers_learn_how_to_come_in(house, passwords):
    """A script of a page is not told of passwords, for which its browser would ask the person."""
    if not passwords:
        house.configure(htpasswd_file="")
    for headers in ({}, basic("ann", "wrong"), {"cookie": "mon_auth=gone"}):
        for more in ({}, {"sec-fetch-mode": "navigate"}, *SCRIPTS):
            with pytest.raises(NotAuthenticated) as refused:
                house.ask({**headers, **more})
            asks = [BASIC] if passwords and more not in SCRIPTS else []
            expected = [("WWW-Authenticate", value) for value in (BEARER, *asks)]
            assert list(refused.value.headers) == expected, (headers, more)


def test_the_user_of_a_trusted_proxy(house):
    house.configure(remote_user_header="X-Remote-User", trusted_proxies=("10.0.0.0/8",))
    found = house.ask({"x-remote-user": " ann "}, address=PROXY)
    assert (found.user, found.source, found.roles) == ("ann", "basic auth", {HOSTS})
    with pytest.raises(BadRequest, match="invalid user name: X-Remote-User"):
        house.ask({"x-remote-user": "(cli)"}, address=PROXY)
    # It has looked at the password itself and passes it on, where there is no file of passwords.
    house.configure(htpasswd_file="", remote_user_header="X-Remote-User", trusted_proxies=(PROXY,))
    assert house.ask({"x-remote-user": "ann", **basic("ann", "x")}, address=PROXY).user == "ann"


@each(
    ("header", "where"),
    [
        ("X-Remote-User", {"address": HERE}),
        ("X-Remote-User", {"address": ""}),
        ("X-Remote-User", {"uid": 33}),
        ("", {"address": PROXY}),
        ("X-Other", {"address": PROXY}),
    ],
)
@each("forged", [{}, {"x-forwarded-for": "127.0.0.1"}, {"x-forwarded-for": PROXY, "via": "1.1 x"}])
def test_the_user_header_of_other_callers_does_not_count(house, audited, header, where, forged):
    house.configure(remote_user_header=header, trusted_proxies=("10.0.0.0/8", "127.0.0.1"))
    with pytest.raises(NotAuthenticated, match="login required"):
        house.ask({"x-remote-user": "root", **forged}, **where)
    assert audited == []


def test_a_client_behind_a_trusted_proxy_is_not_the_proxy(house):
    """The neighbour counts and not the address that he names."""
    house.configure(remote_user_header="X-Remote-User", trusted_proxies=(PROXY,))
    forged = Caller(headers={"x-remote-user": "root"}, address=HERE, client=PROXY)
    with pytest.raises(NotAuthenticated):
        result(house.authenticator.authenticate(forged))


@each("uid", [0, 1000])
def test_local_administration(house, uid):
    found = house.ask(uid=uid)
    assert (found.user, found.source, found.superuser) == ("(cli)", "cli", True)
    assert all(found.may(role) for role in ROLES if role != READ_ONLY)
    assert not found.may(READ_ONLY)
    named = house.ask({USER: "ann"}, uid=uid)
    assert (named.user, named.roles, named.superuser) == ("ann", {HOSTS}, False)
    with pytest.raises(BadRequest, match="invalid user name"):
        house.ask({USER: "../x"}, uid=uid)


@each("where", [{"uid": 33}, {"uid": 1}, {"address": ""}, {"address": PROXY}])
def test_other_callers_are_not_local(house, where):
    for headers in ({}, {USER: "ann"}):
        with pytest.raises(NotAuthenticated):
            house.ask(headers, **where)


@each("header", ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"])
def test_who_comes_through_a_proxy_that_runs_as_root_is_not_root(house, header):
    with pytest.raises(NotAuthenticated):
        house.ask({header: "x"}, uid=0)


def test_the_default_user(house):
    house.configure(default_user="ann")
    for where in ({"address": HERE}, {"uid": 33}):
        found = house.ask({USER: "root"}, **where)
        assert (found.user, found.source, found.roles) == ("ann", "default_user_name", {HOSTS})
    assert house.ask(uid=0).user == "(cli)"


WAYS = {
    "secret key": lambda house: {"headers": house.as_user("ann")},
    "key": lambda house: {"headers": {KEY: house.make(user="ann")}},
    "superuser key": lambda house: {"headers": {KEY: house.make(superuser=True), USER: "ann"}},
    "forced user": lambda house: {"headers": {KEY: house.make(**FORCED, roles=(ADMIN,))}},
    "cookie": lambda house: {"headers": house.login()[0]},
    "password": lambda house: {"headers": basic("ann", "right")},
    "proxy": lambda house: {"headers": {"x-user": "ann"}, "address": PROXY},
    "unix": lambda house: {"headers": {USER: "ann"}, "uid": 0},
    "default": lambda house: {},
}


@each("way", WAYS.values(), ids=WAYS)
def test_locked_users_are_refused_on_every_way(house, way):
    house.configure(
        default_user="ann",
        remote_user_header="X-User",
        trusted_proxies=(PROXY,),
        locked_message="go away",
    )
    asked = way(house)
    assert house.ask(**asked).user == "ann"
    result(house.users.lock("ann"))
    result(house.users.lock("bob"))
    with pytest.raises(Forbidden, match=r"^go away$"):
        house.ask(**asked)
    result(house.users.unlock("ann"))
    assert house.ask(**asked).user == "ann"


TRUSTED = Proxies.of(("127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"))


@each(
    ("address", "trusted"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("::1", True),
        ("2001:db8:1::7", True),
        ("2001:db9::7", False),
        ("::ffff:10.0.0.1", True),
        ("::ffff:11.0.0.1", False),
        ("2001:db8::1%eth0", True),
        ("", False),
        ("unix", False),
        ("localhost", False),
        ("127.0.0.1 ", False),
        ("127.1", False),
        ("0x7f000001", False),
        ("10.0.0.1\n", False),
    ],
)
def test_which_proxies_are_trusted(address, trusted):
    assert TRUSTED.trusts(address) is trusted
    assert not Proxies.of(()).trusts(address)


@each(
    ("peer", "forwarded", "client"),
    [
        # What a stranger says is nothing, wherever he says to come from.
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "127.0.0.1", "192.0.2.1"),
        ("192.0.2.1", "10.0.0.1, 127.0.0.1", "192.0.2.1"),
        ("", "127.0.0.1", ""),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("127.0.0.1", " 192.0.2.1 ", "192.0.2.1"),
        # The client wrote the first one himself; the proxy added the last one.
        ("127.0.0.1", "127.0.0.1, 192.0.2.1", "192.0.2.1"),
        ("127.0.0.1", "10.0.0.9,192.0.2.1,10.0.0.1", "192.0.2.1"),
        ("127.0.0.1", "10.0.0.9, 10.0.0.1", "10.0.0.9"),
        ("127.0.0.1", "198.51.100.1, 192.0.2.1, 10.0.0.1, ::1", "192.0.2.1"),
        # What is no address ends the walk at the last one who is known.
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "192.0.2.1, unknown, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "192.0.2.1, ", "127.0.0.1"),
        ("127.0.0.1", "<script>, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "192.0.2.1\nadmin", "127.0.0.1"),
        # Spellings.
        ("127.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("127.0.0.1", "[2001:db9::1]:4711", "2001:db9::1"),
        ("127.0.0.1", "[2001:db9::1]", "2001:db9::1"),
        ("127.0.0.1", "2001:DB9:0::1", "2001:db9::1"),
        ("127.0.0.1", "::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:127.0.0.1", "192.0.2.1", "192.0.2.1"),
    ],
)
def test_who_the_client_is(peer, forwarded, client):
    assert TRUSTED.client(peer, forwarded) == client


def test_a_long_list_is_not_walked_for_ever():
    assert (
        TRUSTED.client("127.0.0.1", "192.0.2.1," + "10.0.0.1," * 100_000 + "10.0.0.2") == "10.0.0.1"
    )


def test_what_is_no_network_of_proxies_is_refused():
    with pytest.raises(ValueError, match="localhost"):
        Proxies.of(("localhost",))


@given(st.ip_addresses().map(str), st.lists(st.one_of(st.ip_addresses().map(str), st.text())))
def test_a_stranger_is_who_he_is(peer, said):
    assert Proxies.of(()).client(peer, ",".join(said)) == peer


@given(st.lists(st.one_of(st.ip_addresses().map(str), st.text())), st.ip_addresses(v=4).map(str))
def test_what_a_client_sends_does_not_change_who_the_proxy_says_he_is(forged, real):
    proxies = Proxies.of(("127.0.0.1",))
    if real == "127.0.0.1":
        return
    assert proxies.client("127.0.0.1", ",".join([*forged, real])) == real


@given(st.ip_addresses(v=4).map(str), st.integers(0, 32))
def test_networks_of_proxies(address, length):
    network = str(ip_network(f"{address}/{length}", strict=False))
    assert Proxies.of((network,)).trusts(address)
