"""The catalogue, command by command, and what the effects of some depend on."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from monrest.base.values import Capabilities
from monrest.commands.arguments import Defaults, arguments_of, parse
from monrest.commands.describe import arguments_text, help_text
from monrest.commands.effects import UNKNOWN_TO_ICINGA2, Effect, Unseen, expected
from monrest.commands.fill import orders, removal
from monrest.commands.readback import passes
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import ALL, COMMANDS, find
from monrest.livestatus.command import Target
from monrest.livestatus.external import line
from monrest.livestatus.lql import build
from monrest.query.model import Pushed, columns_of
from monrest.sites.federation.remote_commands import entry
from tests.api.cores import TABLES
from tests.commands.reading import sample, values_of
from tests.demo.conftest import START, Bench

CORE = Capabilities(kind="naemon")

UNSEEN = {
    "change_global_host_event_handler",
    "change_global_svc_event_handler",
    "read_state_information",
    "save_state_information",
    "shutdown_process",
    "shutdown_program",
}

TARGETS = {
    "hosts": Target("hosts", "alpha"),
    "services": Target("services", "alpha", "load"),
    "hostgroups": Target("hostgroups", "both"),
    "servicegroups": Target("servicegroups", "disks"),
    "contacts": Target("contacts", "ann"),
    "contactgroups": Target("contactgroups", "ops"),
    "sites": Target("sites"),
}
"""Alpha has a child and two services; the semicolon in one of beta's shifts nothing here."""

GIVEN = {
    "comment_data": "why; not",
    "plugin_output": "out; put|x=1",
    "plugin_state": "1",
    "timeperiod": "never",
    "name": "SIZE",
    "value": "77",
    "interval": "7",
    "attempts": "7",
    "number": "3",
    "log": "hello; world",
    "eventhandler": "x",
    "notification_time": "+1h",
    "start_time": "+600",
    "options": "2",
    "hostname": "alpha",
    "hostgroup_name": "both",
    "comment": "tmp",
}

OPPOSITES = (
    ("enable_", "disable_"),
    ("start_", "stop_"),
    ("disable_", "enable_"),
    ("stop_", "start_"),
)


class Site:
    """The embedded core in memory, asked and commanded in its own language."""

    def __init__(self):
        self.bench = Bench()
        self.now = START

    def rows(self, effect):
        pushed = Pushed(table=effect.table, columns=effect.columns, filter=effect.filter)
        answer = self.bench.raw(build(pushed, CORE))
        assert answer.startswith(b"200"), answer
        return json.loads(answer[16:])

    def tell(self, text):
        assert self.bench.command(text) == ""

    def send(self, command, target, arguments, ids=()):
        found = orders(command, target, arguments)
        if command.lookup:
            found = removal(command, target, arguments, self.now).orders(ids)
        for order in found:
            sent = line(order, self.now, decodes_backslashes=True)
            assert self.bench.raw(f"{sent}\n\n") == b""

    def ids(self, table, *, service):
        return self.bench.column(f"GET {table}", "Columns: id", f"Filter: is_service = {service}")


@pytest.fixture
def site():
    return Site()


def given_for(command):
    given = {one.name: GIVEN[one.name] for one in command.arguments if one.name in GIVEN}
    if "downtime" in command.name:
        given["end_time"] = "+2h" if command.argument("end_time") else None
    if command.name.startswith("del_downtime_by"):
        given["start_time"] = None
    if command.name == "change_custom_svc_var":
        given["name"] = "LEVEL"
    if command.name == "change_custom_contact_var":
        given["name"] = "team"
    return given


def prepare(site, command, target):
    """Bring about that the command has something to do; the ids that it needs."""
    for verb, opposite in OPPOSITES:
        other = COMMANDS[command.kind].get(opposite + command.name.removeprefix(verb))
        if command.name.startswith(verb) and other is not None:
            site.send(other, target, {})
    if "acknowledge" in command.name:
        site.bench.result("alpha", 1)
        site.bench.result("alpha", 2, service="load")
    service = int(command.kind == "services" or "_svc_" in command.name)
    owner = "SVC" if service else "HOST"
    names = "alpha;load" if service else "alpha"
    if command.name.startswith("remove_"):
        site.tell(f"ACKNOWLEDGE_{owner}_PROBLEM;{names};1;0;0;me;tmp")
    if command.name.endswith("modattr"):
        site.tell(f"DISABLE_{owner}_CHECK;{names}")
    if not command.name.startswith("del_"):
        return ()
    if "downtime" in command.name:
        site.tell(f"SCHEDULE_{owner}_DOWNTIME;{names};{START};{START + 100};1;0;0;me;tmp")
        return tuple(site.ids("downtimes", service=service))
    site.tell(f"ADD_{owner}_COMMENT;{names};1;me;tmp")
    return tuple(site.ids("comments", service=service))


def effect_of(site, command, target, given, ids=()):
    defaults = Defaults(user="omar", now=site.now, zone=UTC, config=CommandsConfig())
    for name in ("comment_id", "downtime_id"):
        if command.argument(name) is not None and ids:
            given = {**given, name: str(ids[-1])}
    arguments = parse(command, values_of(given), defaults)
    return arguments, expected(command, target, arguments, site.now, None, ids)


LINES = Path(__file__).with_name("commands.txt").read_text("utf-8").splitlines()
"""One command a line: where it is, who may give it, and what reaches the core."""


@pytest.mark.parametrize(
    ("command", "row"), list(zip(ALL, LINES, strict=True)), ids=lambda one: getattr(one, "name", "")
)
def test_every_command(site, command, row):
    """Its line, its words, its way over another instance, and its effect: on the embedded core, on
    others and on one that lies."""
    assert f"{command.kind}/{command.name}  {command.permission}  {on_the_wire(command)}" == row
    described(command)
    comes_back(command)
    target = TARGETS[command.kind]
    ids = prepare(site, command, target)
    arguments, effect = effect_of(site, command, target, given_for(command), ids)
    if command.name in UNSEEN:
        assert isinstance(effect, Unseen)
        assert effect.reason
        return
    assert isinstance(effect, Effect)
    assert effect.what
    before = site.rows(effect)
    assert effect.nothing(before) == ""
    assert not effect.seen(before if effect.before else None, before)
    if command.name.startswith("restart_"):
        site.bench.clock.advance(5)
    site.send(command, target, arguments, ids)
    assert effect.seen(before if effect.before else None, site.rows(effect))
    any_types(effect)
    can_be_tested(effect)
    elsewhere = Capabilities(kind="icinga2", tables=TABLES)
    on_icinga2 = expected(command, target, arguments, site.now, elsewhere, ids)
    if command.core_name in UNKNOWN_TO_ICINGA2:
        assert on_icinga2 == Unseen("Icinga 2 does not know this command")
    else:
        can_be_tested(on_icinga2)


def on_the_wire(command):
    """What a core is told; a command whose objects are looked up first says which column it fills."""
    arguments = sample(command, end_time="1795000000")
    service = "svc" if command.kind == "services" else ""
    target = Target(command.kind, *(() if command.kind == "sites" else ("own", service)))
    found = orders(command, target, arguments)
    if command.lookup:
        assert found == ()
        return f"{command.template} for each of them"
    text = line(found[0], START, decodes_backslashes=False)
    assert len(found) == 1
    assert text.startswith(f"COMMAND [{START}] ")
    return text.removeprefix(f"COMMAND [{START}] ")


def described(command):
    """Every argument is named once, with its default."""
    assert command.description.endswith(".")
    names = [one.name for one in command.arguments]
    assert len(set(names)) == len(names)
    text = arguments_text(command)
    for one in command.arguments:
        part = text.partition(f"`{one.name}` ")[2].partition(";")[0]
        assert "required" in part if one.required else "default " in part
    help_ = help_text(command, CommandsConfig(), "the role x")
    assert help_.startswith(command.description)
    assert help_.endswith(" Needs the role x.")
    assert all(f"{one.name} (" in help_ for one in arguments_of(command))
    assert "`" not in help_


STRANGE = "a, 'b' \"c\" \\n ü |"
OBJECTS = {
    "host": "hosts",
    "hostgroup": "hostgroups",
    "servicegroup": "servicegroups",
    "contact": "contacts",
    "contactgroup": "contactgroups",
}


def comes_back(command):
    """Another instance gets the lines as commands of its API, which make the same lines there."""
    defaults = Defaults(user="me", now=1.0, zone=UTC, config=CommandsConfig())
    names = () if command.kind == "sites" else ("h ü", "s: x" if command.kind == "services" else "")
    given = sample(command, string=STRANGE)
    given.pop("comment_author", None)
    for order in orders(
        command, Target(command.kind, *names), parse(command, values_of(given), defaults)
    ):
        text = line(order, 7, decodes_backslashes=False)
        name, _, fields = text.partition("] ")[2].partition(";")
        found = entry(name, fields)
        known, there = addressed(found)
        arguments = {key: one for key, one in found.items() if known.argument(key) is not None}
        (again,) = orders(known, there, parse(known, values_of(arguments), defaults))
        assert line(again, 7, decodes_backslashes=False) == text


def addressed(found):
    """The command and the object that an entry of ``POST /cmd`` names."""
    if "service" in found:
        there = Target("services", found["host"], found["service"])
    else:
        words = [word for word in OBJECTS if word in found]
        there = Target(OBJECTS[words[-1]], found[words[-1]]) if words else Target("sites")
    return find(there.kind, found["cmd"]), there


def any_types(effect):
    """A core that lies about its columns shows nothing, and nothing breaks."""
    for value in (
        None,
        "",
        0,
        True,
        "x",
        [],
        {},
        [[1, 2]],
        [None],
        [[[], 2, 3]],
        {"SIZE": []},
        1.5,
    ):
        rows = [[value] * len(effect.columns)]
        assert effect.seen(rows, rows) in (True, False)
        assert isinstance(effect.nothing(rows), str)


def can_be_tested(effect):
    """It compares only in ways that ``passes`` knows, with columns that exist."""
    empty = {"list": [], "int": 0, "time": 0}
    columns = dict.fromkeys([*effect.columns, *columns_of(effect.filter)])
    row = [empty.get(TABLES[effect.table][name], "") for name in columns]
    passes(effect.filter, row, {name: at for at, name in enumerate(columns)})


@pytest.mark.parametrize(
    ("kind", "name", "given"),
    [
        ("hosts", "add_host_comment", {"comment_data": "why; not"}),
        ("services", "schedule_svc_downtime", {"comment_data": "why; not"}),
        ("sites", "log", {"log": "hello; world"}),
    ],
)
def test_what_was_there_before_is_no_effect(site, kind, name, given):
    """The same comment again is only seen when there is one more."""
    command, target = find(kind, name), TARGETS[kind]
    arguments, effect = effect_of(site, command, target, given)
    site.send(command, target, arguments)
    before = site.rows(effect)
    assert not effect.seen(before, site.rows(effect))
    site.send(command, target, arguments)
    assert effect.seen(before, site.rows(effect))


def test_texts_that_a_core_changes_are_known_again(site):
    """This core breaks emoji, has colons for semicolons in plugin output and trims."""
    for kind, name, given in (
        ("hosts", "add_host_comment", {"comment_data": " ü 😀 C:\\temp\\new "}),
        ("hosts", "schedule_host_downtime", {"comment_data": "\\n 🚀"}),
        ("services", "process_service_check_result", {"plugin_output": " a;b\nlong|x=1"}),
        ("hosts", "process_host_check_result", {"plugin_output": "|x=1"}),
    ):
        command, target = find(kind, name), TARGETS[kind]
        arguments, effect = effect_of(site, command, target, given)
        before = site.rows(effect)
        assert not effect.seen(before, before)
        site.send(command, target, arguments)
        assert effect.seen(before, site.rows(effect)), name


@pytest.mark.parametrize(
    ("kind", "name", "target", "given", "reason"),
    [
        ("hosts", "enable_host_check", Target("hosts", "zeta"), {}, "there is no host zeta"),
        (
            *("hosts", "enable_all_notifications_beyond_host", Target("hosts", "gamma"), {}),
            "there are no hosts behind gamma",
        ),
        (
            *("hosts", "schedule_host_svc_downtime", Target("hosts", "gamma"), {"comment": "x"}),
            "there are no services of host gamma",
        ),
        (
            *("hostgroups", "disable_hostgroup_svc_checks", Target("hostgroups", "empty"), {}),
            "there are no services of host group empty",
        ),
        (
            *("hosts", "acknowledge_host_problem", Target("hosts", "alpha"), {"comment": "x"}),
            "host alpha has no problem to acknowledge",
        ),
        (*("hosts", "remove_host_acknowledgement", Target("hosts", "alpha"), {}), "host alpha is not acknowledged"),
        (
            *("services", "del_all_svc_comments", Target("services", "alpha", "load"), {}),
            "service load on host alpha has no comments",
        ),
        (
            *("hosts", "change_custom_host_var", Target("hosts", "alpha")),
            *({"name": "_nosuch", "value": "1"}, "host alpha has no custom variable NOSUCH"),
        ),
        (*("sites", "del_svc_comment", Target("sites"), {"comment_id": "7"}), "there is no service comment 7"),
        (*("sites", "del_downtime_by_host_name", Target("sites"), {"hostname": "alpha"}), "no downtime matches"),
        (
            *("sites", "del_downtime_by_start_time_comment", Target("sites"), {}),
            "without any filter no downtime is deleted",
        ),
        (
            *("hosts", "schedule_host_downtime", Target("hosts", "alpha")),
            *(
                {"comment": "x", "start_time": "-2h", "end_time": "-1h"},
                "the downtime is over already",
            ),
        ),
    ],
)  # fmt: skip
def test_commands_that_match_nothing_say_so(site, kind, name, target, given, reason):
    command = find(kind, name)
    _, effect = effect_of(site, command, target, given)
    assert effect.nothing(site.rows(effect)) == reason


def test_what_is_switched_off_is_said(site):
    site.tell("DISABLE_HOST_CHECK;alpha")
    site.tell("DISABLE_PASSIVE_HOST_CHECKS;alpha")
    for name, given, reason in (
        ("schedule_host_check", {}, "active checks are switched off for host alpha"),
        (
            *("process_host_check_result", {"plugin_output": "x"}),
            "host alpha takes no passive check results",
        ),
    ):
        _, effect = effect_of(site, find("hosts", name), TARGETS["hosts"], given)
        assert effect.nothing(site.rows(effect)) == reason
    _, forced = effect_of(
        site, find("hosts", "schedule_forced_host_check"), TARGETS["hosts"], {"start_time": "+60"}
    )
    assert forced.nothing(site.rows(forced)) == ""


def test_lookup_without_anything_found_has_no_effect(site):
    _, effect = effect_of(site, find("hosts", "del_active_host_downtimes"), TARGETS["hosts"], {})
    assert effect == Unseen("there are no downtimes to delete")


def test_a_check_that_has_run_is_seen_by_its_time():
    command = find("hosts", "schedule_forced_host_check")
    arguments = {"start_time": str(START)}
    effect = expected(command, TARGETS["hosts"], arguments, START + 0.5)
    before = [["alpha", START - 100, START + 200, 1]]
    assert not effect.seen(before, before)
    assert effect.seen(before, [["alpha", START - 100, START, 1]])
    assert effect.seen(before, [["alpha", START - 90, START + 300, 1]])
    assert effect.seen([["alpha", START, START + 300, 1]], [["alpha", START, START + 300, 1]])


def test_what_icinga_2_does_not_know_is_said():
    icinga = Capabilities(kind="icinga2")
    assert {one.core_name for one in ALL} > UNKNOWN_TO_ICINGA2
    assert len(UNKNOWN_TO_ICINGA2) == 46
    command = find("sites", "log")
    found = expected(command, Target("sites"), {"log": "x"}, START, icinga)
    assert found == Unseen("Icinga 2 does not know this command")


def test_a_column_that_a_core_lacks_is_named():
    core = Capabilities(kind="naemon", tables={"contacts": {"host_notifications_enabled": "int"}})
    command = find("contactgroups", "enable_contactgroup_host_notifications")
    found = expected(command, TARGETS["contactgroups"], {}, START, core)
    assert found == Unseen("the core has no column groups in its table contacts")


def test_icinga_2_gets_a_wider_bound_last_for_its_log_files():
    tables = {"log": {"time": "time", "class": "int", "message": "string"}}
    command = find("hosts", "send_custom_host_notification")
    found = expected(
        *(command, TARGETS["hosts"], {"comment_data": "x"}, START),
        Capabilities(kind="icinga2", tables=tables),
    )
    times = [one.value for one in found.filter.items if one.column == "time"]
    assert times == [str(START - 60), str(START - 60 - 86400)]


def test_custom_variables_of_icinga_2_are_pairs():
    tables = {"hosts": {"name": "string", "custom_variables": "dict"}}
    command = find("hosts", "change_custom_host_var")
    found = expected(
        *(command, TARGETS["hosts"], {"name": "SIZE", "value": "5"}, START),
        Capabilities(kind="icinga2", tables=tables),
    )
    assert found.seen(None, [[[["Size", 5]]]])
    assert not found.seen(None, [[[["Size", 6]]]])
    # It takes new ones.
    assert found.nothing([[[]]]) == ""


def test_lines_that_the_api_of_another_instance_does_not_have():
    assert entry("RM_RF", "/") is None
    assert entry("ADD_HOST_COMMENT", "h;1") is None
    assert entry("LOG", "HOST NOTE: h;x") == {"cmd": "note", "host": "h", "log": "x"}
    assert entry("LOG", "SERVICE NOTE: h;s;x;y") == {
        "cmd": "note",
        "host": "h",
        "service": "s",
        "log": "x;y",
    }
    assert entry("LOG", "plain") == {"cmd": "log", "log": "plain"}
