"""References follow when an object gets another name (section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.names import NAMED, OwnNames, own_names
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.references import Reference, rewrite

if TYPE_CHECKING:
    from monrest.objectconfig.model import ConfigObject, SiteModel


@frozen(kw_only=True)
class Rename:
    """What becomes of a name: ``old`` is the core's text, ``new`` that for the file.

    ``template``: it is the name by which others use it. ``model`` is what stood before, ``hosts``
    are those on which a service had the old name.
    """

    kind: str
    old: str
    new: str
    template: bool
    model: SiteModel = field(repr=False)
    hosts: frozenset[str] = frozenset()

    def follow(self, item: ConfigObject, attributes: Mapping[str, str]) -> dict[str, str]:
        """The attributes of an object that have to change, with their new texts."""
        if not any(self.old in core_text(text) for text in attributes.values()):
            return {}
        if self.template:
            return self._uses(item, attributes)

        def renamed(reference: Reference) -> str | None:
            if reference.type != self.kind or reference.name != self.old:
                return None
            if self.kind == "service" and not self._concerns(item, reference):
                return None
            return self.new

        return rewrite(item.type, attributes, renamed)

    def _uses(self, item: ConfigObject, attributes: Mapping[str, str]) -> dict[str, str]:
        if item.type != self.kind or "use" not in attributes:
            return {}
        names = [part.strip() for part in attributes["use"].split(",")]
        if self.old not in map(core_text, names):
            return {}
        return {
            "use": ",".join(self.new if core_text(name) == self.old else name for name in names)
        }

    def _concerns(self, item: ConfigObject, reference: Reference) -> bool:
        """Whether a reference to a service can mean it on one of its hosts."""
        if reference.host:
            return reference.host in self.hosts
        hosts = self._host_side(item, reference.attribute)
        if hosts is None:
            # A template that leaves the hosts to others: follow if nobody else has the name.
            others = self.model.service_hosts.definitions_of(self.old)
            return all(self.hosts >= covered for covered in others)
        return not self.hosts.isdisjoint(hosts)

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


def renames(
    model: SiteModel, item: ConfigObject, before: Mapping[str, str], after: Mapping[str, str]
) -> list[Rename]:
    """What a change of an object's attributes does to its names; ``model`` is that before it.

    An object that loses its name, or had none, renames nothing.
    """
    if item.disabled:
        return []
    old, new = own_names(item.type, before), own_names(item.type, after)
    found: list[Rename] = []
    if old.template and new.template and old.template != new.template:
        attribute = "name" if after.get("name") else OBJECT_TYPES[item.type].key[0]
        found.append(
            Rename(
                kind=item.type,
                old=old.template,
                new=after[attribute],
                template=True,
                model=model,
            )
        )
    if item.type in NAMED:
        found += _real(model, item, old, new, after)
    return found


def _real(
    model: SiteModel,
    item: ConfigObject,
    old: OwnNames,
    new: OwnNames,
    after: Mapping[str, str],
) -> list[Rename]:
    name = model.names.name_of(item)
    if not name or not new.key or name == new.key:
        return []
    hosts: frozenset[str] = frozenset()
    if item.type == "service":
        hosts = _hosts(model, item, old, name)
        if not hosts and not old.registered:
            return []
    elif not old.registered:
        return []
    return [
        Rename(
            kind=item.type,
            old=name,
            new=after[OBJECT_TYPES[item.type].key[0]],
            template=False,
            model=model,
            hosts=hosts,
        )
    ]


def _hosts(model: SiteModel, item: ConfigObject, old: OwnNames, name: str) -> frozenset[str]:
    """Hosts of a service and of those that have their description from it as a template."""
    concerned = [item]
    if old.template:
        concerned += [
            other
            for other in model.names.real("service", name)
            if "service_description" not in other.attributes
            and old.template in model.resolver.resolve(other).templates
        ]
    found: set[str] = set()
    for other in concerned:
        if own_names("service", other.attributes).registered:
            found |= model.service_hosts.covered(model.resolver.values(other))
    return frozenset(found)
