"""Who asks: key, bearer, user header, roles by user and by contact group."""

import pytest
from twisted.internet.defer import Deferred, succeed

from monrest.auth.authenticate import Authenticator
from monrest.auth.roles import RoleTable
from monrest.config import AuthConfig
from monrest.errors import BadRequest, Forbidden, NotAuthenticated
from monrest.names import Names

KEY = "0123456789abcdef" * 4 + "_1"
USER = {"x-mon-auth-user": "ann"}
SIGNED = {"x-mon-auth-key": KEY, **USER}


def authenticator(roles=None, group_roles=None, names=None, groups=()):
    async def groups_of(user):
        assert user
        return frozenset(groups)

    config = AuthConfig(roles=roles or {}, contactgroup_roles=group_roles or {})
    return Authenticator(config, names or Names(), KEY, groups_of)


def identify(headers, **more):
    results = []
    Deferred.fromCoroutine(authenticator(**more).authenticate(headers)).addBoth(results.append)
    (result,) = results
    if hasattr(result, "raiseException"):
        result.raiseException()
    return result


@pytest.mark.parametrize(
    "headers",
    [
        SIGNED,
        {"x-mon-auth-key": f" {KEY} ", **USER},
        {"authorization": f"Bearer {KEY}", **USER},
        {"authorization": f"bearer  {KEY}", **USER},
        {"authorization": "Bearer wrong", **SIGNED},
        {"authorization": "Basic eDp5", **SIGNED},
    ],
)
def test_the_secret_key_acts_for_the_user(headers):
    identity = identify(headers, roles={"all_hosts": ("ann",), "admin": ("bob",)})
    assert identity.user == "ann"
    assert identity.source == "secret_key"
    assert identity.roles == {"authorized_for_all_hosts"}
    assert not identity.superuser
    assert not identity.may("authorized_for_admin")


@pytest.mark.parametrize(
    ("headers", "error", "message"),
    [
        ({}, NotAuthenticated, "login required"),
        (USER, NotAuthenticated, "login required"),
        ({"authorization": "Basic eDp5", **USER}, NotAuthenticated, "login required"),
        ({"x-mon-auth-key": "wrong", **USER}, Forbidden, "wrong authentication key"),
        ({"x-mon-auth-key": "", **USER}, Forbidden, "wrong authentication key"),
        ({"x-mon-auth-key": KEY + "\u00fc", **USER}, Forbidden, "wrong authentication key"),
        ({"x-mon-auth-key": KEY[:-1], **USER}, Forbidden, "wrong authentication key"),
        ({"x-mon-auth-key": KEY.upper(), **USER}, Forbidden, "wrong authentication key"),
        ({"authorization": "Bearer", **USER}, NotAuthenticated, "login required"),
        ({"authorization": "Bearer ", **USER}, Forbidden, "wrong authentication key"),
        ({"x-mon-auth-key": "wrong", "authorization": f"Bearer {KEY}", **USER}, Forbidden, "wrong"),
        (
            {"x-mon-auth-key": KEY},
            BadRequest,
            "Authentication by secret key requires X-Mon-Auth-User header",
        ),
        ({"x-mon-auth-key": KEY, "x-mon-auth-user": "  "}, BadRequest, "Authentication by secret"),
        ({"x-mon-auth-key": KEY, "x-mon-auth-user": "a\nb"}, BadRequest, "invalid user name"),
        ({"x-mon-auth-key": KEY, "x-mon-auth-user": "a\x00"}, BadRequest, "invalid user name"),
        ({"x-mon-auth-key": KEY, "x-mon-auth-user": "a\u2028b"}, BadRequest, "invalid user name"),
        ({"x-mon-auth-key": KEY, "x-mon-auth-user": "a" * 256}, BadRequest, "invalid user name"),
    ],
)
def test_refusals(headers, error, message):
    with pytest.raises(error) as refused:
        identify(headers)
    assert refused.value.message.startswith(message)
    assert KEY not in str(refused.value)


def test_the_words_of_the_site_are_in_the_headers():
    names = Names(app="abc")
    assert identify({"x-abc-auth-key": KEY, "x-abc-auth-user": "ann"}, names=names).user == "ann"
    with pytest.raises(BadRequest, match="requires X-Abc-Auth-User header"):
        identify({"x-abc-auth-key": KEY}, names=names)


def test_roles_of_contact_groups_are_added():
    more = {
        "roles": {"reports": ("ann",)},
        "group_roles": {"all_hosts": ("ops-*",), "admin": ("wheel",), "broadcasts": ("*",)},
    }
    assert identify(SIGNED, groups=("ops-night",), **more).roles == {
        "authorized_for_reports",
        "authorized_for_all_hosts",
        "authorized_for_broadcasts",
    }
    assert identify(SIGNED, groups=(), **more).roles == {
        "authorized_for_reports",
        "authorized_for_broadcasts",
    }


def test_groups_are_not_asked_without_need():
    def never(_):
        raise AssertionError

    asking = Authenticator(AuthConfig(), Names(), KEY, never)
    results = []
    Deferred.fromCoroutine(asking.authenticate(SIGNED)).addBoth(results.append)
    assert results[0].roles == frozenset()


def test_many_users_are_not_remembered_for_ever():
    asking = authenticator()
    for number in range(5000):
        headers = {"x-mon-auth-key": KEY, "x-mon-auth-user": f"user{number}"}
        Deferred.fromCoroutine(asking.authenticate(headers))
    assert len(asking._identities) <= 4096


def test_the_key_is_not_printed():
    assert KEY not in repr(authenticator())
    assert succeed(None).called


@pytest.mark.parametrize(
    ("entries", "held", "lacking"),
    [
        (("ann",), ("ann",), ("bob", "Ann", "")),
        (("ann, bob",), ("ann", "bob"), ("ann, bob",)),
        (("*",), ("ann", "x"), ()),
        (("a*",), ("a", "ann"), ("ba",)),
        (("*@x.org", "root"), ("me@x.org", "root"), ("me@xxorg", "me@x.org.evil", "roots")),
        (("a.c", "("), ("a.c", "("), ("abc",)),
        (("a*c*",), ("ac", "abcd", "a\nc"), ("ab",)),
        ((), (), ("ann",)),
        (("",), (), ("", "ann")),
    ],
)
def test_lists_of_names(entries, held, lacking):
    table = RoleTable.of({"admin": entries})
    for name in held:
        assert table.held((name,)) == {"authorized_for_admin"}
    for name in lacking:
        assert table.held((name,)) == frozenset()


def test_everybody_is_also_who_has_no_group():
    assert RoleTable.of({"reports": ("*",)}).held(()) == {"authorized_for_reports"}
    assert RoleTable.of({"reports": ("**",)}).held(()) == frozenset()
    assert RoleTable.of({}).empty
    assert not RoleTable.of({"reports": ("*",)}).empty
