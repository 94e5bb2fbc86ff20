"""The catalogue: how its commands are found, and what is said of them."""

import pytest

from monrest.commands.describe import INTRODUCTION, help_text, marked
from monrest.commands.permissions import PERMISSIONS
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import ALL, find, singular, suggestion


def test_permissions():
    assert {one.permission for one in ALL} == set(PERMISSIONS)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("hosts", "add_host_comment"),
        ("host", "ADD_HOST_COMMENT"),
        ("services", "add_svc_comment"),
        ("service", "Add_Svc_Comment"),
        ("system", "log"),
        ("core", "log"),
        ("sites", "LOG"),
        ("site", "log"),
    ],
)
def test_commands_are_found_by_any_spelling(kind, name):
    found = find(kind, name)
    assert found is not None
    assert found.name == name.lower()
    assert singular(found.kind) == singular(kind)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("hosts", "add_svc_comment"), ("hosts", ""), ("hostz", "add_host_comment"), ("sites", "note")],
)
def test_what_is_no_command_is_not_found(kind, name):
    assert find(kind, name) is None


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("hosts", "schedule_host_downtme", "similar commands: schedule_host_downtime"),
        ("hosts", "Schedule_Svc_Downtime", "schedule_svc_downtime is a command for type service"),
        ("sites", "del_comment", "del_comment is a command for type host and service"),
        ("hosts", "obsessing", "similar commands: start_obsessing_over_host, stop_"),
        ("contacts", "xyz", "docs/api/external-commands.md lists all commands"),
    ],
)
def test_what_may_be_meant(kind, name, hint):
    assert suggestion(kind, name).startswith(hint)


def test_a_line_of_help():
    assert help_text(find("services", "change_max_svc_check_attempts"), CommandsConfig()).endswith(
        "Arguments: attempts (number from 1, required, also as interval)."
    )
    assert help_text(find("hosts", "enable_host_check"), CommandsConfig()).endswith(
        " No arguments."
    )
    command = find("hosts", "disable_host_check")
    assert "comment_data (text, default empty)" in help_text(command, CommandsConfig())
    demanding = CommandsConfig(require_comments_for_disable=True)
    assert "comment_data (text, required)" in help_text(command, demanding)


def test_help_tells_the_defaults_in_force():
    config = CommandsConfig(sticky_ack=2, persistent_ack=1, send_notification=0)
    text = help_text(find("hosts", "acknowledge_host_problem"), config)
    assert "sticky_ack (0 to 2, default 2); send_notification (0 or 1, default 0)" in text
    assert "persistent_comment (0 or 1, default 1)" in text
    config = CommandsConfig(persistent_comments=0, downtime_duration=600)
    assert "persistent_comment (0 or 1, default 0)" in help_text(
        find("hosts", "add_host_comment"), config
    )
    text = help_text(find("hosts", "schedule_host_downtime"), config)
    assert "end_time (time, default now + 600s)" in text


def test_marks_are_explained():
    assert marked(find("hosts", "disable_host_check")) == "`disable_host_check`\\*"
    assert marked(find("hosts", "del_comment")) == "`del_comment`†"
    assert marked(find("sites", "log")) == "`log`‡"
    assert marked(find("hosts", "enable_host_check")) == "`enable_host_check`"
    assert all(f"with {sign}" in INTRODUCTION for sign in "*†‡")
