"""``monrest events``: what happens, as it happens, for eyes, for pipes and for a command."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from urllib.parse import unquote

from monrest.cli import output
from monrest.cli.command_line import Pairs
from monrest.cli.output import UsageError
from monrest.cli.requester import Requester
from monrest.cli.terminal import TerminalStyle, style
from monrest.client.calling import iterate
from monrest.client.event_tail import EventDocument, EventTail
from monrest.client.exchange import ApiRequest, Reply, plain

_SENT = ("types", "since", "columns", "q")
_STATES = {False: ("UP", "DOWN", "UNREACHABLE"), True: ("OK", "WARNING", "CRITICAL", "UNKNOWN")}
_COLOURS = {"UP": "32", "OK": "32", "WARNING": "33", "DOWN": "31", "CRITICAL": "31"}
_OTHER = "35"


def run(filters: Sequence[str], options: Pairs) -> int:
    """Follow the stream until it ends or is interrupted; a lost connection is made again."""
    named = dict(options)
    client = Requester.of_options(options, backends=True)
    parameters = {name: [named[name]] for name in _SENT if name in named}
    if "snapshot" in named:
        parameters["snapshot"] = ["1"]
    for word in filters:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"expected a filter such as host_name=web01, got {word!r}")
        parameters.setdefault(name, []).append(value)
    terminal = style(named.get("color", ""), full=True)

    hinted = ""

    async def opened(request: ApiRequest) -> Reply:
        nonlocal hinted
        reply = client.api(request.path, query=request.query)
        if not reply.good:
            client.body_of(request.path, reply)
        hinted = ""
        return reply.coroutines

    async def pause(seconds: float) -> None:
        time.sleep(seconds)

    def lost(error: Exception) -> None:
        nonlocal hinted
        text = str(error).partition("\n")[0]
        # A daemon that is away for an hour is reported once.
        if text != hinted:
            client.settings.hint(f"monrest: {text}; connecting again")
        hinted = text

    tail = EventTail(parameters, limit=named.get("limit", ""))
    for event in iterate(tail.events(opened, pause, lost)):
        _take(event, named, terminal)
    return 0


def _take(event: EventDocument, named: dict[str, str], terminal: TerminalStyle) -> None:
    """Print an event, and run the command for it."""
    if event["type"] == "gap":
        output.note(f"monrest: too slow, {event['data']['count']} events are only in "
                    f"{event['data']['logs']}")  # fmt: skip
        return
    if "json" in named:
        output.write_text(json.dumps(event, ensure_ascii=False) + "\n")
    else:
        output.write_text(line_of(event, terminal) + "\n")
    output.flush()
    if "exec" in named:
        _run(named["exec"], event)


def line_of(event: EventDocument, terminal: TerminalStyle) -> str:
    """One line: time, site, type, object, what happened, its text."""
    data = event["data"]
    word = str(data.get("action") or data.get("command_name") or "")
    state = data.get("state")
    if event["type"] == "state" and isinstance(state, int):
        words = _STATES[bool(data.get("service_description"))]
        word = words[state] if state < len(words) else str(state)
        if data.get("state_type"):
            word += f" {data['state_type']}"
    text = data.get("plugin_output") or data.get("comment") or data.get("reason") or ""
    if not any(name in data for name in ("action", "state", "command_name")):
        # With columns of one's own all of them are shown.
        shown_ones = (f"{name}={value}" for name, value in data.items() if value is not None)
        word, text = "", " ".join(shown_ones)
    place = unquote(event["subject"].removeprefix("services/").removeprefix("hosts/"))
    kind = f"{event['type']:<15}"
    line = f"{event['time']} {kind} {plain(place)} {plain(word)} {plain(str(text))}".rstrip()
    if not terminal.colour:
        return line
    colour = _COLOURS.get(word.split(" ")[0], _OTHER if word else "0")
    return line.replace(f" {plain(word)} ", f" \x1b[{colour}m{plain(word)}\x1b[0m ", 1)


def _run(command: str, event: EventDocument) -> None:
    """Run ``command`` with the event as JSON on its standard input, and wait for it."""
    data = event["data"]
    values = {
        "TYPE": event["type"],
        "ID": event["id"],
        "SUBJECT": event["subject"],
        "HOST": data.get("host_name", ""),
        "SERVICE": data.get("service_description", ""),
        "STATE": data.get("state", ""),
        "OUTPUT": data.get("plugin_output", ""),
    }
    environment = {f"MONREST_EVENT_{name}": str(value) for name, value in values.items()}
    done = subprocess.run(  # noqa: S602  the user's own command line
        command,
        shell=True,
        check=False,
        input=json.dumps(event).encode(),
        env={**os.environ, **environment},
    )
    if done.returncode:
        output.note(f"monrest: the command ended with {done.returncode}")
