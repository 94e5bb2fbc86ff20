"""Expansion and checks of a whole site."""

import pytest

from monrest.demo.definitions import ObjectConfigError, parse
from monrest.demo.registration import build, load
from tests.table import each

BASE = """
define command {
    command_name c
    command_line /bin/true
}
define timeperiod {
    timeperiod_name always
    alias Always
}
define contact {
    name con
    host_notification_commands c
    service_notification_commands c
    register 0
}
define contact {
    use con
    contact_name c1
    contactgroups cg1
}
define contact {
    use con
    contact_name c2
}
define contactgroup {
    contactgroup_name cg1
    members c2
}
define contactgroup {
    contactgroup_name cg2
    contactgroup_members cg1
    members *,!c1
}
define host {
    name hst
    max_check_attempts 3
    register 0
}
define service {
    name svc
    max_check_attempts 3
    check_command c
    register 0
}
"""


def host(name, *lines):
    return "define host {\nuse hst\nhost_name " + "\n".join([name, *lines]) + "\n}\n"


def hostgroup(name, *lines):
    return "define hostgroup {\nhostgroup_name " + "\n".join([name, *lines]) + "\n}\n"


def service(name, *lines):
    return "define service {\nuse svc\nservice_description " + "\n".join([name, *lines]) + "\n}\n"


def define(kind, *lines):
    return f"define {kind} {{\n" + "\n".join(lines) + "\n}\n"


HOSTS = (
    host("h1", "hostgroups g1,g3", "contact_groups cg1")
    + host("h2", "hostgroups g2")
    + host("h3")
    + host("h4")
    + hostgroup("g1")
    + hostgroup("g2")
    + hostgroup("g3", "members h4", "members h3")
    + hostgroup("g4", "hostgroup_members g3,g2", "members !h1")
    + hostgroup("all", "members *,!h4")
    + hostgroup("empty")
)


def site(text):
    parsed = parse(BASE + text, "x.cfg")
    return build(parsed.definitions, parsed.problems)


def problems(text):
    with pytest.raises(ObjectConfigError) as caught:
        site(text)
    return [problem.text for problem in caught.value.problems]


def test_host_groups():
    found = site(HOSTS).hostgroup_members
    assert found["g3"] == ("h1", "h3", "h4")
    assert found["g4"] == ("h2", "h3", "h4")
    assert found["all"] == ("h1", "h2", "h3")
    assert found["empty"] == ()


@pytest.mark.parametrize(
    ("lines", "hosts"),
    [
        (["hostgroup_name all,!g1", "host_name h4,!h3"], ["h2", "h4"]),
        (["host_name *,!h2"], ["h1", "h3", "h4"]),
        (["hostgroup_name empty"], []),
        (["hostgroup_name *"], ["h1", "h2", "h3", "h4"]),
    ],
)
def test_hosts_of_services(lines, hosts):
    found = site(HOSTS + service("S", *lines))
    assert sorted(name for name, _ in found.services) == hosts


def test_a_service_by_host_beats_one_by_group():
    found = site(
        HOSTS
        + define("command", "command_name other", "command_line x")
        + service("C", "hostgroup_name g3,all")
        + service("C", "host_name h4", "check_command other")
    )
    commands = {name: item.text("check_command") for (name, _), item in found.services.items()}
    assert commands == {"h1": "c", "h2": "c", "h3": "c", "h4": "other"}


def test_contact_groups():
    found = site(HOSTS)
    assert found.contactgroup_members == {"cg1": ("c1", "c2"), "cg2": ("c2",)}
    assert found.contacts_of(found.hosts["h1"]) == ("c1", "c2")


def test_service_groups():
    found = site(
        HOSTS
        + service("B", "host_name h1,h4")
        + service("D", "host_name h4", "servicegroups by-service")
        + define("servicegroup", "servicegroup_name s", "members h1,B,h4,*")
        + define("servicegroup", "servicegroup_name by-service", "servicegroup_members s",
                 "members h4,!B")
    )  # fmt: skip
    assert found.servicegroup_members["s"] == (("h1", "B"), ("h4", "B"), ("h4", "D"))
    assert found.servicegroup_members["by-service"] == (("h1", "B"), ("h4", "D"))


def test_a_service_inherits_from_its_host():
    text = host("h", "contacts c1", "check_period always", "notification_interval 7")
    found = site(
        text
        + service("own", "host_name h", "contacts null")
        + service("inherits", "host_name h")
        + service("period", "host_name h", "check_period null")
    )
    assert found.contacts_of(found.contact_source(("h", "own"))) == ()
    assert found.contacts_of(found.contact_source(("h", "inherits"))) == ("c1",)
    assert found.from_host(("h", "inherits"), "check_period") == "always"
    assert found.from_host(("h", "period"), "check_period") == ""
    assert found.from_host(("h", "inherits"), "notification_interval") == "7"
    assert found.services["h", "inherits"].number("check_interval") == 5


def test_service_dependency_on_the_same_host():
    found = site(
        HOSTS
        + service("B", "host_name h1")
        + service("C", "host_name h1")
        + define("servicedependency", "host_name h1", "service_description B",
                 "dependent_service_description C", "notification_failure_criteria w,c",
                 "execution_failure_criteria n")
    )  # fmt: skip
    (edge,) = found.service_dependencies
    assert (edge.master, edge.dependent, edge.kind) == (("h1", "B"), ("h1", "C"), "notification")
    assert edge.criteria == {"w", "c"}


def test_host_dependencies_are_every_pair():
    found = site(
        HOSTS
        + define("hostdependency", "hostgroup_name g3,!g1", "dependent_host_name h2",
                 "execution_failure_criteria d", "notification_failure_criteria down,u",
                 "inherits_parent 1")
    )  # fmt: skip
    edges = [(edge.master, edge.dependent, edge.kind) for edge in found.host_dependencies]
    assert sorted(edges) == [
        ("h3", "h2", "execution"),
        ("h3", "h2", "notification"),
        ("h4", "h2", "execution"),
        ("h4", "h2", "notification"),
    ]
    assert found.host_dependencies[0].inherits_parent


def test_escalations():
    found = site(
        HOSTS
        + service("B", "hostgroup_name g3")
        + define("hostescalation", "host_name h1", "first_notification 2", "contacts c2")
        + define("serviceescalation", "hostgroup_name g3", "service_description B",
                 "last_notification 0")
    )  # fmt: skip
    (first,) = found.host_escalations
    assert (first.target, first.first, first.last) == ("h1", 2, -2)
    assert [item.target for item in found.service_escalations] == [
        ("h1", "B"), ("h3", "B"), ("h4", "B"),
    ]  # fmt: skip


def test_service_parents():
    found = site(
        HOSTS
        + service("B", "host_name h1,h2")
        + service("C", "host_name h1", "parents B")
        + service("D", "host_name h1", "parents h1,B,h2,B")
    )
    assert found.service_parents["h1", "C"] == (("h1", "B"),)
    assert found.service_parents["h1", "D"] == (("h1", "B"), ("h2", "B"))


@each(
    ("text", "says"),
    [
        (define("host", "host_name h"), "max_check_attempts"),
        (host("h", "max_check_attempts 0"), "max_check_attempts"),
        (host("h", "check_interval -1"), "check_interval"),
        (host("h", "active_checks_enabled yes"), "active_checks_enabled: 0 or 1 expected"),
        (host("h", "notification_options d,x"), "notification_options: one of d, u, r, f, s, n, a"),
        (host("h", "check_command nope!1"), "check_command: nope is not known"),
        (host("h", "check_period nope"), "check_period: nope is not known"),
        (host("h", "contacts nope"), "contacts: nope is not known"),
        (host("h", "contact_groups !nope"), "contact_groups: nope is not known"),
        (host("h", "hostgroups nope"), "hostgroups: nope is not known"),
        (host("h", "parents nope"), "parents: nope cannot be a parent"),
        (host("h", "parents h"), "parents: h cannot be a parent"),
        (host("a", "parents b") + host("b", "parents a"), "its own ancestor"),
        (host("h") + host("h"), "duplicate host h"),
        (define("host", "use hst"), "host without host_name"),
        (service("S"), "without host_name or hostgroup_name"),
        (service("S", "host_name nope"), "host_name: nope is not known"),
        (host("h") + define("service", "host_name h", "max_check_attempts 1",
                            "service_description S"), "without check_command"),
        (define("contact", "contact_name c9"), "without host_notification_commands"),
        (define("timeperiod", "timeperiod_name t"), "without alias"),
        (define("timeperiod", "timeperiod_name t", "alias T", "monday 9-17",), "HH:MM"),
        (define("timeperiod", "timeperiod_name t", "alias T", "exclude x"), "exclude"),
        (hostgroup("g", "hostgroup_members g"), "contains itself"),
        (define("servicegroup", "servicegroup_name s", "members h"), "pairs"),
        (HOSTS + define("hostdependency", "host_name h1", "dependent_host_name h1",
                        "execution_failure_criteria d"), "circular"),
    ],
)  # fmt: skip
def test_what_the_core_refuses(text, says):
    assert any(says in problem for problem in problems(text))


def test_files_of_a_folder_are_one_site(tmp_path):
    (tmp_path / "base.cfg").write_text(BASE)
    (tmp_path / "hosts.cfg").write_text(HOSTS + host("bad", "parents nope"))
    with pytest.raises(ObjectConfigError) as caught:
        load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/hosts.cfg:")
    (tmp_path / "hosts.cfg").write_text(HOSTS)
    assert len(load(tmp_path).hosts) == 4
    with pytest.raises(ObjectConfigError, match="nothing:0: No such file"):
        load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ObjectConfigError, match="no object files"):
        load(tmp_path / "empty")
