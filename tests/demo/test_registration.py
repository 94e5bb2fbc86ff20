"""Expansion and checks of a whole site."""

from types import SimpleNamespace

import pytest

from monrest.demo.inventory import ObjectConfigError, make_inventory, read
from monrest.demo.states import dependency_fails
from tests.fakes.objectfiles import define

BASE = (
    define("command", "command_name c", "command_line /bin/true")
    + define("timeperiod", "timeperiod_name always", "alias Always")
    + define(
        "contact",
        "name con",
        "host_notification_commands c",
        "service_notification_commands c",
        "register 0",
    )
    + define("contact", "use con", "contact_name c1", "contactgroups cg1")
    + define("contact", "use con", "contact_name c2")
    + define("contactgroup", "contactgroup_name cg1", "members c2")
    + define("contactgroup", "contactgroup_name cg2", "contactgroup_members cg1", "members *,!c1")
    + define("host", "name hst", "max_check_attempts 3", "register 0")
    + define("service", "name svc", "max_check_attempts 3", "check_command c", "register 0")
)


def host(name, *lines):
    return define("host", "use hst", f"host_name {name}", *lines)


def hostgroup(name, *lines):
    return define("hostgroup", f"hostgroup_name {name}", *lines)


def service(name, *lines):
    return define("service", "use svc", f"service_description {name}", *lines)


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
    return make_inventory({"x.cfg": BASE + text})


def names(group):
    """The members of a group of hosts, or of services with their hosts."""
    return [getattr(one, "label", one) for one in group.members]


def problems(text):
    with pytest.raises(ObjectConfigError) as caught:
        site(text)
    return caught.value.problems


def test_a_service_by_host_beats_one_by_group():
    found = site(
        HOSTS
        + define("command", "command_name other", "command_line x")
        + service("C", "hostgroup_name g3,all")
        + service("C", "host_name h4", "check_command other")
    )
    commands = {name: item.check_command for (name, _), item in found.services.items()}
    assert commands == {"h1": "c", "h2": "c", "h3": "c", "h4": "other"}


def test_contact_groups():
    found = site(HOSTS)
    groups = {name: group.members for name, group in found.contactgroups.items()}
    assert groups == {"cg1": ("c1", "c2"), "cg2": ("c2",)}
    assert found.contacts["c2"].groups == ("cg1", "cg2")
    assert found.hosts["h1"].contacts == ("c1", "c2")


def test_service_groups():
    found = site(
        HOSTS
        + service("B", "host_name h1,h4")
        + service("D", "host_name h4", "servicegroups by-service")
        + define("servicegroup", "servicegroup_name s", "members h1,B,h4,*")
        + define("servicegroup", "servicegroup_name by-service", "servicegroup_members s",
                 "members h4,!B")
    )  # fmt: skip
    assert names(found.servicegroups["s"]) == ["h1;B", "h4;B", "h4;D"]
    assert names(found.servicegroups["by-service"]) == ["h1;B", "h4;D"]
    assert found.services["h4", "D"].groups == ("by-service", "s")


def test_a_service_inherits_from_its_host():
    text = host("h", "contacts c1", "check_period always", "notification_interval 7")
    found = site(
        text
        + service("own", "host_name h", "contacts null")
        + service("inherits", "host_name h")
        + service("period", "host_name h", "check_period null")
    ).services
    assert found["h", "own"].contacts == ()
    assert found["h", "inherits"].contacts == ("c1",)
    assert found["h", "inherits"].check_period == "always"
    assert found["h", "period"].check_period == ""
    assert found["h", "inherits"].notification_interval == 7
    assert found["h", "inherits"].check_interval == 5


def links(target):
    kinds = ("execution", "notification")
    return {
        kind: [(link.master.label, link.criteria) for link in found]
        for kind in kinds
        if (found := getattr(target, f"{kind}_dependencies"))
    }


def test_service_dependency_on_the_same_host():
    found = site(
        HOSTS
        + service("B", "host_name h1,h2")
        + service("C", "host_name h1,h2")
        + define("servicedependency", "host_name h1,h2", "service_description B",
                 "dependent_service_description C", "notification_failure_criteria w,c",
                 "execution_failure_criteria n")
    ).services  # fmt: skip
    assert links(found["h1", "C"]) == {"notification": [("h1;B", {"w", "c"})]}
    assert links(found["h2", "C"]) == {"notification": [("h2;B", {"w", "c"})]}
    assert links(found["h1", "B"]) == {}


def test_dependencies_of_service_groups():
    found = site(
        HOSTS
        + service("B", "host_name h1", "servicegroups s")
        + service("C", "host_name h2")
        + define("servicegroup", "servicegroup_name s")
        + define("servicedependency", "servicegroup_name s", "dependent_host_name h2",
                 "dependent_service_description C", "execution_failure_criteria c")
    ).services  # fmt: skip
    assert links(found["h2", "C"]) == {"execution": [("h1;B", {"c"})]}


def test_host_dependencies_are_every_pair():
    found = site(
        HOSTS
        + define("hostdependency", "hostgroup_name g3,!g1", "dependent_host_name h2,h3",
                 "execution_failure_criteria d", "notification_failure_criteria down,u",
                 "inherits_parent 1")
    ).hosts  # fmt: skip
    masters = [("h3", {"d"}), ("h4", {"d"})]
    assert links(found["h2"]) == {
        "execution": masters,
        "notification": [("h3", {"d", "u"}), ("h4", {"d", "u"})],
    }
    assert found["h2"].execution_dependencies[0].inherits_parent
    # A host does not depend on itself.
    assert links(found["h3"])["execution"] == masters[1:]


def test_hosts_may_depend_on_each_other_in_a_circle():
    hosts = site(
        HOSTS
        + define("hostdependency", "host_name h1", "dependent_host_name h2", "inherits_parent 1",
                 "execution_failure_criteria d")
        + define("hostdependency", "host_name h2", "dependent_host_name h1", "inherits_parent 1",
                 "execution_failure_criteria u")
    ).hosts  # fmt: skip
    core = SimpleNamespace(in_period=lambda period: True)
    for host in hosts.values():
        host.has_been_checked = 1
    [link] = hosts["h2"].execution_dependencies
    assert not dependency_fails(core, link)
    hosts["h2"].state = hosts["h2"].last_hard_state = 2
    assert dependency_fails(core, link)


def test_contacts_of_escalations_see_the_object():
    found = site(
        HOSTS
        + service("B", "hostgroup_name g3", "contacts c1")
        + define("hostescalation", "host_name h2", "first_notification 2", "contacts c2",
                 "last_notification 0")
        + define("serviceescalation", "hostgroup_name g3,!g1", "service_description B",
                 "first_notification 1", "last_notification 0", "contact_groups cg2")
    )  # fmt: skip
    assert found.hosts["h2"].authorized == {"c2"}
    assert found.hosts["h3"].authorized == set()
    seen = {key: item.authorized for key, item in found.services.items()}
    assert seen == {("h1", "B"): {"c1"}, ("h3", "B"): {"c1", "c2"}, ("h4", "B"): {"c1", "c2"}}


def test_service_parents():
    found = site(
        HOSTS
        + service("B", "host_name h1,h2")
        + service("C", "host_name h1", "parents B")
        + service("D", "host_name h1", "parents h1,B,h2,B")
    ).services
    assert [item.label for item in found["h1", "C"].parents] == ["h1;B"]
    assert [item.label for item in found["h1", "D"].parents] == ["h1;B", "h2;B"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (define("host", "host_name h"), "host h has no max_check_attempts in x.cfg:"),
        (host("h", "check_command nope!1"), "referenced command 'nope' does not exist in x.cfg:"),
        ("define host {\nnonsense 1\n}\n", "unknown attribute: nonsense"),
        (host("h") + host("h"), "duplicate host definition h"),
    ],
)
def test_what_the_precheck_finds_is_refused(text, says):
    assert any(says in problem for problem in problems(text))


def test_a_template_is_looked_at_where_an_object_uses_it():
    template = define("host", "name t", "register 0", "max_check_attempts 1", "parents nope")
    assert list(site(template).hosts) == []
    used = define("host", "use t", "host_name h")
    assert any("host 'nope' does not exist" in text for text in problems(template + used))
    chain = "".join(
        define("host", f"name t{number}", f"use t{number + 1}", "register 0")
        for number in range(3000)
    )
    last = define("host", "name t3000", "use t0", "register 0", "max_check_attempts 7")
    long = site(chain + last + define("host", "use t0", "host_name h")).hosts["h"]
    assert long.max_check_attempts == 7


def test_a_repeated_attribute_is_accepted():
    assert site(host("h", "alias one", "alias two")).hosts["h"].alias == "two"


def test_files_of_a_folder_are_one_site(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "base.cfg").write_text(BASE)
    (tmp_path / "hosts.cfg").write_text(HOSTS + host("bad", "parents nope"))
    with pytest.raises(ObjectConfigError, match=r"host 'nope' does not exist in hosts\.cfg:"):
        read(tmp_path)
    (tmp_path / "hosts.cfg").write_text(HOSTS)
    assert len(read(tmp_path).hosts) == 4
    with pytest.raises(ObjectConfigError, match="nothing: No such file"):
        read(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ObjectConfigError, match="no object files"):
        read(tmp_path / "empty")


def test_bytes_that_are_no_text_are_kept(tmp_path):
    (tmp_path / "a.cfg").write_bytes(
        BASE.encode() + host("h", "alias l\udce9").encode(errors="surrogateescape")
    )
    assert read(tmp_path).hosts["h"].alias == "l\udce9"
