"""Commands in words."""

import pytest

from monrest.commands.arguments import arguments_of
from monrest.commands.catalogue import ALL, find
from monrest.commands.describe import INTRODUCTION, arguments_text, help_text, marked


@pytest.mark.parametrize("command", ALL, ids=lambda one: f"{one.kind}-{one.name}")
def test_every_argument_is_named_with_its_default(command):
    text = arguments_text(command)
    for one in command.arguments:
        part = text.partition(f"`{one.name}` ")[2].partition(";")[0]
        assert "required" in part if one.required else "default " in part
    help_ = help_text(command, "the role x")
    assert help_.startswith(command.description)
    assert help_.endswith(" Needs the role x.")
    assert all(f"{one.name} (" in help_ for one in arguments_of(command))
    assert "`" not in help_


def test_a_line_of_help():
    assert help_text(find("services", "change_max_svc_check_attempts")).endswith(
        "Arguments: attempts (number from 1, required, also as interval)."
    )
    assert help_text(find("hosts", "enable_host_check")).endswith(" No arguments.")
    command = find("hosts", "disable_host_check")
    assert "comment_data (text, default empty)" in help_text(command)
    assert "comment_data (text, required)" in help_text(command, comment_required=True)


def test_marks_are_explained():
    assert marked(find("hosts", "disable_host_check")) == "`disable_host_check`\\*"
    assert marked(find("hosts", "del_comment")) == "`del_comment`†"
    assert marked(find("sites", "log")) == "`log`‡"
    assert marked(find("hosts", "enable_host_check")) == "`enable_host_check`"
    assert all(f"with {sign}" in INTRODUCTION for sign in "*†‡")
