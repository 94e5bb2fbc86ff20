"""Roles: lists of the configuration, what a restriction leaves, what may be given on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.accounts.roles import EVERYTHING, RoleTable, grantable, restricted
from monrest.base.values import ADMIN, READ_ONLY, ROLES, Identity

HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"
SETS = st.frozensets(st.sampled_from(ROLES))
LIMITS = st.none() | SETS


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
        assert table.held((name,)) == {ADMIN}
    for name in lacking:
        assert table.held((name,)) == frozenset()


def test_everybody_is_also_who_has_no_group():
    assert RoleTable.of({"reports": ("*",)}).held(()) == {"authorized_for_reports"}
    assert RoleTable.of({"reports": ("**",)}).held(()) == frozenset()
    assert RoleTable.of({}).empty
    assert not RoleTable.of({"reports": ("*",)}).empty


@pytest.mark.parametrize(
    ("roles", "limit", "left"),
    [
        ({HOSTS}, None, {HOSTS}),
        ({HOSTS}, {HOSTS, SERVICES}, {HOSTS}),
        ({HOSTS}, set(), set()),
        ({ADMIN}, {HOSTS}, {HOSTS}),
        ({ADMIN}, {ADMIN}, {ADMIN}),
        ({ADMIN}, {"authorized_for_nosuchrole"}, set()),
        ({HOSTS}, {READ_ONLY}, {READ_ONLY}),
        ({HOSTS, READ_ONLY}, {HOSTS}, {HOSTS, READ_ONLY}),
        ({ADMIN, READ_ONLY}, set(), {READ_ONLY}),
    ],
)
def test_what_a_limit_leaves(roles, limit, left):
    limit = None if limit is None else frozenset(limit)
    assert restricted(frozenset(roles), limit) == left


@given(SETS, LIMITS)
def test_a_limit_never_gives_more(roles, limit):
    left = restricted(roles, limit)
    before, after = Identity(user="x", roles=roles), Identity(user="x", roles=left)
    assert {one for one in ROLES if after.may(one)} - {READ_ONLY} <= {
        one for one in ROLES if before.may(one)
    }
    assert READ_ONLY not in roles or READ_ONLY in left
    if limit is not None:
        assert left - {READ_ONLY} <= limit
        assert restricted(left, limit) == left


@given(SETS, LIMITS, LIMITS, SETS)
def test_a_child_never_holds_more_than_its_maker(roles, limit, asked, later):
    """Neither now nor when the user's roles have changed meanwhile."""
    maker = Identity(user="x", roles=restricted(roles, limit), limit=limit)
    given = grantable(maker, asked)
    child_limit = None if given is None else frozenset(given)
    for held in (roles, later):
        parent = Identity(user="x", roles=restricted(held, limit))
        child = Identity(user="x", roles=restricted(held, child_limit))
        may = {one for one in ROLES if child.may(one)} - {READ_ONLY}
        assert may <= {one for one in ROLES if parent.may(one)}
    assert limit is None or child_limit is not None
    assert asked is None or child_limit <= asked


def test_an_internal_user_gives_on_what_is_asked():
    cli = Identity(user="(cli)", roles=EVERYTHING, superuser=True)
    assert grantable(cli, None) is None
    assert grantable(cli, (SERVICES, HOSTS)) == (HOSTS, SERVICES)
    assert grantable(cli, ()) == ()
