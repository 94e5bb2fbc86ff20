"""What of a row is shown to whom: custom variables, commands of event handlers, attributes of contacts."""

from __future__ import annotations

from datetime import UTC
from fnmatch import fnmatchcase
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import Capabilities
from monrest.query.bind import bind
from monrest.query.column_names import (
    EMPTY,
    ColumnNames,
    CoreColumn,
    View,
    Visibility,
    cut_arguments,
    variable_columns,
)
from monrest.query.functions import Moment
from monrest.query.model import Test
from monrest.query.parse import parse_query
from monrest.query.plan import layout, plan
from monrest.rows.columns import LOGS
from tests.query.pipeline import EVERYBODY, NO_CONTACT, NOW, run
from tests.table import each

TYPES = {name: one.core_type for name, one in LOGS.columns.items() if isinstance(one, CoreColumn)}
NAEMON = Capabilities(kind="naemon", tables={"log": TYPES}, key="log")


def line(kind: str, **given: Any) -> dict[str, Any]:
    """A line with all columns of the table, empty unless given."""
    row = {name: EMPTY[core_type] for name, core_type in TYPES.items()}
    return {**row, "type": kind, "time": int(NOW), **given}


HANDLER = line(
    "SERVICE EVENT HANDLER",
    message="[1795242791] SERVICE EVENT HANDLER: web01;http;CRITICAL;HARD;3;restart!httpd!s3cret",
    options="web01;http;CRITICAL;HARD;3;restart!httpd!s3cret",
    command_name="restart!httpd!s3cret",
    lineno=1,
)
ALERT = line(
    "SERVICE ALERT",
    message="[1795242791] SERVICE ALERT: web01;http;CRITICAL;HARD;3;broken! EVENT HANDLER",
    options="web01;http;CRITICAL;HARD;3;broken! EVENT HANDLER",
    lineno=2,
)

SECRET = "CHANGE_CUSTOM_SVC_VAR;web01;http;PASSWORD;hidden"
COMMANDED = line(
    "EXTERNAL COMMAND",
    message=f"[1795242791] EXTERNAL COMMAND: {SECRET}",
    options=SECRET,
    lineno=5,
)
COMMENTED = line(
    "EXTERNAL COMMAND",
    message="[1795242791] EXTERNAL COMMAND: ADD_HOST_COMMENT;web01;1;ann;CHANGE_ME;please",
    options="ADD_HOST_COMMENT;web01;1;ann;CHANGE_ME;please",
    lineno=6,
)


def notified(name: str, number: int) -> dict[str, Any]:
    return line(
        "HOST NOTIFICATION",
        lineno=number,
        contact_name=name,
        current_contact_name=name,
        current_contact_alias=f"{name} Doe",
        current_contact_email=f"{name}@example.org",
        current_contact_can_submit_commands=1,
        current_contact_groups=["team"],
        current_contact_custom_variables={"PHONE": "123", "WORKER": "x"},
        current_contact_host_notification_commands=["mail!fast", "sms"],
    )


LINES = {"s1": [HANDLER, ALERT, notified("ann", 3), notified("bob", 4), COMMANDED, COMMENTED]}
CONTACT = ",".join(
    f"current_contact_{name}"
    for name in (
        *("name", "alias", "email", "can_submit_commands", "groups", "custom_variables"),
        "host_notification_commands",
    )
)


def rows(params: str, view: View = NO_CONTACT) -> Any:
    return run(params, sites=LINES, view=view, schema=LOGS, core=NAEMON)


@pytest.mark.parametrize("columns", ["", "message,options,command_name", "command_name,options"])
def test_arguments_of_event_handlers_are_cut(columns: str) -> None:
    asked = f"&columns→{columns}" if columns else ""
    (row,) = rows(f"type→SERVICE EVENT HANDLER{asked}")
    assert row["command_name"] == "restart"
    assert row["options"] == "web01;http;CRITICAL;HARD;3;restart"
    assert row.get("message", "restart").endswith("restart")
    assert "httpd" not in str(row)
    (row,) = rows(f"type→SERVICE EVENT HANDLER{asked}", EVERYBODY)
    assert row["options"] == HANDLER["options"]


@pytest.mark.parametrize("arguments", [True, False])
def test_arguments_of_commands_that_configure_are_cut(arguments: bool) -> None:
    """Also where everybody sees command lines: they are as secret as custom variables."""
    view = evolve(NO_CONTACT, commands=arguments)
    (row,) = rows("lineno→5", view)
    assert row["options"] == "CHANGE_CUSTOM_SVC_VAR;…"
    assert row["message"] == "[1795242791] EXTERNAL COMMAND: CHANGE_CUSTOM_SVC_VAR;…"
    for column in ("message", "options"):
        assert rows(f"{column}[regex]→PASSWORD", view) == []
        assert len(rows(f"{column}[regex]→PASSWORD", EVERYBODY)) == 1
    (row,) = rows("lineno→6", view)
    assert (row["message"], row["options"]) == (COMMENTED["message"], COMMENTED["options"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CHANGE_SVC_CHECK_COMMAND;a;b;check!secret", "CHANGE_SVC_CHECK_COMMAND;…"),
        ("_OWN_COMMAND;token", "_OWN_COMMAND;…"),
        ("PROCESS_FILE;/x;1", "PROCESS_FILE;…"),
        ("[1] EXTERNAL COMMAND: CHANGE_X;a\nb", "[1] EXTERNAL COMMAND: CHANGE_X;…"),
        ("[1] HOST ALERT: CHANGE_X;DOWN;HARD;1;x", None),
        ("DISABLE_NOTIFICATIONS", None),
        ("PROCESS_HOST_CHECK_RESULT;a;0;ok", None),
        ("", None),
        (None, None),
    ],
)
def test_which_arguments_are_cut(text: Any, shown: str | None) -> None:
    assert cut_arguments(text) == (text if shown is None else shown)


def test_other_lines_are_shown_as_they_are() -> None:
    (row,) = rows("type→SERVICE ALERT")
    assert (row["message"], row["options"]) == (ALERT["message"], ALERT["options"])


def test_what_is_cut_is_not_found_by_a_filter() -> None:
    for column in ("message", "options", "command_name"):
        assert rows(f"{column}[regex]→s3cret") == []
        assert len(rows(f"{column}[regex]→s3cret", EVERYBODY)) == 1
        assert rows(f"{column}[regex]→restart&columns→lineno") == [{"lineno": 1}]


def test_of_other_contacts_only_the_name_is_shown() -> None:
    ann, bob = rows(f"type→HOST NOTIFICATION&columns→{CONTACT}")
    assert ann == {
        "current_contact_name": "ann",
        "current_contact_alias": "ann Doe",
        "current_contact_email": "ann@example.org",
        "current_contact_can_submit_commands": 1,
        "current_contact_groups": ["team"],
        # What is one's own is cut as everywhere.
        "current_contact_custom_variables": {"WORKER": "x"},
        "current_contact_host_notification_commands": ["mail", "sms"],
    }
    assert bob == {
        "current_contact_name": "bob",
        "current_contact_alias": "",
        "current_contact_email": "",
        "current_contact_can_submit_commands": 0,
        "current_contact_groups": [],
        "current_contact_custom_variables": {},
        "current_contact_host_notification_commands": [],
    }
    shown = rows(f"contact_name→bob&columns→{CONTACT}", EVERYBODY)
    assert shown[0]["current_contact_email"] == "bob@example.org"
    assert shown[0]["current_contact_host_notification_commands"] == ["mail!fast", "sms"]


@pytest.mark.parametrize(
    "condition",
    [
        "current_contact_email→bob@example.org",
        "current_contact_email[regex]→^bob",
        "current_contact_groups[gte]→team&contact_name→bob",
        "q→current_contact_alias ~ bob",
    ],
)
def test_others_are_not_found_by_what_they_hide(condition: str) -> None:
    assert rows(f"{condition}&columns→lineno") == []
    assert rows(f"{condition}&columns→lineno", EVERYBODY) == [{"lineno": 4}]


def test_others_do_not_show_in_groups_and_functions() -> None:
    assert rows("type→HOST NOTIFICATION&columns→current_contact_email,count(*) as n") == [
        {"current_contact_email": "", "n": 1},
        {"current_contact_email": "ann@example.org", "n": 1},
    ]
    assert rows("lineno→4&columns→upper(current_contact_email) as e") == [{"e": ""}]


def pushed(condition: str, view: View) -> str:
    name, _, value = condition.partition("→")
    bound = bind(parse_query(((name, value),)), ColumnNames(LOGS, {}), view, Moment(NOW, UTC))
    made = plan(bound, layout(bound, [NAEMON]), NAEMON)
    assert made is not None
    return str(made.pushed.filter)


EVERY_LINE = str(Test("time", ">=", "0"))


@pytest.mark.parametrize(
    ("condition", "sent"),
    [
        ("message[regex]→httpd", "httpd"),
        ("message[regex]→restart$", ""),
        ("message[nregex]→httpd", ""),
        ("message→x", ""),
        ("current_contact_email→x", ""),
    ],
)
def test_cores_filter_only_where_nothing_gets_lost(condition: str, sent: str) -> None:
    found = pushed(condition, NO_CONTACT)
    assert sent in found if sent else found == EVERY_LINE
    assert pushed(condition, EVERYBODY) != EVERY_LINE


@pytest.mark.parametrize(
    ("variables", "prefix", "expected"),
    [
        ({"WORKER": "local", "num": "10"}, "_", {"_WORKER": "local", "_NUM": "10"}),
        ({"WORKER": "local"}, "_HOST", {"_HOSTWORKER": "local"}),
        ({}, "_", {}),
        ({"worker": "a", "WORKER": "b", "Worker": "c"}, "_", {"_WORKER": "b"}),
        ({"worker": "a", "Worker": "c"}, "_", {"_WORKER": "a"}),
    ],
)
def test_columns(variables: dict[str, str], prefix: str, expected: dict[str, str]) -> None:
    everything = Visibility(patterns=(), all_visible=True)
    keys, values = variable_columns(everything, prefix, variables)
    assert dict(zip(keys, values, strict=True)) == expected


@each(
    ("patterns", "name", "host", "expected"),
    [
        (("_WORKER",), "WORKER", False, True),
        (("WORKER",), "WORKER", False, True),
        (("worker",), "WORKER", False, True),
        (("WORKER",), "worker", False, True),
        (("_WORKER",), "WORKER", True, False),
        (("_HOSTWORKER",), "WORKER", True, True),
        (("HOSTWORKER",), "WORKER", True, True),
        (("_HOST*",), "WORKER", True, True),
        (("_HOSTW*",), "WORKER", True, True),
        (("_HOSTX*",), "WORKER", True, False),
        (("*",), "WORKER", True, False),
        (("*WORKER",), "WORKER", True, False),
        (("*",), "WORKER", False, True),
        (("_*",), "WORKER", False, True),
        (("W*R",), "WORKER", False, True),
        (("W*K*R",), "WORKER", False, True),
        (("W*E*K",), "WORKER", False, False),
        (("WORK",), "WORKER", False, False),
        (("A", "B", "W*"), "WORKER", False, True),
        ((), "WORKER", False, False),
        (("WO?KER", "W[O]RKER", "W.*"), "WORKER", False, False),
        (("AB*BA",), "ABA", False, False),
    ],
)
def test_visibility(patterns: tuple[str, ...], name: str, host: bool, expected: bool) -> None:
    view = Visibility(patterns=patterns, all_visible=False)
    assert view.visible(name, host=host) is expected
    assert view.filter({name: "x", "OTHER": "y"}, host=host).get(name) == (
        "x" if expected else None
    )


def test_who_sees_everything_gets_a_copy() -> None:
    variables = {"A": "1"}
    view = Visibility(patterns=(), all_visible=True)
    assert view.visible("A")
    assert view.visible("A", host=True)
    shown = view.filter(variables, True)
    assert shown == variables
    assert shown is not variables


@given(st.text(alphabet="AB*", max_size=8), st.text(alphabet="AB", min_size=1, max_size=8))
def test_stars_stand_for_anything(pattern: str, name: str) -> None:
    assert Visibility(patterns=(pattern,)).visible(name) is fnmatchcase(name, pattern)
    hosts = Visibility(patterns=(f"_HOST{pattern}",))
    assert hosts.visible(name, host=True) is fnmatchcase(name, pattern)
