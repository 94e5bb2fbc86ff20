"""References follow a rename."""

from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.objectconfig.attributes import core_text
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.precheck import precheck
from tests.examples import examples
from tests.fakes.objectfiles import changed, define, site
from tests.table import each


def renamed(tmp_path, kind, attribute, text, old="old", new="new", **files):
    """The editor after the first object of ``kind`` that is named ``old`` is called ``new``."""
    model = site(tmp_path, text, **files)
    editor = Editor(model)
    item = next(
        item
        for item in model.objects
        if item.type == kind and item.attributes.get(attribute) == old
    )
    editor.patch([item], {attribute: new})
    return editor


def values(editor, kind, attribute):
    return [
        item.attributes[attribute]
        for item in editor.model.objects
        if item.type == kind and attribute in item.attributes
    ]


HOST = define("host", "host_name old")
GROUP = define("hostgroup", "hostgroup_name old")
SERVICEGROUP = define("servicegroup", "servicegroup_name old")
CONTACT = define("contact", "contact_name old")
CONTACTGROUP = define("contactgroup", "contactgroup_name old")
COMMAND = define("command", "command_name old", "command_line x")
TIMEPERIOD = define("timeperiod", "timeperiod_name old", "alias A")


@each(
    ("subject", "kind", "attribute", "before", "after"),
    [
        (HOST, "host", "parents", "a, old ,older", "a,new,older"),
        (HOST, "hostgroup", "members", "!old,*,Old,ol*", "!new,*,Old,ol*"),
        (HOST, "hostgroup", "members", "+old", "+new"),
        (HOST, "service", "host_name", "old", "new"),
        (HOST, "service", "parents", "old,old,x,old", "new,old,x,old"),
        (HOST, "servicegroup", "members", "old,old, h,old", "new,old,h,old"),
        (HOST, "hostdependency", "host_name", "old", "new"),
        (HOST, "hostdependency", "dependent_host_name", "old,b", "new,b"),
        (HOST, "servicedependency", "host_name", "old", "new"),
        (HOST, "servicedependency", "dependent_host_name", "old", "new"),
        (HOST, "hostescalation", "host_name", "old", "new"),
        (HOST, "serviceescalation", "host_name", "old", "new"),
        (HOST, "hostextinfo", "host_name", "a,old", "a,new"),
        (HOST, "host", "alias", "old", "old"),
        (HOST, "service", "hostgroup_name", "old", "old"),
        (HOST, "host", "use", "old", "old"),
        (GROUP, "host", "hostgroups", "+old,b", "+new,b"),
        (GROUP, "hostgroup", "hostgroup_members", "old", "new"),
        (GROUP, "service", "hostgroup_name", "a,!old", "a,!new"),
        (GROUP, "hostdependency", "hostgroup_name", "old", "new"),
        (GROUP, "hostdependency", "dependent_hostgroup_name", "old", "new"),
        (GROUP, "servicedependency", "dependent_hostgroup_name", "old", "new"),
        (GROUP, "hostescalation", "hostgroup_name", "old", "new"),
        (SERVICEGROUP, "service", "servicegroups", "old", "new"),
        (SERVICEGROUP, "servicegroup", "servicegroup_members", "old", "new"),
        (SERVICEGROUP, "servicedependency", "dependent_servicegroup_name", "old", "new"),
        (SERVICEGROUP, "serviceescalation", "servicegroup_name", "old", "new"),
        (CONTACT, "contactgroup", "members", "old,!b", "new,!b"),
        (CONTACT, "host", "contacts", "old", "new"),
        (CONTACT, "service", "contacts", "old", "new"),
        (CONTACT, "hostescalation", "contacts", "old", "new"),
        (CONTACT, "serviceescalation", "contacts", "old", "new"),
        (CONTACTGROUP, "contact", "contactgroups", "old", "new"),
        (CONTACTGROUP, "contactgroup", "contactgroup_members", "old", "new"),
        (CONTACTGROUP, "host", "contact_groups", "old", "new"),
        (CONTACTGROUP, "serviceescalation", "contact_groups", "old", "new"),
        (COMMAND, "host", "check_command", "old", "new"),
        (COMMAND, "service", "check_command", "old!a!old", "new!a!old"),
        (COMMAND, "service", "check_command", "!old!a", "!new!a"),
        (COMMAND, "service", "check_command", "older!old", "older!old"),
        (COMMAND, "host", "event_handler", "old!a,b", "new!a,b"),
        (COMMAND, "contact", "host_notification_commands", "a,old!x", "a,new!x"),
        (COMMAND, "contact", "service_notification_commands", "old", "new"),
        (TIMEPERIOD, "host", "check_period", "old", "new"),
        (TIMEPERIOD, "service", "notification_period", "old", "new"),
        (TIMEPERIOD, "contact", "service_notification_period", "old", "new"),
        (TIMEPERIOD, "hostescalation", "escalation_period", "old", "new"),
        (TIMEPERIOD, "hostdependency", "dependency_period", "old", "new"),
        (TIMEPERIOD, "timeperiod", "exclude", "a,old", "a,new"),
    ],
)
def test_references_follow(tmp_path, subject, kind, attribute, before, after):
    text = subject + define(kind, f"{attribute} {before}", "_own 1") + "# end\n"
    name = next(line.split()[0] for line in subject.splitlines() if "_name" in line)
    editor = renamed(tmp_path, subject.split()[1], name, text)
    assert values(editor, kind, attribute)[-1] == after
    if after == before:
        (file,) = changed(editor).values()
        assert file.document.data().decode().endswith(text.partition("}\n\n")[2])
    assert editor.warnings == []


@each("kind", ["host", "service", "contact", "command", "timeperiod", "hostdependency"])
def test_templates(tmp_path, kind):
    text = define(kind, "name old", "register 0") + define(kind, "use a, old,b")
    text += define("servicegroup", "use old")
    editor = renamed(tmp_path, kind, "name", text)
    assert values(editor, kind, "use") == ["a,new,b"]
    assert values(editor, "servicegroup", "use") == ["old"]


def test_a_template_that_is_named_by_its_key(tmp_path):
    text = define("host", "host_name old", "register 0") + define("host", "use old")
    text += define("service", "host_name old")
    editor = renamed(tmp_path, "host", "host_name", text)
    assert values(editor, "host", "use") == ["new"]
    assert values(editor, "service", "host_name") == ["old"]


def test_the_template_of_a_real_object_keeps_its_name(tmp_path):
    text = define("host", "host_name old", "name old") + define("host", "use old", "parents old")
    editor = renamed(tmp_path, "host", "host_name", text)
    assert values(editor, "host", "use") == ["old"]
    assert values(editor, "host", "parents") == ["new"]


def test_disabled_and_inherited_names(tmp_path):
    text = (
        define("host", "name t", "register 0", "host_name old")
        + define("host", "use t", "alias A")
        + "#define service {\n#  host_name old\n#}\n"
    )
    model = site(tmp_path, text)
    editor = Editor(model)
    editor.patch([model.objects[1]], {"host_name": "new"})
    assert values(editor, "service", "host_name") == ["new"]


def test_replace_renames_as_well(tmp_path):
    model = site(tmp_path, HOST + define("host", "host_name b", "parents old"))
    editor = Editor(model)
    editor.replace([model.objects[0]], {"host_name": "new", "parents": "a,b"})
    assert values(editor, "host", "parents") == ["a,b", "new"]
    assert len(changed(editor)) == 1


@each("new", [None, ""])
def test_a_lost_name_leaves_references_alone(tmp_path, new):
    text = HOST + define("host", "host_name b", "parents old")
    editor = renamed(tmp_path, "host", "host_name", text, new=new)
    assert values(editor, "host", "parents") == ["old"]


def test_names_with_a_semicolon(tmp_path):
    text = define("command", r"command_name a\;b") + define("host", r"check_command a\;b!x")
    editor = renamed(tmp_path, "command", "command_name", text, old=r"a\;b", new="c;d")
    assert values(editor, "host", "check_command") == [r"c\;d!x"]


HOSTS = "".join(define("host", f"host_name {name}") for name in ("h1", "h2", "h3"))
GROUPS = define("hostgroup", "hostgroup_name g", "members h1,h2")
SERVICES = (
    HOSTS
    + GROUPS
    + define("service", "service_description Disk", "hostgroup_name g")
    + define("service", "service_description Disk", "host_name h3")
)


@each(
    ("kind", "lines", "attribute", "after"),
    [
        ("servicegroup", ["members h1,Disk,h3,Disk,h2, Disk"], "members", "h1,New,h3,Disk,h2,New"),
        ("service", ["host_name h1", "parents Disk"], "parents", "New"),
        ("service", ["host_name h3", "parents Disk"], "parents", "Disk"),
        ("service", ["host_name h3", "parents h1,Disk"], "parents", "h1,New"),
        (
            "servicedependency",
            ["host_name h1", "service_description Disk,X", "dependent_service_description Disk"],
            "service_description",
            "New,X",
        ),
        (
            "servicedependency",
            ["host_name h1", "service_description X", "dependent_service_description Disk"],
            "dependent_service_description",
            "New",
        ),
        (
            "servicedependency",
            ["host_name h1", "service_description Disk", "dependent_host_name h3",
             "dependent_service_description Disk"],
            "dependent_service_description",
            "Disk",
        ),
        (
            "servicedependency",
            ["dependent_host_name h2", "service_description Disk",
             "dependent_service_description X"],
            "service_description",
            "New",
        ),
        (
            "serviceescalation",
            ["hostgroup_name g", "service_description !Disk"],
            "service_description",
            "!New",
        ),
        ("serviceescalation", ["host_name h3", "service_description Disk"], "service_description",
         "Disk"),
        ("serviceescalation", ["host_name *", "service_description Disk"], "service_description",
         "New"),
        ("serviceescalation", ["service_description Disk"], "service_description", "Disk"),
    ],
)  # fmt: skip
def test_services_follow_on_their_hosts_only(tmp_path, kind, lines, attribute, after):
    text = SERVICES + define(kind, *lines)
    editor = renamed(tmp_path, "service", "service_description", text, "Disk", "New")
    assert values(editor, kind, attribute)[-1] == after
    assert values(editor, "service", "service_description") == ["New", "Disk"]


def test_a_template_without_hosts_follows_when_no_other_service_has_the_name(tmp_path):
    text = HOSTS + define("service", "service_description Disk", "host_name h1")
    text += define("serviceescalation", "name t", "register 0", "service_description Disk")
    editor = renamed(tmp_path, "service", "service_description", text, "Disk", "New")
    assert values(editor, "serviceescalation", "service_description") == ["New"]


def test_a_description_that_comes_from_a_template(tmp_path):
    text = (
        HOSTS
        + define("service", "name t", "register 0", "service_description Disk")
        + define("service", "use t", "host_name h1")
        + define("servicegroup", "servicegroup_name s", "members h1,Disk,h2,Disk")
    )
    editor = renamed(tmp_path, "service", "service_description", text, "Disk", "New")
    assert values(editor, "servicegroup", "members") == ["h1,New,h2,Disk"]


def test_only_blocks_with_a_reference_are_touched(tmp_path):
    other = "define host {\n\thost_name   b;c\n\tparents a ,b\n}\n"
    text = other + HOST + define("host", "host_name c", "parents old") + other
    editor = renamed(tmp_path, "host", "host_name", text)
    (file,) = changed(editor).values()
    data = file.document.data().decode()
    assert data.startswith(other)
    assert data.endswith(other)
    assert "old" not in data


def test_many_renames_at_once(tmp_path):
    text = (
        HOSTS
        + "".join(
            define("service", "service_description Disk", f"host_name {host}")
            for host in ("h1", "h2")
        )
        + define("service", "service_description Disk", "host_name h3")
        + define("servicegroup", "servicegroup_name s", "members h1,Disk,h2,Disk,h3,Disk")
        + define("serviceescalation", "host_name h1,h2", "service_description Disk")
    )
    model = site(tmp_path, text)
    editor = Editor(model)
    services = [
        item
        for item in model.objects
        if item.type == "service" and item.attributes["host_name"] != "h3"
    ]
    editor.patch(services, {"description": "New"})
    assert values(editor, "servicegroup", "members") == ["h1,New,h2,New,h3,Disk"]
    assert values(editor, "serviceescalation", "service_description") == ["New"]


def test_several_renames_one_after_the_other(tmp_path):
    text = define("host", "host_name a") + define("host", "host_name b", "parents a")
    editor = Editor(site(tmp_path, text))
    for old, new in [("a", "x"), ("b", "a"), ("x", "b")]:
        editor.patch([editor.model.find("host", old)[0]], {"host_name": new})
    assert values(editor, "host", "host_name") == ["b", "a"]
    assert values(editor, "host", "parents") == ["b"]


NAMES = st.text(alphabet="ab;\\ é.-", min_size=1, max_size=4).filter(
    lambda name: name == name.strip() and not name.endswith("\\")
)
KEYS = {
    "host": "host_name",
    "hostgroup": "hostgroup_name",
    "service": "service_description",
    "servicegroup": "servicegroup_name",
    "contact": "contact_name",
    "contactgroup": "contactgroup_name",
    "command": "command_name",
    "timeperiod": "timeperiod_name",
}
WEB = (
    define("command", "command_name c", "command_line x")
    + define("timeperiod", "timeperiod_name t", "alias T", "monday 00:00-24:00")
    + define("timeperiod", "timeperiod_name u", "alias U", "exclude t")
    + define("contact", "contact_name p", "contactgroups g", "host_notification_commands c!1",
             "service_notification_commands c,c", "host_notification_period t")
    + define("contactgroup", "contactgroup_name g", "members p")
    + define("host", "name ht", "register 0", "max_check_attempts 1", "check_command c!a!c")
    + define("host", "host_name h1", "use ht", "contacts p", "hostgroups +hg")
    + define("host", "host_name h2", "use ht", "parents h1", "contact_groups g")
    + define("hostgroup", "hostgroup_name hg", "members h2,!h1")
    + define("hostgroup", "hostgroup_name top", "hostgroup_members hg", "members *,!h1")
    + define("service", "name st", "register 0", "max_check_attempts 1", "check_command c",
             "servicegroups sg", "check_period u")
    + define("service", "service_description A", "use st", "host_name *")
    + define("service", "service_description B", "use st", "hostgroup_name top,!hg")
    + define("service", "service_description C", "use st", "host_name h1", "parents A")
    + define("servicegroup", "servicegroup_name sg", "members h1,A,h2,A,h1,C")
    + define("servicedependency", "host_name h1", "service_description A,C",
             "dependent_host_name h2", "dependent_service_description A",
             "dependency_period t")
    + define("serviceescalation", "host_name h1,h2", "service_description A",
             "first_notification 1", "last_notification 0", "contact_groups g")
)  # fmt: skip


@settings(deadline=None, max_examples=examples(80))
@given(st.lists(st.tuples(st.integers(0, 16), st.sampled_from([None, "name"]), NAMES), max_size=6))
def test_no_rename_breaks_a_reference(tmp_path_factory, steps):
    """The site stays sound, as a text of its file too, when any object takes any free name."""
    folder = tmp_path_factory.mktemp("site")
    model = site(folder, WEB)
    assert precheck(model) == []
    for number, attribute, name in steps:
        item = model.objects[number]
        if attribute is None or "name" not in item.attributes:
            attribute = KEYS.get(item.type, "")
        if attribute not in item.attributes or model.find(item.type, core_text(name)):
            continue
        editor = Editor(model)
        editor.patch([item], {attribute: name})
        model = editor.model
        assert precheck(model) == []
        again = site(folder, model.loaded[str(folder / "x.cfg")].document.data().decode())
        assert precheck(again) == []
