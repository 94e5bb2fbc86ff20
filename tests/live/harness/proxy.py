"""A line between two programs that can be cut: bytes wait until it is mended, as on a network."""

import contextlib
import socket
import threading
from pathlib import Path


class Line:
    """Listens on a TCP port of its own, or on the Unix socket ``path``, and passes on to ``target``.

    ``target`` is a port or the path of a socket. While ``drop`` is in force connections are taken,
    and nothing comes through; ``mend`` lets everything go on that was on its way.
    """

    def __init__(self, target, path=None):
        self.target = target
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            Path(path).chmod(0o777)
            self.listener.listen(64)
        self.open = threading.Event()
        self.open.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def drop(self):
        self.open.clear()

    def mend(self):
        self.open.set()

    def close(self):
        self.listener.close()
        self.open.set()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.join, args=(near,), daemon=True).start()

    def join(self, near):
        self.open.wait()
        try:
            if isinstance(self.target, int):
                far = socket.create_connection(("127.0.0.1", self.target))
            else:
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self.target))
        except OSError:
            near.close()
            return
        threading.Thread(target=self.pump, args=(far, near), daemon=True).start()
        self.pump(near, far)

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                self.open.wait()
                sink.sendall(chunk)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
