"""Who names whom: the references in an object's own attributes.

Rules: docs/spec/objectconfig.md, "Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.resolve import is_null

_LISTS = frozenset({"list", "pairs", "service_ref"})
_ALSO_LISTS = frozenset({("servicedependency", "service_description")})
_EXTINFO = {"host_name": "host", "hostgroup_name": "hostgroup"}


@frozen
class Reference:
    """A name in an attribute; ``host`` is the one beside it where services come in pairs.

    ``rejects``: it takes something out of the list.
    """

    attribute: str
    type: str
    name: str
    host: str = ""
    rejects: bool = False


Renamed = Callable[[Reference], str | None]
"""Gives the text that is to stand in place of a reference's name, None to leave it."""


def references(
    kind: str, attributes: Mapping[str, str], *, extended: bool = False
) -> Iterator[Reference]:
    """The references of an object except its templates; leading ``!`` and ``+`` are taken off.

    Empty ones and ``null`` are left out, patterns given as they are. ``extended`` gives those of
    extended information too, which the core does not check.
    """
    for name, text in attributes.items():
        for part in _parts(kind, name, text, extended=extended):
            if part.name:
                yield part.reference


def rewrite(kind: str, attributes: Mapping[str, str], renamed: Renamed) -> dict[str, str]:
    """The attributes whose references are changed, with their new texts."""
    found: dict[str, str] = {}
    for name, text in attributes.items():
        parts = list(_parts(kind, name, text, extended=True))
        new = [renamed(part.reference) if part.name else None for part in parts]
        if any(item is not None for item in new):
            found[name] = ",".join(
                part.text if item is None else f"{part.before}{item}{part.after}"
                for part, item in zip(parts, new, strict=True)
            )
    return found


@frozen
class _Part:
    """A piece of an attribute's text between commas: what is before and after the name in it."""

    reference: Reference
    text: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return self.reference.name


def _parts(kind: str, name: str, text: str, *, extended: bool) -> Iterator[_Part]:
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    if attribute is None or not text or is_null(kind, name, text):
        return
    if attribute.kind == "pairs" or (attribute.kind == "service_ref" and "," in text):
        yield from _pairs(name, text)
        return
    ref = attribute.ref
    if not ref and extended and kind.endswith("extinfo"):
        ref = _EXTINFO.get(name, "")
    if not ref:
        return
    listed = attribute.kind in _LISTS or (kind, name) in _ALSO_LISTS
    for piece in text.split(",") if listed else [text]:
        yield _part(name, ref, piece)


def _pairs(attribute: str, text: str) -> Iterator[_Part]:
    host = ""
    for index, piece in enumerate(text.split(",")):
        part = _part(attribute, "service" if index % 2 else "host", piece, host)
        yield part
        host = "" if index % 2 else part.name


def _part(attribute: str, ref: str, piece: str, host: str = "") -> _Part:
    start = len(piece) - len(piece.lstrip())
    if piece[start : start + 1] in ("!", "+"):
        start += 1
        start += len(piece[start:]) - len(piece[start:].lstrip())
    name = piece[start:].rstrip()
    if ref == "command":
        name = name.partition("!")[0].rstrip()
    end = start + len(name)
    rejects = piece.lstrip().startswith("!")
    reference = Reference(attribute, ref, core_text(name), host, rejects)
    return _Part(reference, piece, piece[:start], piece[end:])
