"""An import from its beginning to its end: everything is read, and written if that is wanted.

A run that writes nothing does all the rest, in a transaction that is undone.

Rules: docs/spec/import.md.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, evolve, field, frozen
from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from monrest.accounts import secret_key
from monrest.base.clock import MachineClock, WallClock
from monrest.base.errors import RestError
from monrest.config import Config, ConfigError, load, loads
from monrest.importer import contents as kinds
from monrest.importer.backends import KIND as SITES
from monrest.importer.backends import Backends, KnownSite, read_backends
from monrest.importer.contents import Adoption, Contents
from monrest.importer.import_lines import TITLES, ImportLine, ImportLines, Outcome
from monrest.importer.installation import CONFIGURATION, Installation, NoInstallationError
from monrest.importer.translation import Translation
from monrest.store import engines, migrate
from monrest.store.failures import Meaning, StoreError, error_text, meaning_of

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def toml_text(document: Mapping[str, Any], comments: list[str]) -> str:
    """A configuration with the tables of ``document``."""
    lines = [
        "# Made by `monrest import`. `monrest config example` shows every key with its meaning."
    ]
    return "\n".join([*lines, *_entries("", document), *comments]) + "\n"


def _entries(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table: its values, then the tables and lists of tables in it."""
    tables: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in table.items():
        inner = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, Mapping):
            tables.append((f"[{inner}]", value))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            tables += [(f"[[{inner}]]", item) for item in value]
        else:
            yield f"{_key(key)} = {_value(value)}"
    for heading, inner_table in tables:
        yield from ("", heading)
        yield from _entries(heading.strip("[]"), inner_table)


def _key(text: str) -> str:
    return text if _BARE.match(text) else _text(text)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item) for item in value)}]"
    return _text(str(value))


def _text(text: str) -> str:
    # JSON escapes what TOML does, but for one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_MODE = 0o600
_FOLDER_MODE = 0o700


class NewFileError(Exception):
    """A file cannot be written; the text names it."""


@frozen
class NewFile:
    """A file that is to be there; ``name`` says what it is."""

    name: str
    path: Path
    content: bytes

    def present(self) -> bytes | None:
        """The content of what is there, None for nothing; NewFileError where that is no file."""
        try:
            with self.path.open("rb") as file:
                return file.read(len(self.content) + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NewFileError(f"{self.path}: {error.strerror}") from None

    def write(self, owner: tuple[int, int] | None) -> None:
        """Write it, for ``owner`` if one is given; NewFileError."""
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(temporary, flags, _MODE), "wb") as file:
                os.fchmod(file.fileno(), _MODE)
                if owner is not None:
                    os.fchown(file.fileno(), *owner)
                file.write(self.content)
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link does not replace a file that was written meanwhile.
            os.link(temporary, self.path)
            _sync(self.path.parent)
        except OSError as error:
            raise NewFileError(f"{self.path}: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone unless it is there; NewFileError."""
    try:
        if not path.is_dir():
            path.mkdir(_FOLDER_MODE)
            _sync(path.parent)
    except OSError as error:
        raise NewFileError(f"{path}: {error.strerror}") from None


def owner_of(folder: Path) -> tuple[int, int] | None:
    """Whose new files of root are: the owner of the folder; None for other users."""
    if os.geteuid() != 0 or not folder.is_dir():
        return None
    status = folder.stat()
    return status.st_uid, status.st_gid


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = ["KINDS", "TITLES", "ImportRequest", "RefusedImportError", "run_import"]

FILES = "file"
KINDS = (
    SITES, CONFIGURATION, kinds.PASSWORDS, kinds.KEYS, kinds.USERS, kinds.PROCESSES, kinds.REPORTS,
    kinds.DOWNTIMES, kinds.BROADCASTS, kinds.DASHBOARDS, kinds.OTHERS, "data", FILES,
)  # fmt: skip

CLOCK = MachineClock()
_TARGET = re.compile(r"[A-Za-z0-9_.:-]+")
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")
_MOST_PROBLEMS = 5000
_WHOLE = frozenset({"user_replace"})
_NEEDED = frozenset({"id", "name", "address"})
_TOGETHER = {"tls_cert_file": ("tls_key_file",), "username": ("password_file", "security")}
_HTPASSWD, _MAIL_PASSWORD, _SECRET = "htpasswd", "mail.password", "secret.key"


class RefusedImportError(Exception):
    """The import cannot be done; the text says why and has no secret in it."""


@frozen(kw_only=True)
class ImportRequest:
    """``folder`` and ``var`` are those of the old installation, ``config`` and ``state`` ours.

    ``apply``: write it. ``secret_key``: its key continues to work. ``fill_targets``: downtimes
    whose target fits nothing that they name get one that does.
    """

    folder: str
    var: str = ""
    config: Path
    state: Path
    apply: bool = False
    secret_key: bool = False
    fill_targets: bool = False


def run_import(request: ImportRequest, wall: WallClock = CLOCK) -> ImportLines:
    """Do what is wanted, and say what became of everything; RefusedImportError."""
    try:
        return _Import(request, wall.now()).run()
    except (NoInstallationError, NewFileError, StoreError) as error:
        raise RefusedImportError(str(error)) from None
    except ConfigError as error:
        raise RefusedImportError(f"{request.config} cannot be used:\n{error}") from None
    except OSError as error:
        raise RefusedImportError(f"{error.filename}: {error.strerror}") from None


@define(eq=False)
class _Import:
    request: ImportRequest
    now: float
    lines: ImportLines = field(init=False, factory=ImportLines)

    def run(self) -> ImportLines:
        request = self.request
        installation = Installation.find(request.folder, request.var, self.lines)
        resource = installation.local.last("resource_file") or installation.main.last(
            "resource_file"
        )
        backends = read_backends(installation, resource.value if resource else "")
        contents = Contents(installation, backends, self.now, fill=request.fill_targets)
        contents.read_users()
        translation = Translation(installation, backends, contents.roles)
        translation.translate()
        present = load(request.config) if request.config.exists() else None
        config, files = self._configuration(translation, present)
        if present is not None:
            sites = [KnownSite(key=site.id, name=site.name, section=site.section)
                     for site in present.sites]  # fmt: skip
            contents.backends = Backends(sites=sites)
        files = [*self._secret(installation, config), *files]
        zone = config.display.zone()
        adoptions = [
            *contents.keys(),
            *contents.users(),
            *contents.processes(),
            *contents.reports(config, zone),
            *contents.downtimes(config, zone),
            *contents.broadcasts(zone),
            *contents.dashboards(),
        ]
        contents.others()
        self._store(config, adoptions, files)
        return self.lines

    def _configuration(
        self, translation: Translation, present: Config | None
    ) -> tuple[Config, list[NewFile]]:
        """The configuration in force, and the files that are to be there."""
        document, state = translation.document, self.request.state
        document = {"server": {"var_dir": ""}, **document}
        private = {}
        if translation.htpasswd is not None:
            document.setdefault("auth", {})["htpasswd_file"] = "{var_dir}/" + _HTPASSWD
            private[_HTPASSWD] = translation.htpasswd
        if translation.password:
            document["mail"]["password_file"] = "{var_dir}/" + _MAIL_PASSWORD
            private[_MAIL_PASSWORD] = f"{translation.password}\n".encode()
        with TemporaryDirectory(prefix="monrest-import-") as stage:
            for name, content in private.items():
                NewFile(name, Path(stage) / name, content).write(None)
            document["server"]["var_dir"] = stage
            checked = self._usable(document, translation)
        if present is not None:
            is_there = partial(
                _in_force, wanted=checked, present=present, moved=(stage, str(state))
            )
            self.lines.keep((SITES, CONFIGURATION, kinds.PASSWORDS), is_there)
        document["server"]["var_dir"] = str(state)
        text = toml_text(document, translation.backends.comments)
        if present is None:
            folder = str(state)
            config = evolve(
                checked,
                server=evolve(checked.server, var_dir=folder),
                auth=evolve(checked.auth, secret_key_file=f"{folder}/{_SECRET}"),
                database=evolve(checked.database, url=checked.database.url.replace(stage, folder)),
            )
        else:
            config = present
        files = [NewFile(name, state / name, content) for name, content in private.items()]
        if present is not None:
            # It names the files that it needs.
            files = [file for file in files if file.path.exists()]
        return config, [*files, NewFile("configuration", self.request.config, text.encode())]

    def _usable(self, document: dict[str, Any], translation: Translation) -> Config:
        """Take out what the check refuses, with a line for each, until the rest can be used."""
        for _ in range(_MOST_PROBLEMS):
            try:
                return loads(toml_text(document, []))
            except ConfigError as error:
                problem = error.problems[0]
            path, _, reason = problem.partition(": ")
            steps = [int(name) if name else two for name, two in _STEP.findall(path)]
            reason = re.sub(r" \(line [0-9]+\)\Z", "", reason).partition(", got ")[0]
            where = self._place(document, steps) or translation.places.get(tuple(steps[:2]), path)
            if not _take_out(document, steps):
                raise RefusedImportError(f"the configuration cannot be used: {path}: {reason}")
            loud = "commandline_obfuscate_pattern" in path
            note = f"{reason}; WITHOUT IT PASSWORDS OF COMMAND LINES ARE SHOWN" if loud else reason
            self.lines.add(CONFIGURATION, where, Outcome.LEFT, path, note)
        raise RefusedImportError("the configuration has too many problems")

    @staticmethod
    def _place(document: dict[str, Any], steps: Sequence[int | str]) -> str:
        """The site that a problem is about, empty for none."""
        if len(steps) > 1 and steps[0] == "sites" and isinstance(steps[1], int):
            return f"site {document['sites'][steps[1]]['id']}"
        return ""

    def _secret(self, installation: Installation, config: Config) -> list[NewFile]:
        if installation.var is None or not (installation.var / _SECRET).exists():
            return []
        if not self.request.secret_key:
            reason = "a client that knows it may do everything; --secret-key takes it over"
            self.lines.add("data", _SECRET, Outcome.LEFT, "auth.secret_key_file", reason)
            return []
        content = installation.small_file("data", installation.var / _SECRET) or b""
        key = content.strip().decode("ascii", "replace")
        if not secret_key.is_key(key):
            self.lines.add("data", _SECRET, Outcome.REFUSED, "auth.secret_key_file",
                           "expected letters, digits and _")  # fmt: skip
            return []
        return [NewFile("secret key", Path(config.auth.secret_key_file), f"{key}\n".encode())]

    def _store(self, config: Config, adoptions: Sequence[Adoption], files: list[NewFile]) -> None:
        """Store everything in one transaction, and the files before that is committed."""
        url = engines.parse(config.database.url)
        path = Path(url.database or "") if engines.is_sqlite(url) else None
        missing = path is not None and not path.exists()
        with TemporaryDirectory(prefix="monrest-import-") as stage:
            if self.request.apply:
                make_folder(Path(config.server.var_dir))
                make_folder(self.request.config.parent)
            elif missing:
                # What is not there is neither made nor changed: the records go to one like it.
                path = Path(stage) / "monrest.sqlite"
                url = url.set(database=str(path))
            if path is not None and missing:
                engines.prepare_file(path)
            try:
                self._transact(url, adoptions, files, Path(config.server.var_dir))
            except SQLAlchemyError as error:
                reason = engines.without_secrets(error_text(error), url)
                raise RefusedImportError(
                    f"database.url: {engines.display_url(url)}: {reason}"
                ) from None
        if path is not None and missing and self.request.apply:
            _give_away(path, owner_of(Path(config.server.var_dir)))

    def _transact(
        self, url: URL, adoptions: Sequence[Adoption], files: list[NewFile], state: Path
    ) -> None:
        engine = engines.migrating(url)
        try:
            with engine.connect() as connection, connection.begin() as transaction:
                migrate.upgrade_connection(connection)
                for adoption in adoptions:
                    self._adopt(connection, adoption)
                for file in files:
                    self._write(file, state)
                if self.request.apply:
                    transaction.commit()
                else:
                    transaction.rollback()
        finally:
            engine.dispose()

    def _adopt(self, connection: Connection, adoption: Adoption) -> None:
        notes, changed = [*adoption.losses, *adoption.notes], bool(adoption.losses)
        try:
            with connection.begin_nested():
                stored = adoption.work(connection)
        except RestError as error:
            self.lines.add(
                adoption.kind,
                adoption.source,
                Outcome.REFUSED,
                adoption.target,
                error.description or error.message,
            )
            return
        except DBAPIError as error:
            if meaning_of(error) not in (Meaning.VALUE, Meaning.OURS):
                raise
            self.lines.add(adoption.kind, adoption.source, Outcome.REFUSED, adoption.target,
                           "the database cannot hold it")  # fmt: skip
            return
        if not stored:
            self.lines.add(adoption.kind, adoption.source, Outcome.SAME, adoption.target)
            return
        if isinstance(stored, str) and repr(stored) not in adoption.target:
            notes.append(f"it is called {stored!r}, because its name is taken")
            changed = True
        outcome = Outcome.CHANGED if changed else Outcome.NEW
        self.lines.add(adoption.kind, adoption.source, outcome, adoption.target, "; ".join(notes))

    def _write(self, file: NewFile, state: Path) -> None:
        present = file.present()
        if present is not None:
            note = "" if present == file.content else "it stays as it is: it is another one"
            if note and file.path == self.request.config:
                note += "; what it lacks is left out, unless you move it away first"
            self.lines.add(FILES, file.name, Outcome.SAME, str(file.path), note)
            return
        if self.request.apply:
            file.write(owner_of(state))
        self.lines.add(FILES, file.name, Outcome.NEW, str(file.path))


def _in_force(line: ImportLine, wanted: Config, present: Config, moved: tuple[str, str]) -> bool:
    """Whether a configuration has what a line is about as the imported one would have it.

    ``moved``: where the imported one has its state while it is checked, and where it belongs.
    """
    name = _TARGET.match(line.target)
    values = []
    for config in (wanted, present):
        in_force: Any = {
            **{site.id: site for site in config.sites},
            **{f"[[editor]] {editor.name}": editor for editor in config.editor},
        }.get(line.target if name is None else name[0])
        if in_force is None and name is not None:
            in_force = config
            for step in name[0].split("."):
                in_force = (
                    in_force.get(step)
                    if isinstance(in_force, Mapping)
                    else getattr(in_force, step, None)
                )
        values.append(in_force.replace(*moved) if isinstance(in_force, str) else in_force)
    return values[0] is not None and values[0] == values[1]


def _take_out(document: dict[str, Any], steps: Sequence[int | str]) -> bool:
    """Remove what is wrong, with what cannot be without it; False where nothing was."""
    parents: list[Any] = [document]
    used: list[int | str] = []
    for step in steps:
        try:
            following = parents[-1][step]
        except (KeyError, IndexError, TypeError):
            break
        parents.append(following)
        used.append(step)
    if not used:
        return False
    # A site without its address is none, and a pattern nothing without its replacement.
    if used[0] == "sites" and len(used) > 2 and used[-1] in _NEEDED:
        used = used[:2]
    if len(used) > 1 and used[-2] in _WHOLE:
        used = used[:-1]
    if used == ["bp"] or used == ["server"]:
        return False
    container, last = parents[len(used) - 1], used[-1]
    del container[last]
    for other in _TOGETHER.get(str(last), ()):
        container.pop(other, None) if isinstance(container, dict) else None
    return True


def _give_away(path: Path, owner: tuple[int, int] | None) -> None:
    """Change the owner of a database that root made to that of its folder."""
    names: Iterable[str] = (path.name, f"{path.name}-wal", f"{path.name}-shm")
    for file in (path.with_name(name) for name in names):
        if owner is not None and file.exists():
            os.chown(file, *owner)
