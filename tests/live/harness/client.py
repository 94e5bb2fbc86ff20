"""A small keep-alive HTTP client on the standard library that shows everything of an answer."""

import contextlib
import http.client
import json
import socket
import threading
from urllib.parse import quote, urlencode

TIMEOUT = 120.0


class Response:
    """Status, headers with lower-case names, and body of one answer."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def type(self):
        return self.headers.get("content-type", "").split(";")[0]

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:600]!r}>"


def segment(text):
    """A name as one path segment, everything that is not plain percent-encoded."""
    return quote(text, safe="")


class Client:
    """Requests below the REST root as one user, over one connection that is kept open."""

    def __init__(self, port, key, user="admin", root="/mon/r"):
        self.port = port
        self.key = key
        self.user = user
        self.root = root
        self.connection = None

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def credentials(self):
        """The headers that say who is asking."""
        headers = {}
        if self.key is not None:
            headers["X-Mon-Auth-Key"] = self.key
        if self.user is not None:
            headers["X-Mon-Auth-User"] = self.user
        return headers

    def request(self, method, path, *, body=None, headers=(), timeout=TIMEOUT):
        """Send one request and read its answer; a kept connection that died is replaced once."""
        send = {**self.credentials(), **dict(headers)}
        for last in (False, True):
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPConnection(
                    "127.0.0.1", self.port, timeout=timeout
                )
            try:
                # A body that is refused by its length is answered while it is still sent.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.connection.request(method, self.root + path, body=body, headers=send)
                answer = self.connection.getresponse()
                response = Response(answer.status, answer.getheaders(), answer.read())
            except (http.client.RemoteDisconnected, ConnectionError):
                self.close()
                if fresh or last:
                    raise
            except BaseException:
                self.close()
                raise
            else:
                if answer.will_close:
                    self.close()
                return response
        raise AssertionError("unreachable")

    def get(self, path, parameters=(), **more):
        """GET with ``parameters`` (mapping or pairs) percent-encoded behind the path."""
        query = urlencode(parameters, quote_via=quote) if parameters else ""
        joint = ("&" if "?" in path else "?") if query else ""
        return self.request("GET", path + joint + query, **more)

    def rows(self, path, parameters=(), **more):
        """GET that must succeed; the decoded body."""
        response = self.get(path, parameters, **more)
        assert response.status == 200, (path, parameters, response)
        return response.json

    def values(self, path, column, **parameters):
        """GET one column as a list of its values, in the order of the answer."""
        return [row[column] for row in self.rows(path, {"columns": column, **parameters})]

    def post_form(self, path, pairs, **more):
        """POST with a form body."""
        headers = {"Content-Type": "application/x-www-form-urlencoded", **more.pop("headers", {})}
        body = urlencode(pairs, quote_via=quote)
        return self.request("POST", path, body=body, headers=headers, **more)

    def post_json(self, path, document, **more):
        """POST with a JSON body."""
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        return self.request("POST", path, body=json.dumps(document), headers=headers, **more)

    def patch(self, path, document, **more):
        return self.json("PATCH", path, document, **more)

    def json(self, method, path, document=None, **more):
        """A request of any method, with a JSON body if there is a document."""
        if document is None:
            return self.request(method, path, **more)
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        return self.request(method, path, body=json.dumps(document), headers=headers, **more)


def raw(port, data, *, timeout=TIMEOUT):
    """Send bytes as they are, read until the other side closes, return everything received."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        try:
            connection.sendall(data)
            while chunk := connection.recv(65536):
                received += chunk
        except ConnectionError:
            pass
    return received


def raw_status(port, path, key, *, user="admin", method=b"GET", timeout=TIMEOUT):
    """Status and body for a request target given as bytes, which may be no legal URL."""
    data = (
        method + b" " + path + b" HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        b"X-Mon-Auth-Key: " + key.encode() + b"\r\nX-Mon-Auth-User: " + user.encode() + b"\r\n\r\n"
    )
    received = raw(port, data, timeout=timeout)
    head, _blank, body = received.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/") else None
    return status, body


class InFlight:
    """A request that runs in a thread; with ``form`` it is a POST."""

    def __init__(self, daemon, path, form=None):
        self.response = self.error = None
        self.thread = threading.Thread(target=self.run, args=(daemon, path, form), daemon=True)
        self.thread.start()

    def run(self, daemon, path, form):
        try:
            with daemon.client() as client:
                self.response = client.post_form(path, form) if form else client.get(path)
        except Exception as error:
            self.error = error

    def result(self):
        self.thread.join(30)
        assert self.error is None, self.error
        assert self.response is not None
        return self.response
