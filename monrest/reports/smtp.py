"""Handing one mail over to a mail server (SMTP), which happens once or is said not to have.

A server that did not say whether it has taken a mail may have: that is ``doubtful``, and it is not
sent again. Before the end of the text was sent, it has not.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from OpenSSL import SSL
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import (
    ConnectError,
    ConnectionAborted,
    ConnectionDone,
    ConnectionLost,
    DNSLookupError,
)
from twisted.internet.error import TimeoutError as NoConnection
from twisted.internet.interfaces import IDelayedCall, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates
from twisted.python.failure import Failure

from monrest.base.concurrency import Threads
from monrest.config import MailConfig
from monrest.reports.letter import Letter

if TYPE_CHECKING:
    from twisted.mail.smtp import ESMTPClient as _Base
else:
    # Twisted's client installs a reactor when it is imported, so it joins as the first mail leaves.
    _Base = object

_FINAL = 600.0
"""Seconds that a server may think about a mail it has got (RFC 5321, section 4.5.3.2.6)."""

_WHOLE = 1800.0
"""Seconds for everything."""

_MOST_LINES = 100
_LONGEST_TEXT = 300
_GOOD = range(200, 300)
_FOREVER = range(500, 600)
_BEGIN = b"-----BEGIN CERTIFICATE-----"

BeforeText = Callable[[tuple[str, ...]], Awaitable[object]]
"""Called with those recipients that the server takes, before it gets the text; may refuse."""

Connect = Callable[[MailConfig], IStreamClientEndpoint]


@frozen(kw_only=True)
class MailDelivery:
    """What became of a mail.

    ``taken`` have it. ``refused`` never get it, ``later`` may get it at another try, both with
    reasons. ``problem`` concerns all others; ``final``: another try is of no use. ``doubtful`` are
    those of whom it is unknown.
    """

    taken: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(factory=dict)
    later: Mapping[str, str] = field(factory=dict)
    doubtful: tuple[str, ...] = ()
    problem: str = ""
    final: bool = False


def _said(code: int, text: bytes | str) -> str:
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    shown = "".join(one if one.isprintable() else " " for one in words).strip()[:_LONGEST_TEXT]
    return f"{code} {shown}" if code > 0 else shown


class _Client(_Base):
    """One connection for one mail; ``done`` fires with the Delivery.

    ``_client`` makes one, on top of Twisted's ESMTPClient.
    """

    debug = False  # it would keep passwords

    def __init__(
        self,
        letter: Letter,
        config: MailConfig,
        password: str,
        tls: Any,
        clock: IReactorTime,
        before_text: BeforeText,
    ) -> None:
        host = socket.gethostname()
        named = bool(host) and host.isascii() and host.isprintable()
        super().__init__(password.encode() or None, tls, host.encode() if named else b"localhost")
        self.done: Deferred[MailDelivery] = Deferred(lambda _: self._leave())
        self.patience, self.clock = config.timeout, clock
        self.requireTransportSecurity = config.security != "none"
        self.requireAuthentication = bool(config.username)
        self.letter, self.before_text = letter, before_text
        self.sender: str | None = config.sender
        self.text_sent = False
        self.gone = False
        self.polite = False
        if config.username:
            from twisted.mail.smtp import LOGINAuthenticator, PLAINAuthenticator

            user = config.username.encode()
            self.registerAuthenticator(PLAINAuthenticator(user))
            self.registerAuthenticator(LOGINAuthenticator(user))

    def callLater(self, period: float, func: Callable[[], object]) -> IDelayedCall:
        """Use the clock of the daemon."""
        return self.clock.callLater(period, func)

    def connectionMade(self) -> None:
        """Wait for the server, but not for ever."""
        super().connectionMade()
        self.setTimeout(self.patience)

    def getMailFrom(self) -> str | None:
        """Give the sender once."""
        sender, self.sender = self.sender, None
        return sender

    def getMailTo(self) -> tuple[str, ...]:
        return self.letter.recipients

    def getMailData(self) -> io.BytesIO:
        return io.BytesIO(self.letter.message)

    def smtpState_data(self, code: int, resp: bytes) -> None:
        """Ask whether the text may be sent, now that the server waits for it."""
        self.setTimeout(None)
        taken = tuple(_text(one) for one in self.successAddresses)

        def go_on(_: object) -> None:
            if not self.gone:
                self.setTimeout(_FINAL)
                super(_Client, self).smtpState_data(code, resp)

        asked = Deferred.fromCoroutine(_awaited(self.before_text(taken)))
        asked.addCallbacks(go_on, self._failed)
        asked.addErrback(self._failed)

    def finishedFileTransfer(self, lastsent: bytes) -> None:
        """Send the end of the text, from where on the server may have taken it."""
        self.text_sent = True
        self.setTimeout(_FINAL)
        super().finishedFileTransfer(lastsent)

    def lineReceived(self, line: bytes) -> Any:
        """Take a line, but not any number of them."""
        if len(self.resp) > _MOST_LINES:
            self._end(self.unanswered("the mail server does not stop talking"))
            return None
        return super().lineReceived(line)

    def lineLengthExceeded(self, line: bytes) -> Any:
        """Give up on a server that says too much."""
        self._end(self.unanswered("the mail server said too much"))
        return super().lineLengthExceeded(line)

    def sentMail(self, code: int, resp: Any, numOk: int, addresses: Any, log: Any) -> None:
        """Tell what the server said in the end, about the mail or about its recipients."""
        del numOk, log
        refused: dict[str, str] = {}
        later: dict[str, str] = {}
        for address, said, why in addresses:
            if said not in _GOOD:
                kind = refused if said in _FOREVER else later
                kind[_text(address)] = _said(said, why)
        if code in _GOOD and self.text_sent:
            taken = tuple(_text(one) for one in self.successAddresses)
            self.polite = True
            self._end(MailDelivery(taken=taken, refused=refused, later=later))
        elif addresses and not self.successAddresses:
            self._end(MailDelivery(refused=refused, later=later))
        else:
            self._end(MailDelivery(problem=_said(code, resp), final=code in _FOREVER))

    def sendError(self, exc: BaseException) -> None:
        """Tell what is wrong before anything was sent, or that no answer came."""
        from twisted.mail.smtp import SMTPTimeoutError

        code = getattr(exc, "code", -1)
        if isinstance(exc, SMTPTimeoutError):
            text = "the mail server does not answer"
        else:
            said = getattr(exc, "resp", None)
            text = _said(code, said) if said else type(exc).__name__
        self._end(self.unanswered(text, final=code in _FOREVER))

    def connectionLost(self, reason: Failure = Failure(CancelledError())) -> None:  # noqa: B008  of the library
        """Tell that the server went away."""
        self.gone = True
        super().connectionLost(reason)
        cut = reason.check(ConnectionDone, ConnectionLost, ConnectionAborted, CancelledError)
        cause = "the mail server cut the connection" if cut else "TLS failed"
        self._end(self.unanswered(cause))

    def unanswered(self, problem: str, *, final: bool = False) -> MailDelivery:
        """Nothing was said about the mail, which the server may have had already."""
        if not self.text_sent:
            return MailDelivery(problem=problem, final=final)
        doubtful = tuple(_text(one) for one in self.successAddresses)
        return MailDelivery(doubtful=doubtful, problem=problem)

    def _failed(self, failure: Failure) -> None:
        if not self.done.called:
            self.done.errback(failure)
        self._leave()

    def _end(self, delivery: MailDelivery) -> None:
        if not self.done.called:
            self.done.callback(delivery)
        self._leave()

    def _leave(self) -> None:
        self.setTimeout(None)
        transport: Any = self.transport
        if self.gone or transport is None:
            return
        if self.polite:
            transport.write(b"QUIT\r\n")
            transport.loseConnection()
        else:
            transport.abortConnection()


def _client(*arguments: Any) -> _Client:
    """Make a client; the arguments are those of ``_Client``."""
    from twisted.mail.smtp import ESMTPClient

    class Client(_Client, ESMTPClient):
        """Both."""

    return Client(*arguments)


async def _awaited(work: Awaitable[object]) -> None:
    await work


def _text(address: Any) -> str:
    return address.decode("ascii", "replace") if isinstance(address, bytes) else str(address)


@frozen(kw_only=True)
class Mailer:
    """``connect`` gives the endpoint of a mail server."""

    clock: IReactorTime
    threads: Threads
    connect: Connect

    async def deliver(
        self, letter: Letter, config: MailConfig, before_text: BeforeText
    ) -> MailDelivery:
        """Try once. What ``before_text`` raises comes through, and nothing was sent then."""
        if not config.host:
            return MailDelivery(problem="no mail server is configured (mail.host)", final=True)
        try:
            password, tls = await self.threads.run(lambda: (_password(config), _tls(config)))
        except (OSError, ValueError, SSL.Error) as error:
            return MailDelivery(problem=f"a file of [mail] cannot be used: {type(error).__name__}")
        endpoint = self.connect(config)
        if config.security == "tls":
            endpoint = wrapClientTLS(tls, endpoint)
        starttls = tls if config.security == "starttls" else None
        client = _client(letter, config, password, starttls, self.clock, before_text)
        where = f"{config.host}:{config.port}"
        try:
            await endpoint.connect(Factory.forProtocol(lambda: client)).addTimeout(
                config.timeout, self.clock
            )
        except (ConnectError, DNSLookupError, NoConnection, TooLate, OSError, SSL.Error) as error:
            return MailDelivery(problem=f"{where}: {_reason(error)}")
        client.done.addTimeout(_WHOLE, self.clock)
        try:
            return await client.done
        except TooLate:
            return client.unanswered("the mail server takes too long")


def _reason(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    return text[:_LONGEST_TEXT] if text else type(error).__name__


def _password(config: MailConfig) -> str:
    return Path(config.password_file).read_text("utf-8").strip() if config.password_file else ""


def _tls(config: MailConfig) -> Any:
    """The other end must be the host of that name."""
    if config.security == "none":
        return None
    trust = None
    if config.tls_ca_file:
        pieces = Path(config.tls_ca_file).read_bytes().split(_BEGIN)[1:]
        trust = trustRootFromCertificates([Certificate.loadPEM(_BEGIN + one) for one in pieces])
    return optionsForClientTLS(config.host, trustRoot=trust)


def endpoint(reactor: Any) -> Connect:
    """The endpoints of mail servers by name and port."""
    return lambda config: HostnameEndpoint(
        reactor, config.host, config.port, timeout=config.timeout
    )
