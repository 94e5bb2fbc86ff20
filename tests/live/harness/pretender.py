"""An HTTP server that pretends to be another instance, and answers as it is told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SITES = [{"id": "x", "name": "X", "connected": 1, "section": "Default", "instances": []}]


class Pretender:
    """``answers``: path below the API's root to (status, headers, body) or to a function.

    A path is known without its query. ``requests`` are (method, path, headers, body) as they
    came. A function gets the handler of ``http.server`` and writes what it likes.
    """

    def __init__(self):
        self.requests = []
        self.answers = {}
        self.ended = threading.Event()
        self.tell("/sites", SITES)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                outer.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tell(self, path, value, status=200, **headers):
        """Answer ``path`` with JSON, or with bytes as they are."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.answers[path] = (status, headers, body)

    def answer(self, handler):
        path = handler.path.partition("?")[0].removeprefix("/mon/r").removeprefix("/v1")
        found = self.answers.get(path, (404, {}, b"{}"))
        if callable(found):
            found(handler)
            return
        status, headers, body = found
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def hang(self, handler):
        """Say nothing until the end of the test."""
        self.ended.wait(300)
        handler.close_connection = True

    def site(self, key, **more):
        """An entry of ``[[sites]]`` that stands for it."""
        return {
            "id": key,
            "name": key.upper(),
            "address": f"http://127.0.0.1:{self.port}/mon",
            "auth_key": "the-secret-of-the-pretender",
            **more,
        }

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
