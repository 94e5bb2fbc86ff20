"""To which sites commands go."""

import pytest

from monrest.base.errors import BadRequest, NotFound, RestError
from monrest.base.values import Identity
from tests.api.cores import ADMIN, ANN, AT, host


def test_only_where_the_object_is(world, one):
    two = world.site("s2", hosts=[host("h2"), host("h3")])
    three = world.site("s3", hosts=[host("h3")])
    world.post("/hosts/h3/cmd/enable_host_check")
    assert (one.told, two.told, three.told) == ([], *[["ENABLE_HOST_CHECK;h3"]] * 2)
    answer = world.post("/hosts/h2/cmd/enable_host_check")
    assert answer.value["commands"] == "\n".join([f"COMMAND {AT} ENABLE_HOST_CHECK;h2"] * 2)


def test_the_path_of_the_sites_needs_a_selection(world, one):
    other = world.site("s2")
    error = world.refused(NotFound, "/cmd/enable_notifications")
    assert error.message == "unknown rest path: /cmd/enable_notifications"
    assert "/sites/<list>/cmd/<command>" in error.description
    world.post("/cmd/enable_notifications", sites=("s2",))
    assert (one.told, other.told) == ([], ["ENABLE_NOTIFICATIONS"])


def test_contacts_command_only_where_they_are_contacts(world, one):
    """A host of the same name elsewhere, of which ann is no contact, is left alone."""
    two = world.site("s2", hosts=[host("h1", "bob")])
    world.post("/hosts/h1/cmd/enable_host_check", identity=ANN)
    assert (one.told, two.told) == (["ENABLE_HOST_CHECK;h1"], [])


def test_role_commands_need_no_visibility(world, one):
    """Who may command all hosts need not be allowed to see them."""
    world.site("s2")
    operator = Identity(user="op", roles=frozenset({"authorized_for_all_host_commands"}))
    world.post("/hosts/h2/cmd/enable_host_check", identity=operator)
    assert one.told == ["ENABLE_HOST_CHECK;h2"]
    world.post("/contacts/bob/cmd/enable_contact_svc_notifications")
    assert one.told[-1] == "ENABLE_CONTACT_SVC_NOTIFICATIONS;bob"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/hosts/h*/cmd/enable_host_check", "host=h*"),
        ("/services/h1/none/cmd/enable_svc_check", "host=h1 service=none"),
        ("/hostgroups/x/cmd/enable_hostgroup_svc_checks", "hostgroup=x"),
        ("/contactgroups/x/cmd/enable_contactgroup_svc_notifications", "contactgroup=x"),
    ],
)
@pytest.mark.parametrize("sites", [1, 2])
def test_unknown_objects(world, one, path, found, sites):
    if sites == 2:
        world.site("s2")
    error = world.refused(BadRequest, path)
    assert error.message == (
        "cannot send command, affected backend list is empty. no object found by filter: " + found
    )
    assert one.told == []


def test_time_periods_must_be_known(world, one):
    path = "/hosts/h1/cmd/change_host_check_timeperiod"
    two = world.site("s2", hosts=[host("h1", "ann")])
    for identity in (ADMIN, ANN):
        error = world.refused(BadRequest, path, ("timeperiod", "never"), identity=identity)
        assert error.message == "invalid value for timeperiod"
        assert error.description == "timeperiod: there is no time period never on S1, S2"
        error = world.refused(BadRequest, path, ("timeperiod", "24x7"), identity=identity)
        assert error.description == "timeperiod: there is no time period 24x7 on S2"
        assert "Arguments: timeperiod (" in error.extra["help"]
    assert world.sending == []
    two.tables["timeperiods"] = [{"name": "24x7"}]
    world.site("s3").fail()
    answer = world.post(path, ("timeperiod", "24x7"), identity=ANN)
    assert one.told == two.told == ["CHANGE_HOST_CHECK_TIMEPERIOD;h1;24x7"]
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s3"]


def test_host_groups_in_arguments_choose_the_sites(world, one):
    path = "/system/cmd/del_downtime_by_hostgroup_name"
    two = world.site("s2", hostgroups=[{"name": "other"}])
    world.post(path, ("hostgroup_name", "other"))
    assert (one.told, two.told) == ([], ["DEL_DOWNTIME_BY_HOSTGROUP_NAME;other;;;;"])
    world.site("s3").fail()
    error = world.refused(BadRequest, path, ("hostgroup_name", "none"))
    assert error.message == (
        "cannot send command, affected backend list is empty. "
        "no object found by filter: hostgroup_name=none, unreachable sites: S3"
    )


def test_no_site(world):
    error = world.refused(RestError, "/system/cmd/enable_notifications")
    assert (error.code, error.message) == (500, "error during request")
    assert error.description.startswith("backend error, no backends available")
