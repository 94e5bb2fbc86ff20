"""The objects of the cores that stand for processes and their nodes (docs/spec/bp.md, "Export").

Pure: what is to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import frozen

from monrest.bp.model import ROOT, Definition, Node

HOST_TEMPLATE = "{app}-bp-template"
SERVICE_TEMPLATE = "{app}-bp-node-template"


@frozen
class CoreObject:
    """A host or a service; attributes by their names in object files, lists as texts."""

    type: Literal["host", "service"]
    attributes: Mapping[str, str]


@frozen
class Exported:
    """The objects of one live process; ``name`` is for people."""

    number: str
    name: str
    objects: tuple[CoreObject, ...]


def exported(number: str, definition: Definition, app: str) -> Exported:
    """Give the objects of a process; ``app`` is the word in names of variables."""
    objects: list[CoreObject] = []
    for node in definition.exported:
        if node.id == ROOT and definition.create_host_object:
            objects.append(CoreObject("host", _host(number, definition, node, app)))
        objects.append(CoreObject("service", _service(number, definition, node, app)))
    return Exported(number, definition.name, tuple(objects))


def together(processes: Iterable[Exported]) -> tuple[CoreObject, ...]:
    """Give the objects of all: hosts by name, then services by host and name; the first counts."""
    found: dict[tuple[str, str, str], CoreObject] = {}
    for process in processes:
        for one in process.objects:
            service = one.attributes.get("service_description", "")
            found.setdefault((one.type, one.attributes["host_name"], service), one)
    return tuple(found[key] for key in sorted(found))


def _host(number: str, definition: Definition, node: Node, app: str) -> dict[str, str]:
    return {
        "host_name": definition.host_of(node),
        "alias": f"Business Process: {node.label}",
        "use": definition.template or HOST_TEMPLATE.format(app=app),
        **_identity(number, node, app),
        **_common(node),
        **node.host_object_attributes,
    }


def _service(number: str, definition: Definition, node: Node, app: str) -> dict[str, str]:
    return {
        "host_name": definition.host_of(node),
        "service_description": node.label,
        "display_name": node.label,
        "use": node.template or SERVICE_TEMPLATE.format(app=app),
        **_identity(number, node, app),
        **_common(node),
        **node.service_object_attributes,
    }


def _identity(number: str, node: Node, app: str) -> dict[str, str]:
    word = app.upper()
    return {f"_{word}_BP_ID": number, f"_{word}_NODE_ID": node.id}


def _common(node: Node) -> dict[str, str]:
    given = {
        "contacts": ",".join(node.contacts),
        "contact_groups": ",".join(node.contactgroups),
        "notification_period": node.notification_period,
        "max_check_attempts": node.max_check_attempts,
        "event_handler": node.event_handler,
    }
    return {name: value for name, value in given.items() if value}
