"""Which rows an identity sees: the filters of each table, evaluated over little tables."""

import itertools

import pytest
from twisted.internet.task import Clock

from monrest.api.visibility import view_of, visibility
from monrest.base.values import ADMIN, READ_ONLY, Identity
from monrest.config import Config
from monrest.config.sections import AuthConfig
from monrest.query.model import Group
from monrest.query.totals import columns_of
from monrest.sites.static import icinga2, shinken
from tests.fakes.context import make_context

HOSTS = "authorized_for_all_hosts"
SERVICES = "authorized_for_all_services"
SYSTEM = "authorized_for_system_information"
CONFIGURATION = "authorized_for_configuration_information"


def ann(*roles, superuser=False):
    return Identity(user="ann", roles=frozenset(roles), superuser=superuser)


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


def test_hosts():
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


@pytest.mark.parametrize(
    ("roles", "strict", "names"),
    [
        ((), False, {"own", "by host"}),
        ((), True, {"own"}),
        ((HOSTS,), False, {"own", "by host"}),
        ((HOSTS,), True, {"own"}),
        ((SERVICES,), True, {"own", "by host", "other"}),
    ],
)
def test_services(roles, strict, names):
    assert seen(SERVICE_ROWS, ann(*roles), "services", strict) == names


def test_contacts_are_oneself():
    rows = {"ann": {"name": "ann"}, "bob": {"name": "bob"}}
    assert seen(rows, ann(), "contacts") == {"ann"}
    assert seen(rows, ann(HOSTS), "contacts") == {"ann"}
    assert seen(rows, ann(CONFIGURATION), "contacts") == {"ann", "bob"}


@pytest.mark.parametrize(
    "table",
    ["hostgroups", "servicegroups", "contactgroups", "timeperiods", "commands", "status"],
)
def test_open_tables(table):
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


@pytest.mark.parametrize("table", ["comments", "downtimes"])
@pytest.mark.parametrize("roles", [(), (HOSTS,), (SERVICES,), (HOSTS, SERVICES)])
@pytest.mark.parametrize("strict", [False, True])
def test_comments_and_downtimes(table, roles, strict):
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


@pytest.mark.parametrize(
    "roles",
    [
        chosen
        for size in range(4)
        for chosen in itertools.combinations((HOSTS, SERVICES, SYSTEM), size)
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_log_lines(roles, strict):
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


@pytest.mark.parametrize("tables", [icinga2(), shinken()], ids=["icinga2", "shinken"])
@pytest.mark.parametrize("strict", [True, False])
def test_cores_know_every_column_of_the_rules(tables, strict):
    # Icinga 2 ignores a condition on a column that it does not have: every row would be shown.
    for table in ("hosts", "services", "contacts", "comments", "downtimes", "log"):
        assert set(columns_of(visibility(ann(), table, strict))) <= set(tables[table])


EVERYTHING = (HOSTS, SERVICES, CONFIGURATION)


@pytest.mark.parametrize(
    ("table", "roles", "strict", "members"),
    [
        # Who sees all members asks the core for nothing more.
        *((table, (ADMIN,), True, True) for table in ("hosts", "services", "hostgroups", "log")),
        *((table, EVERYTHING, True, True) for table in ("servicegroups", "contactgroups")),
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
