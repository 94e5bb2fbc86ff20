"""What an object is called by its own attributes (docs/spec/objectconfig.md, "Records and ids")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from attrs import define, field, frozen

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.values import elements

NAMED = frozenset(
    {
        "host",
        "hostgroup",
        "service",
        "servicegroup",
        "contact",
        "contactgroup",
        "command",
        "timeperiod",
    }
)
"""Types whose first key attribute is a name; the others have a combination of theirs."""

MOST_TEMPLATES = 200
"""Templates above an object that are looked at; nobody writes more, and chains multiply."""


@frozen
class OwnNames:
    """Names without the help of templates; empty where there is none.

    ``key`` is what the key attributes say, ``real`` the same for a registered object,
    ``template`` the name by which others may use it, ``uses`` the templates that it names.
    """

    key: str
    real: str
    template: str
    registered: bool
    uses: tuple[str, ...]


def own_names(kind: str, attributes: Mapping[str, str]) -> OwnNames:
    """The names that an object's own attributes give it."""
    key = key_of(kind, attributes)
    registered = is_registered(attributes)
    return OwnNames(
        key=key,
        real=key if registered else "",
        template=template_name(kind, attributes),
        registered=registered,
        uses=uses(attributes),
    )


def template_name(kind: str, attributes: Mapping[str, str]) -> str:
    """The name by which others may use an object, or nothing."""
    name = attributes.get("name", "")
    if not name and not is_registered(attributes):
        return key_of(kind, attributes)
    return core_text(name)


def uses(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The templates that an object names."""
    text = attributes.get("use")
    return tuple(elements(core_text(text))) if text else ()


def key_of(kind: str, attributes: Mapping[str, str]) -> str:
    """The name of a named type, the joined key attributes of another one."""
    keys = OBJECT_TYPES[kind].key
    if kind in NAMED:
        return core_text(attributes.get(keys[0], ""))
    return ",".join(filter(None, (core_text(attributes.get(key, "")) for key in keys)))


def is_registered(attributes: Mapping[str, str]) -> bool:
    """Whether ``register`` makes it more than a template."""
    text = attributes.get("register")
    return text is None or text.strip()[:1] != "0"


class NamedObject(Protocol):
    """An object that names can be looked up for."""

    @property
    def type(self) -> str:
        """The word behind ``define``."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its own attributes as the file writes them."""

    @property
    def disabled(self) -> bool:
        """Whether it is commented out."""


Item = TypeVar("Item", bound=NamedObject)


@define(eq=False)
class NameIndex(Generic[Item]):
    """Lookup by name within a type; disabled definitions have none."""

    objects: Iterable[Item]
    _by_type: dict[str, list[Item]] = field(init=False, factory=dict)
    _real: dict[str, dict[str, list[Item]]] = field(init=False, factory=dict)
    _templates: dict[str, dict[str, list[Item]]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for item in self.objects:
            if not item.disabled:
                self._by_type.setdefault(item.type, []).append(item)

    def real(self, kind: str, name: str) -> list[Item]:
        """Registered objects of that name, which may come from a template."""
        return self._real_of(kind).get(name, [])

    def templates(self, kind: str, name: str) -> list[Item]:
        """Templates of that name; the first one counts."""
        return self._templates_of(kind).get(name, [])

    def real_names(self, kind: str) -> Collection[str]:
        """The names of all registered objects of a type."""
        return self._real_of(kind).keys()

    def template_names(self, kind: str) -> Collection[str]:
        """The names of all templates of a type."""
        return self._templates_of(kind).keys()

    def _real_of(self, kind: str) -> dict[str, list[Item]]:
        found = self._real.get(kind)
        if found is None:
            found = {}
            for item in self._by_type.get(kind, ()):
                if is_registered(item.attributes):
                    name = self.name_of(item)
                    if name:
                        found.setdefault(name, []).append(item)
            self._real[kind] = found
        return found

    def _templates_of(self, kind: str) -> dict[str, list[Item]]:
        found = self._templates.get(kind)
        if found is None:
            found = {}
            for item in self._by_type.get(kind, ()):
                name = template_name(kind, item.attributes)
                if name:
                    found.setdefault(name, []).append(item)
            self._templates[kind] = found
        return found

    def name_of(self, item: Item) -> str:
        """The name of an object by its key attributes, if need be from its templates."""
        return key_of(item.type, item.attributes) or self._inherited(item.type, item.attributes)

    def _inherited(self, kind: str, attributes: Mapping[str, str]) -> str:
        seen: set[str] = set()
        waiting = [*reversed(uses(attributes))]
        while waiting and len(seen) < MOST_TEMPLATES:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for template in self.templates(kind, name)[:1]:
                if found := key_of(kind, template.attributes):
                    return found
                waiting += reversed(uses(template.attributes))
        return ""
