"""Errors in a site's objects that can be found without the core.

Rules: docs/spec/objectconfig.md, "The precheck".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import re2
from attrs import define, field

from monrest.objectconfig.attributes import (
    OBJECT_TYPES,
    WEEKDAYS,
    Attribute,
    core_text,
    elements,
    is_null,
    is_registered,
    listed_names,
    number_of,
)
from monrest.objectconfig.inheritance import NAMED, ConfigObject, template_name
from monrest.objectconfig.model import SiteModel
from monrest.objectconfig.references import Reference, references
from monrest.objectconfig.timeperiods import TimeperiodError, parse_date_rule, parse_ranges

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
"""A registered object needs one attribute of each tuple; names are checked apart."""

_RANGE = re.compile(r"\d+:\d")
_POSITIVE = frozenset({("host", "max_check_attempts"), ("service", "max_check_attempts"),
                       ("service", "retry_interval")})  # fmt: skip
_NOT_NEGATIVE = frozenset({("host", "check_interval"), ("service", "check_interval")})

_LOOPS = {
    "host": "parents",
    "timeperiod": "exclude",
    "hostgroup": "hostgroup_members",
    "servicegroup": "servicegroup_members",
    "contactgroup": "contactgroup_members",
}
"""Attributes by which objects of a type must not lead back to themselves."""

_JOINED = {"host": "hostgroups", "service": "servicegroups", "contact": "contactgroups"}
"""Lists of groups, of which one must be left."""

_SIDES = {
    "service_description": "host_name",
    "dependent_service_description": "dependent_host_name",
}


def precheck(model: SiteModel) -> list[str]:
    """Problems of form and values, then of names and missing attributes, then of references.

    Each text ends in its place; clients look for parts of them.
    """
    check = _Precheck(model)
    return [
        *_syntax(model),
        *check.values(),
        *check.names(),
        *check.references(),
        *check.loops(),
    ]


def _syntax(model: SiteModel) -> Iterator[str]:
    yield from model.problems
    icinga = model.files.core_type == "icinga"
    for file in model.loaded.values():
        for problem in file.document.problems:
            harmless = problem.text in (
                "unknown attribute: address6 for object type host",
                "unknown object type 'module'",
            )
            if not (icinga and harmless):
                yield problem.message


@define(eq=False)
class _Precheck:
    model: SiteModel
    _remembered: dict[str, Collection[str]] = field(init=False, factory=dict)
    _matching: dict[tuple[str, str], bool] = field(init=False, factory=dict)

    def values(self) -> Iterator[str]:
        """Texts that mean nothing: options, numbers, times; for a Naemon flags as well."""
        flags = self.model.files.core_type == "naemon"
        for item in self._enabled():
            declared = OBJECT_TYPES[item.type].attributes
            for name, text in item.attributes.items():
                attribute = declared.get(name)
                if attribute is None or name in WEEKDAYS:
                    if item.type == "timeperiod" and not _is_time(name, text):
                        yield f"unknown time definition '{name} {text}' in {item.place}"
                elif not is_null(item.type, name, text) and not _is_value(
                    item.type, attribute, text, flags=flags
                ):
                    yield f"invalid value '{text}' of {name} in {item.place}"

    def names(self) -> Iterator[str]:
        templates: dict[tuple[str, ...], str] = {}
        objects: dict[tuple[str, ...], str] = {}
        for item in self._enabled():
            template = template_name(item.type, item.attributes)
            if item.attributes.get("name"):
                yield from _twice(templates, item, f"{item.type} template", (template,))
            name = self.model.names.name_of(item)
            registered = is_registered(item.attributes)
            if not name and (registered or not template) and item.type not in _NAMELESS:
                yield f"{item.type} object has no name in {item.place}"
            if not registered:
                continue
            values = self.model.resolver.values(item)
            if name and item.type in NAMED:
                key: tuple[str, ...] = (name,)
                if item.type == "service":
                    # One description stands on many hosts, by definitions for some of them each.
                    key = (name, *(values.get(side, "") for side in _HOSTS))
                yield from _twice(objects, item, item.type, key)
            # What a missing template might have given is not reported as missing, too.
            used = self.model.resolver.templates(item) if "use" in item.attributes else ()
            complete = all(self.model.names.templates(item.type, template) for template in used)
            for needed in REQUIRED.get(item.type, ()) if complete else ():
                given = (attribute for attribute in needed if values.get(attribute))
                if all(is_null(item.type, given_name, values[given_name]) for given_name in given):
                    called = f"{item.type} {name}" if name else item.type
                    yield f"{called} has no {' or '.join(needed)} in {item.place}"

    def references(self) -> Iterator[str]:
        model = self.model
        unknown = model.files.core_type == "icinga"
        for item in self._enabled():
            if unknown and item.type == "service" and "parents" in item.attributes:
                yield f"unknown attribute: parents for object type service in {item.place}"
            for name in elements(item.attributes.get("use", "")):
                templates = model.names.templates(item.type, core_text(name))
                # Without a name of its own a template is found by us, and not by the core.
                if not any(template.attributes.get("name") for template in templates):
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
        yield from self._empty(item)
        if item.type == "servicedependency":
            yield from self._on_same_host(item)
        elif item.type == "service" and "parents" in item.attributes:
            yield from self._own_parent(item)
        pairs = item.attributes.get("members", "") if item.type == "servicegroup" else ""
        if item.type == "service" and "," in item.attributes.get("parents", ""):
            pairs = item.attributes["parents"]
        if pairs and not is_null(item.type, "members", pairs) and len(elements(pairs)) % 2:
            yield f"syntax invalid: '{pairs}' is no list of host,service pairs"

    def _empty(self, item: ConfigObject) -> Iterator[str]:
        """Lists of which nothing is left; the core takes them for mistakes."""
        if not is_registered(item.attributes):
            return
        name = _JOINED.get(item.type, "")
        values = self.model.resolver.values(item) if name in item.attributes else {}
        names = listed_names(values.get(name, ""))
        rejected = {name for name, reject in names if reject}
        if rejected and all(name in rejected for name, _ in names):
            yield f"{name} of {item.type} names nothing but what it rejects"
        if item.type == "servicegroup":
            pairs = elements(item.attributes.get("members", ""))
            on_host = self.model.service_hosts.on_host
            for host, description in zip(pairs[::2], pairs[1::2], strict=False):
                if description == "*" and not on_host.get(core_text(host), "unknown"):
                    yield f"host '{host}' has no service"

    def _on_same_host(self, item: ConfigObject) -> Iterator[str]:
        """A dependent service without a host of its own is one of each master's host."""
        values = self.model.resolver.values(item)
        if any(values.get(name) for name in (*_DEPENDENT_HOSTS, _GROUPS[1])):
            return
        for name, reject in listed_names(values.get("dependent_service_description", "")):
            description = core_text(name)
            if reject or "*" in name:
                continue
            for host in sorted(self.model.service_hosts.covered(values)):
                yield from self._not_on_host(host, description)

    def _own_parent(self, item: ConfigObject) -> Iterator[str]:
        values = self.model.resolver.values(item)
        name = values.get("service_description", "")
        parts = elements(values["parents"])
        hosts = self.model.service_hosts.covered(values)
        alone = len(parts) == 1 and parts[0] == name and hosts
        pairs = zip(parts[::2], parts[1::2], strict=False)
        if alone or any(core_text(host) in hosts and name == other for host, other in pairs):
            yield f"circular parents of service '{name}'"

    def loops(self) -> Iterator[str]:
        """Objects that lead back to themselves, each once."""
        for kind, attribute in _LOOPS.items():
            below: dict[str, tuple[ConfigObject, list[str]]] = {}
            for item in self._enabled():
                if item.type != kind or not is_registered(item.attributes):
                    continue
                text = self.model.resolver.values(item).get(attribute, "")
                names = [] if is_null(kind, attribute, text) else elements(text)
                below[self.model.names.name_of(item)] = item, [core_text(name) for name in names]
            for name in _circular({name: names for name, (_, names) in below.items()}):
                yield f"circular {attribute} of {kind} '{name}' in {below[name][0].place}"

    def _exists(self, reference: Reference) -> bool:
        kind, name = reference.type, reference.name
        present = self._remembered.get(kind)
        if present is None:
            names = self.model.names
            present = set(names.real_names(kind))
            if kind in _TEMPLATES_TOO:
                present.update(names.template_names(kind))
            self._remembered[kind] = present
        if name in present:
            return True
        if _EXPRESSION.isdisjoint(name):
            return False
        matching = self._matching.get((kind, name))
        if matching is None:
            try:
                expression = re2.compile(name)
                matching = any(expression.search(other) is not None for other in present)
            except re2.error:
                matching = False
            self._matching[kind, name] = matching
        return matching

    def _hosts_beside(self, item: ConfigObject, attribute: str) -> list[str]:
        """Hosts that a dependency or an escalation names one by one beside a description."""
        values = self.model.resolver.values(item)
        text = values.get(_SIDES[attribute], "")
        if is_null(item.type, _SIDES[attribute], text):
            return []
        listed = listed_names(text)
        return [core_text(name) for name, reject in listed if not reject and "*" not in name]

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


def _is_time(name: str, text: str) -> bool:
    if not _RANGE.match(text):
        return True  # no rule at all, which is a problem of the form
    try:
        if name in WEEKDAYS:
            parse_ranges(text)
        else:
            parse_date_rule(name, text)
    except TimeperiodError:
        return False
    return True


def _is_value(kind: str, attribute: Attribute, text: str, *, flags: bool) -> bool:
    if attribute.kind == "options":
        values = {*attribute.letters, *attribute.letters.values(), "n", "none", "a", "all"}
        return all(element in values for element in elements(text))
    if attribute.kind == "bool":
        return not flags or text[:1] in ("0", "1")
    if (kind, attribute.name) in _POSITIVE:
        return number_of(text) > 0
    return (kind, attribute.name) not in _NOT_NEGATIVE or number_of(text) >= 0


def _circular(below: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The names that lead back to themselves; each step is taken once."""
    above: dict[str, list[str]] = {}
    left = dict.fromkeys(below, 0)
    for name, names in below.items():
        for other in names:
            if other in below:
                left[name] += 1
                above.setdefault(other, []).append(name)
    # What leads only to what ends, ends; what remains leads into a circle.
    ended = [name for name, count in left.items() if not count]
    for name in ended:
        for other in above.get(name, ()):
            left[other] -= 1
            if not left[other]:
                ended.append(other)
    return (name for name, count in left.items() if count)
