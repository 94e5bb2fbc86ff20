"""The catalogue: every command once, under its kind, with what it takes."""

import pytest

from monrest.commands.permissions import PERMISSIONS
from monrest.livestatus.catalogue import ALL, KINDS, find, singular, suggestion


def test_permissions():
    assert {one.permission for one in ALL} == set(PERMISSIONS)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("hosts", "add_host_comment"),
        ("host", "ADD_HOST_COMMENT"),
        ("services", "add_svc_comment"),
        ("service", "Add_Svc_Comment"),
        ("system", "log"),
        ("core", "log"),
        ("sites", "LOG"),
        ("site", "log"),
    ],
)
def test_commands_are_found_by_any_spelling(kind, name):
    found = find(kind, name)
    assert found is not None
    assert found.name == name.lower()
    assert singular(found.kind) == singular(kind)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("hosts", "add_svc_comment"), ("hosts", ""), ("hostz", "add_host_comment"), ("sites", "note")],
)
def test_what_is_no_command_is_not_found(kind, name):
    assert find(kind, name) is None


def test_kinds_are_named_in_the_singular():
    assert [singular(kind) for kind in KINDS] == [
        *("contactgroup", "contact", "hostgroup", "host", "servicegroup", "service", "site"),
    ]


def test_the_commands_that_want_a_comment():
    assert {(one.kind, one.name) for one in ALL if one.wants_comment} == {
        *(
            ("hosts", f"disable_host_{rest}")
            for rest in (
                *("and_child_notifications", "check", "event_handler"),
                *("notifications", "svc_checks", "svc_notifications"),
            )
        ),
        *(
            ("services", f"disable_svc_{rest}")
            for rest in ("check", "event_handler", "notifications")
        ),
    }


def test_commands_that_are_resolved_by_lookup():
    assert sorted(one.name for one in ALL if one.lookup) == [
        *("del_active_host_downtimes", "del_active_service_downtimes"),
        *("del_comment", "del_comment", "del_downtime", "del_downtime"),
    ]


def test_both_names_of_the_attempts_are_known():
    host = find("hosts", "change_max_host_check_attempts")
    service = find("services", "change_max_svc_check_attempts")
    assert (host.arguments[0].name, host.arguments[0].aliases) == ("interval", ("attempts",))
    assert (service.arguments[0].name, service.arguments[0].aliases) == ("attempts", ("interval",))


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("hosts", "schedule_host_downtme", "similar commands: schedule_host_downtime"),
        ("hosts", "Schedule_Svc_Downtime", "schedule_svc_downtime is a command for type service"),
        ("sites", "del_comment", "del_comment is a command for type host and service"),
        ("hosts", "obsessing", "similar commands: start_obsessing_over_host, stop_"),
        ("contacts", "xyz", "docs/api/external-commands.md lists all commands"),
    ],
)
def test_what_may_be_meant(kind, name, hint):
    assert suggestion(kind, name).startswith(hint)
