"""From the segments of a path to an endpoint (query-engine.md, sections 1.1 and 1.5).

Literal segments are compared undecoded and case-sensitively and win over variables; variable
segments are percent-decoded once, after splitting. The first segment of a collection may be
singular or plural.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from attrs import define, field, frozen

from monrest.errors import MethodNotAllowed, NotFound
from monrest.resources.declare import METHOD_ORDER, Endpoint, is_variable


@frozen
class Match:
    """An endpoint and the decoded variable segments of the path."""

    endpoint: Endpoint
    arguments: tuple[str, ...]


@define(eq=False)
class _Node:
    literals: dict[str, _Node] = field(factory=dict)
    variable: _Node | None = None
    endpoints: dict[str, Endpoint] = field(factory=dict)


@define(eq=False)
class Router:
    """All endpoints as a tree of segments; ``app`` is the word of the front end's own paths."""

    app: str
    root: _Node = field(factory=_Node, init=False)
    _singular: dict[str, str] = field(factory=dict, init=False)

    def add(self, endpoints: Iterable[Endpoint]) -> None:
        """Take endpoints in; ValueError if a path and method is there twice."""
        for endpoint in endpoints:
            node = self.root
            for at, segment in enumerate(endpoint.segments):
                if is_variable(segment):
                    if node.variable is None:
                        node.variable = _Node()
                    node = node.variable
                    continue
                word = self.app if at == 0 and segment == "mon" else segment
                if at == 0 and segment.endswith("s"):
                    self._singular[word[:-1]] = word
                elif at == 0 and endpoint.schema is not None:
                    self._singular[word + "s"] = word
                node = node.literals.setdefault(word, _Node())
            for method in endpoint.methods:
                if method in node.endpoints:
                    raise ValueError(f"{method} {endpoint.path} is declared twice")
                node.endpoints[method] = endpoint

    def find(self, method: str, path: str, segments: Sequence[str]) -> Match:
        """The endpoint for a method and undecoded segments.

        HEAD is GET, and POST is GET where only GET is declared. Raises NotFound and
        MethodNotAllowed.
        """
        found = self._walk(segments)
        if found is None:
            raise NotFound(f"unknown rest path: {path}")
        node, arguments = found
        endpoint = node.endpoints.get("GET" if method == "HEAD" else method)
        if endpoint is None and method == "POST":
            endpoint = node.endpoints.get("GET")
        if endpoint is None:
            raise MethodNotAllowed(path, _methods(node))
        return Match(endpoint, tuple([unquote(one) if "%" in one else one for one in arguments]))

    def allowed(self, path: str, segments: Sequence[str]) -> tuple[str, ...]:
        """The methods of a path for the Allow header; raises NotFound."""
        found = self._walk(segments)
        if found is None:
            raise NotFound(f"unknown rest path: {path}")
        return _methods(found[0])

    def public(self, method: str, segments: Sequence[str]) -> bool:
        """Whether this method and path answers without asking who it is."""
        found = self._walk(segments)
        if found is None:
            return False
        endpoint = found[0].endpoints.get("POST" if method == "PUT" else method)
        return endpoint is not None and endpoint.public

    def _walk(self, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
        if segments and segments[0] not in self.root.literals:
            first = self._singular.get(segments[0])
            if first is None:
                return None
            segments = (first, *segments[1:])
        if len(segments) > 1 and segments[0] == self.app and segments[1] in _SINGULAR:
            segments = (self.app, f"{segments[1]}s", *segments[2:])
        return _descend(self.root, segments, 0)


_SINGULAR = frozenset({"broadcast", "job", "recurring_downtime", "report", "session", "user"})
"""Words of the front end's own paths that are taken in the singular (frontend-data.md, 1.1)."""


def _descend(node: _Node, segments: Sequence[str], at: int) -> tuple[_Node, list[str]] | None:
    if at == len(segments):
        return (node, []) if node.endpoints else None
    literal = node.literals.get(segments[at])
    if literal is not None:
        found = _descend(literal, segments, at + 1)
        if found is not None:
            return found
    if node.variable is not None and segments[at]:
        found = _descend(node.variable, segments, at + 1)
        if found is not None:
            return found[0], [segments[at], *found[1]]
    return None


def _methods(node: _Node) -> tuple[str, ...]:
    """What a client may send: every path with GET also takes HEAD and POST."""
    methods: list[str] = [one for one in METHOD_ORDER if one in node.endpoints]
    if "GET" in methods:
        methods[1:1] = [] if "POST" in methods else ["POST"]
        methods.append("HEAD")
    if "POST" in methods:
        methods.append("PUT")
    return (*methods, "OPTIONS")
