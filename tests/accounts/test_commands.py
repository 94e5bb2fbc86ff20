"""The permission table of external commands, row by row."""

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import ADMIN, READ_ONLY, ROLES, Identity
from monrest.commands.permissions import (
    HOST_COMMANDS,
    PERMISSIONS,
    SERVICE_COMMANDS,
    SYSTEM_COMMANDS,
    Grant,
    contact_filter,
    grant,
    is_contact,
    refusal,
)
from monrest.query.model import Group, Test
from tests.table import each

A, D, C = Grant.ALLOWED, Grant.DENIED, Grant.CONTACT
BOTH = "all_hosts+all_services"

TABLE = {
    "host": {(): C, (HOST_COMMANDS,): A, (SERVICE_COMMANDS,): C, (SYSTEM_COMMANDS,): C},
    "service": {(): C, (HOST_COMMANDS,): C, (SERVICE_COMMANDS,): A, (SYSTEM_COMMANDS,): C},
    "hostgroup": {(): C, (HOST_COMMANDS,): A, (SERVICE_COMMANDS,): C, (SYSTEM_COMMANDS,): C},
    "servicegroup": {(): C, (HOST_COMMANDS,): C, (SERVICE_COMMANDS,): A, (SYSTEM_COMMANDS,): C},
    "contact": {(): D, (HOST_COMMANDS, SERVICE_COMMANDS, SYSTEM_COMMANDS): D},
    "contactgroup": {(): D, (HOST_COMMANDS, SERVICE_COMMANDS, SYSTEM_COMMANDS): D},
    "system": {(): D, (HOST_COMMANDS, SERVICE_COMMANDS): D, (SYSTEM_COMMANDS,): A},
    BOTH: {
        (): D,
        (HOST_COMMANDS,): D,
        (SERVICE_COMMANDS,): D,
        (SYSTEM_COMMANDS,): D,
        (HOST_COMMANDS, SERVICE_COMMANDS): A,
    },
}
ROWS = [(p, roles, verdict) for p, each in TABLE.items() for roles, verdict in each.items()]


def holding(*roles, user="ann", **more):
    return Identity(user=user, roles=frozenset(roles), **more)


@each(("permission", "roles", "verdict"), ROWS)
def test_table(permission, roles, verdict):
    assert grant(holding(*roles), permission, "web01", may_submit=True) is verdict


def test_table_is_whole():
    assert set(TABLE) == set(PERMISSIONS)
    entries = Path(__file__).parents[2] / "monrest" / "livestatus" / "commands.json"
    used = {
        command["permission"]
        for commands in json.loads(entries.read_text()).values()
        for command in commands.values()
    }
    assert used == set(PERMISSIONS)


@pytest.mark.parametrize("permission", sorted(PERMISSIONS))
def test_order(permission):
    def verdict(*roles, may_submit=True, **more):
        return grant(holding(*roles, **more), permission, "ann", may_submit=may_submit)

    assert verdict(ADMIN) is A
    assert verdict(superuser=True, user="") is A
    # read_only and the missing right to submit stand before admin.
    assert verdict(ADMIN, READ_ONLY) is D
    assert verdict(READ_ONLY, superuser=True) is D
    assert verdict(*ROLES) is D
    assert verdict(ADMIN, may_submit=False) is D


@pytest.mark.parametrize("permission", sorted(PERMISSIONS))
def test_viewing_is_not_commanding(permission):
    viewing = [r for r in ROLES if "command" not in r and r not in (ADMIN, READ_ONLY)]
    assert grant(holding(*viewing), permission, "web01", may_submit=True) is not A


def test_contact_commands_oneself():
    assert grant(holding(), "contact", "ann", may_submit=True) is A
    assert grant(holding(), "contact", "Ann", may_submit=True) is D
    assert grant(holding(), "host", "ann", may_submit=True) is C
    assert grant(holding(user=""), "contact", "", may_submit=True) is D


@pytest.mark.parametrize("permission", ["host", "service", "hostgroup", "servicegroup"])
def test_nobody_is_no_contact(permission):
    assert grant(holding(user=""), permission, "web01", may_submit=True) is D


def test_unknown_permission_is_no_oversight():
    with pytest.raises(LookupError):
        grant(holding(ADMIN), "anything", "", may_submit=True)


@given(st.sets(st.sampled_from(ROLES)), st.sampled_from(sorted(PERMISSIONS)))
def test_two_roles_never_make_a_third(roles, permission):
    """A set of roles allows only what a row of the table allows for a part of it."""
    if ADMIN in roles or READ_ONLY in roles:
        return
    expected = any(
        verdict is A and set(needed) <= roles for row, needed, verdict in ROWS if row == permission
    )
    verdict = grant(holding(*roles), permission, "web01", may_submit=True)
    assert (verdict is A) is expected


def test_contact_filters_are_strict_about_roles():
    own = Test("contacts", ">=", "ann")
    assert contact_filter("hosts", "ann", strict=False) == own
    assert contact_filter("hosts", "ann", strict=True) == own
    assert contact_filter("services", "ann", strict=True) == own
    by_host = Test("host_contacts", ">=", "ann")
    assert contact_filter("services", "ann", strict=False) == Group("or", (own, by_host))


@pytest.mark.parametrize(
    ("lists", "found"),
    [
        ((["ann"],), True),
        (([], ["bob", "ann"]), True),
        (([], []), False),
        ((None, None), False),
        ((["anna"],), False),
    ],
)
def test_is_contact(lists, found):
    assert is_contact("ann", *lists) is found


COMMAND = "you are not allowed to run this command"


@pytest.mark.parametrize(
    ("permission", "kind", "names", "message", "description"),
    [
        ("host", "host", ("h1", ""), COMMAND, "you don' have command permissions for host h1"),
        ("service", "service", ("h1", "s 1"), COMMAND, "you don' have command permissions for service s 1 on host h1"),
        *(
            (kind, kind, ("x", ""), COMMAND, f"you don' have command permissions for {kind} x")
            for kind in ("hostgroup", "servicegroup", "contact", "contactgroup")
        ),
        (
            "system",
            "site",
            ("", ""),
            "you are not allowed to run system commands",
            "you don' have the system_commands role",
        ),
        (
            BOTH,
            "site",
            ("", ""),
            f"{COMMAND}, all_host_commands/all_service_commands permissions required",
            "you don' have the all_host_commands/all_service_commands role",
        ),
    ],
)  # fmt: skip
def test_refusals(permission, kind, names, message, description):
    error = refusal(holding(), permission, kind, *names)
    assert (error.code, error.message, error.description) == (403, message, description)


@pytest.mark.parametrize(("permission", "roles"), [(p, r) for p, r, v in ROWS if v is A])
def test_refusals_name_the_missing_role(permission, roles):
    told = refusal(holding(), permission, permission, "x", "").extra["help"]
    assert all(role in told for role in roles)


@pytest.mark.parametrize(("permission", "roles"), [*product(["host", "system"], [(ADMIN,), ()])])
def test_refusals_of_read_only_users_say_so(permission, roles):
    told = refusal(holding(READ_ONLY, *roles), permission, permission, "x", "").extra["help"]
    assert told == f"the role {READ_ONLY} forbids all commands"
