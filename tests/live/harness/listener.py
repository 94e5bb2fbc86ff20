"""What stands in for a core: a Unix socket whose connections are served by threads."""

import contextlib
import socket
import threading
from pathlib import Path


class UnixListener:
    """Listens on ``path``; ``serve`` has each connection in a thread of its own."""

    def __init__(self, path):
        self.path = Path(path)
        self.open = set()
        self.lock = threading.Lock()
        self.listen()

    @property
    def address(self):
        return f"unix:{self.path}"

    def listen(self):
        """Start to accept connections, as a new process does."""
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def die(self):
        """Stop listening and cut every connection."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.path.unlink(missing_ok=True)
        self.cut()

    def cut(self):
        with self.lock:
            connections, self.open = self.open, set()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with self.lock:
                self.open.add(connection)
            threading.Thread(target=self.work, args=(connection,), daemon=True).start()

    def work(self, connection):
        with connection, contextlib.suppress(OSError):
            self.serve(connection)
        with self.lock:
            self.open.discard(connection)

    def serve(self, connection):
        raise NotImplementedError
