"""The function of a node: how it is written, and which hosts and services it is about.

Rules: docs/spec/bp.md, "Functions".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from attrs import field, frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.bp.core_rows import HOST, PEER, SERVICE, CoreRows, Needs, text
from monrest.bp.searches import PATTERN_OPERATORS, Search, columns_of, read_searches, row_test
from monrest.query.functions import Moment
from monrest.query.regex import compile_pattern

FUNCTIONS: Mapping[str, Literal["objects", "children", "nothing", "code"]] = {
    "status": "objects",
    "groupstatus": "objects",
    "fixed": "nothing",
    "worst": "children",
    "best": "children",
    "at_least": "children",
    "not_more": "children",
    "equals": "children",
    "statusfilter": "objects",
    "random": "nothing",
    "custom": "code",
}
"""Every function of a node, and what its result depends on."""

FunctionArgument: TypeAlias = Any
"""A text, a number, or for statusfilter the list of its searches."""

_CALL = re.compile(r"\s*([^()\s]*)\s*(?:\((.*)\)\s*)?\Z", re.DOTALL)
_ARGUMENT = re.compile(r"'([^']*)'|\"([^\"]*)\"|([0-9]+)")
_DIGITS = re.compile(r"[0-9]{1,15}\Z")
_WILD = frozenset("^|*{}[]")
_LONGEST_FUNCTION = 100_000
_MOST_ARGUMENTS = 100


def text_at(arguments: Sequence[FunctionArgument], at: int) -> str:
    """One argument as text; empty when it is missing."""
    value = arguments[at] if at < len(arguments) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


class NodeRows(NamedTuple):
    """Rows that a node is about."""

    hosts: Sequence[Row] = ()
    services: Sequence[Row] = ()

    def places(self) -> set[tuple[str, str, str]]:
        """Site, host and service of each; no service: the host itself."""
        return {
            *((row[PEER], row[HOST], "") for row in self.hosts),
            *((row[PEER], row[HOST], row[SERVICE]) for row in self.services),
        }


class NodeObjects(ABC):
    """The hosts and services that the arguments of a function choose."""

    @property
    def patterns(self) -> Iterator[str]:
        yield from ()

    @abstractmethod
    def need(self, needs: Needs, *, members: bool) -> None:
        """Add what has to be asked; ``members``: of groups the members, not the counters."""

    @abstractmethod
    def rows(self, live: CoreRows, moment: Moment) -> NodeRows:
        """Choose among rows that have what was asked, of groups with members."""


@frozen
class StatusObjects(NodeObjects):
    """The objects of ``status``: a host, or its services that match ``op`` and ``service``.

    ``op`` is empty for the host itself, ``=`` for one service by its name. ``best``: the best match
    counts, not the worst.
    """

    host: str
    service: str = ""
    op: str = ""
    best: bool = False

    @classmethod
    def of(cls, arguments: Sequence[FunctionArgument]) -> StatusObjects:
        """Read host, service and operator.

        The operator is ``=`` by default, and a regular expression where the text looks like one;
        then it begins with ``b:`` for the best match or ``w:`` for the worst.
        """
        host, service, op = (text_at(arguments, at) for at in range(3))
        if not service:
            return cls(host)
        op = op or "="
        if op in ("=", "!=") and not _WILD.isdisjoint(service):
            op = {"=": "~", "!=": "!~"}[op]
        if op == "=":
            return cls(host, service, op)
        best = service.startswith("b:")
        if best or service.startswith("w:"):
            service = service[2:]
        return cls(host, service, op, best)

    @property
    def patterns(self) -> Iterator[str]:
        if self.op in PATTERN_OPERATORS:
            # ``*`` alone in front is anything.
            yield f".{self.service}" if self.service.startswith("*") else self.service

    def need(self, needs: Needs, *, members: bool) -> None:
        del members
        (needs.services_of if self.op else needs.hosts).add(self.host)

    def rows(self, live: CoreRows, moment: Moment) -> NodeRows:
        del moment
        if self.op == "":
            row = live.hosts.get(self.host)
            return NodeRows(hosts=() if row is None else (row,))
        if self.op == "=":
            row = live.services.get((self.host, self.service))
            return NodeRows(services=() if row is None else (row,))
        rows = live.by_host.get(self.host, ())
        if self.op == "!=":
            return NodeRows(services=[row for row in rows if row[SERVICE] != self.service])
        (pattern,) = self.patterns
        matches = compile_pattern(pattern, ignore_case=True, parameter="status").matches
        wanted = self.op == "~"
        return NodeRows(services=[row for row in rows if matches(text(row[SERVICE])) == wanted])


@frozen
class GroupObjects(NodeObjects):
    """The members of a host group and their services, or those of a service group."""

    kind: str
    name: str

    def need(self, needs: Needs, *, members: bool) -> None:
        if self.kind == "hostgroup":
            (needs.member_hostgroups if members else needs.hostgroups).add(self.name)
        elif self.kind == "servicegroup":
            (needs.member_servicegroups if members else needs.servicegroups).add(self.name)

    def rows(self, live: CoreRows, moment: Moment) -> NodeRows:
        del moment
        if self.kind == "hostgroup":
            return NodeRows(
                self._members(live.hosts.values(), live.host_index.get("groups")),
                self._members(live.services.values(), live.service_index.get("host_groups")),
            )
        at = live.service_index.get("groups")
        return NodeRows(services=self._members(live.services.values(), at))

    def _members(self, rows: Iterable[Row], at: int | None) -> Sequence[Row]:
        if at is None:
            return ()
        return [row for row in rows if isinstance(row[at], list) and self.name in row[at]]


@frozen
class SearchedObjects(NodeObjects):
    """The hosts, services or both that match the searches."""

    kind: str
    searches: tuple[Search, ...]

    @classmethod
    def of(cls, arguments: Sequence[FunctionArgument], where: str) -> SearchedObjects:
        kind = arguments[1] if len(arguments) > 1 else None
        if kind not in ("hosts", "services", "both"):
            raise BadRequest(
                "invalid type", f"{where}: argument 2: expected one of hosts, services, both"
            )
        searches = read_searches(arguments[2] if len(arguments) > 2 else None, where)
        for at, argument in enumerate(arguments[3:], 4):
            if isinstance(argument, (list, dict)):
                raise BadRequest("invalid threshold", f"{where}: argument {at}: expected a number")
        return cls(kind, searches)

    @property
    def patterns(self) -> Iterator[str]:
        for search in self.searches:
            for text_filter in search.text_filter:
                if text_filter.op in PATTERN_OPERATORS:
                    yield text_filter.value

    def need(self, needs: Needs, *, members: bool) -> None:
        del members
        if self.kind != "services":
            needs.every_host = True
            needs.host_columns.update(columns_of(self.searches, hosts=True))
        if self.kind != "hosts":
            needs.every_service = True
            needs.service_columns.update(columns_of(self.searches, hosts=False))

    def rows(self, live: CoreRows, moment: Moment) -> NodeRows:
        hosts: Sequence[Row] = ()
        services: Sequence[Row] = ()
        if self.kind != "services":
            test = row_test(self.searches, live.host_index, moment, hosts=True)
            hosts = [row for row in live.hosts.values() if test(row)]
        if self.kind != "hosts":
            test = row_test(self.searches, live.service_index, moment, hosts=False)
            services = [row for row in live.services.values() if test(row)]
        return NodeRows(hosts, services)


@frozen
class Function:
    """``objects`` are its hosts and services, None for a function of children or of nothing."""

    name: str
    arguments: tuple[FunctionArgument, ...] = ()
    objects: NodeObjects | None = field(default=None, eq=False, repr=False)


NO_FUNCTION = Function("")


def parse(given: Any, arguments: Any = None, *, where: str = "function") -> Function:
    """Read a function given as text or list; ``arguments``, if there are any, override its own.

    Raises BadRequest naming ``where`` for what is neither, for an unknown function and for wrong
    arguments.
    """
    if isinstance(given, str):
        if len(given) > _LONGEST_FUNCTION:
            raise BadRequest(
                "invalid function", f"{where}: expected at most {_LONGEST_FUNCTION} characters"
            )
        match = _CALL.match(given)
        if match is None:
            raise BadRequest("invalid function", f"{where}: expected name(arguments)")
        name, own = match[1].lower(), _arguments(match[2] or "")
    elif isinstance(given, list) and given and isinstance(given[0], str):
        name, *own = given
    else:
        raise BadRequest(
            "invalid function", f"{where}: expected a text such as worst() or a list [name, ...]"
        )
    if arguments and not isinstance(arguments, list):
        raise BadRequest("invalid function arguments", f"{where}_args: expected a list")
    own = arguments or own
    if name not in FUNCTIONS:
        raise BadRequest(
            f"unknown function: {name[:80]}", f"{where}: expected one of {', '.join(FUNCTIONS)}"
        )
    if len(own) > _MOST_ARGUMENTS:
        raise BadRequest(
            "too many arguments", f"{where}: expected at most {_MOST_ARGUMENTS} arguments"
        )
    for at, argument in enumerate(own, 1):
        if isinstance(argument, (list, dict)) and name not in ("statusfilter", "custom"):
            raise BadRequest(
                "invalid argument", f"{where}: argument {at}: expected a text or a number"
            )
    return Function(name, tuple(own), _objects(name, own, where))


def _arguments(text: str) -> list[FunctionArgument]:
    arguments: list[FunctionArgument] = []
    for single, double, bare in _ARGUMENT.findall(text):
        value = bare or single or double
        arguments.append(int(value) if _DIGITS.match(value) else value)
    return arguments


def _objects(name: str, arguments: Sequence[Any], where: str) -> NodeObjects | None:
    if name == "status":
        return _status(arguments, where)
    if name == "groupstatus":
        return GroupObjects(text_at(arguments, 0).lower(), text_at(arguments, 1))
    if name == "statusfilter":
        return SearchedObjects.of(arguments, where)
    return None


def _status(arguments: Sequence[Any], where: str) -> StatusObjects:
    """Refuse an unknown operator and an invalid pattern."""
    wanted, op = StatusObjects.of(arguments), text_at(arguments, 2)
    if not wanted.host:
        raise BadRequest("invalid arguments", f"{where}: expected status('host', 'service', 'op')")
    if op not in ("", "=", "!=", "~", "!~"):
        raise BadRequest("invalid operator", f"{where}: expected one of = != ~ !~, got {op[:20]}")
    for pattern in wanted.patterns:
        compile_pattern(pattern, ignore_case=True, parameter=where)
    return wanted
