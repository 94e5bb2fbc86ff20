"""Log lines written short: ``line(-100, "OK H")``."""

START = 1_700_000_000 // 120 * 120
"""A multiple of the two minutes to which transitions of time periods are rounded."""
HOST, SERVICE = ("h", ""), ("h", "s")

_WORDS = {"CRIT": "CRITICAL", "WARN": "WARNING", "UNK": "UNKNOWN", "UNREACH": "UNREACHABLE"}
_HOST_WORDS = {"UP", "DOWN", "UNREACH"}
_DOWNTIME = {"DT+": "STARTED", "DT-": "STOPPED", "DTx": "CANCELLED"}
_TYPES = {"H": "HARD", "S": "SOFT"}


def line(at, what, output="out"):
    """One line, ``at`` seconds after START."""
    time = START + at
    return time, f"[{time}] {_text(what.split(), output)}"


def _text(words, output):
    word = words[0]
    if word == "P":
        return f"TIMEPERIOD TRANSITION: P;{words[1]}"
    if word == "stop":
        return "Caught 'Terminated', shutting down..."
    if word == "start":
        return "Naemon 1.5.2 starting... (PID=17)"
    if word in _DOWNTIME:
        name = "HOST DOWNTIME ALERT: h" if words[1] == "host" else "SERVICE DOWNTIME ALERT: h;s"
        return f"{name};{_DOWNTIME[word]}; text"
    if word in ("INITIAL", "CURRENT"):
        kind = "HOST STATE: h" if words[1] in _HOST_WORDS else "SERVICE STATE: h;s"
        return f"{word} {kind};{_WORDS.get(words[1], words[1])};HARD;1;{output}"
    kind = "HOST ALERT: h" if word in _HOST_WORDS else "SERVICE ALERT: h;s"
    state_type = _TYPES[words[1]] if len(words) > 1 else "HARD"
    return f"{kind};{_WORDS.get(word, word)};{state_type};1;{output}"
