"""Who may send which command."""

import pytest

from monrest.base.errors import Forbidden, NotFound
from monrest.base.values import Identity
from tests.api.cores import ANN

ALLOWED = [
    ("/hosts/h1/cmd/enable_host_check", True),
    ("/hosts/h2/cmd/enable_host_check", False),
    ("/hosts/none/cmd/enable_host_check", False),
    ("/services/h1/s1/cmd/enable_svc_check", True),
    ("/services/h1/s2/cmd/enable_svc_check", True),
    ("/services/h2/s1/cmd/enable_svc_check", False),
    ("/hostgroups/g1/cmd/enable_hostgroup_svc_checks", False),
    ("/hostgroups/g2/cmd/enable_hostgroup_svc_checks", False),
    ("/hostgroups/empty/cmd/enable_hostgroup_svc_checks", False),
    ("/servicegroups/sg1/cmd/enable_servicegroup_svc_checks", True),
    ("/servicegroups/sg2/cmd/enable_servicegroup_svc_checks", False),
    ("/contacts/ann/cmd/enable_contact_svc_notifications", True),
    ("/contacts/bob/cmd/enable_contact_svc_notifications", False),
    ("/contactgroups/cg/cmd/enable_contactgroup_svc_notifications", False),
    ("/system/cmd/enable_notifications", False),
    ("/system/cmd/del_downtime_by_host_name", False),
]


@pytest.mark.parametrize(("path", "allowed"), ALLOWED)
@pytest.mark.parametrize("viewing", [(), ("all_hosts", "all_services", "system_information")])
def test_contacts(world, one, path, allowed, viewing):
    """Being a contact decides; roles for viewing give no command."""
    ann = Identity(user="ann", roles=frozenset(f"authorized_for_{role}" for role in viewing))
    if allowed:
        world.post(path, identity=ann)
        assert len(one.told) == 1
    else:
        world.refused(Forbidden, path, identity=ann)
        assert one.told == []


def test_strict_services(world, one):
    world.strict = True
    world.refused(Forbidden, "/services/h1/s2/cmd/enable_svc_check", identity=ANN)
    world.refused(Forbidden, "/servicegroups/sg1/cmd/enable_servicegroup_svc_checks", identity=ANN)
    world.post("/services/h1/s1/cmd/enable_svc_check", identity=ANN)


def test_group_of_whose_members_one_is_a_contact(world, one):
    one.tables["hosts"][1]["contacts"] = ["bob", "ann"]
    world.post("/hostgroups/g1/cmd/enable_hostgroup_svc_checks", identity=ANN)
    assert one.told == ["ENABLE_HOSTGROUP_SVC_CHECKS;g1"]


def test_permission_comes_before_the_command(world, one):
    """Who may not command an object does not learn which commands there are."""
    error = world.refused(Forbidden, "/hosts/h2/cmd/nonsense", identity=ANN)
    assert error.description == "you don' have command permissions for host h2"
    error = world.refused(NotFound, "/hosts/h1/cmd/nonsense", identity=ANN)
    assert (error.message, error.description) == (
        "no such command",
        "there is no command nonsense for type host",
    )
    world.refused(Forbidden, "/system/cmd/nonsense", identity=ANN)
    error = world.refused(NotFound, "/system/cmd/nonsense")
    assert error.description == "there is no command nonsense for type site"
