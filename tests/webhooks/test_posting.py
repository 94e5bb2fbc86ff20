"""Posts over real sockets to receivers that are slow, endless, or not who they say they are."""

import socket
import ssl
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred, ensureDeferred, fail, succeed

from monrest.config import WebhooksConfig
from monrest.webhooks.model import read_url
from monrest.webhooks.posting import Sender, resolver
from tests.fakes.certificates import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Target:
    """Answers each connection with ``answer``, bytes or something that is called with the socket."""

    def __init__(self, answer, context=None):
        self.answer, self.context = answer, context
        self.requests, self.open = [], []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with suppress(OSError):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
                self.open.append(connection)
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line[:14].lower() == b"content-length"
            )  # fmt: skip
            while len(body) < length:
                body += connection.recv(65536)
            self.requests.append((head, body))
            if callable(self.answer):
                self.answer(connection)
            else:
                connection.sendall(self.answer)
            connection.close()

    def close(self):
        self.socket.close()
        for one in self.open:
            with suppress(OSError):
                one.close()


@pytest.fixture
def targets():
    made = []

    def make(answer, context=None):
        made.append(Target(answer, context))
        return made[-1]

    yield make
    for one in made:
        one.close()


def sender(resolve=lambda name: succeed(["127.0.0.1"]), **config):
    config = {"allow": ("127.0.0.1",), "timeout": 5.0, **config}
    wall = SimpleNamespace(now=lambda: 1_700_000_000.0)
    return Sender(reactor=reactor, wall=wall, resolve=resolve, config=WebhooksConfig(**config))


def post(one, url, headers=None, body=b"{}"):
    return ensureDeferred(one.post(read_url(url), headers or {}, body))


async def test_what_is_sent(targets):
    target = targets(OK)
    url = f"http://hooks.example.org:{target.port}/a/b?c=d"
    result = await post(sender(), url, {"Webhook-Id": "msg_1", "Content-Type": "x/y"}, b"body")
    assert (result.status, result.error, result.taken) == (200, "", True)
    ((head, body),) = target.requests
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /a/b?c=d HTTP/1.1"
    assert f"Host: hooks.example.org:{target.port}" in lines
    assert {"User-Agent: monrest", "Content-Length: 4", "Content-Type: x/y"} <= set(lines)
    assert body == b"body"


def status(code, text="no", more=""):
    return f"HTTP/1.1 {code} X\r\n{more}Content-Length: {len(text)}\r\n\r\n{text}".encode()


async def test_what_answers_mean(targets):
    metadata = "Location: http://169.254.169.254/latest/meta-data\r\n"
    wrong = []
    for answer, code, error, by_target, rest in (
        (status(204, ""), 204, "", False, 0),
        (status(302, "", metadata), 302, "status 302: redirects are not followed", True, 0),
        (status(307, "", metadata), 307, "status 307: redirects are not followed", True, 0),
        (status(400, "invalid_payload\nsecond"), 400, "status 400: invalid_payload", False, 0),
        (status(404, ""), 404, "status 404", True, 0),
        (status(410, ""), 410, "status 410", False, 0),
        (status(429, "", "Retry-After: 120\r\n"), 429, "status 429", True, 120),
        (status(503, "", "Retry-After: Tue, 14 Nov 2023 22:14:20 GMT\r\n"), 503, "status 503", True, 60),
        (status(503, "", "Retry-After: soon\r\n"), 503, "status 503", True, 0),
        (status(503, "", "Retry-After: 99999999999\r\n"), 503, "status 503", True, 86400),
        (status(500, "x" * 5000), 500, "status 500: " + "x" * 200, False, 0),
        (b"not http\r\n\r\n", None, "not an answer of HTTP", True, 0),
        (b"", None, "the connection was closed before the answer was complete", True, 0),
        (b"HTTP/1.1 200 OK\r\nX-Y: 1\r\n", None, "the connection was closed before the answer was complete", True, 0),
    ):  # fmt: skip
        target = targets(answer)
        result = await post(sender(), f"http://h:{target.port}/")
        found = (result.status, result.error, result.by_target, result.rest)
        if found != (code, error, by_target, rest) or len(target.requests) != 1:
            wrong.append((answer[:40], found))
    assert wrong == []


def endless(piece, begin=b""):
    def answer(connection):
        connection.sendall(begin)
        while True:
            connection.sendall(piece)

    return answer


async def test_an_endless_answer_is_cut(targets):
    too_much = "an answer of more than 65536 bytes"
    wrong = []
    for answer, code, error in (
        (endless(b"X-A: 1\r\n" * 100, b"HTTP/1.1 200 OK\r\n"), None, too_much),
        (endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 50), None, too_much),
        (endless(b"x" * 5000, b"HTTP/1.1 200 OK\r\n\r\n"), 200, ""),
        (endless(b"x" * 5000, b"HTTP/1.1 500 X\r\n\r\n"), 500, "status 500: " + "x" * 200),
    ):
        target = targets(answer)
        result = await post(sender(), f"http://h:{target.port}/")
        if (result.status, result.error) != (code, error):
            wrong.append((code, result))
    assert wrong == []


async def test_a_slow_answer_is_not_waited_for(targets):
    def drip(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100):
            connection.sendall(b"X-A: 1\r\n")
            time.sleep(0.1)

    for answer in (drip, lambda _: time.sleep(5)):
        target = targets(answer)
        result = await post(sender(timeout=1.0), f"http://h:{target.port}/")
        assert (result.status, result.error) == (None, "timed out after 1 s")


async def test_addresses_are_checked_and_a_name_cannot_change(targets):
    target = targets(OK)
    url = f"http://rebind.example.org:{target.port}/"
    refused = "rebind.example.org has no address that is public or in webhooks.allow"
    asked = []

    def resolve(name):
        asked.append(name)
        # What is looked up again is another address: nobody may ask twice for one message.
        return succeed(["127.0.0.1" if len(asked) == 1 else "169.254.169.254"])

    one = sender(resolve)
    assert (await post(one, url)).taken
    assert asked == ["rebind.example.org"]
    assert (await post(one, url)).error == refused
    assert len(target.requests) == 1
    assert (await post(sender(allow=()), url)).error == refused
    # A name that there is not and one that is internal cannot be told apart.
    for resolve in (lambda _: succeed([]), lambda _: fail(OSError())):
        assert (await post(sender(resolve), url)).error == refused
    assert len(target.requests) == 1
    # Allowed by name, but not for the address that clouds give secrets at.
    named = {"allow": ("rebind.example.org",)}
    assert (await post(sender(**named), url)).taken
    there = sender(lambda _: succeed(["169.254.169.254"]), **named)
    assert (await post(there, url)).error == refused


async def test_a_resolver_that_hangs_is_not_waited_for():
    hanging = Deferred()
    result = await post(sender(lambda _: hanging, timeout=1.0), "http://h/")
    assert result.error == "timed out after 1 s"


async def test_the_certificate_must_be_of_the_name(targets, tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.sign("hooks.example.org")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    target = targets(OK, context)
    trusting = {"ca_file": authority.ca_file}
    good = f"https://hooks.example.org:{target.port}/"
    wrong = f"https://other.example.org:{target.port}/"
    assert (await post(sender(**trusting), good)).taken
    result = await post(sender(**trusting), wrong)
    assert (result.taken, result.error[:4]) == (False, "TLS:")
    result = await post(sender(), good)
    assert (result.taken, result.error[:4]) == (False, "TLS:")
    assert len(target.requests) == 1


async def test_a_name_of_the_system_is_found(targets):
    target = targets(OK)
    one = sender(resolver(reactor), allow=("127.0.0.0/8", "::1"))
    assert (await post(one, f"http://localhost:{target.port}/")).taken
    result = await post(one, "http://nothing.invalid/")
    assert result.error == "nothing.invalid has no address that is public or in webhooks.allow"


async def test_a_receiver_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    result = await post(sender(), f"http://h:{port}/")
    assert (result.error, result.by_target) == ("connection refused", True)
