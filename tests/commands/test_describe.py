"""Commands in words."""

from monrest.commands.describe import INTRODUCTION, help_text, marked
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import find

CONFIG = CommandsConfig()


def test_a_line_of_help():
    assert help_text(find("services", "change_max_svc_check_attempts"), CONFIG).endswith(
        "Arguments: attempts (number from 1, required, also as interval)."
    )
    assert help_text(find("hosts", "enable_host_check"), CONFIG).endswith(" No arguments.")
    command = find("hosts", "disable_host_check")
    assert "comment_data (text, default empty)" in help_text(command, CONFIG)
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
