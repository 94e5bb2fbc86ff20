"""Roles: who holds them, what a restriction leaves, what may be given on, seen and commanded."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from monrest.accounts.roles import EVERYTHING, RoleTable, grantable, restricted
from monrest.api.visibility import view_of, visibility
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
from monrest.config import Config
from monrest.config.sections import AuthConfig
from monrest.query.model import Group, Test
from monrest.query.totals import columns_of
from monrest.sites.static import icinga2, shinken
from tests.fakes.context import make_context
from tests.table import each

HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"
SYSTEM = "authorized_for_system_information"
CONFIGURATION = "authorized_for_configuration_information"
SETS = st.frozensets(st.sampled_from(ROLES))
LIMITS = st.none() | SETS


@each(
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


def test_all_users_are_also_those_without_a_group():
    assert RoleTable.of({"reports": ("*",)}).held(()) == {"authorized_for_reports"}
    assert RoleTable.of({"reports": ("**",)}).held(()) == frozenset()
    assert RoleTable.of({}).empty
    assert not RoleTable.of({"reports": ("*",)}).empty


@each(
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


def ann(*roles, user="ann", **more):
    return Identity(user=user, roles=frozenset(roles), **more)


def holds(condition, row):
    if condition is None:
        return True
    if isinstance(condition, Group):
        every = all if condition.connector == "and" else any
        return every(holds(item, row) for item in condition.items)
    value = row[condition.column]
    if condition.op == ">=":
        return condition.value in value
    equal = str(value) == condition.value
    return equal if condition.op == "=" else not equal


def seen(rows, identity, table, strict=False):
    condition = visibility(identity, table, strict)
    return {name for name, row in rows.items() if holds(condition, row)}


HOST_ROWS = {"mine": {"contacts": ["bob", "ann"]}, "other": {"contacts": ["annabel"]}}


def test_which_hosts_are_seen():
    assert seen(HOST_ROWS, ann(), "hosts") == {"mine"}
    assert seen(HOST_ROWS, ann(READ_ONLY), "hosts") == {"mine"}
    for roles in ((HOSTS,), (ADMIN,)):
        assert visibility(ann(*roles), "hosts", False) is None
    assert visibility(ann(superuser=True), "hosts", True) is None
    assert seen(HOST_ROWS, ann(SERVICES), "hosts") == {"mine"}


SERVICE_ROWS = {
    "own": {"contacts": ["ann"], "host_contacts": []},
    "by host": {"contacts": [], "host_contacts": ["ann"]},
    "other": {"contacts": ["bob"], "host_contacts": ["bob"]},
}


@each(
    ("roles", "strict", "names"),
    [
        ((), False, {"own", "by host"}),
        ((), True, {"own"}),
        ((HOSTS,), False, {"own", "by host"}),
        ((HOSTS,), True, {"own"}),
        ((SERVICES,), True, {"own", "by host", "other"}),
    ],
)
def test_which_services_are_seen(roles, strict, names):
    assert seen(SERVICE_ROWS, ann(*roles), "services", strict) == names


def test_contacts_see_themselves():
    rows = {"ann": {"name": "ann"}, "bob": {"name": "bob"}}
    assert seen(rows, ann(), "contacts") == {"ann"}
    assert seen(rows, ann(HOSTS), "contacts") == {"ann"}
    assert seen(rows, ann(CONFIGURATION), "contacts") == {"ann", "bob"}


@each(
    "table",
    ["hostgroups", "servicegroups", "contactgroups", "timeperiods", "commands", "status"],
)
def test_tables_that_all_see(table):
    assert visibility(ann(), table, True) is None


def test_a_table_without_a_rule_is_not_open():
    with pytest.raises(LookupError):
        visibility(ann(ADMIN), "secrets", False)


def entry(service, host_contact, service_contact):
    return {
        "is_service": int(service),
        "host_contacts": ["ann"] if host_contact else ["bob"],
        "service_contacts": ["ann"] if service_contact else [],
    }


ENTRIES = {
    flags: entry(*flags)
    for flags in itertools.product((False, True), repeat=3)
    if flags[0] or not flags[2]
}


@each("table", ["comments", "downtimes"])
@each("roles", [(), (HOSTS,), (SERVICES,), (HOSTS, SERVICES)])
@each("strict", [False, True])
def test_which_comments_and_downtimes_are_seen(table, roles, strict):
    expected = set()
    for service, host_contact, service_contact in ENTRIES:
        if service:
            visible = SERVICES in roles or service_contact or (host_contact and not strict)
        else:
            visible = HOSTS in roles or host_contact
        if visible:
            expected.add((service, host_contact, service_contact))
    assert seen(ENTRIES, ann(*roles), table, strict) == expected


def line(host, service, host_contact, service_contact):
    return {
        # A host's line as Icinga 2 has it, a service's line of what no longer exists.
        "host_name": "h" if host and service else "",
        "current_host_name": "h" if host and not service else "",
        "service_description": "s" if service else "",
        "current_host_contacts": ["ann"] if host_contact else [],
        "current_service_contacts": ["ann"] if service_contact else [],
    }


LINES = {
    flags: line(*flags)
    for flags in itertools.product((False, True), repeat=4)
    if (flags[0] or not (flags[1] or flags[2])) and (flags[1] or not flags[3])
}


@each(
    "roles",
    [
        chosen
        for size in range(4)
        for chosen in itertools.combinations((HOSTS, SERVICES, SYSTEM), size)
    ],
)
@each("strict", [False, True])
def test_which_log_lines_are_seen(roles, strict):
    expected = set()
    for host, service, host_contact, service_contact in LINES:
        if service:
            visible = SERVICES in roles or service_contact or (host_contact and not strict)
        elif host:
            visible = HOSTS in roles or host_contact
        else:
            visible = SYSTEM in roles
        if visible:
            expected.add((host, service, host_contact, service_contact))
    assert seen(LINES, ann(*roles), "log", strict) == expected


@each("tables", [icinga2(), shinken()], ids=["icinga2", "shinken"])
@each("strict", [True, False])
def test_cores_know_every_column_of_the_rules(tables, strict):
    # Icinga 2 ignores a condition on a column that it does not have: every row would be shown.
    for table in ("hosts", "services", "contacts", "comments", "downtimes", "log"):
        assert set(columns_of(visibility(ann(), table, strict))) <= set(tables[table])


ALL_MEMBERS = (HOSTS, SERVICES, CONFIGURATION)


@each(
    ("table", "roles", "strict", "members"),
    [
        # Who sees all members asks the core for nothing more.
        *((table, (ADMIN,), True, True) for table in ("hosts", "services", "hostgroups", "log")),
        *((table, ALL_MEMBERS, True, True) for table in ("servicegroups", "contactgroups")),
        *((table, (), True, True) for table in ("timeperiods", "commands", "status", "contacts")),
        ("hostgroups", (HOSTS, SERVICES), False, True),
        ("hostgroups", (SERVICES,), False, False),
        ("hostgroups", (HOSTS,), False, False),
        ("servicegroups", (SERVICES,), True, True),
        ("servicegroups", (HOSTS,), False, False),
        ("contactgroups", (HOSTS, SERVICES), False, False),
        # A host's contact sees its services, unless that is forbidden.
        ("hosts", (), False, True),
        ("hosts", (), True, False),
        ("hosts", (HOSTS,), False, False),
        ("hosts", (SERVICES,), True, True),
        ("services", (), False, False),
        ("log", (HOSTS,), False, False),
    ],
)
def test_whether_all_members_of_visible_rows_are_visible(table, roles, strict, members):
    context = make_context(
        Clock(), config=Config(auth=AuthConfig(strict_host_authorization=strict))
    )
    view = view_of(context, ann(*roles), table)
    assert view.members is members
    for column in ("members", "members_with_state", "num_hosts_down", "num_services_hard_crit"):
        assert view.masks(column) is not members
    for column in ("worst_host_state", "services", "host_services_with_info", "total_services"):
        assert view.masks(column) is not members
    assert not view.masks("name")
    assert not view.masks("groups")


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


@each(("permission", "roles", "verdict"), ROWS)
def test_permissions_of_commands(permission, roles, verdict):
    assert grant(ann(*roles), permission, "web01", may_submit=True) is verdict


def test_permissions_are_those_of_the_catalogue():
    assert set(TABLE) == set(PERMISSIONS)
    entries = Path(__file__).parents[2] / "monrest" / "livestatus" / "commands.json"
    used = {
        command["permission"]
        for commands in json.loads(entries.read_text()).values()
        for command in commands.values()
    }
    assert used == set(PERMISSIONS)


@each("permission", sorted(PERMISSIONS))
def test_what_comes_before_the_roles_of_commands(permission):
    def verdict(*roles, may_submit=True, **more):
        return grant(ann(*roles, **more), permission, "ann", may_submit=may_submit)

    assert verdict(ADMIN) is A
    assert verdict(superuser=True, user="") is A
    # read_only and the missing right to submit stand before admin.
    assert verdict(ADMIN, READ_ONLY) is D
    assert verdict(READ_ONLY, superuser=True) is D
    assert verdict(*ROLES) is D
    assert verdict(ADMIN, may_submit=False) is D


def test_contacts_command_themselves():
    assert grant(ann(), "contact", "ann", may_submit=True) is A
    assert grant(ann(), "contact", "Ann", may_submit=True) is D
    assert grant(ann(), "host", "ann", may_submit=True) is C
    assert grant(ann(user=""), "contact", "", may_submit=True) is D


@each("permission", ["host", "service", "hostgroup", "servicegroup"])
def test_a_user_without_a_name_is_no_contact(permission):
    assert grant(ann(user=""), permission, "web01", may_submit=True) is D


def test_a_permission_without_a_rule_is_not_open():
    with pytest.raises(LookupError):
        grant(ann(ADMIN), "anything", "", may_submit=True)


@given(st.sets(st.sampled_from(ROLES)), st.sampled_from(sorted(PERMISSIONS)))
def test_two_roles_never_make_a_third(roles, permission):
    """A set of roles allows only what a row of the table allows for a part of it."""
    if ADMIN in roles or READ_ONLY in roles:
        return
    expected = any(
        verdict is A and set(needed) <= roles for row, needed, verdict in ROWS if row == permission
    )
    verdict = grant(ann(*roles), permission, "web01", may_submit=True)
    assert (verdict is A) is expected


def test_contact_filters_are_strict_about_hosts():
    own = Test("contacts", ">=", "ann")
    by_host = Test("host_contacts", ">=", "ann")
    assert contact_filter("hosts", "ann", strict=False) == own
    assert contact_filter("hosts", "ann", strict=True) == own
    assert contact_filter("services", "ann", strict=True) == own
    assert contact_filter("services", "ann", strict=False) == Group("or", (own, by_host))


def test_is_contact():
    assert is_contact("ann", ["ann"])
    assert is_contact("ann", [], ["bob", "ann"])
    for lists in (([], []), (None, None), (["anna"],)):
        assert not is_contact("ann", *lists)


COMMAND = "you are not allowed to run this command"


@each(
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
def test_refusals_of_commands(permission, kind, names, message, description):
    error = refusal(ann(), permission, kind, *names)
    assert (error.code, error.message, error.description) == (403, message, description)


@each(("permission", "roles"), [(p, r) for p, r, v in ROWS if v is A])
def test_refusals_of_commands_name_the_missing_role(permission, roles):
    told = refusal(ann(), permission, permission, "x", "").extra["help"]
    assert all(role in told for role in roles)


@each(("permission", "roles"), [*itertools.product(["host", "system"], [(ADMIN,), ()])])
def test_refusals_of_read_only_users_say_so(permission, roles):
    told = refusal(ann(READ_ONLY, *roles), permission, permission, "x", "").extra["help"]
    assert told == f"the role {READ_ONLY} forbids all commands"
