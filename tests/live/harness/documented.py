"""The examples of the reference, sent to a demo: ``python -m tests.live.harness.documented`` keeps the answers."""

import json
import re
import tempfile
from pathlib import Path

from monrest.explorer.examples import ANSWERS, example_requests

from .client import Client
from .demo import Demo

MOST_ROWS = 2
MOST_KEYS = 30
MOST_BYTES = 100_000

VARYING = (
    (re.compile(r"/[\w/.-]*monrest-demo-\w+"), "/var/lib/monrest"),
    (re.compile(r"\b[0-9a-f]{64}(_\d)?\b"), "0123456789abcdef…"),
    (re.compile(r"\bwhsec_[\w+/=]+"), "whsec_…"),
)
"""What is another one in each demo and tells nothing."""


def answers(client):
    """Every request of the examples with the document that is kept of its answer."""
    known = {}
    for one in example_requests():
        path = one.path.format(**known)
        asked = path.replace(" ", "%20").replace("^", "%5E")
        response = client.json(one.method, asked, one.body)
        while response.status == 302:  # the job is not done yet
            response = client.json(one.method, asked, one.body)
        is_json = response.type == "application/json"
        document = response.json if is_json else None
        for name, way in one.keeps.items():
            known[name] = part(document, way)
        yield (
            one,
            {
                "method": one.method,
                "path": path,
                "status": response.status,
                "type": response.type,
                "answer": shortened(document) if len(response.body) < MOST_BYTES else None,
            },
        )


def part(document, way):
    for step in way.split("."):
        document = document[int(step) if isinstance(document, list) else step]
    return document


def shortened(document):
    """The first rows of a list, the first keys of an object, and texts that are the same tomorrow."""
    if isinstance(document, list):
        return [shortened(one) for one in document[:MOST_ROWS]]
    if isinstance(document, dict):
        return {key: shortened(one) for key, one in list(document.items())[:MOST_KEYS]}
    if isinstance(document, str):
        for pattern, text in VARYING:
            document = pattern.sub(text, document)
    return document


def differences(shown, now, where=""):
    """Where an answer differs from a documented one in more than values; null may stand for anything.

    The key ``…`` of an object says that not all of its names are shown.
    """
    if shown is None or now is None:
        return
    if isinstance(shown, dict) and isinstance(now, dict):
        for name in shown.keys() - now.keys() - {"…"}:
            yield f"{where}.{name}: is shown, did not come"
        for name in now.keys() - shown.keys() if "…" not in shown else ():
            yield f"{where}.{name}: came, is not shown"
        for name in shown.keys() & now.keys():
            yield from differences(shown[name], now[name], f"{where}.{name}")
    elif isinstance(shown, list) and isinstance(now, list):
        if shown and now:
            yield from differences(shown[0], now[0], f"{where}[0]")
    elif kind(shown) != kind(now):
        yield f"{where}: {shown!r} is shown, {now!r} came"


def kind(value):
    """What is the same each time."""
    if isinstance(value, (dict, list)):
        return type(value)
    return "text" if isinstance(value, str) else "number"


def main():
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(Path(folder))
        try:
            _address, port, key = demo.found()
            with Client(port, key) as client:
                kept = [document for _one, document in answers(client)]
        finally:
            demo.stop()
    lines = (json.dumps(one, ensure_ascii=False) for one in kept)
    ANSWERS.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
