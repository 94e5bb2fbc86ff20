"""Handing mails over to servers on real sockets: good ones, dead ones, slow ones, liars."""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager

import pytest
from twisted.internet import reactor
from twisted.internet.task import Clock

from monrest.concurrency import Threads, pause
from monrest.config.values import MailConfig
from monrest.reports.letter import Letter
from monrest.reports.smtp import Mailer, endpoint
from tests.fakes.certificates import Authority
from tests.fakes.smtp import MailServer

TEXT = b"Subject: x\n\nline\n"
TO = ("a@example.org", "b@example.org")


@pytest.fixture
def server():
    one = MailServer()
    yield one
    one.close()


@pytest.fixture
async def threads():
    one = Threads(reactor, 2, "mails")
    one.startService()
    yield one
    await one.stopService()


@pytest.fixture
def deliver(server, threads):
    async def work(*, before=None, to=TO, text=TEXT, clock=reactor, **config):
        mailer = Mailer(clock=clock, threads=threads, connect=endpoint(reactor))
        asked = []

        async def before_text(taken):
            asked.append((taken, len(server.mails)))
            if before is not None:
                raise before

        given = {"host": "127.0.0.1", "port": server.port, "timeout": 20.0, **config}
        done = await mailer.deliver(
            Letter(recipients=to, message=text), MailConfig(**given), before_text
        )
        return done, asked

    return work


async def test_a_mail(server, deliver):
    done, asked = await deliver(text=b"Subject: x\n\nline\nlast", sender="me@example.org")
    assert (done.taken, done.problem, done.doubtful) == (TO, "", ())
    assert asked == [(TO, 0)]
    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == ("me@example.org", list(TO))
    assert mail.data == b"Subject: x\r\n\r\nline\r\nlast\r\n"


async def test_nobody_listens(deliver):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done, asked = await deliver(port=free.getsockname()[1])
    assert "refused" in done.problem
    assert not done.final
    assert asked == []


async def test_no_server_is_configured(deliver):
    done, _ = await deliver(host="")
    assert (done.problem, done.final) == ("no mail server is configured (mail.host)", True)


async def test_some_recipients_are_refused(server, deliver):
    server.refuse = {"b@example.org": "550 5.1.1 no such user"}
    done, asked = await deliver()
    assert done.taken == ("a@example.org",)
    assert dict(done.refused) == {"b@example.org": "550 5.1.1 no such user"}
    assert asked == [(("a@example.org",), 0)]
    assert server.mails[0].recipients == ["a@example.org"]


async def test_some_may_have_it_later(server, deliver):
    server.refuse = {"b@example.org": "450 try later", "a@example.org": "550 never"}
    done, asked = await deliver()
    assert dict(done.later) == {"b@example.org": "450 try later"}
    assert dict(done.refused) == {"a@example.org": "550 never"}
    assert (done.problem, asked, server.mails) == ("", [], [])


@pytest.mark.parametrize(
    ("command", "reply", "final"),
    [("MAIL", "451 busy", False), ("MAIL", "553 who are you", True), ("DATA", "452 full", False),
     ("DATA", "554 no", True), (".", "554 this is spam", True), (".", "451 not now", False)],
)  # fmt: skip
async def test_the_server_does_not_want_it(server, deliver, command, reply, final):
    server.replies = {command: reply}
    done, _ = await deliver()
    assert (done.taken, done.doubtful, done.problem, done.final) == ((), (), reply, final)


@pytest.mark.parametrize("greeting", [b"554 go away", b"421 too busy"])
async def test_a_server_that_says_no_at_once(server, deliver, greeting):
    server.greeting = greeting
    done, _ = await deliver()
    assert (done.problem, done.final) == (greeting.decode(), greeting.startswith(b"5"))


@pytest.mark.parametrize("command", ["connect", "EHLO", "MAIL", "RCPT", "DATA"])
async def test_cut_before_the_text(server, deliver, command):
    server.cut = command
    done, _ = await deliver()
    assert done.problem == "the mail server cut the connection"
    assert (done.doubtful, done.final) == ((), False)


async def test_cut_after_the_text_is_doubtful(server, deliver):
    """The server has the mail and did not say so."""
    server.cut = "."
    done, _ = await deliver()
    assert (done.taken, done.doubtful) == ((), TO)
    assert done.problem == "the mail server cut the connection"
    assert len(server.mails) == 1


@pytest.mark.parametrize("command", ["connect", "EHLO", "RCPT", "."])
async def test_no_answer(server, deliver, command):
    """Time passes only while the server holds the answer back."""
    server.hold = command
    clock = Clock()
    finished = []
    waiting = deliver(clock=clock)
    from twisted.internet.defer import Deferred

    doing = Deferred.fromCoroutine(waiting)
    doing.addBoth(lambda found: finished.append(found) or found)
    while not server.held.is_set():
        await pause(reactor, 0.01)
    while not finished:
        clock.advance(300)
        await pause(reactor, 0.01)
    done, _ = await doing
    assert done.problem in ("the mail server does not answer", "the mail server takes too long")
    assert done.doubtful == (TO if command == "." else ())


async def test_a_server_that_never_stops_talking(server, deliver):
    server.greeting = b"\r\n".join([b"220-blah"] * 500 + [b"220 hello"])
    done, _ = await deliver()
    assert done.problem == "the mail server does not stop talking"
    server.greeting = b"220 " + b"x" * 100_000
    done, _ = await deliver()
    assert done.problem == "the mail server said too much"


async def test_a_server_that_talks_nonsense(server, deliver):
    server.greeting = b"hello there \xff"
    done, _ = await deliver()
    assert done.problem.startswith("Invalid response")
    assert done.problem.isprintable()


async def test_the_last_word_is_ours(server, deliver):
    """Who lost the right to send it says so when the server waits for the text."""
    with pytest.raises(LookupError):
        await deliver(before=LookupError("not mine"))
    assert server.mails == []


# -------------------------------------------------------------------- TLS and logins


@contextmanager
def certified(server, tmp_path, name="localhost"):
    authority = Authority(tmp_path)
    certificate = authority.issue(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    server.tls = context
    yield str(authority.file)
