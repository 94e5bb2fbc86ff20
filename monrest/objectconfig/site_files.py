"""The files of a site: those that may be changed, and the folders for new ones.

Rules: docs/spec/objectconfig.md, "Files of a site".
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import re2
from attrs import define, evolve, field, frozen

from monrest.base.errors import BadRequest, Forbidden
from monrest.config import ConfigTool

_LINE = re.compile(r":\d+\Z")
_READONLY = re.compile(rb"[#;]\s*mon\s*:\s*readonly\s*\Z")
_ICINGA2 = re.compile(
    r"(?:include|include_recursive|library)\s+[\"<]|(?:object|const|template|apply)\s+[^\s=]"
)
"""A line of Icinga 2's language where a core expects settings, all of which have ``=``."""

_DEPTH = 32
_MAIN_FILE_LIMIT = 16 * 2**20

LONGEST_PATH = 2000
LONGEST_FILE_NAME = 255
"""Bytes of the path of a file, and of each name in it."""


READONLY_LINES = 9
"""A comment ``# mon: readonly`` counts in these first lines of a file."""


@frozen
class FoundFile:
    """A file of a site.

    ``readonly`` is True because of a pattern or a symbolic link; None when the file itself
    decides, by a comment in its first lines.
    """

    path: str
    readonly: bool | None = None


@frozen(kw_only=True)
class FileSet:
    """The object files of a site, sorted by path, as the main file or the settings name them.

    ``root`` is the base of relative names; new files may go below ``folders`` only. ``problems``
    are texts for the precheck. ``foreign``: why the files are of another language; then
    there are none.
    """

    files: tuple[FoundFile, ...] = ()
    root: str = ""
    folders: tuple[str, ...] = ()
    resource_files: tuple[str, ...] = ()
    core_type: str = "naemon"
    problems: tuple[str, ...] = ()
    foreign: str = ""
    tool: ConfigTool = field(factory=ConfigTool, repr=False)

    def place(self, name: str) -> str:
        """The absolute path that a ``:FILE`` value means, with or without its ``:LINE``.

        Raises BadRequest for what the core would never read as a new or known file, Forbidden
        for what is read-only or leaves the folders by a symbolic link.
        """
        if self.foreign:
            raise _bad_file(name, self.foreign)
        path = self._absolute(_LINE.sub("", name))
        for file in self.files:
            if file.path == path:
                if file.readonly:
                    raise readonly_file(path)
                return path
        folder = self._folder_of(path)
        if not folder:
            raise _bad_file(
                name, f"expected a file below {' or '.join(self.folders) or 'a folder'}"
            )
        if any(part.startswith(".") for part in path[len(folder) + 1 :].split("/")):
            raise _bad_file(name, "the core ignores names that begin with a dot")
        above = path
        while (above := os.path.dirname(above)) != folder:  # noqa: PTH120 - texts, not paths
            if Path(above).is_file():
                raise _bad_file(name, f"{above} is a file and no folder")
        if not self.tool.core_conf and _matches(self.tool.obj_exclude, path):
            raise _bad_file(name, "the file is excluded by obj_exclude")
        if self.is_readonly(path) or _leaves(path, folder):
            raise readonly_file(path)
        return path

    def is_readonly(self, path: str) -> bool:
        return _matches(self.tool.obj_readonly, path)

    def with_files(self, paths: Collection[str]) -> FileSet:
        """Add files that other object files include; outside of the folders they are read-only."""
        if not paths:
            return self
        present = {file.path for file in self.files}
        files = list(self.files)
        for path in dict.fromkeys(paths):
            if path not in present:
                folder = self._folder_of(path)
                readonly = not folder or self.is_readonly(path) or _leaves(path, folder)
                files.append(FoundFile(path, readonly or None))
        return evolve(self, files=tuple(sorted(files, key=_by_path)))

    def _folder_of(self, path: str) -> str:
        return next((item for item in self.folders if path.startswith(f"{item}/")), "")

    def _absolute(self, name: str) -> str:
        parts = name.split("/")
        if ".." in parts or not name.endswith(".cfg"):
            raise _bad_file(name, "expected a path that ends in .cfg and has no ..")
        if not name.isprintable():
            raise _bad_file(name, "expected printable text")
        if len(name.encode()) > LONGEST_PATH or any(
            len(part.encode()) > LONGEST_FILE_NAME for part in parts
        ):
            raise _bad_file(name, "expected a shorter path")
        if name.startswith("/"):
            return _plain(name)
        path = _plain(f"{self.root}/{name}")
        is_read = any(file.path == path for file in self.files)
        if is_read or self._folder_of(path) or not self.folders:
            return path
        return _plain(f"{self.folders[0]}/{name}")


def readonly_file(path: str) -> Forbidden:
    return Forbidden(f"cannot change readonly file {path}.", "attempt to change readonly file.")


def has_readonly_comment(data: bytes) -> bool:
    """Whether one of the first nine lines is the comment ``# mon: readonly``."""
    lines = data[:8192].removeprefix(b"\xef\xbb\xbf").split(b"\n", READONLY_LINES)
    return any(_READONLY.match(line.strip()) for line in lines[:READONLY_LINES])


def discover(tool: ConfigTool) -> FileSet:
    """Find the object files of a site. Reads folders and the main file.

    A folder that is not there is one of the problems. Raises OSError for what is there and cannot
    be read, and for a main file that is not there: it is not known which files there are.
    """
    search = _FileSearch(tool)
    if tool.core_conf:
        search.main_file(tool.core_conf, 0)
        search.named_files()
    else:
        search.settings()
    return search.result()


def setting(core_conf: str, name: str) -> str | None:
    """The last value of a setting in the main file of a core; empty: none. Blocks.

    None for a main file that cannot be read.
    """
    search = _FileSearch(ConfigTool(core_conf=core_conf))
    try:
        search.main_file(core_conf, 0)
    except OSError:
        return None
    if search.problems or search.foreign:
        return None
    return next((value for key, value in reversed(search.lines) if key == name), "")


def files_in(folder: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """All ``*.cfg`` files below a folder, and the problem of a folder that is not there.

    Paths, and whether a symbolic link leads there. Entries that begin with a dot and broken links
    are left out; a folder is entered once. Raises OSError when the folder or one below it cannot be
    read: it is not the same as an empty one.
    """
    files: list[tuple[str, bool]] = []
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    links: list[str] = []
    while waiting or links:
        # What a link leads to counts as itself when it is below the folder as well.
        linked = not waiting
        current = (waiting or links).pop()
        try:
            status = os.stat(current)  # noqa: PTH116 - a path object for each entry is slow
            with os.scandir(current) as scan:
                entries = list(scan)
        except (FileNotFoundError, NotADirectoryError) as error:
            if current == folder:
                return [], [f"cannot read folder: {folder}: {error.strerror}"]
            continue  # it is gone by now
        if (status.st_dev, status.st_ino) in entered:
            continue
        entered.add((status.st_dev, status.st_ino))
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_dir():
                    (links if linked or entry.is_symlink() else waiting).append(entry.path)
                elif entry.name.endswith(".cfg") and entry.is_file():
                    files.append((entry.path, linked or entry.is_symlink()))
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
    return files, []


@define(eq=False)
class _FileSearch:
    tool: ConfigTool
    named: dict[str, None] = field(factory=dict)
    folders: dict[str, None] = field(factory=dict)
    resources: dict[str, None] = field(factory=dict)
    paths: dict[str, bool] = field(factory=dict)
    """Paths, and whether a symbolic link leads there."""
    problems: list[str] = field(factory=list)
    lines: list[tuple[str, str]] = field(factory=list)
    seen: set[str] = field(factory=set)
    base: str = ""
    foreign: str = ""

    def main_file(self, path: str, depth: int) -> None:
        path = _plain(path)
        if path in self.seen or depth > _DEPTH:
            return
        self.seen.add(path)
        self.base = self.base or str(Path(path).parent)
        with Path(path).open("rb") as stream:
            text = stream.read(_MAIN_FILE_LIMIT).decode("utf-8", "surrogateescape")
        for line in map(str.strip, text.split("\n")):
            if not line or line[0] in "#;":
                continue
            key, equals, value = (part.strip() for part in line.partition("="))
            if _ICINGA2.match(line):
                self.foreign = (
                    f"{path} is written in the language of Icinga 2, not in that of Nagios objects"
                )
                return
            if not equals or not value:
                continue
            self.lines.append((key, value))
            below = self._below(str(Path(path).parent), value)
            if key == "config_rel_path":
                self.base = below
            elif key == "include_file":
                self.main_file(below, depth + 1)
            elif key == "include_dir":
                for name in sorted((name for name, _ in self._files_in(below)), key=os.fsencode):
                    self.main_file(name, depth + 1)

    def named_files(self) -> None:
        for key, value in self.lines:
            path = self._below(self.base, value)
            if key == "cfg_file":
                self.named[path] = None
            elif key == "cfg_dir":
                self.folders[path] = None
            elif key == "resource_file":
                self.resources[path] = None
        for folder in self.folders:
            self._take(self._files_in(folder))

    def settings(self) -> None:
        tool = self.tool
        self.folders.update(dict.fromkeys(map(_plain, tool.obj_dir)))
        self.named.update(dict.fromkeys(map(_plain, tool.obj_file)))
        self.resources.update(dict.fromkeys(map(_plain, tool.obj_resource_file)))
        for folder in self.folders:
            entries = self._files_in(folder)
            self._take(item for item in entries if not _matches(tool.obj_exclude, item[0]))
        if not self.folders and not self.named:
            self.problems.append(
                "no object files: core_conf or obj_dir or obj_file must be configured"
            )

    def _files_in(self, folder: str) -> list[tuple[str, bool]]:
        entries, problem = files_in(folder)
        self.problems += problem
        return entries

    def _take(self, entries: Iterable[tuple[str, bool]]) -> None:
        for path, linked in entries:
            self.paths[path] = self.paths.get(path, False) or linked

    def result(self) -> FileSet:
        core_type = self.tool.core_type
        if core_type == "auto":
            # A core that is not recognized has the attributes of a Naemon, which has most.
            icinga = any(key == "icinga_user" for key, _ in self.lines)
            core_type = "icinga" if icinga else "naemon"
        files = FileSet(
            folders=tuple(self.folders),
            resource_files=tuple(self.resources),
            core_type=core_type,
            foreign=self.foreign,
            tool=self.tool,
            problems=(*self.problems, *([self.foreign] if self.foreign else [])),
        )
        if self.foreign:
            return files
        paths = {path: linked for path, linked in self.paths.items() if path.isprintable()}
        problems = [
            f"cannot read file: {path!a}: its name has bytes that are no text"
            for path in sorted(self.paths.keys() - paths.keys(), key=os.fsencode)
        ]
        for path in self.named:
            # A file that is named may lie anywhere; only its own link is looked at.
            if path not in paths:
                paths[path] = _leaves(path, os.path.dirname(path))  # noqa: PTH120 - texts, not paths
        site_files = tuple(
            FoundFile(path, (linked or files.is_readonly(path)) or None)
            for path, linked in paths.items()
        )
        root = next(iter(self.folders), "")
        if paths:
            root = os.path.commonpath([path.rpartition("/")[0] or "/" for path in paths])
        return evolve(
            files,
            files=tuple(sorted(site_files, key=_by_path)),
            root=root,
            problems=(*files.problems, *problems),
        )

    def _below(self, base: str, value: str) -> str:
        return _plain(value if value.startswith("/") else f"{base}/{value}")


def _matches(patterns: Sequence[str], path: str) -> bool:
    if not patterns:
        return False
    text = os.fsencode(path).decode("utf-8", "replace")
    return any(_compiled(pattern).search(text) is not None for pattern in patterns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def _plain(path: str) -> str:
    """An absolute path without double slashes, ``.`` and ``..``; links are not followed."""
    return os.path.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else Path.cwd() / path)


def _leaves(path: str, folder: str) -> bool:
    """Whether a symbolic link stands between a configured folder and the file, or is the file."""
    real = os.path.realpath(folder)
    return os.path.realpath(path) != f"{real}{path[len(folder.rstrip('/')) :]}"


def _by_path(file: FoundFile) -> bytes:
    return os.fsencode(file.path)


def _bad_file(name: str, expected: str) -> BadRequest:
    readable = name.encode("utf-8", "replace").decode()[:200]
    return BadRequest("bad request", f":FILE: {expected}, not {readable!r}")
