"""The answers of cores to commands, read as they arrive: one verdict for each command, in order.

Nothing here knows connections. Rules: docs/spec/livestatus.md, "Commands on the wire".
"""

from __future__ import annotations

import re

import orjson
from attrs import define, field, frozen

from monrest.livestatus.core_errors import ProtocolError, first_line
from monrest.livestatus.framing import HEADER_SIZE, parse_header, parse_rows

_OK = 200
_DELAYED = 202
_LONGEST_ANSWER = 64 * 1024
"""Bytes that a core may say about one command; a stack trace of Icinga 2 has a few thousand."""
_HEADER = re.compile(rb"[0-9]{3} [ 0-9]{11}\n")
_REFUSAL = re.compile(rb"[0-9]{3}: ")
_BY_THE_CORE = re.compile(r"4[0-9]{2}: ")


@frozen
class Verdict:
    """The answer of a core to one command; both texts are empty when it was accepted.

    ``refusal``: it was refused. ``doubt``: it may have been executed or not.
    """

    refusal: str = ""
    doubt: str = ""


ACCEPTED = Verdict()

_QUOTED = re.compile(r"""('[^']*'|"[^"]*")""")
_PATH = r"(?<![\w:/.])(?:/[\w.+@-]+){2,}"
_SOURCE = r"(?<![\w./:-])[\w/-]+\.(?:c|cc|cpp|h|hpp|p[lmy])(?=:\d| line \d)"
_POSITION = re.compile(
    rf"\s*[(\[]?(?:\b(?:in|at|from) )?(?:{_PATH}|{_SOURCE})(?:[:,]? ?(?:line )?\d[\d:.-]*)*:?[)\]]?"
)


def core_text(text: str) -> str:
    """The first line of what a core says about a command, without places in files.

    Paths and source positions are of no use to the user; what stands in quotes is the user's own
    and stays.
    """
    parts = _QUOTED.split(first_line(text.strip().removeprefix("Error: ")))
    parts[::2] = [_POSITION.sub("", part) for part in parts[::2]]
    return "".join(parts).strip()


@define(eq=False)
class VerdictReader:
    """Collects ``verdicts`` from bytes."""

    verdicts: list[Verdict] = field(factory=list, init=False)
    rest: bytes = field(default=b"", init=False)

    @property
    def amid(self) -> bool:
        """Whether there is a part of a verdict that is not complete."""
        return bool(self.rest)

    def feed(self, data: bytes) -> None:
        """Read on; raise ProtocolError for nonsense, with the verdicts before it collected."""
        self.rest += data
        while b"\n" in self.rest and self._take():
            pass
        if len(self.rest) > HEADER_SIZE + _LONGEST_ANSWER:
            raise ProtocolError("an answer without an end")

    def _take(self) -> bool:
        """Take one answer or line from ``rest``; False if it is not complete."""
        raise NotImplementedError

    def _framed(self) -> tuple[int, bytes] | None:
        """Status and body of the answer at the beginning of ``rest``, if it is complete."""
        status, length = parse_header(self.rest)
        if length > _LONGEST_ANSWER:
            raise ProtocolError(f"an answer of {length} bytes is announced")
        end = HEADER_SIZE + length
        if len(self.rest) < end:
            return None
        body = self.rest[HEADER_SIZE:end]
        self.rest = self.rest[end:]
        return status, body


def reader_for(kind: str) -> VerdictReader:
    """The reader of the answers of a kind of core to ``external.request``."""
    if kind == "icinga2":
        return FramedReader()
    return LmdReader() if kind == "lmd" else BarrierReader()


@define(eq=False)
class BarrierReader(VerdictReader):
    """Naemon and its like: a line if it refused, then the answer to a query that always works."""

    _refusal: str = field(default="", init=False)

    @property
    def amid(self) -> bool:
        return bool(self.rest or self._refusal)

    def _take(self) -> bool:
        refusal = _REFUSAL.match(self.rest)
        # A refusal may have more lines than its first one.
        if refusal or (self._refusal and not _HEADER.match(self.rest)):
            line, _, self.rest = self.rest.partition(b"\n")
            if refusal and not self._refusal:
                text = line[4:].decode("utf-8", "replace")
                self._refusal = f"{line[:3].decode()}: {core_text(text)}"
            return True
        answer = self._framed()
        if answer is None:
            return False
        status, body = answer
        if status != _OK:
            raise ProtocolError(f"the query behind a command was answered with {status}")
        if len(parse_rows(body, 1)) != 1:
            raise ProtocolError("the query behind a command was not answered with one row")
        self.verdicts.append(Verdict(refusal=self._refusal) if self._refusal else ACCEPTED)
        self._refusal = ""
        return True


class FramedReader(VerdictReader):
    """Icinga 2: a header of its own for each command."""

    def _take(self) -> bool:
        answer = self._framed()
        if answer is None:
            return False
        self.verdicts.append(self._verdict(*answer))
        return True

    def _verdict(self, status: int, body: bytes) -> Verdict:
        if status == _OK:
            return ACCEPTED
        return Verdict(refusal=f"{status}: {core_text(body.decode('utf-8', 'replace'))}")


class LmdReader(FramedReader):
    """LMD: a header and the sites behind it that failed, each with its reason."""

    def _verdict(self, status: int, body: bytes) -> Verdict:
        if status == _DELAYED:
            return Verdict(doubt="202: still being sent to slow sites")
        if status != _OK:
            return super()._verdict(status, body)
        try:
            failed = orjson.loads(body)["failed"]
            texts = {str(site): str(text) for site, text in failed.items()}
        except (ValueError, LookupError, TypeError, AttributeError):
            raise ProtocolError("no list of failed sites") from None
        if not texts:
            return ACCEPTED
        reasons = "; ".join(f"{site}: {core_text(text)}" for site, text in texts.items())
        if all(_BY_THE_CORE.match(text) for text in texts.values()):
            return Verdict(refusal=reasons)
        return Verdict(doubt=reasons)
