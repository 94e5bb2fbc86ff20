"""Routes, reading, permissions and sites of commands (auth-and-commands.md, sections 1.1 to 1.10)."""

from __future__ import annotations

import pytest

from monrest.commands.catalogue import ALL, COMMANDS
from monrest.config.values import CommandsConfig
from monrest.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, RestError, SitesFailed
from monrest.resources.registry import ENDPOINTS, router
from monrest.values import READ_ONLY, Identity
from tests.fakes.strict import stray_failures  # noqa: F401  a fixture
from tests.resources.cores import ADMIN, ANN, NOW, World, host, service

AT = f"[{NOW}]"


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def one(world):
    """A site with an object of every kind."""
    return world.site(
        "s1",
        hosts=[host("h1", "ann", groups=["g1"]), host("h2", "bob", groups=["g1", "g2"])],
        services=[
            service("h1", "s1", "ann", groups=["sg1"]),
            service("h1", "s2", groups=["sg1"], host_contacts=["ann"]),
            service("h2", "s1", "bob", groups=["sg2"]),
        ],
        hostgroups=[{"name": "g1"}, {"name": "g2"}, {"name": "empty"}],
        servicegroups=[{"name": "sg1"}, {"name": "sg2"}],
        contacts=[{"name": "ann"}, {"name": "bob"}],
        contactgroups=[{"name": "cg"}],
        timeperiods=[{"name": "24x7"}],
        comments=[],
        downtimes=[],
    )


# ---------------------------------------------------------------- routes


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


COMMAND_PATHS = [one.path for one in ENDPOINTS if one.segments[-2:] == ("cmd", "<command>")]


@pytest.mark.parametrize("path", [*COMMAND_PATHS, "/cmd"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PATCH", "DELETE"])
def test_other_methods(path, method):
    with pytest.raises(MethodNotAllowed) as caught:
        router("mon").find(method, path, tuple(path.strip("/").split("/")))
    assert dict(caught.value.headers)["Allow"] == "POST, PUT, OPTIONS"


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
        number = "2" if command.kind == "services" else "1"
        given = [
            (arg.name, number if arg.name.endswith("_id") else sample.get(arg.type, "now"))
            for arg in command.arguments
            if arg.required
        ]
        answer = world.post(f"{paths[command.kind]}/cmd/{command.name}", *given)
        assert answer.value["commands"].startswith(f"COMMAND {AT} {command.core_name}"), command
        assert answer.value["message"] == "Command successfully submitted"
    assert len(one.told) == len(ALL) == 162


# ---------------------------------------------------------------- POST /cmd


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ([("cmd", "enable_notifications")], "ENABLE_NOTIFICATIONS"),
        ([("cmd", "enable_host_check"), ("host", "h1")], "ENABLE_HOST_CHECK;h1"),
        (
            [("service", "s1"), ("cmd", "enable_svc_check"), ("host", "h1")],
            "ENABLE_SVC_CHECK;h1;s1",
        ),
        (
            [("host", "h1"), ("hostgroup", "g1"), ("cmd", "enable_hostgroup_svc_checks")],
            "ENABLE_HOSTGROUP_SVC_CHECKS;g1",
        ),
        (
            [("contact", "ann"), ("cmd", "enable_contact_svc_notifications")],
            "ENABLE_CONTACT_SVC_NOTIFICATIONS;ann",
        ),
    ],
)
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
    """The peer takes the value of ``system`` as the command (section 1.3)."""
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


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "parameters",
    [
        [("nonsense", "1")],
        [("host", "h2")],
        [("comment_data", "x"), ("comment_data", "y")],
        [("comment_data", "x"), ("persistent_comment", "perhaps")],
        [],
    ],
)
def test_arguments_are_checked(world, one, parameters):
    error = world.refused(BadRequest, "/hosts/h1/cmd/add_host_comment", *parameters)
    assert "comment_data (text, required)" in error.extra["help"]
    assert one.told == []


def test_author_is_the_user(world, one):
    world.post(
        "/hosts/h1/cmd/add_host_comment", ("comment_data", "x; y"), ("comment_author", "boss")
    )
    world.commands = CommandsConfig(lock_author_names=False)
    world.post(
        "/hosts/h1/cmd/add_host_comment", ("comment_data", "x; y"), ("comment_author", "boss")
    )
    assert one.told == ["ADD_HOST_COMMENT;h1;1;admin;x; y", "ADD_HOST_COMMENT;h1;1;boss;x; y"]


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_test_only(world, one, value):
    answer = world.post("/hosts/h1/cmd/enable_host_check", ("test_only", value))
    assert answer.value["commands"] == f"COMMAND {AT} ENABLE_HOST_CHECK;h1"
    assert "nothing was sent" in answer.value["message"]
    assert (one.told, world.sending, world.audited) == ([], [], [])


def test_test_only_while_a_site_is_down(world, one):
    world.site("s2").fail()
    answer = world.post("/hosts/h1/cmd/enable_host_check", ("test_only", "1"))
    assert answer.value["commands"] == f"COMMAND {AT} ENABLE_HOST_CHECK;h1"
    assert "nothing was sent" in answer.value["message"]
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s2"]
    entry = {"cmd": "enable_host_check", "host": "h1"}
    (result,) = world.bulk(entry, parameters=[("test_only", "1")]).value
    assert (result["code"], result["commands"]) == (200, answer.value["commands"])


@pytest.mark.parametrize("value", ["0", "", "false"])
def test_not_test_only(world, one, value):
    world.post("/hosts/h1/cmd/enable_host_check", ("test_only", value))
    assert one.told == ["ENABLE_HOST_CHECK;h1"]


def test_test_only_refuses_as_the_real_thing(world, one):
    world.refused(BadRequest, "/hosts/no/cmd/enable_host_check", ("test_only", "1"))
    world.refused(Forbidden, "/hosts/h2/cmd/enable_host_check", ("test_only", "1"), identity=ANN)


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "1e3", "40", "39.5", "9" * 30])
def test_impossible_waits(world, one, value):
    error = world.refused(BadRequest, "/hosts/h1/cmd/enable_host_check", ("wait", value))
    assert error.message == "invalid wait"
    assert one.told == []


# ---------------------------------------------------------------- permissions


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


@pytest.mark.parametrize("path", [path for path, _ in ALLOWED if "none" not in path])
def test_read_only_is_stronger_than_admin(world, one, path):
    boss = Identity(user="ann", roles=frozenset({"authorized_for_admin", READ_ONLY}))
    world.refused(Forbidden, path, identity=boss)
    world.refused(Forbidden, path, identity=Identity(user="gagged"))
    world.refused(Forbidden, path, identity=Identity(user="x", superuser=True, roles=frozenset({READ_ONLY})))  # fmt: skip
    assert (one.told, one.asked) == ([], [])


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


def test_hint_for_an_unknown_command(world, one):
    error = world.refused(NotFound, "/hosts/h1/cmd/schedule_host_downtme")
    assert error.extra["help"].startswith("similar commands: schedule_host_downtime")


def test_permission_comes_before_existence(world, one):
    error = world.refused(Forbidden, "/hosts/none/cmd/enable_host_check", identity=ANN)
    assert error.description == "you don' have command permissions for host none"


# ---------------------------------------------------------------- sites


def test_only_where_the_object_is(world, one):
    two = world.site("s2", hosts=[host("h2"), host("h3")])
    three = world.site("s3", hosts=[host("h3")])
    world.post("/hosts/h3/cmd/enable_host_check")
    assert (one.told, two.told, three.told) == ([], *[["ENABLE_HOST_CHECK;h3"]] * 2)
    answer = world.post("/hosts/h2/cmd/enable_host_check")
    assert answer.value["commands"] == "\n".join([f"COMMAND {AT} ENABLE_HOST_CHECK;h2"] * 2)


def test_contacts_command_only_where_they_are_contacts(world, one):
    """A host of the same name elsewhere, of which ann is no contact, is left alone."""
    two = world.site("s2", hosts=[host("h1", "bob")])
    world.post("/hosts/h1/cmd/enable_host_check", identity=ANN)
    assert (one.told, two.told) == (["ENABLE_HOST_CHECK;h1"], [])


def test_role_commands_need_no_visibility(world, one):
    """Ours: who may command all hosts need not be allowed to see them (section 1.10)."""
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


def test_unknown_object_while_a_site_is_down(world, one):
    world.site("s2").fail()
    error = world.refused(BadRequest, "/hosts/none/cmd/enable_host_check")
    assert error.message.endswith("host=none, unreachable sites: S2")
    assert error.extra["failed_sites"] == [
        {"site": "s2", "name": "S2", "reason": "connection refused"}
    ]


@pytest.mark.parametrize("key", ["backend", "backends"])
@pytest.mark.parametrize(("value", "told"), [("s2", (0, 1)), ("S2,s1", (1, 1)), ("ALL", (1, 1))])
def test_selection(world, one, key, value, told):
    two = world.site("s2", hidden=True)
    world.post("/system/cmd/enable_notifications", (key, value))
    assert (len(one.told), len(two.told)) == told


def test_hidden_sites_are_not_meant(world, one):
    two = world.site("s2", hidden=True)
    world.post("/system/cmd/enable_notifications")
    assert (len(one.told), len(two.told)) == (1, 0)
    world.post("/system/cmd/enable_notifications", ("backends", "s1"), sites=("s2",))
    assert (len(one.told), len(two.told)) == (1, 1)


def test_unknown_site(world, one):
    error = world.refused(BadRequest, "/system/cmd/log", ("backends", "nope"), ("log", "x"))
    assert error.message == "failed to find backend(s): nope"


def test_no_site(world):
    error = world.refused(RestError, "/system/cmd/enable_notifications")
    assert (error.code, error.message) == (500, "error during request")
    assert error.description.startswith("backend error, no backends available")


def test_sites_of_other_groups_do_not_exist(world, one):
    other = world.site("s2", groups=("admins",))
    operator = Identity(user="op", roles=frozenset({"authorized_for_system_commands"}))
    world.post("/system/cmd/enable_notifications", identity=operator)
    assert (len(one.told), len(other.told)) == (1, 0)
    error = world.refused(
        BadRequest, "/system/cmd/enable_notifications", ("backends", "s2"), identity=operator
    )
    assert error.message == "failed to find backend(s): s2"


def test_all_sites_down(world):
    world.site("s1").fail()
    error = world.refused(SitesFailed, "/hosts/h1/cmd/enable_host_check")
    assert error.code == 502
    (entry,) = world.audited
    assert entry["result"] == "not sent"


# ---------------------------------------------------------------- look-ups (1.7, 1.8)


ENTRIES = {
    "comments": [
        {"id": 7, "host_name": "h1", "comment": "mine"},
        {"id": 8, "host_name": "h1", "service_description": "s1", "comment": "of the service"},
        {"id": 9, "host_name": "h2", "comment": "other"},
    ],
    "downtimes": [
        {"id": 1, "host_name": "h1", "start_time": NOW - 10},
        {"id": 2, "host_name": "h1", "start_time": NOW + 10},
        {"id": 3, "host_name": "h1", "service_description": "s1", "start_time": NOW},
        {"id": 4, "host_name": "h2", "start_time": NOW - 10},
    ],
}


@pytest.mark.parametrize(
    ("path", "parameters", "told"),
    [
        ("/hosts/h1/cmd/del_comment", [("comment_id", "7")], ["DEL_HOST_COMMENT;7"]),
        ("/hosts/h1/cmd/del_comment", [("comment_id", "8")], []),
        ("/hosts/h1/cmd/del_comment", [("comment_id", "9")], []),
        ("/services/h1/s1/cmd/del_comment", [("comment_id", "8")], ["DEL_SVC_COMMENT;8"]),
        ("/services/h1/s1/cmd/del_comment", [("comment_id", "7")], []),
        ("/hosts/h1/cmd/del_downtime", [("downtime_id", "2")], ["DEL_HOST_DOWNTIME;2"]),
        ("/hosts/h1/cmd/del_downtime", [("downtime_id", "3")], []),
        ("/services/h1/s1/cmd/del_downtime", [("downtime_id", "3")], ["DEL_SVC_DOWNTIME;3"]),
        ("/hosts/h1/cmd/del_active_host_downtimes", [], ["DEL_HOST_DOWNTIME;1"]),
        ("/services/h1/s1/cmd/del_active_service_downtimes", [], ["DEL_SVC_DOWNTIME;3"]),
        ("/services/h1/s2/cmd/del_active_service_downtimes", [], []),
    ],
)
def test_deletions(world, one, path, parameters, told):
    one.tables |= ENTRIES
    answer = world.post(path, *parameters)
    assert one.told == told
    if not told:
        assert answer.value == {
            "message": "Nothing matched, no command was sent",
            "commands": "",
        }
        assert world.sending == []


def test_nothing_to_delete_while_a_site_is_down(world, one):
    world.site("s2").fail()
    answer = world.post("/hosts/h1/cmd/del_comment", ("comment_id", "99"))
    assert answer.value["message"] == "Nothing matched, no command was sent"
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s2"]


def test_deletions_are_for_each_site(world, one):
    one.tables |= ENTRIES
    two = world.site("s2", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h2"}])
    three = world.site("s3", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h1"}])
    world.post("/hosts/h1/cmd/del_comment", ("comment_id", "7"))
    assert (one.told, two.told, three.told) == (
        *[["DEL_HOST_COMMENT;7"], []],
        ["DEL_HOST_COMMENT;7"],
    )


def test_names_with_backslashes_are_looked_up_as_they_are(world, one):
    """The peer asks with the doubled name and finds nothing (section 1.2)."""
    one.tables["hosts"].append(host("a\\b"))
    one.tables["downtimes"] = [{"id": 5, "host_name": "a\\b", "start_time": NOW - 1}]
    world.post("/hosts/a%5Cb/cmd/del_active_host_downtimes")
    assert one.told == ["DEL_HOST_DOWNTIME;5"]


def test_enabling_takes_the_comments_away(world, one):
    one.tables["comments"] = [
        {"id": 1, "host_name": "h1", "comment": "DISABLE_HOST_CHECK: maintenance"},
        {"id": 2, "host_name": "h1", "comment": "see DISABLE_HOST_CHECK"},
        {"id": 3, "host_name": "h2", "comment": "DISABLE_HOST_CHECK: other host"},
        {
            "id": 4,
            "host_name": "h1",
            "service_description": "s1",
            "comment": "DISABLE_HOST_CHECK: of a service",
        },
    ]
    world.post("/hosts/h1/cmd/enable_host_check")
    assert one.told == ["ENABLE_HOST_CHECK;h1", "DEL_HOST_COMMENT;1"]


def test_disabling_may_need_a_comment(world, one):
    world.commands = CommandsConfig(require_comments_for_disable=True)
    error = world.refused(BadRequest, "/hosts/h1/cmd/disable_host_check")
    assert error.message == "missing argument: comment_data"
    world.post("/services/h1/s1/cmd/disable_svc_check", ("comment_data", "broken"))
    assert one.told == [
        "DISABLE_SVC_CHECK;h1;s1",
        "ADD_SVC_COMMENT;h1;s1;1;admin;DISABLE_SVC_CHECK: broken",
    ]


def test_kinds_of_the_catalogue_are_routed():
    roots = {path.split("/")[1] for path in COMMAND_PATHS}
    assert roots == {*(kind for kind in COMMANDS if kind != "sites"), "system", "core", "cmd"}
