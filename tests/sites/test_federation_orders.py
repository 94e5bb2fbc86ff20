"""Lines for a core as commands of the API: what comes back is the line."""

from datetime import UTC

from monrest.commands.arguments import Defaults, parse
from monrest.commands.fill import orders
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import COMMANDS, find
from monrest.livestatus.command import Target
from monrest.livestatus.external import line
from monrest.sites.federation.remote_commands import entry
from tests.commands.reading import values_of
from tests.table import each

SAMPLES = {
    "boolean": "1",
    "integer": "2",
    "timestamp": "1795242791",
    "duration": "3600",
    "timeperiod": "24x7",
    "hostgroup": "web",
    "string": "a, 'b' \"c\" \\n ü |",
}
_OBJECTS = {
    "host": "hosts",
    "hostgroup": "hostgroups",
    "servicegroup": "servicegroups",
    "contact": "contacts",
    "contactgroup": "contactgroups",
}
DEFAULTS = Defaults(user="me", now=1.0, zone=UTC, config=CommandsConfig())
ALL = [one for kind in COMMANDS.values() for one in kind.values() if not one.lookup]


def target_of(given):
    """The object that an entry of ``POST /cmd`` names."""
    if "service" in given:
        return Target("services", given["host"], given["service"])
    found = [word for word in _OBJECTS if word in given]
    return Target(_OBJECTS[found[-1]], given[found[-1]]) if found else Target("sites")


def named(kind):
    if kind == "services":
        return Target("services", "h ü", "s: x")
    return Target(kind) if kind == "sites" else Target(kind, "h ü")


@each("command", ALL, ids=[f"{one.kind}-{one.name}" for one in ALL])
def test_every_command_comes_back_as_it_was(command):
    target = named(command.kind)
    sample = {one.name: SAMPLES[one.type] for one in command.arguments}
    if "end_time" in sample:
        sample["end_time"] = "1795250000"
    given = {name: value for name, value in sample.items() if name != "comment_author"}
    made = orders(command, target, parse(command, values_of(given), DEFAULTS))
    for order in made:
        text = line(order, 7, decodes_backslashes=False)
        _, _, rest = text.partition("] ")
        name, _, fields = rest.partition(";")
        found = entry(name, fields)
        assert found is not None
        there = target_of(found)
        known = find(there.kind, found["cmd"])
        arguments = {
            key: value
            for key, value in found.items()
            if key != "cmd" and known.argument(key) is not None
        }
        again = orders(known, there, parse(known, values_of(arguments), DEFAULTS))
        assert line(again[0], 7, decodes_backslashes=False) == text


def test_what_the_api_does_not_have():
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
