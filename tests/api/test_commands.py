"""Commands: which are taken, to which sites they go, who may send them, what becomes of them."""

import pytest

from monrest.base.errors import BadRequest, Forbidden, NotFound, RestError, SitesFailed
from monrest.base.values import Identity, SiteProblem
from tests.api.cores import ADMIN, ANN, AT, NOW, World, host, service


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
    """``system`` names no command with any value."""
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
def test_what_contacts_command(world, one, path, allowed, viewing):
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
    if parameters and not told:
        (name, number), *_ = parameters
        with pytest.raises(BadRequest, match=f"{name}: there is no .* {number} of h1") as refused:
            world.post(path, *parameters)
        assert refused.value.message == f"invalid value for {name}"
        assert world.sending == []
        return
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
    with pytest.raises(
        BadRequest, match="comment_id: there is no host comment 99 of h1 on S1"
    ) as no:
        world.post("/hosts/h1/cmd/del_comment", ("comment_id", "99"))
    assert [site.site for site in no.value.problems] == ["s2"]
    answer = world.post("/hosts/h1/cmd/del_active_host_downtimes")
    assert answer.value["message"] == "Nothing matched, no command was sent"
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s2"]


def test_deletions_are_for_each_site(world, one):
    one.tables |= ENTRIES
    two = world.site("s2", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h2"}])
    three = world.site("s3", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h1"}])
    answer = world.post("/hosts/h1/cmd/del_comment", ("comment_id", "7"))
    assert answer.value["warnings"] == ["comment_id: there is no host comment 7 of h1 on S2"]
    assert (one.told, two.told, three.told) == (
        *[["DEL_HOST_COMMENT;7"], []],
        ["DEL_HOST_COMMENT;7"],
    )


def test_names_with_backslashes_are_looked_up_as_they_are(world, one):
    """Backslashes are doubled in the command line and nowhere else."""
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


CHECK = "/hosts/h1/cmd/enable_host_flap_detection"
LINE = f"COMMAND [{NOW}] ENABLE_HOST_FLAP_DETECTION;h1"
NAME = "ENABLE_HOST_FLAP_DETECTION"
TEXT = "400: Too many arguments to command - expected 1"


@pytest.fixture
def pair(monkeypatch):
    pair = World(monkeypatch)
    for name in ("s1", "s2"):
        pair.site(name, hosts=[host("h1", "ann"), host("h2")])
    return pair


def refuse(site):
    site.refusals[NAME] = TEXT


def test_refusal_of_one_site_is_a_refusal(pair):
    refuse(pair.sites[1])
    error = pair.refused(BadRequest, CHECK)
    assert error.message == "sending command failed"
    assert error.description == f"sending command failed: S2: {TEXT}"
    assert error.extra["error"] == f"S2: {TEXT}"
    assert error.extra["commands"] == f"{LINE}\n{LINE}"
    assert error.extra["help"]
    assert pair.sites[0].told == [f"{NAME};h1"]


def in_doubt(site, *, timed_out=False):
    """The connection breaks after the lines were sent; look-ups still work."""
    site.doubtful = True
    site.doubt = SiteProblem(site.id, site.name, "connection lost", timed_out)


def test_doubt_beside_a_refusal(pair):
    in_doubt(pair.sites[1])
    refuse(pair.sites[0])
    error = pair.refused(BadRequest, CHECK)
    assert error.extra["failed_sites"][0]["uncertain"] is True
    assert error.problems == (pair.sites[1].doubt,)


@pytest.mark.parametrize(
    ("path", "identity", "kind", "result"),
    [
        ("/hosts/h2/cmd/enable_host_check", ANN, Forbidden, "not allowed"),
        ("/system/cmd/shutdown_program", ANN, Forbidden, "not allowed"),
        ("/hosts/h1/cmd/nonsense", ANN, NotFound, "not sent"),
        ("/hosts/h1/cmd/add_host_comment", ANN, BadRequest, "not sent"),
    ],
)
def test_audit_of_what_was_not_sent(pair, path, identity, kind, result):
    error = pair.refused(kind, path, identity=identity)
    (entry,) = pair.audited
    assert (entry["who"], entry["result"], entry["error"]) == ("ann", result, str(error))
    assert entry["command"] == path.rpartition("/")[2]
    assert "lines" not in entry


def test_audit_of_refusals_and_doubts(pair):
    refuse(pair.sites[0])
    pair.refused(BadRequest, CHECK)
    pair.sites[0].refusals.clear()
    for site in pair.sites:
        in_doubt(site)
    pair.refused(SitesFailed, CHECK)
    assert [entry["result"] for entry in pair.audited] == [
        "sending command failed",
        "it is not known whether the command was executed",
    ]
    assert pair.audited[0]["error"] == f"S1: {TEXT}"
