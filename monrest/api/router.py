"""From the segments of a path to an endpoint (docs/spec/http.md, "Routing").

Literal segments are compared undecoded and case-sensitively and win over variables; variable
segments are percent-decoded once, after splitting. A literal in the plural may be asked for in the
singular, unless a name of an object can stand in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from types import MethodType
from typing import Any
from urllib.parse import unquote

from attrs import define, field, frozen

from monrest.api.endpoint import METHOD_ORDER, Endpoint, Handler, is_variable
from monrest.base.errors import MethodNotAllowed, NotFound


@frozen
class Match:
    """An endpoint, its handler, and the decoded variable segments of the path."""

    endpoint: Endpoint
    handler: Handler
    arguments: tuple[str, ...]


@define(eq=False)
class _Node:
    literals: dict[str, _Node] = field(factory=dict)
    variable: _Node | None = None
    endpoints: dict[str, tuple[Endpoint, Handler]] = field(factory=dict)


@define(eq=False)
class Router:
    """All endpoints as a tree of segments; ``app`` is the word of the front end's own paths.

    ``public_docs``: endpoints that describe the API are public.
    """

    app: str
    public_docs: bool = True
    endpoints: list[Endpoint] = field(factory=list, init=False)
    root: _Node = field(factory=_Node, init=False)
    _open: set[str] = field(factory=set, init=False)
    """First words of the paths that answer without credentials."""
    _plural: dict[str, str] = field(factory=dict, init=False)
    _templates: dict[tuple[str, ...], None] = field(factory=dict, init=False)

    def add(self, endpoints: Iterable[Endpoint], family: object = None) -> None:
        """Take endpoints in; ValueError if a path and method is there twice.

        Their handlers are methods of ``family``, functions where there is none.
        """
        for endpoint in endpoints:
            handler: Any = endpoint.handler
            handler = handler if family is None else MethodType(handler, family)
            self.endpoints.append(endpoint)
            segments = endpoint.segments
            first = segments[0] if segments else ""
            if first == "mon":
                first = self.app
                segments = (first, *segments[1:])
            self._templates[segments] = None
            if self._is_public(endpoint):
                self._open |= {first, f"{first}s", first.removesuffix("s")}
            if endpoint.schema is not None and not first.endswith("s"):
                self._plural[f"{first}s"] = first
            node = self.root
            for segment in segments:
                if is_variable(segment):
                    if node.variable is None:
                        node.variable = _Node()
                    node = node.variable
                else:
                    node = node.literals.setdefault(segment, _Node())
            for method in endpoint.methods:
                if method in node.endpoints:
                    raise ValueError(f"{method} {endpoint.path} is declared twice")
                node.endpoints[method] = endpoint, handler

    def find(self, method: str, path: str, segments: Sequence[str]) -> Match:
        """The endpoint for a method and undecoded segments.

        HEAD is GET, and POST is GET where only GET is declared. Raises NotFound and
        MethodNotAllowed.
        """
        walked = self._walk(segments)
        if walked is None:
            raise self._unknown(path, segments)
        node, arguments = walked
        answering = node.endpoints.get("GET" if method == "HEAD" else method)
        if answering is None and method == "POST":
            answering = node.endpoints.get("GET")
        if answering is None:
            raise MethodNotAllowed(path, _methods(node))
        return Match(
            *answering,
            tuple([unquote(argument) if "%" in argument else argument for argument in arguments]),
        )

    def allowed(self, path: str, segments: Sequence[str]) -> tuple[str, ...]:
        """The methods of a path for the Allow header; raises NotFound."""
        node = self._walk(segments)
        if node is None:
            raise self._unknown(path, segments)
        return _methods(node[0])

    def public(self, method: str, segments: Sequence[str]) -> bool:
        """Whether this method and path answers without credentials."""
        if not segments or segments[0] not in self._open:
            return False
        node = self._walk(segments)
        if node is None:
            return False
        endpoint = node[0].endpoints.get({"PUT": "POST", "HEAD": "GET"}.get(method, method))
        return endpoint is not None and self._is_public(endpoint[0])

    def _is_public(self, endpoint: Endpoint) -> bool:
        return endpoint.public or (endpoint.documents and self.public_docs)

    def template(self, segments: Sequence[str]) -> str:
        """The path of the endpoint as it is declared, empty for none."""
        node = self._walk(segments)
        return (
            next((endpoint.path for endpoint, _ in node[0].endpoints.values()), "") if node else ""
        )

    def _walk(self, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
        if segments and f"{segments[0]}s" == self.app:
            return None
        if segments and (first := self._plural.get(segments[0])) is not None:
            segments = (first, *segments[1:])
        return _descend(self.root, segments, 0)

    def _unknown(self, path: str, segments: Sequence[str]) -> NotFound:
        """The error for a path that is none, with the paths that are most like it."""
        asked = [segment[:_LONGEST_COMPARED] for segment in segments[:_MOST_COMPARED]]
        close = [
            (ratio, template)
            for template in self._templates
            if (ratio := _likeness(asked, template)) >= _LIKE
        ]
        close.sort(key=lambda match: (-match[0], match[1]))
        similar = ", ".join(f"/{'/'.join(template)}" for _, template in close[:3])
        hint = f"similar paths: {similar}; " if similar else ""
        return NotFound(f"unknown rest path: {path}", f"{hint}/index lists all paths")


_LONGEST_COMPARED = 40
_MOST_COMPARED = 8
"""Letters of a segment and segments of an unknown path that are compared, which takes time."""

_LIKE = 0.6


def _likeness(asked: Sequence[str], template: Sequence[str]) -> float:
    """How like a path is to a template, from 0 to 1: as its least like word is."""
    if abs(len(asked) - len(template)) > 1:
        return 0.0
    words = [
        SequenceMatcher(None, ours.lower(), theirs).ratio()
        for ours, theirs in zip(asked, template, strict=False)
        if not is_variable(theirs)
    ]
    return min(words, default=0.0) * min(len(asked), len(template)) / max(len(asked), len(template))


def _descend(node: _Node, segments: Sequence[str], at: int) -> tuple[_Node, list[str]] | None:
    if at == len(segments):
        return (node, []) if node.endpoints else None
    literal = node.literals.get(segments[at])
    if literal is None and node.variable is None:
        # The singular stands for the plural where it can be no name of an object.
        literal = node.literals.get(f"{segments[at]}s")
    if literal is not None:
        deeper = _descend(literal, segments, at + 1)
        if deeper is not None:
            return deeper
    if node.variable is not None and segments[at]:
        deeper = _descend(node.variable, segments, at + 1)
        if deeper is not None:
            return deeper[0], [segments[at], *deeper[1]]
    return None


def _methods(node: _Node) -> tuple[str, ...]:
    """The methods that a client may send: every path with GET also has HEAD and POST."""
    methods: list[str] = [method for method in METHOD_ORDER if method in node.endpoints]
    if "GET" in methods:
        methods[1:1] = [] if "POST" in methods else ["POST"]
        methods.append("HEAD")
    if "POST" in methods:
        methods.append("PUT")
    return (*methods, "OPTIONS")
