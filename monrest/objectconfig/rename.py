"""References follow when an object gets another name (docs/spec/objectconfig.md, "Changes")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import define, field

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.names import NAMED, OwnNames, own_names
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.references import Reference, rewrite

if TYPE_CHECKING:
    from monrest.objectconfig.model import ConfigObject, SiteModel

_FEW = 8
"""So many names are looked for in the plain text before references are taken apart."""


@define(eq=False)
class Rename:
    """What becomes of a name: ``new`` is its text for the file.

    ``hosts`` are those on which a service had the old name.
    """

    new: str
    hosts: set[str] = field(factory=set)


@define(eq=False)
class Renames:
    """All renames of one change; ``model`` is that before it.

    An object that loses its name, or had none, renames nothing.
    """

    model: SiteModel
    _objects: dict[tuple[str, str], list[Rename]] = field(init=False, factory=dict)
    _templates: dict[tuple[str, str], str] = field(init=False, factory=dict)

    def __bool__(self) -> bool:
        return bool(self._objects or self._templates)

    def add(self, item: ConfigObject, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Look for a rename in what an object was and what it becomes."""
        kind = item.type
        key = OBJECT_TYPES[kind].key[0]
        if item.disabled or all(before.get(name) == after.get(name) for name in ("name", key)):
            return
        old, new = own_names(kind, before), own_names(kind, after)
        if old.template and new.template and old.template != new.template:
            self._templates[kind, old.template] = after["name" if after.get("name") else key]
        if kind not in NAMED or not new.key:
            return
        name = old.key or self.model.names.name_of(item)
        if not name or name == new.key:
            return
        hosts: set[str] = set()
        if kind == "service":
            hosts = self._hosts(item, old, name)
        if not old.registered and not hosts:
            return
        found = self._objects.setdefault((kind, name), [])
        same = next((rename for rename in found if rename.new == after[key]), None)
        if same is None:
            found.append(Rename(after[key], hosts))
        else:
            same.hosts |= hosts

    def follow(self, item: ConfigObject) -> dict[str, str]:
        """The attributes of an object that have to change, with their new texts."""
        attributes = item.attributes
        names = {name for _, name in (*self._objects, *self._templates)}
        if len(names) <= _FEW:
            texts = [core_text(text) for text in attributes.values()]
            if not any(name in text for name in names for text in texts):
                return {}
        found: dict[str, str] = {}
        if self._objects:
            found = rewrite(item.type, attributes, lambda reference: self._renamed(item, reference))
        if self._templates and "use" in attributes:
            used = [part.strip() for part in attributes["use"].split(",")]
            new = [self._templates.get((item.type, core_text(name)), name) for name in used]
            if new != used:
                found["use"] = ",".join(new)
        return found

    def _renamed(self, item: ConfigObject, reference: Reference) -> str | None:
        for rename in self._objects.get((reference.type, reference.name), ()):
            if reference.type != "service" or self._concerns(item, reference, rename.hosts):
                return rename.new
        return None

    def _concerns(self, item: ConfigObject, reference: Reference, hosts: set[str]) -> bool:
        """Whether a reference to a service can mean it on one of its hosts."""
        if reference.host:
            return reference.host in hosts
        side = self._host_side(item, reference.attribute)
        if side is None:
            # A template that leaves the hosts to others: follow if nobody else has the name.
            others = self.model.service_hosts.definitions_of(reference.name)
            return all(hosts >= covered for covered in others)
        return not hosts.isdisjoint(side)

    def _host_side(self, item: ConfigObject, attribute: str) -> set[str] | None:
        values = self.model.resolver.values(item)
        sides = [("host_name", "hostgroup_name")]
        if item.type == "servicedependency":
            sides.append(("dependent_host_name", "dependent_hostgroup_name"))
        if attribute.startswith("dependent_"):
            sides.reverse()
        for side in sides:
            if any(values.get(name) for name in side):
                return self.model.service_hosts.covered(values, *side)
        return None

    def _hosts(self, item: ConfigObject, old: OwnNames, name: str) -> set[str]:
        """Hosts of a service and of those that have their description from it as a template."""
        model = self.model
        concerned = [item]
        if old.template:
            concerned += [
                other
                for other in model.names.real("service", name)
                if "service_description" not in other.attributes
                and old.template in model.resolver.templates(other)
            ]
        found: set[str] = set()
        for other in concerned:
            if own_names("service", other.attributes).registered:
                found |= model.service_hosts.covered(model.resolver.values(other))
        return found
