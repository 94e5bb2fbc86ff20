"""Routes of commands, and what nobody reads."""

import pytest

from monrest.base.errors import MethodNotAllowed, NotFound
from monrest.daemon.families import ENDPOINTS
from monrest.livestatus.catalogue import COMMANDS
from tests.api.cores import AT
from tests.fakes.context import make_dispatch


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/hosts/h1/cmd/enable_host_flap_detection", "ENABLE_HOST_FLAP_DETECTION;h1"),
        ("/host/h1/cmd/ENABLE_HOST_FLAP_DETECTION", "ENABLE_HOST_FLAP_DETECTION;h1"),
        ("/services/h1/s1/cmd/remove_svc_acknowledgement", "REMOVE_SVC_ACKNOWLEDGEMENT;h1;s1"),
        ("/service/h1/s1/cmd/remove_svc_acknowledgement", "REMOVE_SVC_ACKNOWLEDGEMENT;h1;s1"),
        ("/hostgroups/g1/cmd/enable_hostgroup_svc_checks", "ENABLE_HOSTGROUP_SVC_CHECKS;g1"),
        ("/servicegroups/sg1/cmd/enable_servicegroup_svc_checks", "ENABLE_SERVICEGROUP_SVC_CHECKS;sg1"),
        ("/contacts/ann/cmd/enable_contact_svc_notifications", "ENABLE_CONTACT_SVC_NOTIFICATIONS;ann"),
        ("/contactgroups/cg/cmd/enable_contactgroup_svc_notifications", "ENABLE_CONTACTGROUP_SVC_NOTIFICATIONS;cg"),
        ("/system/cmd/enable_notifications", "ENABLE_NOTIFICATIONS"),
        ("/core/cmd/enable_notifications", "ENABLE_NOTIFICATIONS"),
    ],
)  # fmt: skip
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


def test_kinds_of_the_catalogue_are_routed():
    roots = {path.split("/")[1] for path in COMMAND_PATHS}
    assert roots == {*(kind for kind in COMMANDS if kind != "sites"), "system", "core", "cmd"}
