"""The names of an object, and the attributes of its templates, as its file has them.

The texts stay as written, and ``null`` stays visible.

Rules: docs/spec/objectconfig.md, "Records and ids" and "Templates".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

from monrest.objectconfig.attributes import NULL, OBJECT_TYPES, core_text, elements, is_registered
from monrest.objectconfig.document import Block, place

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
"""Templates above an object that are looked at; real files have fewer, and chains multiply."""


def template_name(kind: str, attributes: Mapping[str, str]) -> str:
    """The name by which others may use an object, or nothing."""
    name = attributes.get("name", "")
    if not name and not is_registered(attributes):
        return key_of(kind, attributes)
    return core_text(name)


def uses(attributes: Mapping[str, str]) -> tuple[str, ...]:
    text = attributes.get("use")
    return tuple(elements(core_text(text))) if text else ()


def key_of(kind: str, attributes: Mapping[str, str]) -> str:
    """The name of a named type, the joined key attributes of another one."""
    keys = OBJECT_TYPES[kind].key
    if kind in NAMED:
        return core_text(attributes.get(keys[0], ""))
    return ",".join(filter(None, (core_text(attributes.get(key, "")) for key in keys)))


@frozen(eq=False)
class ConfigObject:
    """One definition of a site; ``line`` is that of its ``define`` when it was parsed, or 0."""

    id: str
    type: str
    path: str
    line: int
    readonly: bool
    block: Block

    @property
    def attributes(self) -> Mapping[str, str]:
        return self.block.attributes

    @property
    def disabled(self) -> bool:
        return self.block.disabled

    @property
    def place(self) -> str:
        """``FILE:LINE`` without the folder, and without the line while that is 0."""
        return place(self.path, self.line)


@define(eq=False)
class NameIndex:
    """Lookup by name within a type; disabled definitions have none."""

    objects: Iterable[ConfigObject]
    _by_type: dict[str, list[ConfigObject]] = field(init=False, factory=dict)
    _real: dict[str, dict[str, list[ConfigObject]]] = field(init=False, factory=dict)
    _templates: dict[str, dict[str, list[ConfigObject]]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for item in self.objects:
            if not item.disabled:
                self._by_type.setdefault(item.type, []).append(item)

    def real(self, kind: str, name: str) -> list[ConfigObject]:
        """Registered objects of that name, which may come from a template."""
        return self._real_of(kind).get(name, [])

    def templates(self, kind: str, name: str) -> list[ConfigObject]:
        """Templates of that name; the first one counts."""
        return self._templates_of(kind).get(name, [])

    def template(self, kind: str, name: str) -> ConfigObject | None:
        return next(iter(self.templates(kind, name)), None)

    def real_names(self, kind: str) -> Collection[str]:
        return self._real_of(kind).keys()

    def template_names(self, kind: str) -> Collection[str]:
        return self._templates_of(kind).keys()

    def _real_of(self, kind: str) -> dict[str, list[ConfigObject]]:
        if kind not in self._real:
            objects = self._by_type.get(kind, ())
            registered = (item for item in objects if is_registered(item.attributes))
            self._real[kind] = _by_name(registered, self.name_of)
        return self._real[kind]

    def _templates_of(self, kind: str) -> dict[str, list[ConfigObject]]:
        if kind not in self._templates:
            self._templates[kind] = _by_name(
                self._by_type.get(kind, ()), lambda item: template_name(kind, item.attributes)
            )
        return self._templates[kind]

    def name_of(self, item: ConfigObject) -> str:
        """The name of an object by its key attributes, if need be from its templates."""
        kind = item.type
        if key := key_of(kind, item.attributes):
            return key
        above = templates_above(self.template, kind, item.attributes, MOST_TEMPLATES)
        keys = (key_of(kind, template.attributes) for _, template in above if template is not None)
        return next(filter(None, keys), "")


FindTemplate: TypeAlias = Callable[[str, str], ConfigObject | None]
"""Returns a template by type and name."""


def templates_above(
    find: FindTemplate, kind: str, attributes: Mapping[str, str], most: int
) -> Iterator[tuple[str, ConfigObject | None]]:
    """The templates that attributes use, depth first, each once by its name; missing ones too."""
    seen: set[str] = set()
    waiting = [*reversed(uses(attributes))]
    while waiting and len(seen) < most:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        template = find(kind, name)
        yield name, template
        if template is not None:
            waiting += reversed(uses(template.attributes))


def _by_name(
    items: Iterable[ConfigObject], name_of: Callable[[ConfigObject], str]
) -> dict[str, list[ConfigObject]]:
    index: dict[str, list[ConfigObject]] = {}
    for item in items:
        if name := name_of(item):
            index.setdefault(name, []).append(item)
    return index


_NOT_INHERITED = frozenset({"name", "register", "use"})


@define(eq=False)
class _Inheriting:
    """An object that inherits from its templates; ``waiting`` are those to come."""

    item: ConfigObject
    values: dict[str, str] = field(init=False)
    custom: set[str] = field(init=False)
    """Its custom variables in upper case."""
    waiting: Iterator[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.values = dict(self.item.attributes)
        self.custom = {name.upper() for name in self.values if name.startswith("_")}
        self.waiting = iter(uses(self.item.attributes))

    def inherit(self, template: Mapping[str, str]) -> None:
        kind, values = self.item.type, self.values
        attributes = OBJECT_TYPES[kind].attributes
        for name, text in template.items():
            if name in _NOT_INHERITED:
                continue
            if name.startswith("_"):
                if name.upper() not in self.custom:
                    self.custom.add(name.upper())
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


@define(eq=False)
class Resolver:
    """Resolves templates; the attributes of a template are cached. Threads may share it.

    At most ``most`` are looked at above an object.
    """

    template: FindTemplate
    most: int = MOST_TEMPLATES
    _merged: dict[ConfigObject, Mapping[str, str]] = field(init=False, factory=dict)

    def templates(self, item: ConfigObject) -> tuple[str, ...]:
        """The names of all templates that an object uses, missing ones too, depth first."""
        above = templates_above(self.template, item.type, item.attributes, self.most)
        return tuple(name for name, _ in above)

    def values(self, item: ConfigObject) -> dict[str, str]:
        """Texts of an object's own and inherited attributes by name, without leading plus."""
        attributes = OBJECT_TYPES[item.type].attributes
        texts: dict[str, str] = {}
        for name, text in self._merge(item).items():
            if name == "use":
                continue
            attribute = attributes.get(name)
            if attribute is not None and attribute.additive:
                if text.startswith("+"):
                    text = text[1:].lstrip()
                if attribute.kind == "list" and "," in text:
                    text = ",".join(dict.fromkeys(elements(text)))
            texts[name] = text
        return texts

    def _merge(self, item: ConfigObject) -> Mapping[str, str]:
        """Own and inherited texts; a chain of templates may be of any length."""
        merged = self._merged.get(item)
        if merged is not None:
            return merged
        path = [_Inheriting(item)]
        entered = {item: path[0].values}
        while True:
            current = path[-1]
            name = next(current.waiting, None)
            if name is not None:
                template = self.template(item.type, name)
                if template is None:
                    continue
                # In a loop of templates that is what there is so far, as in the core.
                merged = self._merged.get(template) or entered.get(template)
                if merged is not None:
                    current.inherit(merged)
                elif len(path) >= self.most:
                    current.inherit(template.attributes)
                else:
                    path.append(_Inheriting(template))
                    entered[template] = path[-1].values
                continue
            path.pop()
            if not path:
                return current.values
            del entered[current.item]
            self._merged[current.item] = current.values
            path[-1].inherit(current.values)
