"""Command lines of hosts and services: macros, what is hidden, who sees what, of which objects."""

import base64
from datetime import UTC
from functools import partial

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.base.errors import Forbidden, SitesFailed
from monrest.base.values import Column, Identity, Rows, SiteProblem
from monrest.config import DisplayConfig, SiteConfig
from monrest.config.patterns import HIDDEN, MacroNames, Replacement
from monrest.rows import commandline
from monrest.rows.commandline import (
    NO_COMMAND,
    NOT_EXPANDED,
    CommandLine,
    expand,
    hide,
    object_macros,
    time_macros,
    user_macros,
)
from monrest.sites.fanout import Gathered, SiteAnswer
from monrest.sites.registry import Registry
from tests.api import asking
from tests.api.asking import records
from tests.fakes.context import make_context
from tests.fakes.threads import Reactor, own_memory
from tests.table import each


@each(
    ("entries", "named", "others"),
    [
        (("ALL",), ["USER1", "X"], []),
        (("NONE",), [], ["USER1", "NONE"]),
        ((), [], ["USER1"]),
        (("USER1",), ["USER1"], ["USER10", "USER", "user1", "XUSER1"]),
        (("$USER1$",), ["USER1"], ["USER2"]),
        (
            ("USER10-20",),
            ["USER10", "USER15", "USER20"],
            ["USER9", "USER21", "USER015", "USER1\u0665"],
        ),
        (("USER10-20",), [], ["USER", "USER-15", "X15", "USER1.5"]),
        (("USER1*",), ["USER1", "USER17"], ["USER2", "XUSER1"]),
        (("*5", "USER1"), ["USER5", "USER15", "USER1"], ["USER51"]),
        (("U.ER1",), [], ["USER1"]),
    ],
)
def test_names_of_user_macros(entries, named, others):
    wanted = MacroNames(entries)
    assert [name for name in [*named, *others] if wanted.has(name)] == named


@each(
    ("text", "shown"),
    [
        ("secret", "x -p *** /a/b"),
        (r"-p \S+", "x *** /a/b"),
        (r"/(-p )\S+/\1hidden/", "x -p hidden /a/b"),
        ("/secret//", "x -p  /a/b"),
        ("#/a/#/c/#", "x -p secret /c/b"),
        ("/a/b", "x -p secret ***"),
        ("/a/", "x -p secret ***b"),
        ("nothing", "x -p secret /a/b"),
    ],
)
def test_replacements(text, shown):
    assert Replacement(text).apply("x -p secret /a/b") == shown


@each("text", ["", "(", "/(/x/", "//x/", r"/(a)/\2/", r"/a/\1/"])
def test_replacements_that_cannot_be(text):
    with pytest.raises(ValueError, match="expected"):
        Replacement(text)


MACROS = {"USER1": "/plug", "HOSTNAME": "h", "_HOSTFOO": "fv $USER1$", "_SERVICEBAR": "sb"}


def test_everything_in_one_line():
    line = (
        "$USER1$/x $ARG1$ $ARG2$ $ARG9$ $HOSTNAME$ $$ $NOPE$ $_HOSTFOO$ $_SERVICEBAR$ "
        "$USER99$ 100% a$"
    )
    found = expand("c!a\\!b!$HOSTNAME$ c", {"c": line}, MACROS)
    assert found == CommandLine(
        "c!a\\!b!$HOSTNAME$ c",
        "/plug/x a!b h c  h $ $NOPE$ fv $USER1$ sb $USER99$ 100% a$",
        NOT_EXPANDED,
    )


@each(
    ("check_command", "line", "expected"),
    [
        ("c", "$USER1$/check -H $HOSTNAME$", "/plug/check -H h"),
        ("c!1!2", "x $ARG2$ $ARG1$ $ARG2$", "x 2 1 2"),
        ("c!", "x[$ARG1$][$ARG2$]", "x[][]"),
        ("c!$ARG2$!two", "x $ARG1$", "x $ARG2$"),
        ("c!$HOSTNAME$", "x $ARG1$", "x h"),
        ("c!a\\;b", "x $ARG1$", "x a;b"),
        ("c!$$", "x $ARG1$ $$y", "x $ $y"),
        ("c!$NO", "x $ARG1$", "x $NO"),
        ("c", "x $ARG0$ $ARG33$", "x  "),
        ("c", "", ""),
    ],
)
def test_complete_lines(check_command, line, expected):
    assert expand(check_command, {"c": line}, MACROS) == CommandLine(check_command, expected)


@each(
    ("check_command", "line", "expected"),
    [
        ("c", "$USER2$/x", "$USER2$/x"),
        ("c!$NOPE$", "x $ARG1$", "x $NOPE$"),
        ("c", "$HOSTADDRESS:other$", "$HOSTADDRESS:other$"),
        ("c", "$hostname$", "$hostname$"),
    ],
)
def test_incomplete_lines(check_command, line, expected):
    found = expand(check_command, {"c": line}, MACROS)
    assert found == CommandLine(check_command, expected, NOT_EXPANDED)


def test_commands_that_are_not_there():
    assert expand("", {"c": "x"}, MACROS) == CommandLine(NO_COMMAND, "")
    assert expand("d!1", {"c": "x"}, MACROS) == CommandLine("", "")


@each("prefix", ["", "host_"])
def test_host_macros(prefix):
    row = {
        "name": "web01", "address": "10.0.0.1", "alias": "Web", "state": 1, "state_type": 0,
        "latency": 0.5, "plugin_output": "down", "perf_data": "rta=1", "current_attempt": 2,
        "max_check_attempts": 3, "scheduled_downtime_depth": 0, "check_command": "ping!1",
        "notes_expanded": "n", "notes_url_expanded": None, "last_state_change": 900,
        "custom_variables": {"worker": "local", "OS-TYPE": "linux"},
    }  # fmt: skip
    where = {"BACKENDNAME": "Prod", "BACKENDADDRESS": "/live", "BACKENDID": "p"}
    prefixed = {prefix + name: value for name, value in row.items()}
    found = object_macros("HOST", prefixed, prefix, where, 1000)
    assert found == {
        "HOSTADDRESS": "10.0.0.1", "HOSTNAME": "web01", "HOSTALIAS": "Web", "HOSTSTATEID": "1",
        "HOSTSTATE": "DOWN", "HOSTSTATETYPE": "SOFT", "HOSTLATENCY": "0.5", "HOSTOUTPUT": "down",
        "HOSTPERFDATA": "rta=1", "HOSTATTEMPT": "2", "MAXHOSTATTEMPTS": "3", "HOSTDOWNTIME": "0",
        "HOSTCHECKCOMMAND": "ping!1", "HOSTNOTES": "n", "HOSTNOTESURL": "", "HOSTDURATION": "100",
        "HOSTBACKENDNAME": "Prod", "HOSTBACKENDADDRESS": "/live", "HOSTBACKENDID": "p",
        "_HOSTWORKER": "local", "_HOSTOS-TYPE": "linux",
    }  # fmt: skip


def test_service_macros():
    row = {
        "description": "disk", "state": 2, "state_type": 1, "latency": 0.1, "plugin_output": "full",
        "perf_data": "", "current_attempt": 3, "max_check_attempts": 3,
        "scheduled_downtime_depth": 1, "check_command": "disk!/", "notes_url_expanded": "u",
        "last_state_change": 0, "custom_variables": None,
    }  # fmt: skip
    assert object_macros("SERVICE", row, "", {"BACKENDID": "p"}, 1000) == {
        "SERVICEDESC": "disk", "SERVICESTATEID": "2", "SERVICESTATE": "CRITICAL",
        "SERVICESTATETYPE": "HARD", "SERVICELATENCY": "0.1", "SERVICEOUTPUT": "full",
        "SERVICEPERFDATA": "", "SERVICEATTEMPT": "3", "MAXSERVICEATTEMPTS": "3",
        "SERVICECHECKCOMMAND": "disk!/", "SERVICENOTESURL": "u", "SERVICEDURATION": "0",
        "SERVICEDOWNTIME": "1", "SERVICEBACKENDID": "p",
    }  # fmt: skip


def test_time_macros():
    assert time_macros(86_399.9, UTC) == {
        "SHORTDATETIME": "1970-01-01 23:59:59",
        "LONGDATETIME": "Thu Jan 01 23:59:59 UTC 1970",
        "DATE": "1970-01-01",
        "TIME": "23:59:59",
        "TIMET": "86399",
    }


def test_user_macros():
    text = "# plugins\n$USER1$=/usr/lib/plugins\n  $USER2$ = a=b \n\nUSER3=x\n$USER4$\n$USER5$=\n"
    found = user_macros(text, MacroNames(("ALL",)))
    assert found == {"USER1": "/usr/lib/plugins", "USER2": "a=b", "USER5": ""}
    assert user_macros(text, MacroNames(("USER5",))) == {"USER5": ""}


def encoded(text, mark="b64:"):
    return mark + base64.b64encode(text.encode()).decode()


@each(
    ("variables", "shown"),
    [
        ({}, "x -p secret1"),
        ({"OTHER": "secret1"}, "x -p secret1"),
        ({"OBFUSCATE_STR": "secret"}, "x -p ***1"),
        ({"obfuscate_string": "secret1"}, "x -p ***"),
        ({"OBFUSCATE_STR": "secret."}, "x -p secret1"),
        ({"OBFUSCATE_ME": "secret."}, "x -p ***"),
        ({"OBFUSCATE_REGEX": "[a-z]+[0-9]"}, "x -p ***"),
        ({"OBFUSCATE_REGEXP": "(p )?s[a-z]+"}, "x -***1"),
        ({"OBFUSCATE_STR": encoded("secret1")}, "x -p ***"),
        ({"OBFUSCATE_ME": encoded("secret[0-9]", "base64:")}, "x -p ***"),
        ({"OBFUSCATE_STR": ""}, "x -p secret1"),
        ({"OBFUSCATE_STR": encoded("")}, "x -p secret1"),
        # What cannot be applied hides everything.
        ({"OBFUSCATE_ME": "("}, HIDDEN),
    ],
)
def test_hiding(variables, shown):
    found = hide(CommandLine("x!secret1", "x -p secret1", "e"), (), {"A": "b"}, variables)
    assert found.command_line == shown
    assert ("secret1" in found.check_command) == ("secret1" in shown)
    assert found.error == "e"


CONFIGURATION = "authorized_for_configuration_information"
SYSTEM = "authorized_for_system_information"
ANN = Identity(user="ann")
PROBLEM = SiteProblem("b", "B", "gone")


class Cores:
    """Stands in for the road to the cores."""

    def __init__(self):
        self.asked = []
        self.objects = []
        self.failing = ()
        self.held = 0
        self.line = "$USER1$/x -H $HOSTADDRESS$ -p $ARG1$ $_HOSTKEY$"

    async def fetch(self, context, request, schema, *, extra=()):
        self.asked.append((request, schema, extra))
        wanted = dict(request.parameters)["columns"].split(",")
        rows = [[one.get(name) for name in wanted] for one in self.objects]
        self.held += 1
        return Rows(
            gone=self.let_go,
            columns=tuple(map(Column, wanted)),
            rows=rows,
            failed_sites=(PROBLEM,),
            backend_seconds=0.25,
        )

    def let_go(self):
        self.held = 0

    async def fan_out(self, sites, plan, layout, clock):
        assert not self.held, "a request that holds room would wait for its own"
        assert [name for name, _ in layout] == ["name", "line"]
        if self.failing:
            problems = tuple(SiteProblem(one.id, one.name, "gone") for one in sites)
            failed = [one for one in problems if one.site in self.failing]
            if len(failed) == len(sites):
                raise SitesFailed(failed)
        answers = tuple(
            SiteAnswer(site, [["check_x", self.line]], None, None, 0.0)
            for site in sites
            if site.id not in self.failing
        )
        return Gathered(answers, tuple(failed) if self.failing else (), 0.0)


@pytest.fixture
def cores(monkeypatch):
    made = Cores()
    monkeypatch.setattr(commandline, "fetch", made.fetch)
    monkeypatch.setattr(commandline, "fan_out", made.fan_out)
    return made


@pytest.fixture
def context(tmp_path):
    clock = Clock()
    file = tmp_path / "resource.cfg"
    file.write_text("$USER1$=/plug\n$USER2$=topsecret\n")
    sites = [
        SiteConfig(id="a", name="A", address="unix:/live", resource_file=str(file)),
        SiteConfig(id="b", name="B", address="unix:/live", resource_file=str(tmp_path / "none")),
    ]
    registry = Registry(clock, sites, memory=own_memory(Reactor()))
    return make_context(clock, sites=registry)


def web01(**more):
    peer = {"peer_key": "a", "peer_name": "A", "peer_section": "Default"}
    mine = {"name": "web01", "address": "10.1", "check_command": "check_x!secret", "state": 0}
    return {**peer, **mine, "custom_variables": {"KEY": "k1"}, **more}


answer = partial(asking.answer, identity=ANN)


def shown(context, level, **more):
    display = DisplayConfig(show_full_commandline=level, **more)
    context.config = evolve(context.config, display=display)


@pytest.mark.parametrize(
    ("level", "roles", "allowed"),
    [
        (0, {CONFIGURATION}, False),
        (1, set(), False),
        (1, {CONFIGURATION}, True),
        (2, set(), True),
    ],
)
def test_who_sees_command_lines(context, cores, level, roles, allowed):
    shown(context, level)
    identity = Identity(user="ann", roles=frozenset(roles))
    if allowed:
        answer(context, "/hosts/web01/commandline", identity=identity)
        return
    with pytest.raises(Forbidden) as caught:
        answer(context, "/hosts/web01/commandline", identity=identity)
    text = caught.value.description
    assert text.startswith("you are not authorized to view the command line")
    assert (CONFIGURATION in text) is (level == 1)
    assert cores.asked == []


def test_hidden_texts_are_hidden_from_all_users(context, cores):
    # The variables that say so must be read even for those who may not see them.
    shown(context, 2)
    cores.objects = [web01(custom_variables={"KEY": "k1", "OBFUSCATE_STR": "secret"})]
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert found["command_line"] == "/plug/x -H 10.1 -p *** k1"
    assert found["check_command"] == "check_x!***"
    ((request, _, _),) = cores.asked
    assert request.identity.may(CONFIGURATION)
    assert request.identity.user == "ann"
    assert not request.identity.may("authorized_for_all_hosts")


def test_a_site_whose_resource_file_cannot_be_read(context, cores):
    shown(context, 2)
    cores.objects = [web01(peer_key="b")]
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert found["command_line"] == "$USER1$/x -H 10.1 -p secret k1"
    assert found["error"] == "could not expand all macros!"


def test_filters_and_columns_work_on_the_lines(context, cores):
    shown(context, 2)
    cores.objects = [web01(), web01(name="web02", address="10.2")]
    found = answer(
        context,
        "/hosts/web*/commandline",
        ("command_line[regex]", "10.2"),
        ("columns", "host_name"),
        ("backends", "a"),
    )
    assert found.rows == [["web02"]]
    ((request, _, _),) = cores.asked
    assert ("backends", "a") in request.parameters
    assert {name for name, _ in request.parameters} == {"columns", "backends"}


def test_a_site_that_is_taken_away_meanwhile(context, cores, monkeypatch):
    shown(context, 2)
    cores.objects = [web01()]
    fetch = cores.fetch

    async def reload_meanwhile(context, request, schema, *, extra=()):
        context.sites.configure([])
        return await fetch(context, request, schema, extra=extra)

    monkeypatch.setattr(commandline, "fetch", reload_meanwhile)
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert found["command_line"] == "/plug/x -H 10.1 -p secret k1"


def test_the_address_of_a_site_needs_its_own_role(context, cores):
    cores.line = "x $HOSTBACKENDNAME$ $HOSTBACKENDID$ $HOSTBACKENDADDRESS$"
    cores.objects = [web01()]
    identity = Identity(user="ann", roles=frozenset({CONFIGURATION}))
    (found,) = records(answer(context, "/hosts/web01/commandline", identity=identity))
    assert found["command_line"] == "x A a $HOSTBACKENDADDRESS$"
    assert found["error"] == "could not expand all macros!"
    identity = Identity(user="ann", roles=frozenset({CONFIGURATION, SYSTEM}))
    (found,) = records(answer(context, "/hosts/web01/commandline", identity=identity))
    assert found["command_line"] == "x A a /live"


def test_a_site_that_does_not_tell_its_commands_has_failed(context, cores):
    shown(context, 2)
    cores.objects = [web01(), web01(peer_key="b", peer_name="B", name="web02")]
    cores.failing = ("a",)
    found = answer(context, "/hosts/web*/commandline")
    assert [one["host_name"] for one in records(found)] == ["web02"]
    assert found.failed_sites == (PROBLEM, SiteProblem("a", "A", "gone"))
    cores.failing = ("a", "b")
    with pytest.raises(SitesFailed):
        answer(context, "/hosts/web*/commandline")


@pytest.mark.parametrize(
    ("names", "line", "error"),
    [
        (("ALL",), "/plug topsecret", ""),
        (("NONE",), "$USER1$ $USER2$", "could not expand all macros!"),
        (("USER1",), "/plug $USER2$", "could not expand all macros!"),
        (("NONE", "USER2-9"), "$USER1$ topsecret", "could not expand all macros!"),
    ],
)
def test_user_macros_that_are_expanded(context, cores, names, line, error):
    shown(context, 2, expand_user_macros=names)
    cores.line = "$USER1$ $USER2$"
    cores.objects = [web01()]
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert (found["command_line"], found["error"]) == (line, error)


def test_the_configuration_hides_by_expressions(context, cores):
    shown(context, 2, commandline_obfuscate_pattern=(r"/(-p )\S+/\1xx/", "k[0-9]"))
    cores.objects = [web01()]
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert found["command_line"] == "/plug/x -H 10.1 -p xx ***"
    assert found["check_command"] == "check_x!secret"


@pytest.mark.parametrize(
    ("source", "more", "line"),
    [
        ("notes_url_expanded", {"notes_url_expanded": "check_x!n"}, "/plug/x -H 10.1 -p n k1"),
        ("notes_url_expanded", {"notes_url_expanded": ""}, "/plug/x -H 10.1 -p secret k1"),
        ("_REAL", {"custom_variables": {"real": "check_x!v"}}, "/plug/x -H 10.1 -p v "),
        ("_REAL", {}, "/plug/x -H 10.1 -p secret k1"),
    ],
)
def test_the_command_may_be_held_elsewhere(context, cores, source, more, line):
    shown(context, 2, show_full_commandline_source=source)
    cores.objects = [web01(**more)]
    (found,) = records(answer(context, "/hosts/web01/commandline"))
    assert found["command_line"].replace("$_HOSTKEY$", "") == line
    ((request, _, _),) = cores.asked
    asked = dict(request.parameters)["columns"].split(",")
    assert source.startswith("_") or source in asked
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    "lie",
    [
        {"custom_variables": ["KEY"]},
        {"custom_variables": {"KEY": ["a"], "OBFUSCATE_ME": 5, "OBFUSCATE_STR": None}},
        {"state": "up", "last_state_change": "long ago"},
        {"state": -7, "last_state_change": [1]},
        {"state": 1e300},
        {"check_command": ["check_x"]},
        {"check_command": {"a": 1}},
        {"name": None, "address": [["x"]]},
    ],
)
def test_rows_of_wrong_types_make_lines_all_the_same(context, cores, lie):
    shown(context, 2)
    cores.objects = [web01(**lie)]
    assert len(records(answer(context, "/hosts/web01/commandline"))) == 1
    host = {f"host_{name}": value for name, value in web01(**lie).items() if "peer" not in name}
    cores.objects = [web01(name=None, address=None, description="x", **host) | lie]
    assert len(records(answer(context, "/services/web01/x/commandline"))) == 1
