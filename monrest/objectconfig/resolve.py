"""What templates give to an object, in the words of its file.

``templates.resolve`` does the same for the core's values; here the texts stay as written, ``null``
stays visible, and every object is asked for by itself.

Rules: docs/spec/objectconfig.md, "Templates".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic

from attrs import define, field, frozen

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.names import MOST_TEMPLATES, Item, NameIndex, uses
from monrest.objectconfig.values import elements

_NOT_INHERITED = frozenset({"name", "register", "use"})
_DEPTH = 50

NULL = "null"
"""The word that cancels inheritance."""


@frozen
class Full:
    """An object with what its templates give: texts by name, without ``use``.

    ``templates`` are the names of all used templates, depth first, each once.
    """

    values: Mapping[str, str]
    templates: tuple[str, ...]


@define(eq=False)
class Resolver(Generic[Item]):
    """Resolves templates by name; what a template gives is kept. Threads may share it."""

    names: NameIndex[Item]
    _merged: dict[Item, dict[str, str]] = field(init=False, factory=dict)

    def resolve(self, item: Item) -> Full:
        """Everything that an object has."""
        return Full(self.values(item), self.templates(item))

    def templates(self, item: Item) -> tuple[str, ...]:
        """The names of all templates that an object uses, missing ones too, depth first."""
        return tuple(dict.fromkeys(self._used(item, 0, set())))

    def values(self, item: Item) -> dict[str, str]:
        """Texts of an object's own and inherited attributes by name, without leading plus."""
        attributes = OBJECT_TYPES[item.type].attributes
        found: dict[str, str] = {}
        for name, text in self._merge(item, {}).items():
            if name == "use":
                continue
            attribute = attributes.get(name)
            if attribute is not None and attribute.additive:
                if text.startswith("+"):
                    text = text[1:].lstrip()
                if attribute.kind == "list" and "," in text:
                    text = ",".join(dict.fromkeys(elements(text)))
            found[name] = text
        return found

    def _merge(self, item: Item, entered: dict[Item, dict[str, str]]) -> dict[str, str]:
        """Own and inherited texts; ``entered`` are the objects whose templates are on the way."""
        done = self._merged.get(item) or entered.get(item)
        if done is not None:
            # In a loop of templates that is what there is so far, as in the core.
            return done
        found = dict(item.attributes)
        if len(entered) >= MOST_TEMPLATES:
            return found
        entered[item] = found
        custom = {name.upper() for name in found if name.startswith("_")}
        for name in uses(item.attributes):
            for template in self.names.templates(item.type, name)[:1]:
                inherit(item.type, found, self._merge(template, entered), custom)
        del entered[item]
        if entered:
            self._merged[item] = found
        return found

    def _used(self, item: Item, depth: int, entered: set[int]) -> Iterator[str]:
        if depth >= _DEPTH or id(item) in entered:
            return
        entered.add(id(item))
        for name in uses(item.attributes):
            yield name
            for template in self.names.templates(item.type, name)[:1]:
                yield from self._used(template, depth + 1, entered)


def inherit(
    kind: str, values: dict[str, str], template: Mapping[str, str], custom: set[str]
) -> None:
    """Add what a template gives; ``custom`` are the upper-case custom variables there are."""
    attributes = OBJECT_TYPES[kind].attributes
    for name, text in template.items():
        if name in _NOT_INHERITED:
            continue
        if name.startswith("_"):
            if name.upper() not in custom:
                custom.add(name.upper())
                values[name] = text
            continue
        own = values.get(name)
        attribute = attributes.get(name)
        if own is None:
            values[name] = text
        elif attribute is not None and attribute.additive and own.startswith("+"):
            own = own[1:].lstrip()
            # A template's null or empty list ends the chain.
            values[name] = f"{text},{own}" if text.strip() not in ("", "+", NULL) else own
        elif kind == "service" and name == "check_command" and text.startswith("!"):
            values[name] = text[1:].lstrip()


def is_null(kind: str, name: str, text: str) -> bool:
    """Whether an attribute is set to nothing by the word ``null``."""
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    return text == NULL and attribute is not None and attribute.nullable
