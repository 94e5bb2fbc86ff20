"""A small HTTP server over TCP or a Unix socket whose answers a test chooses."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

MAIN = "import sys; from monrest.cli.main import main; sys.exit(main())"


class Seen(NamedTuple):
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        seen = Seen(self.command, self.path, dict(self.headers), self.rfile.read(length))
        self.server.seen.append(seen)
        status, headers, body = self.server.answer(seen)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = handle_any

    def address_string(self):
        return "test"

    def log_message(self, *_arguments):
        return


class TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class Fake:
    """The server; ``answers`` maps a target without query to (status, document or bytes)."""

    def __init__(self, path=None):
        self.server = (
            UnixServer(str(path), Handler) if path else TcpServer(("127.0.0.1", 0), Handler)
        )
        self.server.seen = self.seen = []
        self.server.answer = self.answer
        self.answers = {}
        self.url = f"unix:{path}" if path else f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def answer(self, seen):
        found = self.answers.get(seen.target.partition("?")[0], (404, {"code": 404}))
        if callable(found):
            found = found(seen)
        status, body, *headers = found
        kind = {"Content-Type": "application/json"}
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return status, {**kind, **(headers[0] if headers else {})}, body

    def encrypt(self, authority):
        """Speak TLS as ``localhost``, with a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.sign("localhost"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


class Raw:
    """A server whose connections are each given to ``talk``, behind the head of their request."""

    def __init__(self, talk):
        self.talk, self.heads = talk, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.heads.append(head)
            self.talk(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A thread that accepts is not woken by ``close`` alone.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def says(text, *, and_waits=False):
    """A talk of these bytes, after which the connection is closed, or waits for the client."""

    def talk(connection):
        connection.sendall(text)
        if and_waits:
            with suppress(ConnectionResetError):
                connection.recv(1)

    return talk


def free_address():
    """A URL without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def environment(home, **more):
    """An environment without the settings of the tests' user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MONREST_")}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), **more}


def command(*words, home, stdin=None, **more):
    """Run the real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        env=environment(home, **more),
        input=stdin,
        capture_output=True,
        timeout=300,
        check=False,
    )
