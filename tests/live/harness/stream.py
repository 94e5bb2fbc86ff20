"""A client of the stream of events."""

import contextlib
import http.client
import json
import socket
import threading
from urllib.parse import quote, urlencode

from .waiting import until


class Stream:
    """Reads ``/events`` in a thread; ``blocks`` are what came, each as (event, id, data)."""

    def __init__(self, client, parameters=(), headers=(), *, reads=True):
        self.connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=120)
        query = urlencode(parameters, quote_via=quote)
        self.connection.request(
            "GET",
            f"{client.root}/events?{query}",
            headers={**client.credentials(), **dict(headers)},
        )
        self.socket = self.connection.sock
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.answer = self.connection.getresponse()
        self.blocks, self.at, self.ended, self.id = [], 0, False, None
        assert self.answer.status == 200, self.answer.read()
        self.reads = threading.Event()
        if reads:
            self.reads.set()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        block = {}
        self.reads.wait()
        try:
            while line := self.answer.readline():
                text = line.decode().rstrip("\n")
                name, _, value = text.partition(": ")
                if name:
                    block[name] = value
                elif block:
                    self.id = block.get("id", self.id)
                    if "event" in block:
                        data = json.loads(block["data"])
                        self.blocks.append((block["event"], block.get("id"), data))
                    block = {}
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.ended = True

    @property
    def events(self):
        """The events, without what the stream says beside them."""
        return [data for kind, _, data in self.blocks if kind == data.get("type")]

    def begun(self):
        """Wait until the place is known from which it tells."""
        until(lambda: self.id, "the stream says where it is")
        return self

    def next(self, **wanted):
        """The next event whose type or data are these; those before it are passed over."""

        def found():
            while self.at < len(self.events):
                event = self.events[self.at]
                self.at += 1
                if all(
                    (event | event["data"] | {"type": event["type"]}).get(name) == value
                    for name, value in wanted.items()
                ):
                    return event
            assert not self.ended, f"the stream ended before {wanted}"
            return None

        return until(found, f"an event with {wanted} is told")

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.reads.set()
        self.thread.join(20)
        self.answer.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()
