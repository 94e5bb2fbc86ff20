"""The events of a line of a core's log (docs/spec/events.md, "From a line to its events").

Only the text of a line is read, because the parsed columns differ from core to core.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import define, field

from monrest.events.model import Event, Place, line_id, object_subject, site_subject
from monrest.logs.line import STAMP

CLASSES = (1, 2, 3, 5)
"""Classes of lines that can be events: states, starts, notifications, commands."""

_ALERT, _PROGRAM, _NOTIFICATION, _COMMAND = CLASSES

_HOST_STATES = {"UP": 0, "OK": 0, "RECOVERY": 0, "DOWN": 1, "UNREACHABLE": 2}
_SERVICE_STATES = {"OK": 0, "RECOVERY": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
_STATED = re.compile(r"(.*?);([A-Z]+);(HARD|SOFT);(\d+);(.*)", re.DOTALL)
_SWITCHED = re.compile(r"(.*?);([A-Z]+);(?: ?)(.*)", re.DOTALL)
_ACTIONS = {
    "STARTED": "started",
    "STOPPED": "stopped",
    "CANCELLED": "canceled",
    "DISABLED": "disabled",
}
_STARTS = " starting..."
_RESULTS = ("PROCESS_HOST_CHECK_RESULT", "PROCESS_SERVICE_CHECK_RESULT")
_ACKNOWLEDGES = re.compile(r"ACKNOWLEDGE_(HOST|SVC)_PROBLEM(_EXPIRE)?")
_RELEASES = re.compile(r"REMOVE_(HOST|SVC)_ACKNOWLEDGEMENT")
_COMMENTS = re.compile(r"(ADD|DEL)(_ALL)?_(HOST|SVC)_COMMENTS?")
_BY_ID = re.compile(r"DEL_(?:HOST|SVC)_(?:COMMENT|DOWNTIME)|MODIFY_(?:HOST|SVC)_COMMENT")

Parsed: TypeAlias = tuple[str, str, str, dict[str, Any]]
"""Type, host, service and data of an event that is still without its place."""

_AckKey: TypeAlias = tuple[str, str, str]


@define(eq=False)
class LineEvents:
    """Makes events of the lines of one site, from the beginning of a second on and in order.

    ``states`` are those of the objects that are not well, as far as the lines before show them,
    and ``hard`` the last hard ones; ``complete``: an object that is not there is well. So the state
    before an alert is known.
    """

    site: str
    states: dict[tuple[str, str], int] = field(factory=dict)
    hard: dict[tuple[str, str], int] = field(factory=dict)
    complete: bool = False
    _acknowledged: tuple[int, _AckKey] | None = field(init=False, default=None)

    def events(
        self, lines: Iterable[tuple[int, str]], numbers: Mapping[int, int] = MappingProxyType({})
    ) -> Iterator[Event]:
        """The events of lines; of each second so many are ``known``, and only count."""
        number, before, second = 0, 0, None
        for time, message in lines:
            if time != second:
                second, number, before = time, 0, numbers.get(time, 0)
            for kind, host, service, data in self._parsed(time, message):
                number += 1
                if number <= before:
                    continue
                if kind == "state":
                    data["old_state"] = self.note(
                        (host, service), data["state"], hard=data["state_type"] == "HARD"
                    )
                data.update(_object(host, service), time=time, message=message)
                yield Event(
                    site=self.site,
                    type=kind,
                    time=time,
                    subject=object_subject(host, service) if host else site_subject(self.site),
                    data=data,
                    name=line_id(self.site, Place(time, number)),
                    nth=number,
                )

    def note(self, key: tuple[str, str], state: int, *, hard: bool) -> int | None:
        """Note the state of an object; return the one before, None where it is not known."""
        old = self.states.get(key, 0 if self.complete else None)
        if state or not self.complete:
            self.states[key] = state
        else:
            self.states.pop(key, None)
        if not state:
            self.hard.pop(key, None)
        elif hard:
            self.hard[key] = state
        return old

    def _parsed(self, time: int, message: str) -> Iterator[Parsed]:
        kind, colon, rest = message[STAMP:].partition(": ")
        if not colon:
            if _STARTS in kind:
                yield "config", "", "", {"class": _PROGRAM, "type": kind, "action": "reloaded"}
            return
        if kind.endswith(" ALERT"):
            parsed = _alert(kind, rest)
            if parsed is None or self._is_known(time, parsed):
                return
        elif kind.endswith(" NOTIFICATION"):
            parsed = _notification(kind, rest)
        elif kind == "EXTERNAL COMMAND":
            yield from self._command(time, rest)
            return
        else:
            return
        if parsed is not None:
            parsed[3].update({"type": kind, "options": rest})
            yield parsed

    def _is_known(self, time: int, event: Parsed) -> bool:
        """Whether a line about an acknowledgement follows the command that made it."""
        kind, host, service, data = event
        if kind != "acknowledgement" or self._acknowledged is None:
            return False
        when, what = self._acknowledged
        return 0 <= time - when <= 1 and what == (host, service, data["action"])

    def _command(self, time: int, rest: str) -> Iterator[Parsed]:
        name, *arguments = rest.split(";")
        if name in _RESULTS:
            return
        host, service = _object_of(name, arguments)
        common = {"class": _COMMAND, "type": "EXTERNAL COMMAND", "options": rest}
        yield "command", host, service, {**common, "command_name": name}
        more = _acknowledgement(name, arguments[2 if service else 1 :])
        if more is not None:
            self._acknowledged = time, (host, service, more["action"])
            yield "acknowledgement", host, service, {**common, **more}
            return
        more = _comment(name, arguments, service)
        if more is not None:
            yield "comment", host, service, {**common, **more}


def _object(host: str, service: str) -> dict[str, str]:
    if service:
        return {"host_name": host, "service_description": service}
    return {"host_name": host} if host else {}


def _alert(kind: str, rest: str) -> Parsed | None:
    """A change of state, a downtime, flapping or an acknowledgement."""
    of_host = kind.startswith("HOST ")
    if kind in ("HOST ALERT", "SERVICE ALERT"):
        match = _STATED.fullmatch(rest)
        if match is None:
            return None
        names, word, hardness, attempt, output = match.groups()
        state = (_HOST_STATES if of_host else _SERVICE_STATES).get(word)
        if state is None:
            return None
        host, service = _names(names, of_host=of_host)
        data: dict[str, Any] = {
            "class": _ALERT,
            "state": state,
            "state_type": hardness,
            "attempt": int(attempt[:9]),
            "plugin_output": output,
        }
        return "state", host, service, data
    word = kind.partition(" ")[2]
    type_ = {
        "DOWNTIME ALERT": "downtime",
        "FLAPPING ALERT": "flapping",
        "ACKNOWLEDGE ALERT": "acknowledgement",
    }.get(word)
    match = _SWITCHED.fullmatch(rest)
    if type_ is None or match is None:
        return None
    names, word, text = match.groups()
    action = _ACTIONS.get(word)
    if action is None:
        return None
    host, service = _names(names, of_host=of_host)
    data = {"class": _ALERT, "action": action, "comment": text}
    if type_ == "acknowledgement":
        author, _, text = text.partition(";")
        data = {
            "class": _ALERT,
            "action": "added" if action == "started" else "removed",
            "author": author,
            "comment": text,
        }
    return type_, host, service, data


def _names(names: str, *, of_host: bool) -> tuple[str, str]:
    if of_host:
        return names, ""
    host, _, service = names.partition(";")
    return host, service


def _notification(kind: str, rest: str) -> Parsed | None:
    of_host = kind == "HOST NOTIFICATION"
    fields = rest.split(";", 4 if of_host else 5)
    if kind not in ("HOST NOTIFICATION", "SERVICE NOTIFICATION") or len(fields) < 4:
        return None
    contact, host, *others = fields
    service = "" if of_host else others.pop(0)
    reason, command, *output = [*others, ""]
    word = reason.rstrip(")").rpartition("(")[2]
    data = {
        "class": _NOTIFICATION,
        "contact_name": contact,
        "state": (_HOST_STATES if of_host else _SERVICE_STATES).get(word),
        "state_type": reason,
        "command_name": command,
        "plugin_output": output[0],
    }
    return "notification", host, service, data


def _object_of(name: str, arguments: list[str]) -> tuple[str, str]:
    """The object that an external command names, empty where it names none."""
    if not arguments or _BY_ID.fullmatch(name):
        return "", ""
    if "_SVC" in name and "_HOST_" not in name and len(arguments) > 1:
        return arguments[0], arguments[1]
    if ("_HOST" in name or "_SVC" in name) and "GROUP" not in name:
        return arguments[0], ""
    return "", ""


def _acknowledgement(name: str, arguments: list[str]) -> dict[str, Any] | None:
    if _RELEASES.fullmatch(name):
        return {"action": "removed"}
    match = _ACKNOWLEDGES.fullmatch(name)
    if match is None:
        return None
    # Sticky, notify, persistent, and a time where it expires.
    author, *text = [*arguments[4 if match[2] else 3 :], ""]
    return {"action": "added", "author": author, "comment": ";".join(text).removesuffix(";")}


def _comment(name: str, arguments: list[str], service: str) -> dict[str, Any] | None:
    match = _COMMENTS.fullmatch(name)
    if match is None:
        return None
    if match[1] == "DEL":
        # A number says nothing: objects show whose comment it was.
        return {"action": "removed", "comment": ""} if match[2] else None
    author, *text = [*arguments[3 if service else 2 :], ""]
    return {"action": "added", "author": author, "comment": ";".join(text).removesuffix(";")}
