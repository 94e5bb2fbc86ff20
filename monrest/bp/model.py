"""A business process as it is stored, and the reader of what a client sends.

Only known attributes are stored; one of a wrong type or outside of its enumeration is refused by
name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Annotated, Any, Literal, TypeAlias

from attrs import field, fields, frozen
from sqlalchemy import Column, Double, Table
from sqlalchemy import Text as TextType

from monrest.api.fields import (
    AS_IT_IS,
    Choice,
    Fields,
    Flag,
    NameList,
    Reading,
    Ruled,
    Text,
)
from monrest.base.errors import BadRequest
from monrest.base.truth import truth
from monrest.bp.function import NO_FUNCTION, Function, parse
from monrest.bp.node_state import NOTHING, ProcessResult
from monrest.query.regex import MOST_WEIGHT, compile_pattern
from monrest.query.scan import UNPRINTABLE
from monrest.store.stored import (
    KEY,
    NOT_STORED,
    UNIQUE,
    References,
    Shown,
    StoredRow,
    stored,
)
from monrest.store.tables import metadata

ROOT = "node1"
"""The id of the node whose state is that of the process."""

NEW_NAME = "New Business Process"
_MOST_NODES = 5_000
_MOST_EDGES = 20_000
"""Children of all nodes of a process together."""
_MOST_WEIGHT = 10 * MOST_WEIGHT
"""The weight of all patterns of a process."""

ILLEGAL = "`~!$%^&*|'\"<>?,()="
"""Characters that names of hosts and services must not have, unless the core defines others."""

_DELETED = str.maketrans("", "", ILLEGAL)
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}\Z")
_FILTER = re.compile(r"[A-Za-z0-9_]{1,100}\Z")
_NAMES = frozenset({"host_name", "service_description"})
"""Attributes that identify the object and cannot be set otherwise."""

_ATTEMPTS = re.compile(r"[1-9][0-9]{0,5}\Z")
_LONGEST_NAME = 200
_STATE_TYPES: Mapping[str, StateType] = {"both": "both", "soft": "both", "hard": "hard"}

StateType: TypeAlias = Literal["both", "hard"]


@frozen(kw_only=True)
class ProcessNode:
    """One node; ``depends`` are the ids of its children, ``create_obj`` whether it is exported.

    ``host_name`` is the host of the exported service where it is not the one of the process.
    """

    id: str
    label: str
    function: Function = NO_FUNCTION
    depends: tuple[str, ...] = ()
    create_obj: int = 0
    template: str = ""
    contacts: tuple[str, ...] = ()
    contactgroups: tuple[str, ...] = ()
    notification_period: str = ""
    max_check_attempts: str = ""
    event_handler: str = ""
    filter: tuple[str, ...] = ()
    host_name: str = ""
    host_object_attributes: Mapping[str, str] = field(factory=dict)
    service_object_attributes: Mapping[str, str] = field(factory=dict)
    data: Any = None

    def document(self) -> dict[str, Any]:
        """Return what is stored: id, label and all that is not empty."""
        record: dict[str, Any] = {"id": self.id, "label": self.label}
        for name in _KEPT:
            value = getattr(self, name)
            if value:
                record[name] = list(value) if isinstance(value, tuple) else value
        if self.function.name:
            record["function"] = self.function.name
            if self.function.arguments:
                record["function_args"] = list(self.function.arguments)
        return record


_KEPT = tuple(
    attribute.name
    for attribute in fields(ProcessNode)
    if attribute.name not in ("id", "label", "function")
)


@frozen(kw_only=True)
class ProcessDefinition:
    """A whole process without its number and its results."""

    name: str
    template: str = ""
    rank_dir: Literal["TB", "LR"] = "TB"
    state_type: StateType = "both"
    filter: tuple[str, ...] = ()
    create_host_object: int = 1
    nodes: tuple[ProcessNode, ...] = ()
    by_id: Mapping[str, ProcessNode] = field(init=False, eq=False, repr=False)
    order: tuple[ProcessNode, ...] = field(init=False, eq=False, repr=False)
    """The nodes, children before their parents."""
    exported: tuple[ProcessNode, ...] = field(init=False, eq=False, repr=False)
    """The nodes that are services of the core; a second one of a label is none."""

    filters: frozenset[str] = field(init=False, eq=False, repr=False)
    """The names of all filters, of the process and of its nodes."""

    @by_id.default
    def _ids(self) -> Mapping[str, ProcessNode]:
        return {node.id: node for node in self.nodes}

    @order.default
    def _children_first(self) -> tuple[ProcessNode, ...]:
        return _ordered(self.nodes)

    def children(self, node: ProcessNode) -> list[ProcessNode]:
        """Return the nodes on which one depends; ids that no node has are left out."""
        return [self.by_id[child] for child in node.depends if child in self.by_id]

    @exported.default
    def _exported(self) -> tuple[ProcessNode, ...]:
        nodes: dict[tuple[str, str], ProcessNode] = {}
        for node in self.nodes:
            if node.create_obj:
                nodes.setdefault((self.host_of(node), node.label), node)
        return tuple(nodes.values())

    @filters.default
    def _named_filters(self) -> frozenset[str]:
        return frozenset(self.filter).union(*(node.filter for node in self.nodes))

    def host_of(self, node: ProcessNode) -> str:
        return node.host_name or self.name

    def attributes(self) -> dict[str, Any]:
        """All of it but the nodes, as clients see it."""
        return {
            "name": self.name,
            "template": self.template,
            "rankDir": self.rank_dir,
            "state_type": self.state_type,
            "filter": list(self.filter),
            "create_host_object": self.create_host_object,
        }

    def document(self) -> dict[str, Any]:
        return {**self.attributes(), "nodes": [node.document() for node in self.nodes]}


def _ordered(nodes: tuple[ProcessNode, ...]) -> tuple[ProcessNode, ...]:
    """Children before parents; raises BadRequest naming a cycle."""
    by_id = {node.id: node for node in nodes}
    children = {node.id: [child for child in node.depends if child in by_id] for node in nodes}
    try:
        return tuple(by_id[number] for number in TopologicalSorter(children).static_order())
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise BadRequest(
            "circular dependency", f"nodes: depends: expected no cycle, got {cycle}"
        ) from None


NO_DEFINITION = ProcessDefinition(name="")


@stored("bp_processes")
@frozen(kw_only=True)
class StoredProcess(StoredRow):
    """A process as it is stored; ``broken`` says why its definition cannot be used.

    ``definition`` is stored as its document. ``version`` is another one with each change, ``stamp``
    with each calculation.
    """

    nr: Annotated[int, KEY, Shown("number of the process", name="id", show=str)]
    name: Annotated[str, UNIQUE] = ""
    draft: Annotated[bool, Shown("1 until it is changed for the first time", "boolean", show=int)]
    definition: ProcessDefinition = NO_DEFINITION
    version: int
    changed: int = 0
    stamp: Annotated[int, NOT_STORED] = 0
    result: Annotated[ProcessResult, NOT_STORED] = NOTHING
    broken: Annotated[str, NOT_STORED] = ""

    @property
    def id(self) -> str:
        return str(self.nr)


@stored("bp_results")
@frozen
class Calculated(StoredRow):
    """The result of the last calculation of a process, and the ``version`` of its definition.

    ``stamp`` is another one with each calculation.
    """

    nr: Annotated[int, KEY, References("bp_processes.nr")]
    version: Annotated[int, NOT_STORED]
    data: bytes | None
    stamp: int = 0


bp_figures = Table(
    "bp_figures",
    metadata,
    Column("name", TextType, primary_key=True),
    Column("value", Double, nullable=False),
)
"""Figures of the last complete run."""


def clean_name(name: str) -> str:
    return name.translate(_DELETED).strip()


def free_name(name: str, taken: frozenset[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


_Text = partial(
    Text,
    longest=1000,
    refused=UNPRINTABLE,
    numbers=(int,),
    expected=("a text", *("up to {longest} characters without control characters",) * 2),
)


def _name(value: Any) -> str:
    text = _NAME.read(value)
    if ";" in text:
        raise _NAME.wrong(AS_IT_IS, "no semicolon")
    cleaned = clean_name(text)
    if not cleaned or len(cleaned) > _LONGEST_NAME:
        expected = f"1 to {_LONGEST_NAME} characters beside {' '.join(ILLEGAL)}"
        raise _NAME.wrong(AS_IT_IS, expected)
    return cleaned


def _state_type(value: Any) -> StateType:
    state_type = _STATE_TYPES.get(value.strip().lower()) if isinstance(value, str) else None
    if state_type is None:
        hard = truth(value)
        if hard is None:
            raise BadRequest("invalid state_type", "state_type: expected both (soft) or hard")
        state_type = "hard" if hard else "both"
    return state_type


def _listed(valid: Callable[[str], object]) -> Callable[[Any], tuple[str, ...] | None]:
    def item(value: Any) -> tuple[str, ...] | None:
        text = value.strip() if isinstance(value, str) else ""
        return (text,) if text and valid(text) else None

    return item


def _nodes(given: Any) -> tuple[ProcessNode, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise BadRequest("invalid nodes", "nodes: expected a list of objects")
    if len(given) > _MOST_NODES:
        raise BadRequest("too many nodes", f"nodes: expected at most {_MOST_NODES}")
    taken = {
        node["id"] for node in given if isinstance(node, dict) and isinstance(node.get("id"), str)
    }
    free = (f"node{at}" for at in count(1) if f"node{at}" not in taken)
    nodes: dict[str, ProcessNode] = {}
    edges, patterns, weight = 0, set[str](), 0
    for at, item in enumerate(given):
        where = f"nodes[{at}]"
        if not isinstance(item, dict):
            raise BadRequest("invalid node", f"{where}: expected an object")
        number = item.get("id")
        if number is None or number == "":
            number = next(free)
        if not isinstance(number, str) or not _ID.match(number):
            raise BadRequest("invalid node id", f"{where}.id: expected letters, digits and _.:-")
        if number in nodes:
            raise BadRequest("invalid node id", f"{where}.id: expected no second {number}")
        node = nodes[number] = _node(item, number, where)
        edges += len(node.depends)
        if edges > _MOST_EDGES:
            raise BadRequest(
                "too many children",
                f"nodes: expected at most {_MOST_EDGES} in depends of all nodes",
            )
        objects = node.function.objects
        for pattern in set(objects.patterns if objects else ()) - patterns:
            patterns.add(pattern)
            weight += compile_pattern(pattern, ignore_case=True, parameter=where).weight
        if weight > _MOST_WEIGHT:
            raise BadRequest(
                "patterns are too large", f"{where}: expected smaller or fewer regular expressions"
            )
    if nodes and ROOT not in nodes:
        raise BadRequest("no root node", f"nodes: expected one with the id {ROOT}")
    return tuple(nodes.values())


_NAME = _Text("name", "name, also of its host in the core")
_Names = partial(
    NameList,
    most=1000,
    longest=1000,
    item=_listed(lambda text: not UNPRINTABLE.search(text)),
    number="a list of at most {most} names",
)
_FILTERS = _Names(
    "filter",
    "list of filters for all nodes",
    longest=100,
    item=_listed(_FILTER.match),
    in_rows="filters of all nodes",
)

_NODE = Fields(
    (
        _Text("label", "name of its service in the core"),
        _Names("depends", "ids of its children"),
        Flag("create_obj", "1: it is a service of the core"),
        _Text("template", "template of its service"),
        _Names("contacts", "contacts of its service"),
        _Names("contactgroups", "contact groups of its service"),
        _Text("notification_period", "time period of its service"),
        _Text("max_check_attempts", "a number"),
        _Text("event_handler", "event handler of its service"),
        _FILTERS,
        _Text("host_name", "host of its service"),
    )
)

NODES = Ruled(
    "nodes",
    "list of nodes: objects with id, label, function, function_args, "
    f"{', '.join(declared.name for declared in _NODE.declared[1:])}; "
    f"the one with the id {ROOT} is the root",
    type="list",
    rule=_nodes,
    nested=True,
    most=f"{_MOST_NODES} nodes, {_MOST_EDGES} children",
    in_rows=Shown("list of nodes with their functions and states", "object"),
)

PROCESS = Fields(
    (
        Ruled(_NAME.name, _NAME.description, rule=_name, most=f"{_LONGEST_NAME} characters"),
        _Text("template", "template of its host in the core",
              in_rows="template of its host in the core; empty: the usual one"),
        Choice("rankDir", "TB (default) or LR: drawing direction", ("TB", "LR"), default="TB",
               expected="TB or LR", in_rows="TB: drawn vertically, LR: horizontally"),
        Ruled("state_type", "both (default) or hard: core states that count", rule=_state_type,
              in_rows="core states that count: both, or hard only"),
        _FILTERS,
        Flag("create_host_object", "0: no host is made in the core; default 1", default=1,
             in_rows="1: a host is made for it in the core"),
        NODES,
    )
)  # fmt: skip
"""The attributes of a process."""


def read(document: Mapping[str, Any], *, name: str = "") -> ProcessDefinition:
    """Read what was sent or stored; ``name`` is for a process that has none.

    Raises BadRequest naming the attribute and what was expected. Attributes that are not stored
    are not looked at.
    """
    values = PROCESS.values({**document, "name": _NAME.read(document.get("name")) or name})
    direction, filters = values.pop("rankDir"), tuple(values.pop("filter"))
    return ProcessDefinition(rank_dir=direction, filter=filters, **values)


def _node(given: Mapping[str, Any], number: str, where: str) -> ProcessNode:
    at = Reading(f"{where}.")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in _NODE.values(given, at).items()
    }
    values["label"] = values["label"] or number
    values["create_obj"] = values["create_obj"] or int(number == ROOT)
    function = given.get("function")
    if function is None or function == "":
        values["function"] = NO_FUNCTION
    else:
        values["function"] = parse(function, given.get("function_args"), where=f"{where}.function")
    node = ProcessNode(
        id=number,
        host_object_attributes=_objects(given, "host_object_attributes", where),
        service_object_attributes=_objects(given, "service_object_attributes", where),
        data=given.get("data"),
        **values,
    )
    if node.max_check_attempts and not _ATTEMPTS.match(node.max_check_attempts):
        raise _wrong("max_check_attempts", where, "a number above 0")
    for name in ("label", "host_name") if node.create_obj else ():
        if ";" in getattr(node, name):
            raise _wrong(name, where, "no semicolon in what is exported")
    return node


def _wrong(name: str, where: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid {name}", f"{where}.{name}: expected {expected}")


def _objects(given: Mapping[str, Any], name: str, where: str) -> Mapping[str, str]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(_FILTER.match(key) for key in value):
        raise _wrong(name, where, "an object of attributes and texts")
    for key in _NAMES.intersection(value):
        raise _wrong(name, where, f"no {key}")
    at = Reading(f"{where}.{name}.")
    return {key: _Text(key, "").read(text, at) for key, text in value.items()}
