"""The commandline resource around the pure expansion: who sees what, of which objects."""

from functools import partial

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.base.errors import Forbidden, SitesFailed
from monrest.base.values import Column, Identity, Rows, SiteProblem
from monrest.config import DisplayConfig, SiteConfig
from monrest.rows import commandline
from monrest.sites.fanout import Gathered, SiteAnswer
from monrest.sites.registry import Registry
from tests.api import asking
from tests.api.asking import records
from tests.fakes.context import make_context
from tests.fakes.threads import Reactor, own_memory

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


def test_what_is_to_be_hidden_is_hidden_from_everybody(context, cores):
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
