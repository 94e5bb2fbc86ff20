"""What is wrong with a site's objects, as far as it shows without the core (section 13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import re2
from attrs import define, field

from monrest.objectconfig.model import ConfigObject, SiteModel
from monrest.objectconfig.names import NAMED, own_names
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.references import Reference, references
from monrest.objectconfig.resolve import is_null
from monrest.objectconfig.values import elements

_NAMELESS = frozenset({"hostgroup", "hostescalation", "serviceescalation"})
_TEMPLATES_TOO = frozenset({"host", "hostgroup"})
_EXPRESSION = frozenset("^|*{}[]")

_NOTIFICATIONS = (("first_notification",), ("last_notification",))
_HOSTS = ("host_name", "hostgroup_name")
_DEPENDENT_HOSTS = ("dependent_host_name", "dependent_hostgroup_name")
_GROUPS = ("servicegroup_name", "dependent_servicegroup_name")

REQUIRED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "host": (("max_check_attempts",),),
    "hostgroup": (("hostgroup_name",),),
    "service": (_HOSTS, ("check_command",), ("max_check_attempts",)),
    "contact": (("host_notification_commands",), ("service_notification_commands",)),
    "command": (("command_line",),),
    "timeperiod": (("alias",),),
    "hostdependency": (_HOSTS, _DEPENDENT_HOSTS),
    "servicedependency": (
        ("service_description", "servicegroup_name"),
        ("dependent_service_description", "dependent_servicegroup_name"),
        (*_HOSTS, *_DEPENDENT_HOSTS, *_GROUPS),
    ),
    "hostescalation": (_HOSTS, *_NOTIFICATIONS),
    "serviceescalation": (
        ("service_description", "servicegroup_name"),
        (*_HOSTS, "servicegroup_name"),
        *_NOTIFICATIONS,
    ),
    "hostextinfo": (_HOSTS,),
    "serviceextinfo": (_HOSTS,),
}
"""Of each tuple a registered object needs one; names are asked for by themselves."""

_SIDES = {
    "service_description": "host_name",
    "dependent_service_description": "dependent_host_name",
}


def precheck(model: SiteModel) -> list[str]:
    """Problems of form, then of names and missing attributes, then of references.

    Each text ends in its place; clients look for parts of them.
    """
    check = _Check(model)
    return [*_syntax(model), *check.names(), *check.references()]


def _syntax(model: SiteModel) -> Iterator[str]:
    yield from model.problems
    icinga = model.files.core_type == "icinga"
    for file in model.loaded.values():
        for problem in file.document.problems:
            known = problem.text in (
                "unknown attribute: address6 for object type host",
                "unknown object type 'module'",
            )
            if not (icinga and known):
                yield problem.message


@define(eq=False)
class _Check:
    model: SiteModel
    _known: dict[str, Collection[str]] = field(init=False, factory=dict)
    _matching: dict[tuple[str, str], bool] = field(init=False, factory=dict)

    def names(self) -> Iterator[str]:
        templates: dict[tuple[str, ...], str] = {}
        objects: dict[tuple[str, ...], str] = {}
        for item in self._enabled():
            own = own_names(item.type, item.attributes)
            if item.attributes.get("name"):
                yield from _twice(templates, item, f"{item.type} template", (own.template,))
            name = self.model.names.name_of(item)
            anonymous = own.registered or not own.template
            if anonymous and not name and item.type not in _NAMELESS:
                yield f"{item.type} object has no name in {item.place}"
            if not own.registered:
                continue
            values = self.model.resolver.values(item)
            if name and item.type in NAMED:
                key: tuple[str, ...] = (name,)
                if item.type == "service":
                    # One description stands on many hosts, by definitions for some of them each.
                    key = (name, *(values.get(side, "") for side in _HOSTS))
                yield from _twice(objects, item, item.type, key)
            # What a missing template might have given is not said to be missing, too.
            complete = all(self.model.names.templates(item.type, used) for used in self._used(item))
            for needed in REQUIRED.get(item.type, ()) if complete else ():
                if not any(_is_set(item.type, one, values) for one in needed):
                    called = f"{item.type} {name}" if name else item.type
                    yield f"{called} has no {' or '.join(needed)} in {item.place}"

    def _used(self, item: ConfigObject) -> tuple[str, ...]:
        return self.model.resolver.templates(item) if "use" in item.attributes else ()

    def references(self) -> Iterator[str]:
        model = self.model
        unknown = model.files.core_type in ("nagios", "icinga")
        for item in self._enabled():
            if unknown and item.type == "service" and "parents" in item.attributes:
                yield f"unknown attribute: parents for object type service in {item.place}"
            for name in elements(item.attributes.get("use", "")):
                found = model.names.templates(item.type, core_text(name))
                # Without a name of its own a template is found by us, and not by the core.
                if not any(template.attributes.get("name") for template in found):
                    yield f"referenced template '{name}' does not exist in {item.place}"
            for text in dict.fromkeys(self._broken(item)):
                yield f"{text} in {item.place}"

    def _broken(self, item: ConfigObject) -> Iterator[str]:
        for reference in references(item.type, item.attributes):
            if "*" in reference.name or (reference.rejects and reference.type == "service"):
                continue
            if not self._exists(reference):
                yield f"referenced {reference.type} '{reference.name}' does not exist"
            elif reference.host and "*" not in reference.host:
                yield from self._not_on_host(reference.host, reference.name)
            elif reference.attribute in _SIDES and reference.type == "service":
                for host in self._hosts_beside(item, reference.attribute):
                    yield from self._not_on_host(host, reference.name)
        pairs = item.attributes.get("members", "") if item.type == "servicegroup" else ""
        if item.type == "service" and "," in item.attributes.get("parents", ""):
            pairs = item.attributes["parents"]
        if pairs and not is_null(item.type, "members", pairs) and len(elements(pairs)) % 2:
            yield f"syntax invalid: '{pairs}' is no list of host,service pairs"

    def _exists(self, reference: Reference) -> bool:
        kind, name = reference.type, reference.name
        known = self._known.get(kind)
        if known is None:
            names = self.model.names
            known = set(names.real_names(kind))
            if kind in _TEMPLATES_TOO:
                known.update(names.template_names(kind))
            self._known[kind] = known
        if name in known:
            return True
        if _EXPRESSION.isdisjoint(name):
            return False
        found = self._matching.get((kind, name))
        if found is None:
            found = self._matching[kind, name] = _any_matches(name, known)
        return found

    def _hosts_beside(self, item: ConfigObject, attribute: str) -> list[str]:
        """Hosts that a dependency or an escalation names one by one beside a description."""
        values = self.model.resolver.values(item)
        text = values.get(_SIDES[attribute], "")
        if is_null(item.type, _SIDES[attribute], text):
            return []
        return [core_text(name) for name in elements(text) if name[0] != "!" and "*" not in name]

    def _not_on_host(self, host: str, description: str) -> Iterator[str]:
        services = self.model.service_hosts
        if host not in services.hosts or description not in services.descriptions:
            return
        if description not in services.on_host[host]:
            yield f"referenced service '{description}' does not exist on host '{host}'"

    def _enabled(self) -> Iterator[ConfigObject]:
        return (item for item in self.model.objects if not item.disabled)


def _twice(
    seen: dict[tuple[str, ...], str], item: ConfigObject, what: str, key: tuple[str, ...]
) -> Iterator[str]:
    first = seen.get((item.type, *key))
    if first is None:
        seen[item.type, *key] = item.place
    else:
        text = f"duplicate {what} definition {key[0]} in {item.place}"
        yield f"{text}\n  -> already defined in {first}"


def _is_set(kind: str, name: str, values: Mapping[str, str]) -> bool:
    text = values.get(name, "")
    return bool(text) and not is_null(kind, name, text)


def _any_matches(name: str, known: Collection[str]) -> bool:
    try:
        search: Callable[[str], object] = re2.compile(name).search
    except re2.error:
        return False
    return any(search(other) is not None for other in known)
