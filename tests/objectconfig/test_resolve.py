"""Full objects and the hosts of services."""

from monrest.objectconfig.inheritance import MOST_TEMPLATES
from monrest.objectconfig.references import matcher
from tests.fakes.objectfiles import Site, define, site
from tests.table import each


def full(tmp_path, kind, own, **templates):
    """The full row of the object made of ``own`` lines, without its meta attributes but one."""
    text = define(kind, *own)
    for name, lines in templates.items():
        text += define(kind, f"name {name}", "register 0", *lines)
    model = site(tmp_path, text)
    row = model.full_row(model.objects[0], Site())
    assert row[":TYPE"] == kind
    return {name: value for name, value in row.items() if name[0] != ":" or name == ":TEMPLATES"}


@each(
    ("own", "templates", "value"),
    [
        (["use t", "hostgroups +g3"], {"t": ["hostgroups g1"]}, ["g1", "g3"]),
        (["use t2,t1"], {"t2": ["hostgroups +g2"], "t1": ["hostgroups g1"]}, ["g1", "g2"]),
        (
            ["use t1,t2", "hostgroups +g2"],
            {"t1": ["hostgroups g1"], "t2": ["hostgroups +g2"]},
            ["g1", "g2"],
        ),
        (
            ["use middle", "hostgroups +z"],
            {"middle": ["use base", "hostgroups +y"], "base": ["hostgroups +x"]},
            ["x", "y", "z"],
        ),
        (["use t", "hostgroups null"], {"t": ["hostgroups g1"]}, ["null"]),
        (["use t2,t1"], {"t2": ["hostgroups g2"], "t1": ["hostgroups g1"]}, ["g2"]),
        (["use t", "hostgroups +g2"], {"t": ["hostgroups null"]}, ["g2"]),
        (["hostgroups +g2"], {}, ["g2"]),
        (["use t", "hostgroups +b,a"], {"t": ["hostgroups a,b"]}, ["a", "b"]),
        (["use t"], {"t": ["hostgroups null"]}, ["null"]),
    ],
)
def test_additive_lists(tmp_path, own, templates, value):
    assert full(tmp_path, "host", own, **templates)["hostgroups"] == value


def test_what_is_inherited(tmp_path):
    row = full(
        tmp_path,
        "host",
        ["use a,b", "name n", "_V own", "alias null"],
        a=["_v 1", "_w 1", "alias A", "address 1"],
        b=["_W 2", "_X 3", "address 2", "notes N"],
    )
    assert row == {
        "name": "n",
        "_V": "own",
        "_w": "1",
        "_X": "3",
        "alias": "null",
        "address": "1",
        "notes": "N",
        ":TEMPLATES": ["a", "b"],
    }


def test_templates_are_listed_depth_first(tmp_path):
    row = full(tmp_path, "host", ["use a,b,missing"], a=["use c,gone"], b=["use c,a"], c=["use a"])
    assert row[":TEMPLATES"] == ["a", "c", "gone", "b", "missing"]


def test_a_loop_ends(tmp_path):
    row = full(tmp_path, "host", ["use a"], a=["use b", "alias A"], b=["use a", "notes N"])
    assert (row["alias"], row["notes"]) == ("A", "N")


def test_deep_chains_end(tmp_path):
    text = define("host", "use t0") + "".join(
        define("host", f"name t{number}", f"use t{number + 1}", f"_v{number} x", "register 0")
        for number in range(2000)
    )
    model = site(tmp_path, text)
    row = model.full_row(model.objects[0], Site())
    assert row["_v40"] == "x"
    assert len(row[":TEMPLATES"]) == MOST_TEMPLATES


def test_a_template_may_force_its_check_command(tmp_path):
    own = ["use t", "check_command own"]
    assert full(tmp_path, "service", own, t=["check_command !c"])["check_command"] == "c"


def test_date_rules_are_inherited(tmp_path):
    row = full(
        tmp_path, "timeperiod", ["use t", "monday 10:00-11:00"],
        t=["monday 09:00-10:00", "december 25 00:00-00:00", "alias T"],
    )  # fmt: skip
    assert row["monday"] == "10:00-11:00"
    assert row["december 25"] == "00:00-00:00"
    assert row["alias"] == "T"


def test_the_raw_row_stays_raw(tmp_path):
    model = site(tmp_path, define("host", "use t", "hostgroups +a"))
    (item,) = model.objects
    model.full_row(item, Site())
    assert model.row(item, Site())["hostgroups"] == ["+a"]


SITE = (
    define("host", "host_name h1", "hostgroups g1,g3")
    + define("host", "host_name h2", "use t")
    + define("host", "name t", "register 0", "hostgroups g2")
    + define("host", "host_name h3")
    + define("host", "host_name h4")
    + define("hostgroup", "hostgroup_name g1")
    + define("hostgroup", "hostgroup_name g2")
    + define("hostgroup", "hostgroup_name g3", "members h4", "members h3")
    + define("hostgroup", "hostgroup_name g4", "hostgroup_members g3,g2", "members !h1")
    + define("hostgroup", "hostgroup_name all", "members *,!h4")
    + define("hostgroup", "hostgroup_name empty")
    + define("hostgroup", "hostgroup_name loop", "hostgroup_members loop,g1")
)


@each(
    ("lines", "hosts"),
    [
        (["host_name h1,h2"], {"h1", "h2"}),
        (["hostgroup_name g3"], {"h1", "h3", "h4"}),
        (["hostgroup_name g4"], {"h2", "h3", "h4"}),
        (["hostgroup_name all"], {"h1", "h2", "h3"}),
        (["hostgroup_name all,!g1", "host_name h4,!h3"], {"h2", "h4"}),
        (["host_name *,!h2"], {"h1", "h3", "h4"}),
        (["host_name h*,!*2,!*3"], {"h1", "h4"}),
        (["hostgroup_name empty"], set()),
        (["hostgroup_name loop"], {"h1"}),
        (["hostgroup_name g*"], {"h1", "h2", "h3", "h4"}),
        (["host_name null", "hostgroup_name g2"], {"h2"}),
        (["host_name unknown"], set()),
        (["use st"], {"h3"}),
        (["use st", "host_name +h4"], {"h3", "h4"}),
        (["register 0", "host_name h1"], set()),
    ],
)
def test_hosts_of_a_service(tmp_path, lines, hosts):
    template = define("service", "name st", "register 0", "host_name h3")
    text = SITE + template + define("service", "service_description Disk", *lines)
    model = site(tmp_path, text)
    service = model.objects[-1]
    found = {host for host in ("h1", "h2", "h3", "h4") if model.service_definitions(host, "Disk")}
    assert found == hosts
    on_host = model.service_hosts.on_host
    assert {host for host, names in on_host.items() if "Disk" in names} == hosts
    for host in hosts:
        assert model.service_definitions(host, "Disk") == [service]
        assert model.service_definitions(host, "disk") == []


def test_all_definitions_of_a_service_are_found(tmp_path):
    text = SITE + define("service", "service_description C", "hostgroup_name g3")
    text += define("service", "description C", "host_name h4")
    text += "#define service {\n#  service_description C\n#  host_name h4\n#}\n"
    model = site(tmp_path, text)
    assert len(model.service_definitions("h4", "C")) == 2
    assert len(model.service_definitions("h3", "C")) == 1


@each(
    ("pattern", "text", "fits"),
    [
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "abc", True),
        ("a*b*c", "aXbXc", True),
        ("ab*ba", "aba", False),
        ("a*b*b", "ab", False),
        ("*", "", True),
        ("a.c*", "abc", False),
        ("*a*a*a*a*a*a*a*a*a*a*b", "a" * 5000, False),
    ],
)
def test_stars(pattern, text, fits):
    assert matcher(pattern)(text) is fits
