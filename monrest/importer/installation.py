"""The folders and files of an old installation, read without harm.

Nothing is executed. A file is read only if it is a regular one inside of the folders of the
installation, and not too long; the names of those that are not read are in the table of the import.

Rules: docs/spec/import.md, "Files".
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field, frozen

from monrest.importer.blocks import SettingBlock, SyntaxProblem, parse
from monrest.importer.import_lines import ImportLines, Outcome

CONFIGURATION = "configuration"

_MAIN = "thruk.conf"
_LOCAL = "thruk_local.conf"
_LOCAL_FOLDER = "thruk_local.d"
_USUAL_ETC = ("etc", "thruk")
_OMD_SITE = re.compile(r"/omd/sites/([^/]+)(?:/(.*))?\Z", re.DOTALL)
_MOST_TEXT = 4 << 20
_MOST_DATA = 8 << 20
_MOST_FILES = 100_000
_DEEPEST = 10
_BLOCKS = ("Component", "User", "Group", "editor", "cmd_defaults")


class NoInstallationError(Exception):
    """A folder has no installation in it."""


@frozen
class DataFile:
    """A file of data: ``stem`` is what its name says, ``display`` its path for people."""

    path: Path
    stem: str
    display: str
    changed: int
    executable: bool
    content: bytes = field(repr=False)


@define(eq=False)
class Installation:
    """The folders: ``root`` is what absolute paths of the configuration may be relative to.

    ``main`` is the configuration that was shipped, ``local`` what an operator set over it,
    ``cgi`` a file of defaults.
    """

    lines: ImportLines
    root: Path
    etc: Path
    var: Path | None = None
    main: SettingBlock = field(factory=SettingBlock)
    local: SettingBlock = field(factory=SettingBlock)
    cgi: SettingBlock = field(factory=SettingBlock)
    _allowed: list[Path] = field(init=False, factory=list)

    @classmethod
    def find(cls, folder: str, var: str, lines: ImportLines) -> Installation:
        """Find and read the configuration in ``folder``; ``var`` is where the data are, or empty.

        Raises NoInstallationError.
        """
        given = Path(folder).absolute()
        if (given / _MAIN).is_file():
            etc = given
            usual = given.parts[-2:] == _USUAL_ETC
            root = given.parent.parent if usual else given
        elif given.joinpath(*_USUAL_ETC, _MAIN).is_file():
            root, etc = given, given.joinpath(*_USUAL_ETC)
        else:
            raise NoInstallationError(
                f"{folder}: expected {_MAIN} in it or in its folder {'/'.join(_USUAL_ETC)}"
            )
        installation = cls(lines, root, etc)
        installation._allowed = [root.resolve(), etc.resolve()]
        installation.main = installation._parsed(etc / _MAIN)
        other = installation._local_path(installation.main.text("etc_path"))
        if other is not None and other.is_dir() and other.resolve() != etc.resolve():
            installation.etc = other
            installation._allowed.append(other.resolve())
        installation._read_local()
        installation._read_cgi()
        installation.var = installation._data_folder(var)
        return installation

    def _data_folder(self, given: str) -> Path | None:
        """The folder of the data; a line if there is none."""
        key = self.local.text("var_path") or self.main.text("var_path")
        if given:
            path: Path | None = Path(given).absolute()
        else:
            path = self._local_path(key) if key else self.etc / "var"
        if path is None or not path.is_dir():
            if given:
                raise NoInstallationError(f"{given}: expected a folder")
            self.lines.add(
                "data", key or "var", Outcome.REFUSED, "",
                "the folder of the data is not here; --var DIR says where it is",
            )  # fmt: skip
            return None
        self._allowed.append(path.resolve())
        return path

    def _local_path(self, text: str) -> Path | None:
        """The path of the configuration on this machine, None for an empty one.

        In a copy of another machine's files it is below the folder of the copy.
        """
        if not text or "\0" in text:
            return None
        if not text.startswith("/"):
            return self.etc / text
        site = _OMD_SITE.match(text)
        copies = [self.root / text.lstrip("/")]
        if site is not None and site[1] == self.root.name:
            copies.append(self.root / (site[2] or ""))
        return next((candidate for candidate in copies if candidate.exists()), Path(text))

    def path_here(self, text: str) -> Path | None:
        """The path at which a file of the configuration can be read, None if it cannot."""
        path = self._local_path(text)
        try:
            return path if path is not None and path.is_file() else None
        except (OSError, ValueError):
            return None

    def absolute(self, text: str) -> str:
        """A path of the configuration as it would be on its own machine."""
        if text.startswith("/") or not text:
            return text
        site = _OMD_SITE.match(self.main.text("var_path") or str(self.root))
        base = f"/omd/sites/{site[1]}" if site else str(self.etc)
        return os.path.normpath(f"{base}/{text}")

    def _read_local(self) -> None:
        host = socket.gethostname()
        for path in self._configuration_files(self.etc / _LOCAL_FOLDER, {".conf", ".cfg"}, host):
            self._add(self.local, path)
        if (self.etc / _LOCAL).exists():
            self._add(self.local, self.etc / _LOCAL)

    def _add(self, block: SettingBlock, path: Path) -> None:
        parsed = self._parsed(path)
        block.settings += parsed.settings
        block.blocks += parsed.blocks

    def _configuration_files(
        self, folder: Path, suffixes: set[str], host: str, depth: int = 0
    ) -> Iterator[Path]:
        if not folder.is_dir() or not self._inside(folder):
            return
        if depth > _DEEPEST:
            self._refuse(CONFIGURATION, folder, f"expected at most {_DEEPEST} folders in folders")
            return
        try:
            paths = sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name))
        except OSError as error:
            self._refuse(CONFIGURATION, folder, error.strerror or "cannot be read")
            return
        for path in paths:
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if path.is_symlink():
                    self._refuse(CONFIGURATION, path, "expected no link to a folder")
                else:
                    yield from self._configuration_files(path, suffixes, host, depth + 1)
            elif path.suffix in suffixes or (path.suffix and host in path.name):
                yield path

    def _read_cgi(self) -> None:
        setting = self.local.last("cgi.cfg") or self.main.last("cgi.cfg")
        path = self._local_path(setting.value if setting else "cgi.cfg")
        if path is not None and path.is_file():
            self._allowed.append(path.resolve())
            self.cgi = self._parsed(path)
        elif setting is not None:
            self.lines.add(CONFIGURATION, setting.where, Outcome.REFUSED, "", "no such file")

    def _parsed(self, path: Path) -> SettingBlock:
        content = self.read(CONFIGURATION, path, _MOST_TEXT)
        if content is None:
            return SettingBlock()
        block, problems = parse(content, self.display(path))
        problems += list(_unusual(block))
        for problem in problems:
            self.lines.add(CONFIGURATION, problem.where, Outcome.REFUSED, "", problem.reason)
        return block

    def data_files(self, kind: str, folder: Path, name: re.Pattern[str]) -> Iterator[DataFile]:
        """The files of a folder with such a name, in order; the first group is the stem."""
        if not folder.is_dir():
            return
        if not self._inside(folder):
            self._refuse(kind, folder, "it lies outside of the installation")
            return
        files: dict[str, str] = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    match = name.fullmatch(entry.name)
                    if match is not None and not entry.name.endswith(".new"):
                        files[entry.name] = match[1]
                    if len(files) > _MOST_FILES:
                        self._refuse(kind, folder, f"expected at most {_MOST_FILES} files")
                        break
        except OSError as error:
            self._refuse(kind, folder, error.strerror or "cannot be read")
            return
        for file in sorted(files, key=_natural):
            path = folder / file
            content = self.read(kind, path, _MOST_DATA)
            if content is None:
                continue
            status = path.stat()
            executable = bool(status.st_mode & 0o111)
            changed = max(0, int(status.st_mtime))
            yield DataFile(path, files[file], self.display(path), changed, executable, content)

    def document(self, kind: str, file: DataFile) -> dict[str, Any] | None:
        """The object of JSON in a file; a line where it is none."""
        reason = "expected a JSON object"
        try:
            value = orjson.loads(file.content)
        except orjson.JSONDecodeError as error:
            value = None
            where = f"{file.display}:{error.lineno}"
            if re.match(rb"\s*\$VAR1\s*=", file.content):
                reason = "it is an old form of data with code: save it once in the old front end"
            else:
                reason = f"expected JSON: {error.msg}"
        else:
            where = file.display
        if isinstance(value, dict):
            return value
        self.lines.add(kind, where, Outcome.REFUSED, "", reason)
        return None

    def document_at(self, kind: str, path: Path) -> dict[str, Any] | None:
        """The object of JSON in one file, None where there is none."""
        content = self.small_file(kind, path)
        if content is None:
            return None
        return self.document(kind, DataFile(path, "", self.display(path), 0, False, content))

    def small_file(self, kind: str, path: Path) -> bytes | None:
        """The content of a file of configuration or data, None where there is none."""
        return self.read(kind, path, _MOST_TEXT) if path.exists() or path.is_symlink() else None

    def read(self, kind: str, path: Path, most: int) -> bytes | None:
        """The content of a file; None, and a line, for what is not to be read."""
        try:
            if not self._inside(path):
                self._refuse(kind, path, "it lies outside of the installation")
                return None
            # A pipe in its place would block for ever.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
            with os.fdopen(os.open(path.resolve(), flags | os.O_NOFOLLOW), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    self._refuse(kind, path, "expected a regular file")
                    return None
                content = file.read(most + 1)
        except (OSError, ValueError, RuntimeError) as error:
            self._refuse(kind, path, getattr(error, "strerror", None) or "cannot be read")
            return None
        if len(content) > most:
            self._refuse(kind, path, f"expected at most {most >> 20} MB")
            return None
        return content

    def _inside(self, path: Path) -> bool:
        """Whether a path is in one of the folders of the installation, links followed."""
        real = path.resolve()
        return any(real.is_relative_to(folder) for folder in self._allowed)

    def _refuse(self, kind: str, path: Path, reason: str) -> None:
        self.lines.add(kind, self.display(path), Outcome.REFUSED, "", reason)

    def display(self, path: Path) -> str:
        """A path for people: relative to the installation where it lies in there."""
        base = self.root if path.is_relative_to(self.root) else None
        text = path.relative_to(base) if base else path
        return os.fsencode(text).decode("utf-8", "replace")


def _unusual(block: SettingBlock) -> Iterator[SyntaxProblem]:
    """Blocks whose words differ from known ones by upper and lower case alone are not taken."""
    for nested in block.blocks:
        for word in _BLOCKS:
            if nested.word != word and nested.word.lower() == word.lower():
                yield SyntaxProblem(nested.where, f"expected <{word}>; this block does not count")
        if nested.word == "Component":
            for inner in nested.blocks:
                if inner.word != "peer" and inner.word.lower() == "peer":
                    yield SyntaxProblem(inner.where, "expected <peer>; this block does not count")


def _natural(name: str) -> tuple[int, str]:
    digits = re.match(r"[0-9]{1,18}", name)
    return (int(digits[0]) if digits else 1 << 62, name)
