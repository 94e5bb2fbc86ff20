"""Following a background job until its result is there (docs/spec/jobs.md).

With a terminal on standard error the state of the job is asked again and again and shown as a
progress bar. Without one the output is asked at once: the daemon holds that request until the job
is done, and answers about every 30 seconds that it is to be repeated.
"""

from __future__ import annotations

import json
import os
import sys
import time
from math import isfinite
from typing import Any

from monrest.cli.output import note
from monrest.cli.requester import Requester
from monrest.client.exchange import ClientError, UnreachableError, plain, segment
from monrest.client.http_connection import BlockingReply

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_AGAIN = 302
_BAR = 24
_NARROW = 80


def follow(client: Requester, started: BlockingReply) -> BlockingReply:
    """Wait for the job of the answer ``started`` and return its result, which may be an error.

    Raises ClientError when the answer has no job, and passes KeyboardInterrupt and
    UnreachableError on, after which the job continues, with a note where its result will be.
    """
    job = _job(started)
    path = f"/{client.settings.address.app}/jobs/{segment(job)}"
    client.settings.say(f"following {path}")
    try:
        if _on_terminal() and not client.settings.quiet:
            failed = _watch(client, path)
            if failed is not None:
                return failed
        while True:
            reply = client.api(f"{path}/output")
            if reply.status != _AGAIN:
                return reply
            reply.read()
            # The daemon waits itself; this is for one that does not.
            _wait(_FIRST_PAUSE)
    except KeyboardInterrupt:
        note(f"\nthe job continues; its result: monrest r {path}/output")
        raise
    except UnreachableError:
        note(f"the job may continue; when the daemon is back: monrest r {path}/output")
        raise


def _job(started: BlockingReply) -> str:
    body = started.read()
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    job = answer.get("job_id") if isinstance(answer, dict) else None
    if not isinstance(job, (str, int)) or job == "":
        raise ClientError(f"expected an answer with a job_id, got {plain(repr(body[:200]))}")
    return str(job)


def _watch(client: Requester, path: str) -> BlockingReply | None:
    """Show progress until the job has ended; the answer when it cannot be asked."""
    pause = _FIRST_PAUSE
    try:
        while True:
            reply = client.api(path)
            if not reply.good:
                return reply
            state = _state(reply.read())
            if not state.get("is_running"):
                return None
            _show(bar(state))
            _wait(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    finally:
        _show("")


def _state(body: bytes) -> dict[str, Any]:
    try:
        state = json.loads(body)
    except ValueError:
        state = None
    # One job may come as a list of one.
    if isinstance(state, list) and len(state) == 1:
        state = state[0]
    if not isinstance(state, dict):
        raise ClientError(f"expected the state of a job, got {plain(repr(body[:200]))}")
    return state


def bar(state: dict[str, Any]) -> str:
    """One line: bar, percent, remaining time and message of a job."""
    percent = min(max(_number(state.get("percent")), 0.0), 100.0)
    filled = round(percent * _BAR / 100)
    line = f"[{'#' * filled}{' ' * (_BAR - filled)}] {percent:3.0f}%"
    remaining = int(_number(state.get("remaining"), -1))
    if remaining >= 0:
        minutes, seconds = divmod(remaining, 60)
        hours, minutes = divmod(minutes, 60)
        line += f" {hours}:{minutes:02d}:{seconds:02d}" if hours else f" {minutes}:{seconds:02d}"
    message = plain(str(state.get("message") or "")).replace("\n", " ").strip()
    return f"{line} {message}".rstrip()


def _number(value: Any, otherwise: float = 0.0) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return otherwise
    return number if isfinite(number) else otherwise


def _wait(seconds: float) -> None:
    time.sleep(seconds)


def _on_terminal() -> bool:
    return sys.stderr.isatty()


def _show(line: str) -> None:
    """Replace the line on the terminal."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or _NARROW
    except OSError:
        width = _NARROW
    try:
        sys.stderr.write(f"\r\x1b[K{line[: width - 1]}")
        sys.stderr.flush()
    except OSError:
        return
