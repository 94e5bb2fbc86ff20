"""Changes of a site's objects, on a copy of the files they touch; references follow renames.

Rules: docs/spec/objectconfig.md, "Changes".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, evolve, field

from monrest.base.errors import BadRequest, Conflict, NotFound
from monrest.objectconfig.attributes import (
    OBJECT_TYPES,
    core_text,
    is_registered,
    object_type,
    texts,
    to_json,
)
from monrest.objectconfig.document import ConfigFile, UnwritableError
from monrest.objectconfig.inheritance import NAMED, ConfigObject, key_of, template_name
from monrest.objectconfig.model import SiteFile, SiteModel, new_id
from monrest.objectconfig.references import Reference, rewrite
from monrest.objectconfig.site_files import readonly_file

_FEW = 8
"""So many names are looked for in the plain text before references are taken apart."""


@define(eq=False)
class Rename:
    """The change of a name: ``new`` is its text for the file.

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
        template, new_template = template_name(kind, before), template_name(kind, after)
        if template and new_template and template != new_template:
            self._templates[kind, template] = after["name" if after.get("name") else key]
        new_name = key_of(kind, after)
        if kind not in NAMED or not new_name:
            return
        name = key_of(kind, before) or self.model.names.name_of(item)
        if not name or name == new_name:
            return
        hosts: set[str] = set()
        if kind == "service":
            hosts = self._hosts(item, template, name)
        if not is_registered(before) and not hosts:
            return
        renames = self._objects.setdefault((kind, name), [])
        same = next((rename for rename in renames if rename.new == after[key]), None)
        if same is None:
            renames.append(Rename(after[key], hosts))
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
        changed: dict[str, str] = {}
        if self._objects:
            changed = rewrite(
                item.type, attributes, lambda reference: self._renamed(item, reference)
            )
        if self._templates and "use" in attributes:
            used = [part.strip() for part in attributes["use"].split(",")]
            new = [self._templates.get((item.type, core_text(name)), name) for name in used]
            if new != used:
                changed["use"] = ",".join(new)
        return changed

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
            # A template that leaves the hosts to others: follow if no other service has the name.
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

    def _hosts(self, item: ConfigObject, template: str, name: str) -> set[str]:
        """Hosts of a service and of those that have their description from it as a template."""
        model = self.model
        concerned = [item]
        if template:
            concerned += [
                other
                for other in model.names.real("service", name)
                if "service_description" not in other.attributes
                and template in model.resolver.templates(other)
            ]
        hosts: set[str] = set()
        for other in concerned:
            if is_registered(other.attributes):
                hosts |= model.service_hosts.covered(model.resolver.values(other))
        return hosts


GivenAttributes = Mapping[str, Any]
"""The JSON object of a request: attributes, and keys beginning with ``:`` that are ignored."""

_New = Callable[[Mapping[str, str], Mapping[str, str | None]], dict[str, str]]
"""The new attributes of an object from the old ones and those of the request."""


@define(eq=False)
class _Draft:
    """A file that is being edited."""

    file: SiteFile
    document: ConfigFile
    objects: dict[str, ConfigObject]
    retired: list[str]
    touched: bool = False

    @classmethod
    def of(cls, file: SiteFile) -> _Draft:
        objects = {item.id: item for item in file.objects}
        return cls(file, file.document.share(), objects, list(file.retired))

    def own(self, item: ConfigObject) -> ConfigObject:
        block = self.document.own(item.block)
        if block is not item.block:
            item = self.objects[item.id] = evolve(item, block=block)
        return item

    def remove(self, items: Iterable[ConfigObject]) -> None:
        removed = list(items)
        self.document.remove_all([item.block for item in removed])
        for item in removed:
            del self.objects[item.id]
            self.retired.append(item.id)
        for item, block in zip(list(self.objects.values()), self.document.blocks, strict=True):
            # What follows a removed definition may have other text in front of it now.
            if item.block is not block:
                self.objects[item.id] = evolve(item, block=block)

    @property
    def result(self) -> SiteFile:
        return evolve(
            self.file,
            document=self.document,
            stamp=None,
            objects=tuple(self.objects.values()),
            pinned=True,
            retired=tuple(self.retired),
        )


@define(eq=False)
class Editor:
    """Edits a model; the model it was given never changes.

    ``warnings`` tell of references in read-only files that could not follow a rename. After an
    exception a part of the change may have been made: throw the editor away.
    """

    base: SiteModel
    warnings: list[str] = field(init=False, factory=list)
    _drafts: dict[str, _Draft] = field(init=False, factory=dict)
    _model: SiteModel | None = field(init=False, default=None)
    _touched: bool = field(init=False, default=False)
    _taken: set[str] | None = field(init=False, default=None)

    @property
    def model(self) -> SiteModel:
        """The model as edited so far. Do not edit on while it is in use."""
        if not self._touched:
            return self.base
        if self._model is None:
            loaded = dict(self.base.loaded)
            for path, draft in self._drafts.items():
                if draft.touched:
                    loaded[path] = draft.result
            ordered = {path: loaded[path] for path in sorted(loaded, key=os.fsencode)}
            self._model = evolve(self.base, loaded=ordered)
        return self._model

    def create(self, kind: str, file: str, values: GivenAttributes) -> ConfigObject:
        """Add an object at the end of a file, which may be a new one.

        ``null`` values are left out. Raises BadRequest, Forbidden.
        """
        wanted = object_type(kind).name
        if not isinstance(file, str):
            raise BadRequest("bad request", ":FILE: expected the path of a file")
        path = self.base.files.place(file)
        given = {name: text for name, text in texts(wanted, values).items() if text is not None}
        draft = self._draft(path)
        if draft.file.readonly:
            raise readonly_file(path)
        if draft.document.foreign:
            raise Conflict("cannot change file", f"{path}: it is written in Icinga 2's language")
        self._encodable(draft, given)
        block = _written(lambda: draft.document.add(wanted, given))
        item = ConfigObject(self._new_id(path), wanted, path, 0, False, block)
        draft.objects[item.id] = item
        self._changed(draft)
        return item

    def replace(self, items: Iterable[ConfigObject], values: GivenAttributes) -> list[ConfigObject]:
        """Replace all attributes of objects; their comments stay.

        Nothing is changed if one of them is read-only. Raises BadRequest, also when there is no
        attribute, and Forbidden.
        """

        def new(_old: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
            attributes = {name: text for name, text in given.items() if text is not None}
            if not attributes:
                raise BadRequest(
                    "use DELETE to remove objects completely",
                    "the body has no attribute; a replaced object needs all of them",
                )
            return attributes

        return self._change_all(items, values, new)

    def patch(self, items: Iterable[ConfigObject], values: GivenAttributes) -> list[ConfigObject]:
        """Set some attributes; null, an empty text or an empty list removes one.

        Nothing is changed if one of them is read-only.
        """

        def new(old: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
            attributes = {name: text for name, text in old.items() if given.get(name, text)}
            return attributes | {name: text for name, text in given.items() if text}

        return self._change_all(items, values, new)

    def delete(self, items: Iterable[ConfigObject]) -> int:
        """Remove objects except read-only ones; returns how many. References to them stay."""
        by_path: dict[str, list[ConfigObject]] = {}
        for item in dict.fromkeys(items):
            if not item.readonly:
                by_path.setdefault(item.path, []).append(self._current(item))
        for path, objects in by_path.items():
            draft = self._draft(path)
            draft.remove(objects)
            self._changed(draft)
        return sum(map(len, by_path.values()))

    def _changed(self, draft: _Draft) -> None:
        draft.touched = True
        self._touched, self._model = True, None

    def _change_all(
        self, items: Iterable[ConfigObject], values: GivenAttributes, new: _New
    ) -> list[ConfigObject]:
        objects = self._writable(items)
        given = {kind: texts(kind, values) for kind in {item.type for item in objects}}
        changes = [(item, new(item.attributes, given[item.type])) for item in objects]
        renames = Renames(self.model)
        for item, attributes in changes:
            for name, text in item.attributes.items():
                # The same in other words is no change.
                if name in attributes and _same(item.type, name, text, attributes[name]):
                    attributes[name] = text
            renames.add(item, item.attributes, attributes)
        changed = [self._set(item, attributes) for item, attributes in changes]
        if renames:
            for item in self.model.objects:
                self._follow(item, renames)
        return changed

    def _set(self, item: ConfigObject, new: Mapping[str, str]) -> ConfigObject:
        draft = self._draft(item.path)
        current = draft.own(draft.objects[item.id])
        self._encodable(draft, new)
        if _written(lambda: current.block.change(new)):
            self._changed(draft)
        return current

    def _follow(self, item: ConfigObject, renames: Renames) -> None:
        changes = renames.follow(item)
        if changes and not item.readonly:
            self._set(item, {**item.attributes, **changes})
        elif changes:
            text = f"could not update dependency in read-only file: {item.path}"
            if text not in self.warnings:
                self.warnings.append(text)

    def _writable(self, items: Iterable[ConfigObject]) -> list[ConfigObject]:
        objects = list(items)
        for item in objects:
            if item.readonly:
                raise readonly_file(item.path)
        return [self._current(item) for item in objects]

    def _current(self, item: ConfigObject) -> ConfigObject:
        current = self._draft(item.path).objects.get(item.id)
        if current is None:
            raise NotFound("no such object", f"{item.id}: removed meanwhile")
        return current

    def _draft(self, path: str) -> _Draft:
        draft = self._drafts.get(path)
        if draft is None:
            file = self.base.loaded.get(path)
            if path in self.base.unreadable:
                raise Conflict("cannot change file", f"{path}: it cannot be read")
            if file is None:
                document = ConfigFile.parse(path, b"")
                file = SiteFile(path, document, False, None, pinned=True)
                draft = _Draft(file, document, {}, [])
            else:
                draft = _Draft.of(file)
            self._drafts[path] = draft
        return draft

    def _new_id(self, path: str) -> str:
        if self._taken is None:
            self._taken = set(self.base.by_id)
            for file in self.base.loaded.values():
                self._taken.update(file.retired)
        free = new_id(path, 0, self._taken)
        self._taken.add(free)
        return free

    def _encodable(self, draft: _Draft, attributes: Mapping[str, str]) -> None:
        if draft.document.encoding == "utf-8":
            return
        for name, text in attributes.items():
            if not draft.document.encodable(name + text):
                raise BadRequest(
                    "bad request",
                    f"{name}: {draft.file.path} is not written in UTF-8 and cannot hold this text",
                )


def _same(kind: str, name: str, old: str, new: str) -> bool:
    return old == new or to_json(kind, name, old) == to_json(kind, name, new)


def _written(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except UnwritableError as error:
        raise BadRequest("bad request", str(error)) from None
