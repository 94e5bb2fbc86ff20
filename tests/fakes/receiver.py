"""A receiver of webhooks: an HTTP server in threads that answers as a test says."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HookReceiver:
    """``posts`` are (headers, body) in the order in which they came; ``answer`` gives the status.

    While it is held nothing is answered; ``held`` is set when a request waits.
    """

    def __init__(self, answer=lambda headers, body: 204):
        self.posts, self.answer = [], answer
        self.held, self._go = threading.Event(), threading.Event()
        self._go.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): text for name, text in self.headers.items()}
                outer.posts.append((headers, body))
                if not outer._go.is_set():
                    outer.held.set()
                    outer._go.wait(300)
                with suppress(OSError):
                    status = outer.answer(headers, body)
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def ids(self):
        return [headers["webhook-id"] for headers, _ in self.posts]

    def hold(self):
        self.held.clear()
        self._go.clear()

    def release(self):
        self._go.set()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()
