"""Sites with very many services, and what a daemon has of their answers."""

import json

from harness.cores import ask, connect
from harness.lying import LyingSite, framed
from harness.waiting import until

SIZE = 6 << 20
"""Bytes of all services of a large site."""


class LargeSite(LyingSite):
    """Has so many services that an answer with all columns is of ``size`` bytes."""

    size = SIZE

    def answer(self, connection, request):
        """Give each row again and again."""
        lines = request.split("\n")
        if lines[0] != "GET services" or any(
            line.startswith(("Stats:", "Limit:")) for line in lines
        ):
            return super().answer(connection, request)
        strange = ("KeepAlive:", "OutputFormat:", "ResponseHeader:", "Sort:")
        kept = [line for line in lines if not line.startswith(strange)]
        rows = [json.dumps(row) for row in ask(connect(self.target), "\n".join(kept))]
        # As many services whatever is asked of them.
        whole = ask(connect(self.target), "GET services")
        again = self.size // sum(len(json.dumps(row)) for row in whole)
        connection.sendall(framed(self.body(rows * again)))
        return True

    def body(self, rows):
        """These rows as an answer."""
        return ("[" + ",\n".join(rows) + "]\n").encode()


def stored(daemon):
    """The files of answers that a daemon has open."""
    return [one for one in daemon.descriptor_targets() if "/spool/" in one]


def given_back(daemon):
    """Wait until nothing of the answers is left; a collection of garbage is not what does it."""
    until(
        lambda: not stored(daemon),
        "the files are gone",
    )
    with daemon.client() as client:
        assert client.get("/services?limit=1").status == 200
