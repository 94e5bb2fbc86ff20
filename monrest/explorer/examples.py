"""One example for each endpoint, with the answer that the demo gave to it.

``examples.toml`` has the requests, which are written by hand; ``examples.json`` the answers, which
``make examples`` keeps. A test sends all of them and compares (docs/spec/http.md, "Examples").
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import field, frozen

_FOLDER = Path(__file__).parent
ANSWERS = _FOLDER / "examples.json"


@frozen
class ExampleRequest:
    """A request to an endpoint: its ``path`` may have ``{names}`` of earlier answers.

    ``keeps`` gives names to parts of the answer: ``0.id`` is the column ``id`` of its first row.
    """

    endpoint: str
    path: str
    body: Any = None
    keeps: dict[str, str] = field(factory=dict)

    @property
    def method(self) -> str:
        return self.endpoint.partition(" ")[0]


@frozen(kw_only=True)
class Example:
    """A request with its answer; ``answer`` is None where it is no JSON, which ``type`` names."""

    method: str
    path: str
    body: Any
    status: int
    type: str
    answer: Any


def example_requests() -> Iterator[ExampleRequest]:
    """Return the requests, in an order in which a fresh demo answers all of them."""
    text = (_FOLDER / "examples.toml").read_text("utf-8")
    for endpoint, path, *more in tomllib.loads(text)["requests"]:
        writes = not endpoint.startswith(("GET ", "DELETE "))
        yield ExampleRequest(
            endpoint, path, more[0] if more and writes else None, more[1] if more[1:] else {}
        )


def examples() -> dict[str, Example]:
    """Read the examples by method and path template, ``GET /hosts/<name>``; the first of each."""
    kept = json.loads(ANSWERS.read_text("utf-8"))
    by_endpoint: dict[str, Example] = {}
    for asked, answer in zip(example_requests(), kept, strict=True):
        by_endpoint.setdefault(asked.endpoint, Example(body=asked.body, **answer))
    return by_endpoint
