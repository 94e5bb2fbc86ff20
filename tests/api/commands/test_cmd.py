"""``POST /cmd`` and the parameters of all commands."""

import pytest

from monrest.base.errors import BadRequest
from tests.api.cores import AT


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ([("cmd", "enable_notifications")], "ENABLE_NOTIFICATIONS"),
        ([("cmd", "enable_host_check"), ("host", "h1")], "ENABLE_HOST_CHECK;h1"),
        ([("service", "s1"), ("cmd", "enable_svc_check"), ("host", "h1")], "ENABLE_SVC_CHECK;h1;s1"),
        (
            [("host", "h1"), ("hostgroup", "g1"), ("cmd", "enable_hostgroup_svc_checks")],
            "ENABLE_HOSTGROUP_SVC_CHECKS;g1",
        ),
        ([("contact", "ann"), ("cmd", "enable_contact_svc_notifications")], "ENABLE_CONTACT_SVC_NOTIFICATIONS;ann"),
    ],
)  # fmt: skip
def test_cmd(world, one, parameters, line):
    world.post("/cmd", *parameters)
    assert one.told == [line]


@pytest.mark.parametrize(
    ("parameters", "message", "description"),
    [
        ([], "missing argument: cmd", "cmd is a required argument"),
        ([("cmd", "")], "missing argument: cmd", "cmd is a required argument"),
        ([("cmd", "a"), ("cmd", "b")], "invalid cmd", "cmd: expected one value, got 2"),
        ([("cmd", "x"), ("service", "s1")], "missing argument: host", "host is a required"),
        ([("cmd", "x"), ("host", "")], "invalid host", "host: expected one name"),
        ([("cmd", "x"), ("host", "a"), ("host", "b")], "invalid host", "host: expected one name"),
        ([("cmd", "x"), ("host", "h1"), ("service", "")], "invalid service", "service: expected"),
    ],
)
def test_cmd_is_malformed(world, one, parameters, message, description):
    error = world.refused(BadRequest, "/cmd", *parameters)
    assert error.message == message
    assert error.description.startswith(description)
    assert (one.told, one.asked) == ([], [])


def test_values_of_a_global_parameter_are_no_commands(world, one):
    """``system`` names no command, whatever its value is."""
    error = world.refused(
        BadRequest, "/cmd", ("cmd", "enable_notifications"), ("system", "disable_notifications")
    )
    assert error.message == "unknown argument: system"
    assert one.told == []


def test_structured_json_is_refused(world, one):
    error = world.refused(
        BadRequest, "/cmd", ("cmd", "log"), structured="log", document={"cmd": "log", "log": {}}
    )
    assert error.description.startswith("parameter log")
    assert one.told == []


def test_test_only_while_a_site_is_down(world, one):
    world.site("s2").fail()
    answer = world.post("/hosts/h1/cmd/enable_host_check", ("test_only", "1"))
    assert answer.value["commands"] == f"COMMAND {AT} ENABLE_HOST_CHECK;h1"
    assert "nothing was sent" in answer.value["message"]
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s2"]
    entry = {"cmd": "enable_host_check", "host": "h1"}
    (result,) = world.bulk(entry, parameters=[("test_only", "1")]).value
    assert (result["code"], result["commands"]) == (200, answer.value["commands"])
