"""Who names whom: the references in an object's own attributes (sections 9 and 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from monrest.objectconfig.attributes import OBJECT_TYPES, Attribute
from monrest.objectconfig.resolve import NULL

_LISTS = frozenset({"list", "pairs", "service_ref"})

ALSO_LISTS = frozenset({("servicedependency", "service_description")})
"""Attributes that are one text in JSON and yet a list of names to the core."""

EXTINFO = {"host_name": "host", "hostgroup_name": "hostgroup"}
"""What attributes of extended information name; the core knows no reference there."""


@frozen
class Reference:
    """A name in an attribute; ``host`` is the one beside it where services come in pairs."""

    attribute: str
    type: str
    name: str
    host: str = ""


def referred_type(kind: str, attribute: Attribute) -> str:
    """The type that an attribute of an object type names, or nothing."""
    if attribute.ref:
        return attribute.ref
    if kind.endswith("extinfo"):
        return EXTINFO.get(attribute.name, "")
    return ""


def is_pairs(attribute: Attribute, text: str) -> bool:
    """Whether a text is host and service in turn."""
    return attribute.kind == "pairs" or (attribute.kind == "service_ref" and "," in text)


def is_list(kind: str, attribute: Attribute) -> bool:
    """Whether commas divide the names of an attribute."""
    return attribute.kind in _LISTS or (kind, attribute.name) in ALSO_LISTS


def references(kind: str, attributes: Mapping[str, str]) -> Iterator[Reference]:
    """The references of an object, without ``null``, empty names and templates (``use``).

    Leading ``!`` and ``+`` are taken off; patterns are given as they are.
    """
    known = OBJECT_TYPES[kind].attributes
    for name, text in attributes.items():
        attribute = known.get(name)
        if attribute is None or text == NULL or not text:
            continue
        if attribute.kind == "pairs" or (attribute.kind == "service_ref" and "," in text):
            yield from _pairs(name, text)
        elif attribute.ref:
            for element in text.split(",") if is_list(kind, attribute) else (text,):
                found = bare(element)
                if attribute.ref == "command":
                    found = found.partition("!")[0].strip()
                if found:
                    yield Reference(name, attribute.ref, found)


def _pairs(attribute: str, text: str) -> Iterator[Reference]:
    parts = [bare(part) for part in text.split(",") if part.strip()]
    for host, description in zip(parts[::2], parts[1::2], strict=False):
        yield Reference(attribute, "host", host)
        yield Reference(attribute, "service", description, host)


def bare(element: str) -> str:
    """A name without blanks around it and without a leading ``!`` or ``+``."""
    element = element.strip()
    return element[1:].lstrip() if element[:1] in ("!", "+") else element
