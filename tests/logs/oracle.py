"""Availability and outages once more, slowly: from the text of lines, by the words of the rules.

Nothing of the daemon is used. Availability goes second by second. An outage is a run of states
that are bad, among all states that an object had, one after the other.
"""

import re

HOST_WORDS = ("up", "down", "unreachable")
SERVICE_WORDS = ("ok", "warning", "critical", "unknown")
BAD = {"down", "unreachable", "critical", "unknown"}
MEANING = {
    "host": {"UP": "up", "RECOVERY": "up", "OK": "up", "PENDING": "up", "DOWN": "down",
             "WARNING": "down", "UNREACHABLE": "unreachable", "CRITICAL": "unreachable"},
    "service": {"OK": "ok", "RECOVERY": "ok", "UP": "ok", "PENDING": "ok", "WARNING": "warning",
                "DOWN": "warning", "CRITICAL": "critical", "UNREACHABLE": "critical",
                "UNKNOWN": "unknown", "(unknown)": "unknown"},
}  # fmt: skip

HOST_STATE = re.compile(
    r"\[\d+\] (?:HOST ALERT|(?:INITIAL|CURRENT) HOST STATE): ([^;]*);([^;]*);([^;]*);[^;]*;(.*)"
)
SERVICE_STATE = re.compile(
    r"\[\d+\] (?:SERVICE ALERT|(?:INITIAL|CURRENT) SERVICE STATE): ([^;]*);([^;]*);([^;]*);([^;]*);[^;]*;(.*)"
)
HOST_DOWNTIME = re.compile(r"\[\d+\] HOST DOWNTIME ALERT: ([^;]*);([A-Z]*);")
SERVICE_DOWNTIME = re.compile(r"\[\d+\] SERVICE DOWNTIME ALERT: ([^;]*);([^;]*);([A-Z]*);")  # fmt: skip


class Line:
    """What one line says: ``kind`` is state, downtime, start, stop or nothing."""

    def __init__(self, time, text):
        self.time, self.kind = time, ""
        if match := HOST_STATE.match(text):
            host, word, hardness, self.output = match.groups()
            self._state((host, ""), MEANING["host"].get(word), hardness)
        elif match := SERVICE_STATE.match(text):
            host, service, word, hardness, self.output = match.groups()
            self._state((host, service), MEANING["service"].get(word), hardness)
        elif match := HOST_DOWNTIME.match(text):
            self.kind, self.key, self.begins = "downtime", (match[1], ""), match[2] == "STARTED"
        elif match := SERVICE_DOWNTIME.match(text):
            self.kind, self.key = "downtime", (match[1], match[2])
            self.begins = match[3] == "STARTED"
        elif ": " not in text and " starting..." in text:
            self.kind = "start"
        elif ": " not in text and "shutting down..." in text:
            self.kind = "stop"

    def _state(self, key, state, hardness):
        if state is not None:
            self.kind, self.key, self.state, self.soft = "state", key, state, hardness == "SOFT"

    def counts(self, soft):
        """Whether this state counts: hard ones, recoveries, and all when ``soft`` states do."""
        return soft or not self.soft or self.state in ("up", "ok")


def read(log):
    return [Line(time, text) for time, text in log]


def words(key):
    return SERVICE_WORDS if key[1] else HOST_WORDS


def availability(log, key, start, end, *, soft=False, not_running=False, changes=(), logged=True, assumed=None):  # fmt: skip
    """Seconds by field, without percentages."""
    lines = read(log)
    known = assumed or "nodata"
    running = inside = True
    own = host = False
    found = {f"time_{one}": 0 for one in words(key)}
    found |= {f"scheduled_time_{one}": 0 for one in (*words(key), "indeterminate")}
    found |= {f"time_indeterminate_{one}": 0 for one in ("nodata", "notrunning", "outside_timeperiod")}  # fmt: skip
    first = min([start, *(one.time for one in lines), *(time for time, _ in changes)])
    for second in range(first, end):
        for time, holds in changes:
            if time == second:
                inside = holds
                running = running or logged
        for one in lines:
            if one.time != second:
                continue
            if one.kind == "state" and one.key == key and one.counts(soft):
                known, running = one.state, True
            elif one.kind == "downtime" and one.key == key:
                own = one.begins
            if one.kind == "downtime" and one.key == (key[0], ""):
                host = one.begins
            if one.kind in ("start", "stop") and not_running:
                running = one.kind == "start"
        if second < start:
            continue
        if not inside:
            found["time_indeterminate_outside_timeperiod"] += 1
        elif not running:
            found["time_indeterminate_notrunning"] += 1
        elif known == "nodata":
            found["time_indeterminate_nodata"] += 1
            found["scheduled_time_indeterminate"] += own or host
        else:
            found[f"time_{known}"] += 1
            found[f"scheduled_time_{known}"] += own or host
    return found


def outages(log, key, start, end, *, soft=False, changes=(), downtimes=True):
    """The outages of one object, the newest first."""
    steps = [(time, 0, holds) for time, holds in changes if time < end]
    steps += [(one.time, 1, one) for one in read(log) if one.time < end]
    steps.sort(key=lambda step: step[:2])  # a change of the time period comes before its lines
    latest, own, host, inside = None, False, False, True
    history = []  # (since, the line that makes it bad or None)
    for time, _, step in steps:
        if isinstance(step, bool):
            inside = step
        elif step.kind == "state" and step.key == key and step.counts(soft):
            latest = step
        elif step.kind == "downtime":
            own = step.begins if step.key == key else own
            host = step.begins if step.key == (key[0], "") else host
        bad = latest is not None and latest.state in BAD and inside
        if not downtimes and (own or host):
            bad = False
        history.append((time, latest if bad else None))
    history.append((end, None))
    found, opened, line = [], None, None
    for time, bad in history:
        if bad is not None:
            opened, line = time if opened is None else opened, bad
        elif opened is not None:
            since, until = max(opened, start), min(time, end)
            if until > since:
                found.append(told(key, line, since, until))
            opened = None
    return found[::-1]


def told(key, line, since, until):
    kind = "SERVICE" if key[1] else "HOST"
    row = {
        "class": line.state,
        "type": f"{kind} {line.state.upper()}" + ("" if line.soft else " (HARD)"),
        "start": since,
        "end": until,
        "duration": until - since,
        "host": key[0],
        "plugin_output": line.output,
    }
    return {**row, "service": key[1]} if key[1] else row
