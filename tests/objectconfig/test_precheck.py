"""The precheck, text by text."""

from monrest.config import ConfigTool
from monrest.objectconfig.model import load
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.precheck import precheck
from tests.fakes.objectfiles import define, site, write
from tests.fakes.samples import samples
from tests.table import each

BASE = (
    define("command", "command_name c", "command_line /bin/true")
    + define("timeperiod", "timeperiod_name always", "alias A", "monday 00:00-24:00")
    + define("host", "name gh", "register 0", "max_check_attempts 1", "check_command c")
    + define("service", "name gs", "register 0", "max_check_attempts 1", "check_command c!a!b")
    + define("contact", "contact_name con", "host_notification_commands c",
             "service_notification_commands c")
    + define("host", "host_name h1", "use gh", "hostgroups g", "contacts con", "parents null")
    + define("host", "host_name h2", "use gh", "parents h1", "check_period always")
    + define("hostgroup", "hostgroup_name g", "members h2")
    + define("service", "service_description Disk", "hostgroup_name g", "use gs")
    + define("service", "service_description Load", "host_name h1,h2", "use gs", "parents Disk")
    + define("servicegroup", "servicegroup_name sg", "members h1,Disk,h2,*")
    + define("servicedependency", "host_name h1", "service_description Disk",
             "dependent_service_description Load")
    + define("serviceescalation", "hostgroup_name g", "service_description Disk",
             "first_notification 1", "last_notification 0")
)  # fmt: skip


def errors(tmp_path, text="", **files):
    """What the precheck adds for ``y.cfg`` to the sound site in ``x.cfg``."""
    return precheck(site(tmp_path, BASE, y=text, **files))


def test_a_sound_site(tmp_path):
    assert errors(tmp_path) == []


@each(
    ("kind", "lines", "expected"),
    [
        ("host", ["host_name h1", "use gh"], ["duplicate host definition h1 in y.cfg:1\n  -> already defined in x.cfg:32"]),
        ("host", ["name gh", "register 0"], ["duplicate host template definition gh in y.cfg:1\n  -> already defined in x.cfg:12"]),
        ("service", ["service_description Disk", "host_name h1", "use gs"], []),
        ("service", ["service_description Disk", "hostgroup_name g", "use gs"], ["duplicate service definition Disk in y.cfg:1\n  -> already defined in x.cfg:52"]),
        ("host", ["use gh", "alias x"], ["host object has no name in y.cfg:1"]),
        ("host", ["alias x", "register 0"], ["host object has no name in y.cfg:1"]),
        ("host", ["name x", "use gh"], ["host object has no name in y.cfg:1"]),
        ("hostgroup", ["alias x"], ["hostgroup has no hostgroup_name in y.cfg:1"]),
        ("hostdependency", ["register 0"], ["hostdependency object has no name in y.cfg:1"]),
        ("host", ["host_name x"], ["host x has no max_check_attempts in y.cfg:1"]),
        ("service", ["service_description x", "host_name h1", "max_check_attempts 1"], ["service x has no check_command in y.cfg:1"]),
        ("service", ["service_description x", "use gs"], ["service x has no host_name or hostgroup_name in y.cfg:1"]),
        ("service", ["service_description x", "use gs", "host_name h1", "check_command null"], ["service x has no check_command in y.cfg:1"]),
        ("command", ["command_name x"], ["command x has no command_line in y.cfg:1"]),
        ("timeperiod", ["timeperiod_name x"], ["timeperiod x has no alias in y.cfg:1"]),
        ("contact", ["contact_name x", "host_notification_commands c"], ["contact x has no service_notification_commands in y.cfg:1"]),
        ("hostescalation", ["host_name h1", "first_notification 1"], ["hostescalation h1,1 has no last_notification in y.cfg:1"]),
    ],
)  # fmt: skip
def test_names_and_required_attributes(tmp_path, kind, lines, expected):
    assert errors(tmp_path, define(kind, *lines)) == expected


@each(
    ("kind", "line", "expected"),
    [
        ("host", "use gh,none", "referenced template 'none' does not exist in y.cfg:1"),
        ("host", "use null", "referenced template 'null' does not exist in y.cfg:1"),
        ("host", "use gs", "referenced template 'gs' does not exist in y.cfg:1"),
        ("host", "parents none", "referenced host 'none' does not exist in y.cfg:1"),
        ("host", "parents h1,!none", "referenced host 'none' does not exist in y.cfg:1"),
        ("host", "hostgroups +none", "referenced hostgroup 'none' does not exist in y.cfg:1"),
        ("host", "check_command none!c", "referenced command 'none' does not exist in y.cfg:1"),
        ("host", "event_handler none", "referenced command 'none' does not exist in y.cfg:1"),
        ("host", "check_period none", "referenced timeperiod 'none' does not exist in y.cfg:1"),
        ("host", "contacts none", "referenced contact 'none' does not exist in y.cfg:1"),
        ("host", "contact_groups x", "referenced contactgroup 'x' does not exist in y.cfg:1"),
        ("service", "servicegroups x", "referenced servicegroup 'x' does not exist in y.cfg:1"),
        ("service", "parents none", "referenced service 'none' does not exist in y.cfg:1"),
        ("service", "parents h1,none", "referenced service 'none' does not exist in y.cfg:1"),
        ("service", "parents none,Disk", "referenced host 'none' does not exist in y.cfg:1"),
        ("contact", "host_notification_commands c,x", "referenced command 'x' does not exist in y.cfg:1"),
        ("servicegroup", "members none,Disk", "referenced host 'none' does not exist in y.cfg:1"),
        ("servicegroup", "members h1,None", "referenced service 'None' does not exist in y.cfg:1"),
        ("servicegroup", "members h1", "syntax invalid: 'h1' is no list of host,service pairs in y.cfg:1"),
        ("host", "parents ^none$", "referenced host '^none$' does not exist in y.cfg:1"),
        ("host", "parents ^(", "referenced host '^(' does not exist in y.cfg:1"),
        ("host", "parents ^h[12]$", None),
        ("host", "parents *", None),
        ("host", "parents gh", None),
        ("host", "contacts null", None),
        ("host", "check_command", None),
        ("servicegroup", "members h1,!None", None),
        ("hostextinfo", "host_name none", None),
    ],
)  # fmt: skip
def test_references(tmp_path, kind, line, expected):
    """A template needs nothing else, and its references are looked at."""
    found = errors(tmp_path, define(kind, "name t", "register 0", line))
    assert found == ([] if expected is None else [expected])


def test_a_service_that_is_on_other_hosts_only(tmp_path):
    text = define("service", "service_description Own", "host_name h1", "use gs")
    text += define("servicegroup", "servicegroup_name s", "members h1,Own,h2,Own")
    text += define("servicedependency", "host_name h2", "service_description Own",
                   "dependent_service_description Load")  # fmt: skip
    missing = "referenced service 'Own' does not exist on host 'h2' in y.cfg:"
    assert errors(tmp_path, text) == [f"{missing}7", f"{missing}12"]


def test_a_template_that_only_we_find(tmp_path):
    text = define("host", "host_name t", "register 0", "max_check_attempts 3")
    text += define("host", "host_name x", "use t")
    assert errors(tmp_path, text) == ["referenced template 't' does not exist in y.cfg:7"]


def test_disabled_definitions_count_for_nothing(tmp_path):
    text = "#define host {\n#  host_name off\n#  parents none\n#}\n"
    text += define("host", "host_name x", "use gh", "parents off")
    assert errors(tmp_path, text) == ["referenced host 'off' does not exist in y.cfg:5"]


def test_new_objects_have_no_line(tmp_path):
    editor = Editor(site(tmp_path, BASE))
    editor.create("host", "y.cfg", {"host_name": "x", "use": "none", "strange": "1"})
    assert precheck(editor.model) == [
        "unknown attribute: strange for object type host in y.cfg",
        "referenced template 'none' does not exist in y.cfg",
    ]


@each(
    ("kind", "lines", "expected"),
    [
        ("host", ["notification_options d,x"], "invalid value 'd,x' of notification_options"),
        ("host", ["notification_options up"], "invalid value 'up' of notification_options"),
        ("host", ["max_check_attempts 0"], "invalid value '0' of max_check_attempts"),
        ("service", ["check_interval -1"], "invalid value '-1' of check_interval"),
        ("service", ["retry_interval 0"], "invalid value '0' of retry_interval"),
        ("host", ["active_checks_enabled yes"], "invalid value 'yes' of active_checks_enabled"),
        ("timeperiod", ["day 1 00:00-25:00"], "unknown time definition 'day 1 00:00-25:00'"),
        ("timeperiod", ["someday 3 00:00-24:00"], "unknown time definition 'someday 3 00:00-24:00'"),
        ("timeperiod", ["monday 9:00-10:00, 11:00-12:00"],
         "unknown time definition 'monday 9:00-10:00, 11:00-12:00'"),
        ("host", ["notification_options down , n"], None),
        ("host", ["check_interval 0.5", "retry_interval 0", "passive_checks_enabled 10"], None),
        ("timeperiod", ["monday 2 - thursday 3 / 2 9:00-24:00"], None),
    ],
)  # fmt: skip
def test_values(tmp_path, kind, lines, expected):
    found = errors(tmp_path, define(kind, "name t", "register 0", *lines))
    assert found == ([] if expected is None else [f"{expected} in y.cfg:1"])


def test_circles_are_named_wherever_they_are(tmp_path):
    text = "".join(
        define("host", f"host_name {name}", "use gh", f"parents {parent}")
        for name, parent in (("a", "b"), ("b", "c"), ("c", "a"), ("out", "h1"), ("self", "self"))
    )
    text += define("hostgroup", "hostgroup_name ga", "hostgroup_members gb")
    text += define("hostgroup", "hostgroup_name gb", "hostgroup_members ga,g")
    text += define("timeperiod", "timeperiod_name t", "alias T", "exclude t")
    text += define("service", "service_description Own", "host_name h1", "use gs", "parents h1,Own")
    assert [one.partition(" in ")[0] for one in errors(tmp_path, text)] == [
        "circular parents of service 'Own'",
        "circular parents of host 'a'",
        "circular parents of host 'b'",
        "circular parents of host 'c'",
        "circular parents of host 'self'",
        "circular exclude of timeperiod 't'",
        "circular hostgroup_members of hostgroup 'ga'",
        "circular hostgroup_members of hostgroup 'gb'",
    ]


def test_lists_of_which_nothing_is_left(tmp_path):
    text = define("host", "host_name x", "use gh", "hostgroups g,!g")
    text += define("host", "host_name y", "use gh", "hostgroups g,!g,g2")
    text += define("hostgroup", "hostgroup_name g2")
    text += define("servicegroup", "servicegroup_name s", "members x,*")
    text += define("service", "service_description Own", "host_name h1", "use gs")
    text += define("servicedependency", "host_name h2", "service_description Load",
                   "dependent_service_description Own")  # fmt: skip
    assert errors(tmp_path, text) == [
        "hostgroups of host names nothing but what it rejects in y.cfg:1",
        "host 'x' has no service in y.cfg:17",
        "referenced service 'Own' does not exist on host 'h2' in y.cfg:28",
    ]


def test_order(tmp_path):
    found = errors(tmp_path, define("host", "host_name h1", "parents none") + "text\n")
    assert [item.partition(" ")[0] for item in found] == [
        "syntax",
        "duplicate",
        "host",
        "referenced",
    ]


@each(
    ("core", "expected"),
    [
        ("naemon", ["unknown attribute: address6 for object type host in y.cfg:3",
                    "unknown object type 'module' in y.cfg:7"]),
        ("nagios", ["unknown attribute: address6 for object type host in y.cfg:3",
                    "unknown object type 'module' in y.cfg:7"]),
        ("icinga", ["unknown attribute: parents for object type service in x.cfg:58"]),
    ],
)  # fmt: skip
def test_what_cores_differ_in(tmp_path, core, expected):
    text = define("host", "host_name x", "address6 ::1", "use gh")
    text += define("module", "module_name m")
    tool = write(tmp_path, {"x.cfg": BASE, "y.cfg": text})
    found = precheck(load(ConfigTool(obj_dir=tool.obj_dir, core_type=core)))
    assert sorted(found) == sorted(expected)


NAGIOS_OTHERS = ("printer", "switch", "windows")


def test_debian_s_nagios_has_nothing_wrong(tmp_path):
    """Its main file is read with the folders of the unpacked packages in place of /etc."""
    main = tmp_path / "nagios.cfg"
    text = samples("nagios4", "nagios.cfg").read_text()
    text = text.replace("/etc/nagios4", str(samples("nagios4")))
    text = text.replace("/etc/nagios-plugins/config", str(samples("plugins")))
    main.write_text(text)
    model = load(ConfigTool(core_conf=str(main)))
    assert len(model.objects) > 60
    assert len(model.files.folders) == 2
    # The template of a group that is in a file of its own, which the main file leaves out.
    missing = "referenced hostgroup 'windows-servers' does not exist in templates.cfg:91"
    assert precheck(model) == [missing]
    others = tuple(str(samples("nagios4", "objects", f"{name}.cfg")) for name in NAGIOS_OTHERS)
    folders = (str(samples("nagios4")), str(samples("plugins")))
    everything = load(ConfigTool(obj_dir=folders, obj_exclude=("nagios4/[^/]*.cfg",)))
    assert {*others} < everything.loaded.keys()
    assert precheck(everything) == []


def test_a_long_chain_of_templates_and_groups(tmp_path):
    text = "".join(
        define("host", f"name t{number}", f"use t{number + 1}", "register 0")
        + define("hostgroup", f"hostgroup_name g{number}", f"hostgroup_members g{number + 1}")
        for number in range(1200)
    )
    text += define("host", "name t1200", "use gh", "host_name far", "register 0")
    text += define("hostgroup", "hostgroup_name g1200", "members h1")
    text += define("host", "use t1100") + define("host", "use t0")
    text += define("service", "hostgroup_name g0", "service_description On", "use gs")
    checked = site(tmp_path, BASE, y=text)
    told = precheck(checked)
    assert any(one.startswith("host object has no name in y.cfg:") for one in told)
    assert [item.type for item in checked.names.real("host", "far")] == ["host"]
    assert [one.type for one in checked.service_definitions("h1", "On")] == ["service"]


def test_groups_that_reach_each_other_on_many_ways(tmp_path):
    """Sixty layers of two groups that both hold both of the next: 2 to the 60 ways down."""
    text = "".join(
        define("hostgroup", f"hostgroup_name {side}{layer}",
               f"hostgroup_members a{layer + 1},b{layer + 1}")
        for layer in range(60)
        for side in "ab"
    )  # fmt: skip
    text += define("hostgroup", "hostgroup_name a60", "members h1", "hostgroup_members a0")
    text += define("hostgroup", "hostgroup_name b60", "members h2", "hostgroup_members a0")
    text += define("service", "hostgroup_name b0", "service_description On", "use gs")
    checked = site(tmp_path, BASE, y=text)
    for host in ("h1", "h2"):
        assert len(checked.service_definitions(host, "On")) == 1
