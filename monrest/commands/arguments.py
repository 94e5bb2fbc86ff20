"""Arguments of commands: from what a client sent to the texts that a core gets.

Stricter than the times of filters: a time that may mean two things is refused, because a downtime
in the wrong year is noticed too late. Rules: docs/spec/commands.md, "Arguments".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import tzinfo
from typing import TypeAlias

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.truth import EXPECTED, truth
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import ARGUMENT_NAMES, Argument, Command
from monrest.query.times import MOST_TIME, parse_duration, parse_moment

Given: TypeAlias = Mapping[str, tuple[str, ...]]
"""Parameters by name, each with all of its values, of which there is one at least."""

COMMON = frozenset(
    {"backend", "backends", "background", "force", "headers", "test_only", "wait", "CSRFtoken",
     "token"}
)  # fmt: skip
"""Parameters that every request may have and no command takes."""

LARGEST = 2**31 - 1
"""Cores keep ids and numbers in 32 bits, and show no more of them."""

UNNAMED = "(api)"
"""The author where a request has no user."""

LATEST = 253402300799
"""The last second of the year 9999 in UTC; what is later are milliseconds by mistake."""

_RELATIVE = re.compile(r"([+-]?)([0-9]{1,8})")
_ABSOLUTE = re.compile(r"[0-9]{9,12}")
_SPACED_SPAN = re.compile(r" +[0-9]{1,8}[ywdhms][0-9ywdhms]* *")
_LONG_NUMBER = re.compile(r"(?<![0-9])[+-] *[0-9]{9,}(?![0-9])")
_EXPONENT = re.compile(r"[0-9.][eE]")
_WHOLE = 1e-6

_INTEGER = re.compile(r"-?[0-9]{1,20}")

_RANGES: Mapping[str, tuple[int, int]] = {
    "sticky_ack": (0, 2),
    "options": (0, 7),
    "plugin_state": (0, 3),
    "comment_id": (1, LARGEST),
    "downtime_id": (1, LARGEST),
    "attempts": (1, LARGEST),
}
_SPECIAL_RANGES: Mapping[str, tuple[int, int]] = {
    # A host is up, down or unreachable.
    "process_host_check_result": (0, 2),
    # Without a try or an interval a core would never, or always, check.
    "change_max_host_check_attempts": (1, LARGEST),
    "change_retry_host_check_interval": (1, LARGEST),
    "change_retry_svc_check_interval": (1, LARGEST),
}

_MAY_BE_EMPTY = frozenset({"value", "plugin_output"})
"""Required texts for which a core takes nothing at all as a value."""

_COMMENTED = (
    Argument(name="comment_author", type="string", default="current user", aliases=("author",)),
    Argument(name="comment_data", type="string", aliases=("comment",)),
)
"""Further arguments of a command with a comment."""


# A line below a command is a request of its own to a core, and a semicolon ends a field: what texts
# may hold keeps injected commands out (docs/spec/commands.md, "What goes into a line").

BLANKED = frozenset({"comment_data", "plugin_output", "log"})
"""Arguments in which line ends and tabs become spaces; in plugin output the two characters."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def cleaned(name: str, text: str) -> str:
    r"""The text of argument ``name`` as a core may get it.

    Line ends and tabs become spaces in ``BLANKED``; in ``plugin_output`` line ends become the two
    characters backslash and n, by which cores know further lines. Raise BadRequest for every
    other control character.
    """
    if name in BLANKED:
        text = _LINE_END.sub(r"\\n" if name == "plugin_output" else " ", text).replace("\t", " ")
    require_text(name, text)
    return text


def require_text(name: str, text: str) -> None:
    """Raise BadRequest unless ``text`` is free of control characters and of half characters."""
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        raise BadRequest(
            f"invalid value for {name}",
            f"{name}: expected text without control characters, got U+{ord(forbidden[0]):04X}",
        )


def require_field(name: str, text: str) -> None:
    """Raise BadRequest also for a semicolon, which would shift the fields that follow."""
    require_text(name, text)
    if ";" in text:
        raise BadRequest(f"invalid value for {name}", f"{name}: expected text without semicolons")


@frozen(kw_only=True)
class Defaults:
    """The defaults of arguments: the user, the time (Unix), the zone of dates."""

    user: str
    now: float
    zone: tzinfo
    config: CommandsConfig


def arguments_of(command: Command, *, required: bool = False) -> tuple[Argument, ...]:
    """The arguments of ``command``, the comment included; ``required`` if there must be one."""
    if not command.wants_comment:
        return command.arguments
    author, text = _COMMENTED
    if required:
        text = Argument(name=text.name, type=text.type, required=True, aliases=text.aliases)
    return (*command.arguments, author, text)


def parse(command: Command, given: Given, defaults: Defaults) -> Mapping[str, str]:
    """The texts of all arguments by name, valid and ready for the template.

    Parameters of every request (``COMMON``) are left out. A command that wants a comment has
    ``comment_data`` and ``comment_author`` only if there is one. Raise BadRequest naming the
    argument.
    """
    declared = arguments_of(command, required=defaults.config.require_comments_for_disable)
    given = {name: texts for name, texts in given.items() if name not in COMMON}
    _refuse_unknown(command, declared, given)
    values: dict[str, str] = {}
    for argument in declared:
        text = _sent(argument, given)
        if text is None or (not text.strip() and argument.name not in _MAY_BE_EMPTY):
            values[argument.name] = _default(command, argument, defaults)
        else:
            values[argument.name] = _read(command, argument, text, defaults)
    if command.name.startswith("change_custom_"):
        values["name"] = values["name"].removeprefix("_") or values["name"]
    if "comment_author" in values:
        values["comment_author"] = _author(values["comment_author"], defaults)
    if command.wants_comment and not values["comment_data"]:
        del values["comment_data"], values["comment_author"]
    _check_downtime(command, values, defaults.config)
    return values


def unused(command: Command, given: Given) -> tuple[str, ...]:
    """Names in ``given`` that only other commands take.

    Clients send one set of arguments to several commands, so these are accepted and named in a
    warning.
    """
    names = _names(arguments_of(command))
    return tuple(name for name in given if name not in names and name in ARGUMENT_NAMES)


def _names(arguments: tuple[Argument, ...]) -> set[str]:
    return {name for argument in arguments for name in (argument.name, *argument.aliases)}


def _refuse_unknown(command: Command, declared: tuple[Argument, ...], given: Given) -> None:
    for name in given:
        if name not in _names(declared) and name not in ARGUMENT_NAMES:
            taken = ", ".join(argument.name for argument in declared) or "no arguments"
            raise BadRequest(f"unknown argument: {name}", f"{name}: {command.name} takes {taken}")


def _sent(argument: Argument, given: Given) -> str | None:
    """The text that was sent for the argument under any of its names; None for none."""
    names = [name for name in (argument.name, *argument.aliases) if name in given]
    if len(names) > 1:
        raise BadRequest(
            f"invalid value for {argument.name}",
            f"{argument.name}: expected one value, got {' and '.join(names)}",
        )
    for name in names:
        if len(given[name]) > 1:
            raise BadRequest(
                f"invalid value for {name}", f"{name}: expected one value, got several"
            )
        return given[name][0]
    return None


def configured(command: Command, argument: Argument, config: CommandsConfig) -> str | None:
    """The default of an argument that has its own key in the configuration; None for others."""
    match argument.name:
        case "sticky_ack":
            return str(config.sticky_ack)
        case "send_notification":
            return str(config.send_notification)
        case "persistent_comment" if command.name.startswith("acknowledge_"):
            return str(config.persistent_ack)
        case "persistent_comment":
            return str(config.persistent_comments)
    return None


def _default(command: Command, argument: Argument, defaults: Defaults) -> str:
    config = defaults.config
    if argument.required:
        raise BadRequest(
            f"missing argument: {argument.name}", f"{argument.name} is a required argument"
        )
    own = configured(command, argument, config)
    if own is not None:
        return own
    now = math.floor(defaults.now)
    match argument.default:
        case "now":
            return str(now)
        case "now + downtime_duration":
            return str(now + math.floor(config.downtime_duration))
        case None | "current user":
            return ""
    return str(argument.default)


def _author(sent: str, defaults: Defaults) -> str:
    """The author of a comment: always the user while author names are locked."""
    author = defaults.user or UNNAMED
    if not defaults.config.lock_author_names and sent:
        author = sent
    require_field("comment_author", author)
    return author


def _read(command: Command, argument: Argument, text: str, defaults: Defaults) -> str:
    text = cleaned(argument.name, text)
    match argument.type:
        case "boolean":
            flag = truth(text)
            if flag is None:
                raise BadRequest(
                    f"invalid value for {argument.name}", f"{argument.name}: expected {EXPECTED}"
                )
            return str(int(flag))
        case "integer":
            return str(_integer(command, argument.name, text))
        case "timestamp":
            time = moment(text, defaults.now, defaults.zone)
            if time is None:
                raise _no_time(argument.name, text, "time")
            return str(time)
        case "duration":
            time = duration(text)
            if time is None:
                raise _no_time(argument.name, text, "duration")
            return str(_within(argument.name, time, (0, LARGEST)))
    if not may_hold_semicolons(command, argument.name):
        require_field(argument.name, text)
    return text


def may_hold_semicolons(command: Command, name: str) -> bool:
    """Whether a semicolon in the argument is data: in the last text field of a command."""
    last = command.template.rpartition(";")[2]
    argument = command.argument(name)
    if argument is None:
        return name == "comment_data" and command.wants_comment
    return argument.type == "string" and f"{{{name}}}" in last


def limits(command: Command, name: str) -> tuple[int, int]:
    """The least and the greatest value of an integer argument."""
    return _SPECIAL_RANGES.get(command.name) or _RANGES.get(name, (0, LARGEST))


def _integer(command: Command, name: str, text: str) -> int:
    least, greatest = limits(command, name)
    if not _INTEGER.fullmatch(text.strip()):
        raise BadRequest(
            f"invalid value for {name}",
            f"{name}: expected a whole number from {least} to {greatest}",
        )
    return _within(name, int(text), (least, greatest))


def _within(name: str, number: int, span: tuple[int, int]) -> int:
    if not span[0] <= number <= span[1]:
        raise BadRequest(
            f"invalid value for {name}",
            f"{name}: expected a number from {span[0]} to {span[1]}, got {number}",
        )
    return number


def _no_time(name: str, text: str, what: str) -> BadRequest:
    return BadRequest(
        f"failed to parse time in {name}", f"{excerpt(text)} is not a valid {what} definition"
    )


def excerpt(text: str) -> str:
    """A sent value as an error may repeat it: printable and not long."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text.strip())
    return text if len(text) <= 100 else f"{text[:100]}..."


def _check_downtime(command: Command, values: Mapping[str, str], config: CommandsConfig) -> None:
    """Refuse downtimes that are too long, and those that end before they start."""
    if not re.fullmatch(r"schedule_.*downtime", command.name):
        return
    length = int(values["end_time"]) - int(values["start_time"])
    if length <= 0:
        raise BadRequest(
            "invalid value for end_time",
            f"end_time: expected a time after start_time ({values['start_time']}), "
            f"got {values['end_time']}; without one it is "
            f"{math.floor(config.downtime_duration)} seconds from now",
        )
    if values["fixed"] == "0" and values["duration"] == "0":
        raise BadRequest(
            "invalid value for duration",
            "duration: expected the length of a flexible downtime (fixed=0), such as 2h: a core "
            "drops one without it",
        )
    longest = math.floor(config.downtime_max_duration)
    if longest > 0 and max(length, int(values["duration"])) > longest:
        raise BadRequest(
            f"Downtime duration exceeds maximum allowed duration: {spelled(longest)}",
            "end_time: expected an earlier time, or a shorter duration",
        )


def moment(text: str, now: float, zone: tzinfo) -> int | None:
    """The Unix time that ``text`` means in ``zone``, or None (docs/spec/query.md, "Times").

    Digits alone are a moment from nine on and seconds after ``now`` up to eight. A span needs a
    sign or a word. A space before a span was a plus sign before it was decoded.
    """
    if len(text) > MOST_TIME:
        return None
    if _SPACED_SPAN.fullmatch(text):
        text = f"+{text.strip(' ')}"
    text = text.strip(" ")
    time: int | None
    if _ABSOLUTE.fullmatch(text):
        time = int(text)
    elif relative := _RELATIVE.fullmatch(text):
        time = math.floor(now) + int(relative[1] + relative[2])
    else:
        time = None if _LONG_NUMBER.search(text) else parse_moment(text, now, zone)
    return time if time is not None and 0 <= time <= LATEST else None


def duration(text: str) -> int | None:
    """Whole seconds of ``90``, ``-5m``, ``1.5h`` or ``1h30m``; None for all else, fractions too."""
    seconds = None if _EXPONENT.search(text) else parse_duration(text.strip(" "))
    if seconds is None or abs(seconds - round(seconds)) > _WHOLE:
        return None
    return round(seconds)


def spelled(seconds: int) -> str:
    """Days, hours, minutes and seconds, for example ``1d 2h 0m 0s``."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h {minute}m {second}s"
