"""A Livestatus site with a month of log lines, which are made when they are asked for.

All other tables are those of the core behind it. Like a Naemon it tells the newest lines first.

    python -m bench.longlog --site LISTEN=CORE --count LINES --first TIME --days DAYS
"""

from __future__ import annotations

import argparse
import threading

import orjson

from bench.replay import Core, ReplaySite, framed

HOSTS = 1000
LOG = b"GET log\n"
NUMBERS = {"class": 1, "state": 2, "attempt": 3}
TEXTS = {"type": "SERVICE ALERT", "state_type": "HARD"}


class LongLog(Core):
    """A core with ``count`` lines from ``first`` on, evenly over so many days."""

    def __init__(self, path: str, count: int, first: int, days: int) -> None:
        super().__init__(path)
        self.count = count
        self.first = first
        self.seconds = days * 86400

    def answer(self, request: bytes) -> bytes:
        """Lines of the log between the bounds on time; everything else comes from behind."""
        if not request.startswith(LOG):
            return super().answer(request)
        columns: list[str] = []
        low, high, limit = self.first, self.first + self.seconds, self.count
        for text in request.decode().splitlines():
            words = text.split()
            if text.startswith("Columns:"):
                columns = words[1:]
            elif text.startswith("Limit:"):
                limit = int(words[1])
            elif text.startswith("Filter: time >= "):
                low = max(low, int(words[-1]))
            elif text.startswith("Filter: time < "):
                high = min(high, int(words[-1]))
            elif text.startswith(("Filter:", "Stats:")):
                raise ValueError(f"only bounds on time are understood: {text}")
        begin, end = self.number(low), self.number(high)
        rows = [self.row(at, columns) for at in range(end - 1, max(begin, end - limit) - 1, -1)]
        return framed(orjson.dumps(rows))

    def number(self, moment: int) -> int:
        """The number of the first line from a moment on."""
        return -(-(moment - self.first) * self.count // self.seconds)

    def row(self, at: int, columns: list[str]) -> list[object]:
        """One line."""
        moment = self.first + at * self.seconds // self.count
        host, service = f"host-{at * 7919 % HOSTS:05}", f"service {at % 20:02}"
        output = f"CRITICAL - Socket timeout after {at % 60} seconds on {host}"
        options = f"{host};{service};CRITICAL;HARD;3;{output}"
        known: dict[str, object] = {
            **NUMBERS,
            **TEXTS,
            "time": moment,
            "lineno": at + 1,
            "host_name": host,
            "service_description": service,
            "plugin_output": output,
            "options": options,
            "message": f"[{moment}] SERVICE ALERT: {options}",
        }
        return [known.get(name, "") for name in columns]


def main() -> None:
    parser = argparse.ArgumentParser(description="a Livestatus site with a long log")
    parser.add_argument("--site", required=True, metavar="LISTEN=CORE")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--first", type=int, required=True, metavar="TIME")
    parser.add_argument("--days", type=int, required=True)
    options = parser.parse_args()
    path, _, behind = options.site.partition("=")
    site = ReplaySite(path, LongLog(behind, options.count, options.first, options.days), 0.0)
    threading.Thread(target=site.accept, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
