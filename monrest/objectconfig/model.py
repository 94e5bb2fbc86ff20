"""All objects of a site as they stand in its files or in a user's stash, with their ids.

Everything here blocks: it reads files and parses. It belongs into a thread.

An id is a piece of a hash of where an object stood, and lasts while the object is edited. It must
never come to mean another object: one that is given up stays retired as long as the text beside
which it is kept, and when two objects claim the same one (two users created something in one
file), neither keeps it.

Rules: docs/spec/objectconfig.md, "Records and ids".
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define, evolve, frozen

from monrest.base.clock import age_of_file
from monrest.base.errors import Unavailable
from monrest.config import ConfigTool
from monrest.objectconfig.attributes import core_text, to_json
from monrest.objectconfig.document import Block, ConfigFile
from monrest.objectconfig.inheritance import ConfigObject, NameIndex, Resolver, key_of
from monrest.objectconfig.references import ServiceHosts
from monrest.objectconfig.site_files import FileSet, discover, files_in, has_readonly_comment

DIGITS = 5
"""Hexadecimal digits of an id; more when it is taken."""


@frozen
class Marks:
    """Data beside the text of a file: the ids and original lines of its objects, in file order.

    ``retired`` are ids of removed objects. Kept beside a stashed or saved text so that ids last.
    """

    ids: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    retired: tuple[str, ...] = ()


@frozen
class Claim:
    """An object in want of an id: ``line`` where it stood, 0 for a new one, and the id it had."""

    line: int
    id: str = ""


def assign(
    claims: Mapping[str, Sequence[Claim]], retired: Iterable[str] = ()
) -> dict[str, list[str]]:
    """Ids for the objects of each path. In the order of the mapping the first gets the short one.

    Claimed ids are kept unless retired or claimed twice.
    """
    claimed = Counter(item.id for items in claims.values() for item in items if item.id)
    gone = set(retired)
    taken = gone | claimed.keys()
    assigned: dict[str, list[str]] = {}
    for path, items in claims.items():
        ids = assigned[path] = []
        for item in items:
            if item.id and claimed[item.id] == 1 and item.id not in gone:
                ids.append(item.id)
            else:
                ids.append(new_id(path, item.line, taken))
                taken.add(ids[-1])
    return assigned


def new_id(path: str, line: int, taken: Collection[str]) -> str:
    """The shortest free id of at least five digits for an object at a place."""
    digest = hashlib.sha256(os.fsencode(f"{path}:{line}")).hexdigest()
    for length in range(DIGITS, len(digest)):
        if digest[:length] not in taken:
            return digest[:length]
    # More objects of one place than digits: new ones all stand in line 0.
    number = len(taken)
    while f"{digest}{number:x}" in taken:
        number += 1
    return f"{digest}{number:x}"


def align(
    blocks: Sequence[Block], sources: Iterable[tuple[Sequence[Block], Sequence[Claim]]]
) -> list[Claim]:
    """Find the objects of other texts again: by their attributes first, then by their names.

    A source counts before those after it; an object that no source has gets its own line.
    """
    aligned: list[Claim | None] = [None] * len(blocks)
    used: set[str] = set()
    claimed = [list(zip(old, claims, strict=False)) for old, claims in sources]
    for key in (_content, _name):
        for source in claimed:
            waiting: dict[Hashable, list[Claim]] = {}
            for block, claim in source:
                if claim.id not in used:
                    waiting.setdefault(key(block), []).append(claim)
            for index, block in enumerate(blocks):
                if aligned[index] is None and waiting.get(key(block)):
                    claim = waiting[key(block)].pop(0)
                    aligned[index] = claim
                    used.add(claim.id)
    return [
        Claim(block.line) if claim is None else claim
        for block, claim in zip(blocks, aligned, strict=True)
    ]


def _content(block: Block) -> Hashable:
    return (block.type, block.disabled, frozenset(block.attributes.items()))


def _name(block: Block) -> Hashable:
    attributes = block.attributes
    return (block.type, key_of(block.type, attributes), attributes.get("name", ""))


_SETTLED = 1.0
"""A file younger than these nanoseconds when it was read is looked into again."""

Recorded = Callable[[str, str], Marks | None]
"""The marks kept for a path and the SHA-256 of the text that was saved there."""


@frozen(kw_only=True)
class ConfigSite:
    """A site that takes part: its id and name, and the settings of its object configuration."""

    id: str
    name: str
    tool: ConfigTool


@frozen(kw_only=True)
class Stamp:
    """The state of a file on disk when it was read; times in nanoseconds since the epoch."""

    mtime_ns: int
    ctime_ns: int
    inode: int
    size: int
    sha256: str
    settled: bool

    def same_status(self, status: os.stat_result) -> bool:
        now = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size)
        return self.settled and (self.mtime_ns, self.ctime_ns, self.inode, self.size) == now


@frozen(eq=False)
class SiteFile:
    """A file of a site.

    ``stamp`` is that of the file on disk, None when the text is another one (stashed). ``pinned``:
    the ids of its objects come from marks or edits and not from their lines.
    """

    path: str
    document: ConfigFile
    readonly: bool
    stamp: Stamp | None
    objects: tuple[ConfigObject, ...] = ()
    pinned: bool = False
    retired: tuple[str, ...] = ()

    def marks(self) -> Marks:
        ids = tuple(item.id for item in self.objects)
        return Marks(ids, tuple(item.line for item in self.objects), self.retired)

    def claims(self) -> list[Claim]:
        return [Claim(item.line, item.id) for item in self.objects]


@frozen
class Overlay:
    """A text for a file in place of what is on disk.

    ``marks`` belong to the text ``marked``, by default the same one; after a merge the objects
    are found again by their attributes and their names.
    """

    data: bytes
    marks: Marks | None = None
    marked: bytes | None = None


@define(eq=False, slots=False)
class SiteModel:
    """The files of a site in the order of their paths, with their objects.

    Never changed after it was made: ``overlay`` and ``Editor`` make another one that shares what
    is untouched. ``problems`` are texts of the precheck about files as a whole, ``unreadable``
    the paths of those that are there and could not be read.
    """

    files: FileSet
    loaded: Mapping[str, SiteFile]
    problems: tuple[str, ...] = ()
    unreadable: frozenset[str] = frozenset()

    @cached_property
    def objects(self) -> list[ConfigObject]:
        """Every object, disabled ones too, by path and place in the file."""
        return [item for file in self.loaded.values() for item in file.objects]

    @cached_property
    def by_id(self) -> dict[str, ConfigObject]:
        return {item.id: item for item in self.objects}

    @cached_property
    def names(self) -> NameIndex:
        return NameIndex(self.objects)

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self.names.template)

    @cached_property
    def service_hosts(self) -> ServiceHosts:
        return ServiceHosts(self.objects, self.resolver)

    def find(self, kind: str, name: str) -> list[ConfigObject]:
        name = core_text(name)
        objects = [*self.names.real(kind, name), *self.names.templates(kind, name)]
        return list(dict.fromkeys(objects))

    def service_definitions(self, host: str, description: str) -> list[ConfigObject]:
        return self.service_hosts.definitions(core_text(host), core_text(description))

    def overlay(self, texts: Mapping[str, Overlay | None]) -> SiteModel:
        """The model with other texts in some files; None takes a file away."""
        loaded = {path: file for path, file in self.loaded.items() if path not in texts}
        claims = {path: file.claims() for path, file in loaded.items()}
        for path, text in texts.items():
            if text is None:
                continue
            old = self.loaded.get(path)
            document = ConfigFile.parse(path, text.data)
            readonly = self.files.is_readonly(path) or has_readonly_comment(text.data)
            readonly = readonly or (old is not None and old.readonly)
            file = SiteFile(path, document, readonly, None, pinned=True)
            if text.marks is not None:
                file = evolve(file, retired=text.marks.retired)
            loaded[path] = file
            claims[path] = _overlaid(document, text, old)
        return SiteModel(self.files, _numbered(loaded, claims), self.problems, self.unreadable)

    def row(self, item: ConfigObject, site: ConfigSite) -> dict[str, Any]:
        own = item.attributes
        return _meta(item, site) | {name: to_json(item.type, name, own[name]) for name in own}

    def full_row(self, item: ConfigObject, site: ConfigSite) -> dict[str, Any]:
        texts = self.resolver.values(item)
        values = {name: to_json(item.type, name, text) for name, text in texts.items()}
        return _meta(item, site) | values | {":TEMPLATES": list(self.resolver.templates(item))}


class UnreadableError(Unavailable):
    """It is not known which objects a site has; ``problem`` is a text for the precheck."""

    def __init__(self, error: OSError) -> None:
        place = f"{error.filename}: " if error.filename else ""
        reason = f"{place}{error.strerror or error}"
        super().__init__("cannot read object files", reason)
        self.problem = f"cannot read: {reason}"


def load(
    tool: ConfigTool,
    previous: SiteModel | None = None,
    recorded: Recorded = lambda _path, _sha256: None,
) -> SiteModel:
    """Read a site's files; what did not change since ``previous`` is taken from there.

    Returns ``previous`` itself when nothing changed at all. Where it holds a stashed text that is
    now on disk, ids stay; else ``recorded`` is asked. Raises UnreadableError when a folder or the
    main file cannot be read, or no file because the system has no room for it; one file that
    must not be read is one of the problems.
    """
    try:
        return _load(tool, previous, recorded)
    except OSError as error:
        raise UnreadableError(error) from None


_FILE_ALONE = frozenset(
    {0, errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EPERM}
)
"""Errors of a file alone, and not of the system."""


def _load(tool: ConfigTool, previous: SiteModel | None, recorded: Recorded) -> SiteModel:
    files = discover(tool)
    old = {} if previous is None else previous.loaded
    trusted = previous is not None and previous.files.tool == tool
    loaded: dict[str, SiteFile] = {}
    problems = list(files.problems)
    unreadable: set[str] = set()
    waiting = {file.path: bool(file.readonly) for file in files.files}
    seen: set[str] = set()
    while waiting:
        seen.update(waiting)
        included: dict[str, None] = {}
        for path, readonly in waiting.items():
            try:
                loaded[path] = _read(path, readonly, old.get(path), recorded, trusted)
            except OSError as error:
                if error.errno not in _FILE_ALONE:
                    raise
                problems.append(f"cannot read file: {path}: {error.strerror}")
                unreadable.add(path)
            else:
                included.update(dict.fromkeys(_included(loaded[path], problems)))
        files = files.with_files(included)
        waiting = {file.path: bool(file.readonly) for file in files.files if file.path not in seen}
    same = (
        previous is not None
        and files == previous.files
        and tuple(problems) == previous.problems
        and loaded.keys() == old.keys()
        and all(file is old[path] for path, file in loaded.items())
    )
    if same and previous is not None:
        return previous
    claims = {
        path: file.claims()
        if file.pinned
        else [Claim(block.line) for block in file.document.blocks]
        for path, file in loaded.items()
    }
    return SiteModel(files, _numbered(loaded, claims), tuple(problems), frozenset(unreadable))


def _read(
    path: str, readonly: bool, old: SiteFile | None, recorded: Recorded, trusted: bool
) -> SiteFile:
    if trusted and old is not None and old.stamp is not None:
        status = os.stat(path)  # noqa: PTH116 - many files, and a path object costs more
        if old.stamp.same_status(status):
            return old
    with os.fdopen(_open(path), "rb") as stream:
        status = os.fstat(stream.fileno())
        data = stream.read()
    stamp = Stamp(
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        size=status.st_size,
        sha256=hashlib.sha256(data).hexdigest(),
        settled=age_of_file(status) > _SETTLED,
    )
    readonly = readonly or has_readonly_comment(data)
    if old is not None and old.stamp is not None and old.stamp.sha256 == stamp.sha256:
        if old.stamp == stamp and old.readonly == readonly:
            return old
        if old.readonly == readonly:
            return evolve(old, stamp=stamp)
    document = ConfigFile.parse(path, data)
    marks = recorded(path, stamp.sha256)
    if marks is None and old is not None and old.pinned and old.document.data() == data:
        marks = old.marks()
    blocks = document.blocks
    if marks is None or len(marks.ids) != len(blocks):
        return SiteFile(path, document, readonly, stamp)
    file = SiteFile(path, document, readonly, stamp, pinned=True, retired=marks.retired)
    claims = [Claim(block.line, was) for block, was in zip(blocks, marks.ids, strict=True)]
    return evolve(file, objects=_objects(file, claims, list(marks.ids)))


def _open(path: str) -> int:
    # A named pipe must not hold the thread.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return descriptor


def _included(file: SiteFile, problems: list[str]) -> Iterable[str]:
    """Paths of the object files that an object file names by include_file and include_dir.

    A folder that is not there is added to the problems.
    """
    base = file.path.rpartition("/")[0]
    for line in file.document.includes:
        path = os.path.normpath(os.path.join(base, line.path))  # noqa: PTH118 - texts, not paths
        if line.kind == "include_file":
            yield path
        else:
            entries, missing = files_in(path)
            problems += missing
            yield from sorted((name for name, _ in entries), key=os.fsencode)


def _overlaid(document: ConfigFile, text: Overlay, old: SiteFile | None) -> list[Claim]:
    marks, blocks = text.marks, document.blocks
    if marks is None:
        marks = Marks()
    claims = [Claim(*pair) for pair in zip(marks.lines, marks.ids, strict=False)]
    if text.marked is None or text.marked == text.data:
        if len(claims) == len(blocks):
            return claims
        marked = blocks
    else:
        marked = ConfigFile.parse(document.path, text.marked).blocks
    sources = [(marked, claims)]
    if old is not None:
        sources.append((old.document.blocks, old.claims()))
    return align(blocks, sources)


def _numbered(
    loaded: Mapping[str, SiteFile], claims: Mapping[str, list[Claim]]
) -> dict[str, SiteFile]:
    paths = sorted(loaded, key=os.fsencode)
    retired = [gone for path in paths for gone in loaded[path].retired]
    ids = assign({path: claims[path] for path in paths}, retired)
    numbered: dict[str, SiteFile] = {}
    for path in paths:
        file = loaded[path]
        same = len(file.objects) == len(ids[path]) and all(
            item.id == found_id for item, found_id in zip(file.objects, ids[path], strict=True)
        )
        if not same or not file.objects:
            file = evolve(file, objects=_objects(file, claims[path], ids[path]))
        numbered[path] = file
    return numbered


def _objects(file: SiteFile, claims: list[Claim], ids: list[str]) -> tuple[ConfigObject, ...]:
    return tuple(
        ConfigObject(found_id, block.type, file.path, claim.line, file.readonly, block)
        for block, claim, found_id in zip(file.document.blocks, claims, ids, strict=True)
    )


def _meta(item: ConfigObject, site: ConfigSite) -> dict[str, Any]:
    return {
        ":FILE": f"{item.path}:{item.line}",
        ":ID": item.id,
        ":PEER_KEY": site.id,
        ":PEER_NAME": site.name,
        ":READONLY": int(item.readonly),
        ":TYPE": item.type,
    }
