"""Command lines of the commandline resource."""

import base64
from datetime import UTC

import pytest

from monrest.config.patterns import HIDDEN, MacroNames
from monrest.rows.macros import (
    NO_COMMAND,
    NOT_EXPANDED,
    CommandLine,
    expand,
    hide,
    object_macros,
    time_macros,
    user_macros,
)

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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("prefix", ["", "host_"])
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


@pytest.mark.parametrize(
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
