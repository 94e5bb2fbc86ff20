"""Template inheritance as the core does it (docs/spec/objectconfig.md, "Templates")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field

from monrest.objectconfig.attributes import OBJECT_TYPES, ObjectType
from monrest.objectconfig.parser import Definition, FileProblem, core_text


@define(eq=False)
class Resolved:
    """A definition with everything its templates give.

    ``values`` holds the core's texts by canonical name; None stands for ``null``: set, and
    empty. ``custom`` holds custom variables by upper-case name without the underscore.
    """

    definition: Definition
    values: dict[str, str | None]
    custom: dict[str, str] = field(factory=dict)

    @property
    def registered(self) -> bool:
        """Whether the definition is an object and not a template only."""
        return (self.values.get("register") or "1").strip()[:1] != "0"

    @property
    def type(self) -> str:
        """The object type."""
        return self.definition.type

    def problem(self, text: str, attribute: str = "") -> FileProblem:
        """A problem at the line of an attribute, or of the definition."""
        return FileProblem(self.definition.file, self.definition.line_of(attribute), text)


def resolve(definitions: Iterable[Definition]) -> tuple[list[Resolved], list[FileProblem]]:
    """Resolve all templates; disabled definitions are left out. Order is kept."""
    objects = [_own(item) for item in definitions if not item.disabled]
    problems: list[FileProblem] = []
    templates: dict[tuple[str, str], Resolved] = {}
    for item in objects:
        name = item.values.get("name")
        if name and templates.setdefault((item.type, name), item) is not item:
            problems.append(item.problem(f"duplicate template name {name}", "name"))
    done: set[int] = set()
    for item in objects:
        _inherit(item, templates, done, problems)
    for item in objects:
        additive = OBJECT_TYPES[item.type].attributes
        for name, value in item.values.items():
            if value and value[0] == "+" and name in additive and additive[name].additive:
                item.values[name] = value[1:].lstrip()
    return objects, problems


def _own(definition: Definition) -> Resolved:
    kind = OBJECT_TYPES[definition.type]
    values: dict[str, str | None] = {}
    custom: dict[str, str] = {}
    for name, written in definition.block.attributes.items():
        text = core_text(written)
        if name.startswith("_"):
            custom[name[1:].upper()] = text
        elif text == "null" and name in kind.attributes and kind.attributes[name].nullable:
            values[name] = None
        else:
            values[name] = text
    return Resolved(definition, values, custom)


def _inherit(
    item: Resolved,
    templates: Mapping[tuple[str, str], Resolved],
    done: set[int],
    problems: list[FileProblem],
) -> None:
    """Give an object what its templates have, after theirs; chains may be of any length."""
    if id(item) in done:
        return
    done.add(id(item))
    kind = OBJECT_TYPES[item.type]
    path = [(item, _used(item))]
    while path:
        current, names = path[-1]
        name = next(names, None)
        if name is None:
            path.pop()
            if path:
                _merge(path[-1][0], current, kind)
            continue
        template = templates.get((item.type, name))
        if template is None:
            text = f"template {name} of type {item.type} not found"
            problems.append(current.problem(text, "use"))
        elif id(template) in done:
            _merge(current, template, kind)
        else:
            done.add(id(template))
            path.append((template, _used(template)))


def _used(item: Resolved) -> Iterator[str]:
    return filter(None, map(str.strip, (item.values.get("use") or "").split(",")))


def _merge(item: Resolved, template: Resolved, kind: ObjectType) -> None:
    for name, value in template.values.items():
        if name in ("name", "register", "use"):
            continue
        attribute = kind.attributes.get(name)
        own = item.values.get(name)
        if name not in item.values:
            item.values[name] = value
        elif attribute is not None and attribute.additive and own and own.startswith("+"):
            # A template's null ends the chain just as an empty list does.
            item.values[name] = f"{value},{own[1:].lstrip()}" if value else own[1:].lstrip()
    for name, value in template.custom.items():
        item.custom.setdefault(name, value)
