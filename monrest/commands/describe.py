"""The arguments of commands in words, for the reference page and for error documents."""

from __future__ import annotations

from monrest.commands.arguments import arguments_of, configured, limits
from monrest.commands.effects import UNKNOWN_TO_ICINGA2
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import Argument, Command

_TYPES = {
    "boolean": "0 or 1",
    "timestamp": "time",
    "duration": "duration",
    "timeperiod": "name of a time period",
    "hostgroup": "name of a host group",
    "string": "text",
}

_DEFAULTS = {
    "sticky_ack": "`sticky_ack`",
    "send_notification": "`send_notification`",
    "persistent_comment": "`persistent_comments`",
    "comment_author": "the user",
    "end_time": "now + `downtime_duration`",
}
"""Arguments to where their default comes from; words in backticks are keys of ``[commands]``."""

INTRODUCTION = """\
Arguments are parameters of the query string, the form or the JSON body. Each has one value; \
JSON `null` is absent, `true` is 1. An argument that only other commands take is left out and \
named in `warnings` of the answer; one that no command knows is refused.

A *time* is Unix time (nine digits and more), seconds from now (`3600`, `-60`), `+60m`, \
`+1h30m`, `in 2 hours`, `2 hours ago`, `now + 1h - 10m`, `tomorrow`, `today - 2d`, `2026-12-24`, \
`2026-12-24 18:00`, `2026-12-24T18:00:00Z`, `12-24-2026 18:00:00`, `10:00`, `tomorrow 8:00` or \
`next monday`; words are `now`, `today`, `yesterday`, `tomorrow`, `thisweek` \
(also `lastmonday`), `lastweek`, `nextweek`, `thismonth`, `lastmonth`, `nextmonth`, `thisyear`, \
`lastyear` and `nextyear`. A *duration* is seconds or a number with one of the letters \
y w d h m s, such as `1.5h` or `1h30m`. A time that could mean two things is refused, such as \
`60m` without a sign. A space before `60m` counts as the plus sign that it was before it was \
decoded.

Line ends in `comment_data` and `log` become spaces; in `plugin_output` they, and the two \
characters backslash and n, begin the long output. Other control characters are refused \
everywhere, and semicolons except in the last text of a command. `comment` stands for \
`comment_data`, `author` for `comment_author`, `sticky` for `sticky_ack`, `notify` for \
`send_notification` and `persistent` for `persistent_comment`. While `lock_author_names` is on, \
comments are signed by the user, not with `comment_author`. A time period that an argument \
names must be known to every site that gets the command; a host group in an argument chooses the \
sites. A flexible downtime (`fixed=0`) needs a `duration`. Custom \
variables are named with or without the underscore that their columns have.

Commands marked with * take `comment_data` and `comment_author` too: the comment is added beside \
the command, and is required if `require_comments_for_disable` is on. Their opposites delete the \
comments that were made so. Commands marked with † delete what is found for their object on each \
site, and those marked with ‡ are unknown to Icinga 2."""
"""The introduction to all commands, as Markdown."""


def kind_in_words(kind: str) -> str:
    """An object or entry that an argument names, in words, for example ``time period``."""
    return {
        "timeperiods": "time period",
        "hostgroups": "host group",
        "host_comments": "host comment",
        "service_comments": "service comment",
        "host_downtimes": "host downtime",
        "service_downtimes": "service downtime",
    }[kind]


def marked(command: Command) -> str:
    """The name with the signs that ``INTRODUCTION`` explains, as Markdown."""
    signs = (
        (command.wants_comment, "\\*"),
        (command.lookup, "†"),
        (command.core_name in UNKNOWN_TO_ICINGA2, "‡"),
    )
    return f"`{command.name}`" + "".join(sign for applies, sign in signs if applies)


def arguments_text(command: Command) -> str:
    """Every argument with its type and default, as Markdown; empty if there are none."""
    return "; ".join(
        f"`{argument.name}` {described(command, argument)}" for argument in command.arguments
    )


def described(command: Command, argument: Argument, config: CommandsConfig | None = None) -> str:
    """Type and default of an argument, for example ``0 or 1, default 1``.

    Without ``config`` a default that is configured is named by its key, as Markdown.
    """
    words = [_TYPES.get(argument.type, "")]
    if argument.type == "integer":
        low, high = limits(command, argument.name)
        words = [f"{low} to {high}" if high < 10 else f"number from {low}"]
    if argument.required:
        words.append("required")
    else:
        words.append(f"default {_default(command, argument, config)}")
    others = [f"`{name}`" for name in argument.aliases if name in ("attempts", "interval")]
    if others:
        words.append(f"also as {', '.join(others)}")
    return ", ".join(words)


def _default(command: Command, argument: Argument, config: CommandsConfig | None) -> str:
    if config is not None:
        if argument.name == "end_time" and argument.default:
            return f"now + {config.downtime_duration:g}s"
        if (value := configured(command, argument, config)) is not None:
            return value
    elif argument.name == "persistent_comment" and command.name.startswith("acknowledge_"):
        return "`persistent_ack`"
    if (words := _DEFAULTS.get(argument.name)) is not None:
        return words
    return "empty" if argument.default in ("", None) else str(argument.default)


def help_text(command: Command, config: CommandsConfig, needs: str = "") -> str:
    """The effect and the arguments of the command, as plain text for error documents.

    ``needs`` is the permission for it.
    """
    arguments = arguments_of(command, required=config.require_comments_for_disable)
    takes = "; ".join(
        f"{argument.name} ({described(command, argument, config)})" for argument in arguments
    )
    parts = [command.description, f"Arguments: {takes}." if takes else "No arguments."]
    if needs:
        parts.append(f"Needs {needs}.")
    return " ".join(parts).replace("`", "")
