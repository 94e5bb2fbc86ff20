"""A mail server of one's own on a real socket, which takes, refuses, delays, cuts and forgets."""

from __future__ import annotations

import email
import email.policy
import socket
import ssl
import threading
from contextlib import suppress

from attrs import define, field


@define
class Mail:
    """A mail that was taken."""

    sender: str
    recipients: list
    data: bytes

    @property
    def message(self):
        return email.message_from_bytes(self.data, policy=email.policy.default)


@define(eq=False)
class MailServer:
    """``refuse`` are replies by recipient, ``replies`` by command (DATA: before the text, "." after).

    ``cut``: the command at which it cuts the connection, "." with the whole text taken.
    ``tls_first``: TLS begins with the connection. ``open``: connections that have not ended.
    ``hold``: the command that it does not answer until ``release`` is called.
    """

    refuse: dict = field(factory=dict)
    replies: dict = field(factory=dict)
    cut: str = ""
    hold: str = ""
    greeting: bytes = b"220 mail.example.org"
    extensions: tuple = ()
    tls: object = None
    tls_first: bool = False
    users: dict = field(factory=dict)
    mails: list = field(factory=list)
    commands: list = field(factory=list)
    connections: int = 0
    open: int = 0
    held: threading.Event = field(factory=threading.Event)
    go: threading.Event = field(factory=threading.Event)
    _listener: socket.socket = field(init=False)

    def __attrs_post_init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def close(self):
        self.go.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def release(self):
        """Answer what is held."""
        self.hold = ""
        self.go.set()

    def _accept(self):
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, connection):
        self.open += 1
        with suppress(OSError, ssl.SSLError), connection:
            if self.tls_first:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self._talk(connection)
        self.open -= 1

    def _wait(self, word):
        if self.hold == word:
            self.held.set()
            self.go.wait(300)

    def _talk(self, connection):
        stream = connection.makefile("rb")
        session = Mail("", [], b"")
        self._wait("connect")
        if self.cut == "connect":
            return
        connection.sendall(self.greeting + b"\r\n")
        while line := stream.readline():
            text = line.decode("utf-8", "replace").strip()
            word = text.upper().split(" ")[0].split(":")[0]
            self.commands.append(text)
            self._wait(word)
            if self.cut == word:
                return
            if word == "STARTTLS" and self.tls is not None:
                connection.sendall(b"220 go\r\n")
                connection = self.tls.wrap_socket(connection, server_side=True)
                stream = connection.makefile("rb")
                self.extensions = tuple(x for x in self.extensions if x != "STARTTLS")
                continue
            reply = self.replies.get(word) or self._reply(word, text, session)
            if word == "DATA" and reply == "354 go on":
                connection.sendall(b"354 go on\r\n")
                reply = self._take(stream, session)
            if reply is None:
                return
            connection.sendall(reply.encode() + b"\r\n")
            if word == "QUIT":
                return

    def _reply(self, word, text, session):
        if word == "EHLO":
            return "\r\n".join(
                ["250-mail.example.org", *(f"250-{x}" for x in self.extensions), "250 HELP"]
            )
        if word == "AUTH":
            return "235 welcome" if text.split(" ")[-1] in self.users else "535 wrong password"
        if word == "MAIL":
            session.sender, session.recipients = text[text.index("<") + 1 : -1], []
        elif word == "RCPT":
            name = text[text.index("<") + 1 : text.index(">")]
            if name in self.refuse:
                return self.refuse[name]
            session.recipients.append(name)
        return {"DATA": "354 go on", "QUIT": "221 bye"}.get(word, "250 ok")

    def _take(self, stream, session):
        """The text of a mail; None where the connection is cut."""
        data = b""
        while not data.endswith(b"\r\n.\r\n"):
            piece = stream.readline()
            if not piece:
                return None
            data += piece
        self._wait(".")
        if "." in self.replies:
            return self.replies["."]
        text = data[:-3].replace(b"\r\n..", b"\r\n.")
        self.mails.append(Mail(session.sender, list(session.recipients), text))
        return None if self.cut == "." else "250 taken"
