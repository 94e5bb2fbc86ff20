"""A client that reads one large answer after the other, as a process of its own.

    python -m bench.load --port PORT --key-file FILE --path PATH --seconds N

Prints ``ready`` once the first answer was read, then reads on for N seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.clients import Http


def main() -> None:
    parser = argparse.ArgumentParser(description="read a large answer again and again")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--key-file", type=Path, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    key = options.key_file.read_text().strip()
    http = Http(options.port, {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin"})
    http.seconds(options.path)
    print("ready", flush=True)
    until = time.monotonic() + options.seconds
    answers = 0
    while time.monotonic() < until:
        http.seconds(options.path)
        answers += 1
    print(answers, flush=True)


if __name__ == "__main__":
    main()
