"""The mail that brings a report to its readers, and its way to a mail server (SMTP).

``smtplib`` blocks, so a conversation runs in a thread, in two steps: everything up to the server's
request for the text, then the text. Between them the caller decides whether it may be sent.

A server that did not confirm a mail may have accepted it: that is ``doubtful``, and the mail is not
sent again. Before the end of the text was sent, the server has not accepted it.

Rules: docs/spec/reports.md, "Schedule and mail".
"""

from __future__ import annotations

import base64
import hashlib
import re
import smtplib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from email.header import Header
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as TooLate

from monrest.base.concurrency import Threads
from monrest.config import MailConfig
from monrest.reports.files import FORMATS, File, require_form
from monrest.reports.model import Report, addresses
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Sheet

_LINE = 76


@frozen(kw_only=True)
class Letter:
    """A mail ready to be sent: lines end in a newline, none of them begins with a dot."""

    recipients: tuple[str, ...]
    message: bytes = field(repr=False)


def letter(
    report: Report,
    settings: ReportSettings,
    sheet: Sheet,
    files: Sequence[File],
    config: MailConfig,
    at: int,
    purpose: str,
    now: float,
) -> Letter:
    """The mail of a report that was made for the time ``at``; without recipients it is not sent."""
    to, cc = addresses(report.record["to"]), addresses(report.record["cc"])
    from email.policy import EmailPolicy

    # Lines are made as long as headers of mails may be, and what is not ASCII is encoded.
    message = EmailMessage(EmailPolicy(utf8=False, linesep="\n", raise_on_defect=True))
    say = sheet.spelling.say
    # The same for every try, so that a mail that comes twice is known to be one.
    seed = f"{report.number} {at} {purpose} {now}"
    digest = hashlib.sha256(seed.encode()).hexdigest()[:32]
    head = [
        f"From: {config.sender}",
        *_of_addresses("To", to),
        *_of_addresses("Cc", cc),
        _of_text("Subject", f"{config.subject_prefix}{say('Report')}: {report.name}"),
        f"Date: {formatdate(now)}",
        f"Message-ID: <{digest}@{config.sender.rpartition('@')[2]}>",
        "Auto-Submitted: auto-generated",
        *(_of_text(name, value) for name, value in config.headers.items()),
    ]
    lines = [report.name, "", *(f"{label}: {value}" for label, value in sheet.facts)]
    message.set_content("\n".join(lines) + "\n", cte="base64")
    wanted = (*settings.attach, *(("json",) if settings.attach_json else ()))
    for form in set(wanted) - {file.format for file in files}:
        require_form(form)
    for file in files:
        if file.format in wanted:
            ending, kind, _ = FORMATS[file.format]
            main, _, sub = kind.partition(";")[0].partition("/")
            message.add_attachment(
                file.data,
                maintype=main,
                subtype=sub,
                filename=f"{report.number if file.format == 'json' else 'report'}.{ending}",
            )
    begin = "".join(f"{line}\n" for line in head).encode("ascii")
    return Letter(recipients=tuple(dict.fromkeys((*to, *cc))), message=begin + message.as_bytes())


def _of_addresses(name: str, addresses: Sequence[str]) -> list[str]:
    return [f"{name}: " + ",\n ".join(addresses)] if addresses else []


def _of_text(name: str, text: str) -> str:
    """A header with any text.

    Headers of the library take encoded words inside of a text for what they mean, line ends too.
    """
    plain = text.isascii() and text.isprintable() and "=?" not in text
    whole = Header(text, "ascii" if plain else "utf-8", _LINE, name, errors="replace")
    return f"{name}: {whole.encode()}"


MAILS_AT_ONCE = 4
_FINAL = 600.0
"""Seconds that a server may think about a mail that it has received (RFC 5321, 4.5.3.2.6)."""
_WHOLE = 1800.0
"""Seconds for everything."""
_PIECE = 1 << 18
_MOST_LINES, _LONGEST_LINE = 100, 8192
_LONGEST_TEXT = 300
_REPLY = re.compile(rb"[2-5][0-9][0-9][- \r\n]")
_GOOD, _FOREVER = range(200, 300), range(500, 600)


BeforeText = Callable[[tuple[str, ...]], Awaitable[object]]
"""Called with the recipients that the server accepts, before it gets the text; may refuse."""


@frozen(kw_only=True)
class MailDelivery:
    """The result of a mail by recipient.

    ``taken`` have it. ``refused`` never get it, ``later`` may get it at another try, both with
    reasons. ``problem`` concerns all others; ``final``: another try is of no use. Of the
    ``doubtful`` it is unknown whether they have it.
    """

    taken: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(factory=dict)
    later: Mapping[str, str] = field(factory=dict)
    doubtful: tuple[str, ...] = ()
    problem: str = ""
    final: bool = False


class _Connection(smtplib.SMTP):
    """``SMTP`` with bounded replies, and with passwords that are not ASCII."""

    def __init__(self) -> None:
        name = socket.gethostname()
        # Without a name the library would look one up.
        super().__init__(local_hostname=name if name.isascii() else "localhost")

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None:
            self.file = self.sock.makefile("rb")  # type: ignore[union-attr]
        texts: list[bytes] = []
        while len(texts) < _MOST_LINES:
            line = self.file.readline(_LONGEST_LINE)
            if not line:
                raise smtplib.SMTPServerDisconnected
            if len(line) == _LONGEST_LINE:
                break
            if not _REPLY.match(line):
                raise smtplib.SMTPException("the mail server does not speak SMTP")
            texts.append(line[4:].strip())
            if line[3:4] != b"-":
                return int(line[:3]), b"\n".join(texts)
        raise smtplib.SMTPException("the mail server sends too much")

    def expect(self, code: int, *command: str) -> None:
        """Send a command, or nothing, and read the reply, which must have this code."""
        answer = self.docmd(*command) if command else self.getreply()
        if answer[0] != code:
            raise smtplib.SMTPResponseException(*answer)

    def log_in(self, user: str, password: str) -> None:
        mechanisms = self.esmtp_features.get("auth", "").upper().split()
        if "PLAIN" in mechanisms:
            self.expect(235, "AUTH", f"PLAIN {_base64(f'{chr(0)}{user}{chr(0)}{password}')}")
        elif "LOGIN" in mechanisms:
            self.expect(334, "AUTH", "LOGIN")
            self.expect(334, _base64(user))
            self.expect(235, _base64(password))
        else:
            raise smtplib.SMTPException("the mail server offers neither AUTH PLAIN nor LOGIN")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@define(eq=False)
class MailSession:
    """One connection for one mail. ``offer`` and ``hand_over`` block; ``abort`` ends them."""

    letter: Letter
    config: MailConfig
    taken: tuple[str, ...] = ()
    refused: dict[str, str] = field(factory=dict)
    later: dict[str, str] = field(factory=dict)
    text_sent: bool = False
    aborted: bool = False
    smtp: _Connection = field(init=False, factory=_Connection)

    def offer(self) -> MailDelivery | None:
        """Talk until the server waits for the text; a MailDelivery where it does not want it."""
        config, smtp = self.config, self.smtp
        # TLS compares the certificate with this, which only a constructor that connects would set.
        smtp._host = config.host  # type: ignore[attr-defined]
        try:
            password = Path(config.password_file).read_text("utf-8") if config.password_file else ""
            tls = None
            if config.security != "none":
                tls = ssl.create_default_context(cafile=config.tls_ca_file or None)
        except (OSError, ValueError) as error:
            return MailDelivery(problem=f"a file of [mail] cannot be used: {type(error).__name__}")
        try:
            smtp.sock = socket.create_connection((config.host, config.port), config.timeout)
        except OSError as error:
            return MailDelivery(problem=f"{config.host}:{config.port}: {_reason(error)}")
        try:
            if self.aborted:
                raise smtplib.SMTPServerDisconnected
            if tls is not None and config.security == "tls":
                smtp.sock = tls.wrap_socket(smtp.sock, server_hostname=config.host)
            smtp.expect(220)
            if tls is not None and config.security == "starttls":
                smtp.starttls(context=tls)
            smtp.ehlo_or_helo_if_needed()
            if config.username:
                smtp.log_in(config.username, password.strip())
            smtp.expect(250, "MAIL", f"FROM:<{config.sender}>")
            for recipient in self.letter.recipients:
                # The library's own method would take the first address out of any text.
                code, reply = smtp.docmd("RCPT", f"TO:<{recipient}>")
                if code in _GOOD:
                    self.taken = (*self.taken, recipient)
                else:
                    kind = self.refused if code in _FOREVER else self.later
                    kind[recipient] = _reply_text(code, reply)
            if self.taken:
                smtp.expect(354, "DATA")
                return None
        except (OSError, ValueError) as error:
            return self._failed(error)
        smtp.close()
        return MailDelivery(refused=self.refused, later=self.later)

    def hand_over(self) -> MailDelivery:
        smtp, message = self.smtp, self.letter.message
        try:
            if smtp.sock is not None:
                smtp.sock.settimeout(_FINAL)
            for at in range(0, len(message), _PIECE):
                smtp.send(message[at : at + _PIECE].replace(b"\n", b"\r\n"))
            self.text_sent = True
            smtp.send(b".\r\n")
            code, reply = smtp.getreply()
            if code not in _GOOD:
                self.text_sent = False
                raise smtplib.SMTPResponseException(code, reply)
        except OSError as error:
            return self._failed(error)
        with suppress(OSError):
            smtp.putcmd("QUIT")
        smtp.close()
        return MailDelivery(taken=self.taken, refused=self.refused, later=self.later)

    def abort(self) -> None:
        """Cut the connection under the thread that uses it."""
        self.aborted = True
        if self.smtp.sock is not None:
            with suppress(OSError):
                # Not the method of TLS sockets, after which they send what follows as plain text.
                socket.socket.shutdown(self.smtp.sock, socket.SHUT_RDWR)

    def _failed(self, error: Exception) -> MailDelivery:
        self.smtp.close()
        if isinstance(error, smtplib.SMTPResponseException):
            text = _reply_text(error.smtp_code, error.smtp_error)
            return self.unconfirmed(text, final=error.smtp_code in _FOREVER)
        if isinstance(error, TimeoutError):
            return self.unconfirmed("the mail server does not answer")
        if isinstance(error, ssl.SSLError):
            return self.unconfirmed(f"TLS failed: {_reason(error)}")
        if isinstance(error, (smtplib.SMTPServerDisconnected, ConnectionError)):
            return self.unconfirmed("the mail server cut the connection")
        return self.unconfirmed(_reason(error))

    def unconfirmed(self, problem: str, *, final: bool = False) -> MailDelivery:
        """The server did not confirm the mail, which it may have received already."""
        if not self.text_sent:
            return MailDelivery(problem=problem, final=final)
        return MailDelivery(doubtful=self.taken, problem=problem)


def _reply_text(code: int, reply: bytes | str) -> str:
    words = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    printable = "".join(word if word.isprintable() else " " for word in words)
    return f"{code} {printable.strip()[:_LONGEST_TEXT]}"


def _reason(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    return text[:_LONGEST_TEXT] if text else type(error).__name__


@define(eq=False)
class Mailer(Service):
    """Sends mails in threads of its own: a server that hangs delays no other work."""

    reactor: Any
    _threads: Threads = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._threads = Threads(self.reactor, MAILS_AT_ONCE, "mail")

    def startService(self) -> None:
        super().startService()
        self._threads.startService()

    def stopService(self) -> None:
        """Start no more; a thread that waits for a name lookup ends with the process."""
        super().stopService()
        self._threads.stopService()

    async def deliver(
        self, letter: Letter, config: MailConfig, before_text: BeforeText
    ) -> MailDelivery:
        """Try once. What ``before_text`` raises comes through, and nothing was sent then."""
        if not config.host:
            return MailDelivery(problem="no mail server is configured (mail.host)", final=True)
        session = MailSession(letter, config)

        async def conversation() -> MailDelivery:
            try:
                refusal = await self._threads.run(session.offer)
                if refusal is not None:
                    return refusal
                try:
                    await before_text(session.taken)
                except BaseException:
                    session.smtp.close()
                    raise
                return await self._threads.run(session.hand_over)
            except CancelledError:
                session.abort()
                raise

        try:
            return await Deferred.fromCoroutine(conversation()).addTimeout(_WHOLE, self.reactor)
        except TooLate:
            return session.unconfirmed("the mail server takes too long")
