"""Routes of commands, and what nobody reads."""

from __future__ import annotations

import pytest

from monrest.base.errors import MethodNotAllowed, NotFound
from monrest.daemon.families import ENDPOINTS
from monrest.livestatus.catalogue import ALL, COMMANDS
from tests.api.cores import AT, NOW
from tests.fakes.context import make_dispatch


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/hosts/h1/cmd/enable_host_flap_detection", "ENABLE_HOST_FLAP_DETECTION;h1"),
        ("/host/h1/cmd/ENABLE_HOST_FLAP_DETECTION", "ENABLE_HOST_FLAP_DETECTION;h1"),
        ("/services/h1/s1/cmd/remove_svc_acknowledgement", "REMOVE_SVC_ACKNOWLEDGEMENT;h1;s1"),
        ("/service/h1/s1/cmd/remove_svc_acknowledgement", "REMOVE_SVC_ACKNOWLEDGEMENT;h1;s1"),
        ("/hostgroups/g1/cmd/enable_hostgroup_svc_checks", "ENABLE_HOSTGROUP_SVC_CHECKS;g1"),
        (
            "/servicegroups/sg1/cmd/enable_servicegroup_svc_checks",
            "ENABLE_SERVICEGROUP_SVC_CHECKS;sg1",
        ),
        (
            "/contacts/ann/cmd/enable_contact_svc_notifications",
            "ENABLE_CONTACT_SVC_NOTIFICATIONS;ann",
        ),
        (
            "/contactgroups/cg/cmd/enable_contactgroup_svc_notifications",
            "ENABLE_CONTACTGROUP_SVC_NOTIFICATIONS;cg",
        ),
        ("/system/cmd/enable_notifications", "ENABLE_NOTIFICATIONS"),
        ("/core/cmd/enable_notifications", "ENABLE_NOTIFICATIONS"),
    ],
)
def test_routes(world, one, path, line):
    answer = world.post(path)
    assert answer.value == {
        "message": "Command successfully submitted",
        "commands": f"COMMAND {AT} {line}",
    }
    assert answer.status == 200
    assert one.told == [line]


def test_sites_route_needs_a_selection(world, one):
    other = world.site("s2")
    error = world.refused(NotFound, "/cmd/enable_notifications")
    assert error.message == "unknown rest path: /cmd/enable_notifications"
    assert "/sites/<list>/cmd/<command>" in error.description
    world.post("/cmd/enable_notifications", sites=("s2",))
    assert (one.told, other.told) == ([], ["ENABLE_NOTIFICATIONS"])


COMMAND_PATHS = {one.path for one in ENDPOINTS if one.segments[-2:] == ("cmd", "<command>")}


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_other_methods(method):
    for path in (*COMMAND_PATHS, "/cmd"):
        with pytest.raises(MethodNotAllowed) as caught:
            make_dispatch("mon").router.find(method, path, tuple(path.strip("/").split("/")))
        assert dict(caught.value.headers)["Allow"] == "GET, POST, HEAD, PUT, OPTIONS", path


def test_nothing_behind_the_command(world, one):
    error = world.refused(NotFound, "/hosts/h1/cmd/enable_host_check/extra")
    assert error.message.startswith("unknown rest path")
    assert one.told == []


def test_every_command_has_a_way(world, one):
    """Each of the 162 entries, with what it requires, gives its template filled."""
    world.clock.advance(0)
    one.tables["comments"] = [{"id": 1, "host_name": "h1"},
                              {"id": 2, "host_name": "h1", "service_description": "s1"}]  # fmt: skip
    one.tables["downtimes"] = [
        {"id": 1, "host_name": "h1", "start_time": NOW - 5},
        {"id": 2, "host_name": "h1", "service_description": "s1", "start_time": NOW - 5},
    ]
    paths = {"hosts": "/hosts/h1", "services": "/services/h1/s1", "hostgroups": "/hostgroups/g1",
             "servicegroups": "/servicegroups/sg1", "contacts": "/contacts/ann",
             "contactgroups": "/contactgroups/cg", "sites": "/system"}  # fmt: skip
    for command in ALL:
        sample = {"integer": "1", "timeperiod": "24x7", "hostgroup": "g1"}
        number = "2" if command.kind == "services" or "_svc_" in command.name else "1"
        given = [
            (arg.name, number if arg.name.endswith("_id") else sample.get(arg.type, "now"))
            for arg in command.arguments
            if arg.required
        ]
        answer = world.post(f"{paths[command.kind]}/cmd/{command.name}", *given)
        assert answer.value["commands"].startswith(f"COMMAND {AT} {command.core_name}"), command
        assert answer.value["message"] == "Command successfully submitted"
    assert len(one.told) == len(ALL) == 162


def test_kinds_of_the_catalogue_are_routed():
    roots = {path.split("/")[1] for path in COMMAND_PATHS}
    assert roots == {*(kind for kind in COMMANDS if kind != "sites"), "system", "core", "cmd"}
