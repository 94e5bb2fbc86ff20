"""The least that Klein can do: one route that returns bytes which it already has.

    python -m bench.bare --port PORT --body FILE

Prints ``ready`` when it listens.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from klein import Klein
from twisted.internet import reactor
from twisted.internet.endpoints import serverFromString
from twisted.web.iweb import IRequest
from twisted.web.server import Site


def application(body: bytes) -> Klein:
    """An application that answers ``body`` for every host."""
    app = Klein()

    @app.route("/hosts/<name>")
    def host(request: IRequest, **_name: str) -> bytes:
        request.setHeader(b"content-type", b"application/json; charset=utf-8")
        return body

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="a bare Klein handler")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--body", type=Path, required=True)
    options = parser.parse_args()
    site = Site(application(options.body.read_bytes()).resource())
    listening = f"tcp:{options.port}:interface=127.0.0.1"
    serverFromString(reactor, listening).listen(site)
    reactor.callWhenRunning(print, "ready", flush=True)
    reactor.run()


if __name__ == "__main__":
    main()
