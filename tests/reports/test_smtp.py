"""Handing mails over to servers on real sockets: good ones, dead ones, slow ones, liars."""

from __future__ import annotations

import base64
import email
import email.policy
import socket
import ssl
from email.header import decode_header, make_header

import pytest
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.concurrency import pause
from monrest.config import MailConfig
from monrest.reports.files import rendered
from monrest.reports.mail import Letter, MailDelivery, Mailer, letter
from monrest.reports.templates import TEMPLATES
from tests.fakes.certificates import Authority
from tests.fakes.smtp import MailServer
from tests.reports.samples import HOSTILE, NOW, report
from tests.reports.test_looks import sheet
from tests.table import each

TEXT = b"Subject: x\n\nline\n"
TO = ("a@example.org", "b@example.org")


@pytest.fixture
def server():
    one = MailServer()
    yield one
    one.close()


@pytest.fixture
def deliver(server):
    mailer = Mailer(reactor)
    mailer.startService()

    async def work(*, before=None, to=TO, text=TEXT, **config):
        asked = []

        async def before_text(taken):
            asked.append((taken, len(server.mails)))
            if before is not None:
                raise before

        given = {"host": "127.0.0.1", "port": server.port, "timeout": 20.0, **config}
        letter = Letter(recipients=to, message=text)
        return await mailer.deliver(letter, MailConfig(**given), before_text), asked

    yield work
    mailer.stopService()


async def test_a_mail(server, deliver):
    done, asked = await deliver(text=b"Subject: x\n\nline\nlast\n", sender="me@example.org")
    assert (done.taken, done.problem, done.doubtful) == (TO, "", ())
    assert asked == [(TO, 0)]
    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == ("me@example.org", list(TO))
    assert mail.data == b"Subject: x\r\n\r\nline\r\nlast\r\n"


async def test_no_server_listens(deliver):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done, asked = await deliver(port=free.getsockname()[1])
    assert "refused" in done.problem
    assert not done.final
    assert asked == []


async def test_no_server_is_configured(deliver):
    done, _ = await deliver(host="")
    assert (done.problem, done.final) == ("no mail server is configured (mail.host)", True)


A, B = TO
CUT = "the mail server cut the connection"
TOO_MUCH = "the mail server sends too much"


@pytest.mark.parametrize(
    ("does", "delivery", "mails"),
    [
        ({"refuse": {B: "550 5.1.1 no such user"}},
         {"taken": (A,), "refused": {B: "550 5.1.1 no such user"}}, 1),
        ({"refuse": {B: "450 try later", A: "550 never"}},
         {"later": {B: "450 try later"}, "refused": {A: "550 never"}}, 0),
        ({"replies": {"MAIL": "451 busy"}}, {"problem": "451 busy"}, 0),
        ({"replies": {"MAIL": "553 who are you"}}, {"problem": "553 who are you", "final": True}, 0),
        ({"replies": {"DATA": "452 full"}}, {"problem": "452 full"}, 0),
        ({"replies": {"DATA": "554 no"}}, {"problem": "554 no", "final": True}, 0),
        ({"replies": {".": "554 this is spam"}}, {"problem": "554 this is spam", "final": True}, 0),
        ({"replies": {".": "451 not now"}}, {"problem": "451 not now"}, 0),
        ({"greeting": b"554 go away"}, {"problem": "554 go away", "final": True}, 0),
        ({"greeting": b"421 too busy"}, {"problem": "421 too busy"}, 0),
        *(({"cut": one}, {"problem": CUT}, 0) for one in ("connect", "EHLO", "MAIL", "RCPT", "DATA")),
        # The server has the mail and did not say so.
        ({"cut": "."}, {"problem": CUT, "doubtful": TO}, 1),
        ({"greeting": b"\r\n".join([b"220-blah"] * 500 + [b"220 hello"])}, {"problem": TOO_MUCH}, 0),
        ({"greeting": b"220 " + b"x" * 100_000}, {"problem": TOO_MUCH}, 0),
        ({"greeting": b"hello there \xff"}, {"problem": "the mail server does not speak SMTP"}, 0),
    ],
)  # fmt: skip
async def test_what_a_server_does(server, deliver, does, delivery, mails):
    for name, value in does.items():
        setattr(server, name, value)
    done, asked = await deliver()
    assert done == MailDelivery(**delivery)
    assert [mail.recipients for mail in server.mails] == [list(done.taken or done.doubtful)] * mails
    assert [list(taken) for taken, _ in asked][:mails] == [one.recipients for one in server.mails]
    # Whether the text may be sent is not asked while no recipient is taken.
    assert all(taken for taken, _ in asked)


@pytest.mark.parametrize("command", ["connect", "EHLO", "RCPT", "."])
async def test_no_answer(server, deliver, command, monkeypatch):
    server.hold = command
    monkeypatch.setattr("monrest.reports.mail._FINAL", 0.2)
    done, _ = await deliver(timeout=20.0 if command == "." else 0.2)
    assert done.problem == "the mail server does not answer"
    assert done.doubtful == (TO if command == "." else ())


@pytest.mark.parametrize("command", ["connect", "RCPT", "."])
async def test_the_connection_is_cut_when_the_daemon_stops(server, deliver, command):
    """And when the whole takes too long, which cancels it in the same way."""
    server.hold = command
    doing = Deferred.fromCoroutine(deliver())
    while not server.held.is_set():
        await pause(reactor, 0.01)
    doing.cancel()
    with pytest.raises(CancelledError):
        await doing
    server.release()
    while server.open:
        await pause(reactor, 0.01)
    assert "QUIT" not in server.commands
    assert len(server.mails) == (command == ".")


async def test_a_server_that_takes_too_long(server, deliver, monkeypatch):
    server.hold = "."
    monkeypatch.setattr("monrest.reports.mail._WHOLE", 0.5)
    done, _ = await deliver()
    assert (done.problem, done.doubtful) == ("the mail server takes too long", TO)


async def test_an_address_is_no_command(server, deliver):
    """Such an address is refused when a report is stored; none leaves the daemon either."""
    done, _ = await deliver(to=("a@example.org>\r\nRCPT TO:<b@example.org",))
    assert "prohibited newline characters" in done.problem
    assert (done.taken, server.mails) == ((), [])
    assert not any(one.startswith("RCPT") for one in server.commands)


async def test_the_last_word_is_ours(server, deliver):
    """Who lost the right to send it says so when the server waits for the text."""
    with pytest.raises(LookupError):
        await deliver(before=LookupError("not mine"))
    assert server.mails == []


LOGIN = base64.b64encode("\0me\0geheim ü".encode()).decode()


@pytest.fixture
def authority(server, tmp_path):
    """A server with TLS; gives the file of who signed its certificate."""
    made = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*made.sign("localhost"))
    server.tls = context
    (tmp_path / "password").write_text("geheim ü\n")
    return made.ca_file


async def test_starttls_and_login(server, deliver, authority, tmp_path):
    server.extensions, server.users = ("STARTTLS", "AUTH PLAIN LOGIN"), {LOGIN}
    done, _ = await deliver(
        host="localhost", security="starttls", tls_ca_file=authority, username="me",
        password_file=str(tmp_path / "password"),
    )  # fmt: skip
    assert done.taken == TO
    assert server.commands.index("STARTTLS") < server.commands.index(f"AUTH PLAIN {LOGIN}")


async def test_tls_from_the_beginning(server, deliver, authority):
    server.tls_first = True
    done, _ = await deliver(host="localhost", security="tls", tls_ca_file=authority)
    assert done.taken == TO


async def test_a_wrong_password(server, deliver, authority, tmp_path):
    server.extensions = ("STARTTLS", "AUTH PLAIN")
    done, _ = await deliver(
        host="localhost", security="starttls", tls_ca_file=authority, username="me",
        password_file=str(tmp_path / "password"),
    )  # fmt: skip
    assert (done.problem, done.final) == ("535 wrong password", True)
    assert "geheim" not in repr(done)


async def test_no_tls_no_mail(server, deliver, authority):
    """A server, or a proxy in between, that does not offer TLS gets nothing."""
    done, _ = await deliver(host="localhost", security="starttls", tls_ca_file=authority)
    assert done.problem == "STARTTLS extension not supported by server"
    assert [one.split(" ")[0] for one in server.commands] == ["ehlo"]


async def test_a_certificate_for_another_name(server, deliver, authority):
    server.extensions = ("STARTTLS",)
    # Signed by the right one, for another name.
    done, asked = await deliver(host="127.0.0.1", security="starttls", tls_ca_file=authority)
    assert done.problem.startswith("TLS failed: ")
    assert (asked, server.mails) == ([], [])


async def test_a_file_that_is_gone(deliver, tmp_path):
    done, _ = await deliver(host="localhost", security="tls", tls_ca_file=str(tmp_path / "none"))
    assert done.problem == "a file of [mail] cannot be used: FileNotFoundError"


def written(server_config=None, params=None, **fields):
    one = report("sla_report.tt", {"attach_json": "yes", "attach": "pdf,xls,csv,html", **(params or {})},
                 to="b@x.org, a@x.org", cc="c@x.org", **fields)  # fmt: skip
    made = sheet(2)
    config = MailConfig(**(server_config or {}))
    return letter(one, one.settings(TEMPLATES), made, rendered(made), config, NOW, "schedule", NOW)


async def test_a_report_arrives_as_it_left(server, deliver):
    """Attachments and umlauts, over a connection that knows lines only."""
    made = written({"sender": "mon@x.org", "subject_prefix": "[mon] ", "headers": {"X-Mon": "1"}},
                   name="Größe " + "ü" * 100)  # fmt: skip
    assert made.recipients == ("b@x.org", "a@x.org", "c@x.org")
    done, _ = await deliver(to=made.recipients, text=made.message)
    assert done.taken == made.recipients
    message = server.mails[0].message
    assert message["Subject"] == "[mon] Report: Größe " + "ü" * 100
    assert (message["From"], message["To"], message["Cc"]) == (
        "mon@x.org", "b@x.org, a@x.org", "c@x.org",
    )  # fmt: skip
    assert (message["X-Mon"], message["Auto-Submitted"]) == ("1", "auto-generated")
    assert message["Message-ID"].endswith("@x.org>")
    parts = {one.get_filename(): one.get_content() for one in message.iter_attachments()}
    assert set(parts) == {"report.pdf", "report.xlsx", "report.csv", "report.html", "1.json"}
    assert parts["report.pdf"].startswith(b"%PDF-")
    assert parts["report.pdf"].rstrip().endswith(b"%%EOF")
    assert "Average: " in message.get_body().get_content()


def test_lines_of_a_mail():
    lines = written(name=".hidden", desc="first\n.\nlast").message.split(b"\n")
    assert max(map(len, lines)) < 998
    assert not any(one.startswith(b".") for one in lines)


HEADERS = [
    "From", "To", "Cc", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Mon", "MIME-Version",
    "Content-Type",
]  # fmt: skip


@each(
    "name",
    [
        HOSTILE.replace("\r", "") + "Bcc: x@y.z", "=?utf-8?q?=0aBcc:_x@y.z?=",
        "=?utf-8?b?CkJjYzogeEB5Lno=?= ü", "a: b; c=d", "ü" * 300, "x" * 300, "😀 " * 90, "=?", "?=",
        "word " * 59,
    ],
)  # fmt: skip
def test_hostile_names_make_no_headers(name):
    """A name is the subject as it is, through all encodings of mails."""
    made = written({"headers": {"X-Mon": name}}, name=name, desc="x\r\n\r\nBcc: x@y.z")
    message = email.message_from_bytes(made.message, policy=email.policy.compat32)
    assert message.keys() == HEADERS
    for header, text in (("Subject", f"Report: {name.strip()}"), ("X-Mon", name.strip())):
        said = message[header].replace("\n", "").strip()
        assert str(make_header(decode_header(said))).strip() == text
    assert made.message.isascii()
    assert max(map(len, made.message.split(b"\n"))) < 998


def test_the_same_mail_has_the_same_id():
    one, two = (written().message for _ in range(2))
    ids = [next(x for x in made.split(b"\n") if x.startswith(b"Message-ID")) for made in (one, two)]
    assert ids[0] == ids[1]
