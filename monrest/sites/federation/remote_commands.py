"""Commands of one site over the API of another instance, on behalf of a user.

A line for a core is read back as the command of the API that makes it, so that the other side
judges whether the user may give it, and writes it into its own audit log. Nothing is sent twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.concurrency import Threads
from monrest.base.values import always
from monrest.livestatus.catalogue import COMMANDS, Command
from monrest.livestatus.command_channel import TransmissionOutcome
from monrest.livestatus.core_errors import (
    ConnectError,
    LivestatusError,
    ProtocolError,
    QueryTimeoutError,
    StoppedError,
    WithdrawnError,
    first_line,
)
from monrest.livestatus.verdicts import ACCEPTED, Verdict
from monrest.sites.federation.answers import document, records
from monrest.sites.federation.questions import Running
from monrest.sites.federation.remote import ITSELF, OnBehalfOf, RefusedByRemoteError, Remote

Entry = dict[str, str]
"""A command as ``POST /cmd`` takes it in a list."""

_LINE = re.compile(r"COMMAND \[\d+\] ([A-Z0-9_]+)(?:;(.*))?\Z", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_REMOVED = re.compile(r"DEL_(HOST|SVC)_(COMMENT|DOWNTIME)\Z")
_UNKNOWN = Verdict(refusal="the API of another instance has no such command")
_SERVER = 500
_UNREACHED = (502, 503, 504)


@define(eq=False)
class RestCommands:
    """A ``CommandSender``; ``path`` returns the path of the site on the other side."""

    remote: Remote
    path: Callable[[], str]
    threads: Threads
    whom: OnBehalfOf = ITSELF
    running: Running = field(factory=Running)
    under_way: set[_Transmission] = field(factory=set)

    @property
    def quiet(self) -> bool:
        return self.running.quiet

    def acting(self, whom: OnBehalfOf) -> RestCommands:
        """The same on behalf of another user."""
        return evolve(self, whom=whom)

    def transmit(
        self,
        lines: Sequence[str],
        kind: str,
        timeout: float,
        allowed: Callable[[], bool] = always,
    ) -> Deferred[TransmissionOutcome]:
        """Send lines; ``allowed`` is asked right before each request."""
        del kind
        if self.running.stopped:
            done: Deferred[TransmissionOutcome] = Deferred()
            done.callback(TransmissionOutcome((), 0, StoppedError()))
            return done
        work = _Transmission(self, tuple(lines), self.remote.reactor.seconds() + timeout, allowed)
        self.under_way.add(work)
        work.done = self.running.begin(work.run())
        return work.done.addBoth(self._over, work)

    def _over(self, outcome: TransmissionOutcome, work: _Transmission) -> TransmissionOutcome:
        self.under_way.discard(work)
        return outcome

    def end(self, error: LivestatusError) -> None:
        """Give up what is under way, because the other side does not listen."""
        for work in tuple(self.under_way):
            work.ended = error
            work.done.cancel()

    def keep(self, idle: float) -> None:
        """Commands have connections of their own, which are not kept."""

    def stop(self) -> Deferred[None]:
        """Send nothing more; fires when what was sent is answered, or its time is over."""
        return self.running.stop(cut=False)


@define(eq=False)
class _Transmission:
    """Some lines on their way; ``until`` is when all of it must be over.

    ``ended`` is why it was given up before.
    """

    commands: RestCommands
    lines: tuple[str, ...]
    until: float
    allowed: Callable[[], bool]
    verdicts: dict[int, Verdict] = field(init=False, factory=dict)
    done: Deferred[TransmissionOutcome] = field(init=False)
    ended: LivestatusError | None = field(init=False, default=None)
    sent: bool = field(init=False, default=False)
    """Whether the other side may have executed lines that have no verdict."""

    async def run(self) -> TransmissionOutcome:
        error: LivestatusError | None = None
        entries: dict[int, Entry] = {}
        try:
            for at, line in enumerate(self.lines):
                entry = await self._entry(line)
                if entry is None:
                    self.verdicts[at] = _UNKNOWN
                else:
                    entries[at] = entry
            while entries:
                if not self.allowed():
                    raise WithdrawnError
                entries = await self._round(entries)
        except LivestatusError as failed:
            error = failed
        verdicts = 0
        while verdicts in self.verdicts:
            verdicts += 1
        written = len(self.lines) if self.sent or verdicts == len(self.lines) else verdicts
        return TransmissionOutcome(
            tuple(self.verdicts[at] for at in range(verdicts)), written, error
        )

    async def _round(self, entries: dict[int, Entry]) -> dict[int, Entry]:
        """Send a list; returns those to be sent again when the other side refused the others."""
        places = tuple(entries)
        body = orjson.dumps([entries[at] for at in places])
        self.sent = True
        try:
            answer = await self._call("POST", "/cmd", body)
        except ConnectError:
            self.sent = False
            raise
        except RefusedByRemoteError as error:
            if error.status >= _SERVER and error.status not in _UNREACHED:
                raise
            # The cores were not even asked what has to be known before; or nothing was sent.
            self.sent = False
            if error.status >= _SERVER:
                raise
            refused = _refused(error, len(places))
            for at, reason in refused.items():
                self.verdicts[places[at]] = Verdict(refusal=reason)
            return {at: entry for at, entry in entries.items() if at not in self.verdicts}
        results = document(answer)
        if not isinstance(results, list) or len(results) != len(places):
            raise ProtocolError("not one result for each command")
        for at, result in zip(places, results, strict=True):
            self.verdicts[at] = _verdict(result)
        return {}

    async def _entry(self, line: str) -> Entry | None:
        match = _LINE.match(line)
        if match is None:
            return None
        name, fields = match[1], match[2] or ""
        removed = _REMOVED.match(name)
        if removed is not None and fields.isdigit():
            # By the object that it belongs to: its contacts may remove it as well.
            wanted, word = int(removed[1] == "SVC"), removed[2].lower()
            path = f"/{word}s?columns=host_name,service_description,is_service&id={fields}"
            entries = await records(await self._call("GET", path), self.commands.threads)
            for record in entries:
                if record.get("is_service") == wanted:
                    target = {"host": str(record.get("host_name"))}
                    if wanted:
                        target["service"] = str(record.get("service_description"))
                    return {"cmd": f"del_{word}", f"{word}_id": fields, **target}
        return entry(name, fields)

    async def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        site = self.commands
        left = self.until - site.remote.reactor.seconds()
        if left <= 0:
            raise QueryTimeoutError(0)
        try:
            return await site.remote.call(
                method, site.path() + path, left, site.whom, body, reads=body is None
            )
        except CancelledError:
            raise self.ended or StoppedError() from None


def _refused(error: RefusedByRemoteError, count: int) -> Mapping[int, str]:
    """Reasons by index; for all of them when the other side names none."""
    problems = error.document.get("problems")
    reasons: dict[int, str] = {}
    for problem in problems if isinstance(problems, list) else ():
        at = problem.get("index") if isinstance(problem, dict) else None
        if isinstance(at, int) and 0 <= at < count:
            words = [problem.get("message"), problem.get("description")]
            reasons[at] = ": ".join(first_line(word) for word in words if isinstance(word, str))
    return reasons or dict.fromkeys(range(count), error.reason)


def _verdict(result: Any) -> Verdict:
    if not isinstance(result, dict):
        return Verdict(doubt="the other side did not say what became of it")
    code = result.get("code")
    if code == 200:
        return ACCEPTED
    words = [result.get("error"), result.get("message")]
    text = next((first_line(word) for word in words if isinstance(word, str) and word), "refused")
    failed = result.get("failed_sites")
    for problem in failed if isinstance(failed, list) else ():
        if isinstance(problem, dict) and isinstance(problem.get("reason"), str):
            text = f"{text}: {first_line(problem['reason'])}"
            if problem.get("uncertain"):
                return Verdict(doubt=text)
    return Verdict(refusal=text)


def entry(name: str, fields: str) -> Entry | None:
    """The command of the API that makes this line of a core; None when there is none."""
    for command, pattern in _patterns().get(name, ()):
        match = pattern.match(fields)
        if match is not None:
            return {"cmd": command.name, **match.groupdict()}
    return None


@lru_cache(maxsize=1)
def _patterns() -> Mapping[str, Sequence[tuple[Command, re.Pattern[str]]]]:
    patterns: dict[str, list[tuple[Command, re.Pattern[str]]]] = {}
    for kind in sorted(COMMANDS, key=lambda kind: kind == "sites"):
        for command in COMMANDS[kind].values():
            if not command.lookup:
                patterns.setdefault(command.core_name, []).append((command, _pattern(command)))
    return patterns


def _pattern(command: Command) -> re.Pattern[str]:
    # What may follow the plugin output is a part of it on the way.
    template = command.template.partition(";")[2].replace("[|{performance_data}]", "")
    parts = _PLACEHOLDER.split(template)
    text = ""
    for at, part in enumerate(parts):
        if at % 2 == 0:
            text += re.escape(part)
        else:
            text += f"(?P<{part}>{'.*' if not any(parts[at + 1 :]) else '[^;]*'})"
    return re.compile(rf"{text}\Z", re.DOTALL)
