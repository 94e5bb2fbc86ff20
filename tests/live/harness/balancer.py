"""A load balancer: asks each node whether it is ready, sends requests to those that are, never twice."""

import contextlib
import http.client
import itertools
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHECK = 0.4
AGREE = 2
"""Checks that have to say the same before a node is in or out."""

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class Balancer:
    """``answers`` are (status, port of the node) of all that was passed on; 502 where it failed."""

    def __init__(self, ports):
        self.ports = list(ports)
        self.inside = set(ports)
        self.most_outside = 0
        self.answers = []
        self.turns = itertools.count()
        self.kept = {port: queue.LifoQueue() for port in ports}
        self.ended = threading.Event()
        balancer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                balancer.serve(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        for port in self.ports:
            threading.Thread(target=self.watch, args=(port,), daemon=True).start()

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def watch(self, port):
        said = []
        while not self.ended.wait(CHECK):
            said = [*said, self.ready(port)][-AGREE:]
            if said == [False] * AGREE:
                self.inside.discard(port)
                self.most_outside = max(self.most_outside, len(self.ports) - len(self.inside))
            elif said == [True] * AGREE and port not in self.inside:
                self.forget(port)
                self.inside.add(port)

    def forget(self, port):
        """Close what was kept open to a node that was out: it may be another process by now."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.kept[port].get_nowait().close()

    def ready(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/mon/r/mon/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        inside = sorted(self.inside)
        port = inside[next(self.turns) % len(inside)] if inside else None
        try:
            status, headers, answer = self.forward(port, handler, body)
        except (OSError, http.client.HTTPException) as error:
            status, headers, answer = 502, [], repr(error).encode()
        self.answers.append((status, port))
        handler.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP:
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def forward(self, port, handler, body):
        try:
            connection = self.kept[port].get_nowait()
        except queue.Empty:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {
            name: value for name, value in handler.headers.items() if name.lower() not in HOP
        }
        connection.request(handler.command, handler.path, body=body or None, headers=headers)
        response = connection.getresponse()
        answer = response.read()
        if response.will_close or port not in self.inside:
            connection.close()
        else:
            self.kept[port].put(connection)
        return response.status, response.getheaders(), answer
