"""The core's log: lines with their time, and what the Livestatus module reads out of a line.

The module's parsing has its peculiarities, which are kept (docs/spec/demo.md).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort_right
from operator import attrgetter

from attrs import define, field

INFO, ALERT, PROGRAM, NOTIFICATION, PASSIVE, COMMAND, STATE = range(7)

_STATE_LAYOUT = ("state_type_text", "state_type", "attempt", "plugin_output")
_EVENT_LAYOUT = ("state_type", "comment")
_ACK_LAYOUT = ("state_type", "contact_name", "comment")
_NOTE_LAYOUT = ("state_type_text", "command_name", "plugin_output")
_PASSIVE_LAYOUT = ("state", "plugin_output")

_KINDS: dict[str, tuple[int, tuple[str, ...]]] = {}
for _kind, _names in (("HOST", ("host_name",)), ("SERVICE", ("host_name", "service_description"))):
    _KINDS[f"{_kind} ALERT"] = (ALERT, (*_names, *_STATE_LAYOUT))
    _KINDS[f"INITIAL {_kind} STATE"] = (STATE, (*_names, *_STATE_LAYOUT))
    _KINDS[f"CURRENT {_kind} STATE"] = (STATE, (*_names, *_STATE_LAYOUT))
    _KINDS[f"{_kind} DOWNTIME ALERT"] = (ALERT, (*_names, *_EVENT_LAYOUT))
    _KINDS[f"{_kind} FLAPPING ALERT"] = (ALERT, (*_names, *_EVENT_LAYOUT))
    _KINDS[f"{_kind} ACKNOWLEDGE ALERT"] = (ALERT, (*_names, *_ACK_LAYOUT))
    _KINDS[f"{_kind} NOTIFICATION"] = (NOTIFICATION, ("contact_name", *_names, *_NOTE_LAYOUT))
    _KINDS[f"{_kind} NOTIFICATION SUPPRESSED"] = (INFO, (*_names, "comment"))
    _KINDS[f"{_kind} NOTE"] = (INFO, _names)
    _KINDS[f"{_kind} INFO"] = (INFO, (*_names, "comment"))
    _KINDS[f"PASSIVE {_kind} CHECK"] = (PASSIVE, (*_names, *_PASSIVE_LAYOUT))

_PROGRAM_WORDS = (
    "starting...",
    "restarting...",
    "shutting down...",
    "Bailing out",
    "logging initial states",
    "entering standby mode",
    "entering active mode",
    "LOG VERSION",
)


@define(eq=False)
class LogEntry:
    """A line of the log with the fields that the module finds in it.

    ``class_`` is one of the numbers above.
    """

    time: int
    lineno: int
    message: str
    type: str = ""
    class_: int = 0
    options: str = ""
    state: int = 0
    state_type: str = ""
    attempt: int = 0
    host_name: str = ""
    service_description: str = ""
    contact_name: str = ""
    command_name: str = ""
    plugin_output: str = ""
    comment: str = ""
    parsed: bool = False

    def read(self) -> LogEntry:
        """Fill the fields from the message; done once, when the line is first asked for."""
        if not self.parsed:
            self.parsed = True
            self._parse(self.message[13:])
        return self

    def _parse(self, text: str) -> None:
        kind, colon, rest = text.partition(":")
        self.options = rest.lstrip() if colon else ""
        if colon and kind in _KINDS:
            self.type = kind
            self.class_, layout = _KINDS[kind]
            for name, value in zip(layout, rest.removeprefix(" ").split(";"), strict=False):
                if name == "state_type_text":
                    self.state = _state(value, host="HOST" in kind)
                    if kind.endswith("NOTIFICATION"):
                        self.state_type = value
                elif name in ("state", "attempt"):
                    setattr(self, name, int(value) if value.isdigit() else 0)
                else:
                    setattr(self, name, value)
        elif kind == "EXTERNAL COMMAND":
            self.type, self.class_ = kind, COMMAND
            name, *arguments = self.options.split(";")
            service = "_SVC" in name
            if arguments and (service or ("_HOST" in name and "_HOSTGROUP" not in name)):
                self.host_name = arguments[0]
                if service and len(arguments) > 1:
                    self.service_description = arguments[1]
        else:
            self.type = text
            if kind == "TIMEPERIOD TRANSITION":
                self.class_ = STATE
            elif any(word in text for word in _PROGRAM_WORDS):
                self.class_ = PROGRAM


def _state(word: str, *, host: bool) -> int:
    """The number of a state word, by its last letter as the module reads it."""
    last = word.rstrip(")")[-1:]
    if host:
        return {"P": 0, "Y": 0, "N": 1, "E": 2}.get(last, 3)
    return {"K": 0, "Y": 0, "G": 1, "L": 2, "N": 3}.get(last, 4)


@define(eq=False)
class Logbook:
    """All lines, ordered by time."""

    entries: list[LogEntry] = field(factory=list)
    lines_in_file: int = 0

    def past(self, moment: int, text: str) -> None:
        """Append a line; newlines become the two characters backslash and n.

        A line of a clock that was put back stands where its time belongs.
        """
        self.lines_in_file += 1
        text = text.replace("\n", "\\n")
        entry = LogEntry(moment, self.lines_in_file, f"[{moment}] {text}")
        if self.entries and moment < self.entries[-1].time:
            insort_right(self.entries, entry, key=attrgetter("time"))
        else:
            self.entries.append(entry)

    def rotate(self, moment: int) -> None:
        """Begin a new file, in which line numbers start at 1 again."""
        self.lines_in_file = 0
        self.past(moment, "LOG ROTATION: DAILY")
        self.past(moment, "LOG VERSION: 2.0")

    def newest_first(
        self, since: float | None = None, until: float | None = None
    ) -> list[LogEntry]:
        """Parsed entries with ``since <= time <= until``, newest first."""
        time = attrgetter("time")
        low = 0 if since is None else bisect_left(self.entries, since, key=time)
        high = len(self.entries)
        if until is not None:
            high = bisect_right(self.entries, until, key=time)
        return [entry.read() for entry in reversed(self.entries[low:high])]
