"""The data of an old installation: what is read of them, and how it is stored.

Each kind is checked by the rules of its family here, as if it came over the API.

Rules: docs/spec/import.md, "Data".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from attrs import define, field, frozen
from sqlalchemy import Connection

from monrest.accounts import usernames
from monrest.accounts.credentials import adopt
from monrest.accounts.model import ApiKey, Profile, zone_called
from monrest.api.records import number_of
from monrest.base import schedule
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import INTERNAL, ROLES
from monrest.bp import model as process_model
from monrest.bp import store as process_statements
from monrest.bp.function import text_at
from monrest.broadcasts import endpoints as broadcast_statements
from monrest.broadcasts import model as broadcast_model
from monrest.config import Config
from monrest.downtimes import model as downtime_model
from monrest.downtimes import store as downtime_statements
from monrest.importer.backends import Backends
from monrest.importer.import_lines import Outcome
from monrest.importer.installation import DataFile, Installation
from monrest.panorama import model as dashboard_model
from monrest.panorama import store as dashboard_statements
from monrest.reports import model as report_model
from monrest.reports import settings as report_settings
from monrest.reports import store as report_statements
from monrest.reports.templates import TEMPLATES
from monrest.store.database import transaction

P = ParamSpec("P")
T = TypeVar("T")

PASSWORDS, KEYS, USERS, PROCESSES = "passwords", "API key", "user", "business process"
REPORTS, DOWNTIMES, BROADCASTS = "report", "recurring downtime", "broadcast"
DASHBOARDS, OTHERS = "dashboard", "other data"

_SHOWN_OF_KEY = 16
_LONGEST_TEXT = 4096
_ANY = re.compile(r"((?!\.).+)", re.DOTALL)
_KEY = re.compile(r"([0-9a-f]{64})\.SHA-256")
_PROCESS = re.compile(r"([0-9]+)\.tbp")
_DRAFT = re.compile(r"([0-9]+)\.tbp\.edit")
_REPORT = re.compile(r"([0-9]+)\.rpt")
_DOWNTIME = re.compile(r"(.+)\.tsk", re.DOTALL)
_BROADCAST = re.compile(r"(.+)\.json", re.DOTALL)
_DASHBOARD = re.compile(r"([A-Za-z0-9_-]+)\.tab")
_BACKUP = re.compile(r"([A-Za-z0-9_-]+\.tab\.[0-9]{1,12})\.[am]")
_STAGED = re.compile(r"obj_retention\.([^.]+)\.[0-9a-f]{64}\.dat")
_PANEL = re.compile(r"(?:.*_)?panlet_[0-9]{1,9}", re.DOTALL)
_OWN_FILTERS = frozenset(
    {"downtime_filter", "acknowledged_filter", "unknown_filter", "add_recursive_output_filter"}
)
_ENDLESS = ("max_outages_pages", "max_worst_pages")

Adopting: TypeAlias = Callable[[Connection], str | bool | None]
"""Stores a record; nothing (or False) when there is one of its name, else True or its new name."""


@frozen
class Adoption:
    """A record to be stored: where it was, what it is called here.

    ``losses`` is what of it is not as it was, ``notes`` what else is to be known.
    """

    kind: str
    source: str
    target: str
    work: Adopting
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@define(eq=False)
class Contents:
    """Reads all kinds; ``now`` is the present, ``fill`` has downtimes fit what they name."""

    installation: Installation
    backends: Backends
    now: float
    fill: bool = False
    roles: dict[str, list[str]] = field(init=False, factory=dict)
    profiles: list[tuple[str, Profile]] = field(init=False, factory=list)

    def _tell(
        self, kind: str, source: str, outcome: Outcome, target: str = "", note: str = ""
    ) -> None:
        self.installation.lines.add(kind, source, outcome, target, note)

    def _files(self, kind: str, folder: str, name: re.Pattern[str]) -> Iterator[DataFile]:
        if self.installation.var is not None:
            yield from self.installation.data_files(kind, self.installation.var / folder, name)

    def _documents(
        self, kind: str, folder: str, name: re.Pattern[str]
    ) -> Iterator[tuple[DataFile, dict[str, Any]]]:
        for file in self._files(kind, folder, name):
            value = self.installation.document(kind, file)
            if value is not None:
                yield file, value

    def _records(
        self,
        kind: str,
        folder: str,
        name: re.Pattern[str],
        make: Callable[Concatenate[DataFile, dict[str, Any], P], T | None],
        *args: P.args,
        **named: P.kwargs,
    ) -> Iterator[T]:
        """The result of ``make`` for each document of a folder."""
        for file, value in self._documents(kind, folder, name):
            yield from self._checked(kind, file.display, make, file, value, *args, **named)

    def _checked(
        self,
        kind: str,
        source: str,
        make: Callable[P, T | None],
        *args: P.args,
        **named: P.kwargs,
    ) -> Iterator[T]:
        """The record of ``make``; a line where a rule refuses it or a value is of a wrong type."""
        try:
            record = make(*args, **named)
        except RestError as error:
            self._tell(kind, source, Outcome.REFUSED, "", error.description or error.message)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
            self._tell(kind, source, Outcome.REFUSED, "", "expected values of other types")
        else:
            if record is not None:
                yield record

    def read_users(self) -> None:
        """Read settings of users, and the rights that stand in their files."""
        self.profiles += self._records(USERS, "users", _ANY, self._profile)

    def _profile(self, file: DataFile, value: Mapping[str, Any]) -> tuple[str, Profile] | None:
        name = file.stem
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequest("invalid user", "expected a name in UTF-8") from None
        usernames.check(name, "file")
        if name in INTERNAL:
            raise BadRequest("invalid user", "the name means something else")
        roles = [text for text in _texts(value.get("roles")) if text in ROLES]
        if roles and "*" in name:
            # In auth.roles it would mean others as well.
            self._tell(
                USERS, file.display, Outcome.REFUSED, "auth.roles", "expected a name without *"
            )
        else:
            for role in roles:
                self.roles.setdefault(role.removeprefix("authorized_for_"), []).append(name)
        if teams := _texts(value.get("teams")):
            self._tell(
                USERS, file.display, Outcome.LEFT, f"teams: {', '.join(teams)}", "no such thing"
            )
        login = value.get("login")
        login = login if isinstance(login, Mapping) else {}
        zone = value.get("tz")
        zone_name = zone if isinstance(zone, str) and zone_called(zone) else None
        if not login and zone_name is None:
            return None
        profile = Profile(
            name=name,
            locked=_truth(login.get("locked")),
            failed=_number(login.get("failed")),
            last_failed=_login(login.get("last_failed")),
            last_success=_login(login.get("last_success")),
            tz=zone_name,
            created=file.changed,
        )
        return file.display, profile

    def users(self) -> Iterator[Adoption]:
        for source, profile in self.profiles:
            notes = ("locked",) if profile.locked else ()
            yield Adoption(USERS, source, profile.name, adopt(profile), notes=notes)

    def keys(self) -> Iterator[Adoption]:
        """Keys of releases that hashed in another way are dead."""
        folder = "api_keys"
        for file, value in self._documents(KEYS, folder, _KEY):
            yield from self._checked(KEYS, self._key_source(file), self._key, file, value)
        if self.installation.var is None:
            return
        try:
            names = [path.name for path in (self.installation.var / folder).iterdir()]
        except OSError:
            return
        old = [name for name in names if not re.fullmatch(rf"{_KEY.pattern}(\.stats)?", name)]
        if old:
            # Such a name may be the key itself.
            self._tell(KEYS, folder, Outcome.LEFT, f"{len(old)} files", "no keys of today's form")

    @staticmethod
    def _key_source(file: DataFile) -> str:
        return f"api_keys/{file.stem[:_SHOWN_OF_KEY]}"

    def _key(self, file: DataFile, value: Mapping[str, Any]) -> Adoption:
        superuser = _truth(value.get("superuser")) or _truth(value.get("system"))
        user, forced = _text(value.get("user")), _text(value.get("force_user"))
        notes = []
        if superuser:
            user = ""
        elif not user:
            raise BadRequest("invalid key", "expected the user whose key it is")
        for name in filter(None, (user, forced)):
            usernames.check(name, "user")
        roles = value.get("roles")
        kept: tuple[str, ...] | None = None
        if roles is not None:
            kept = tuple(text for text in _texts(roles) if text in ROLES)
            if unknown := [text for text in _texts(roles) if text not in ROLES]:
                notes.append(f"without unknown roles: {', '.join(unknown)}")
        used = self._stats(file)
        key = ApiKey(
            hashed_key=file.stem,
            user=user or None,
            superuser=superuser,
            force_user=(forced or None) if superuser else None,
            roles=kept,
            comment=_text(value.get("comment")),
            created=_number(value.get("created")) or file.changed,
            last_used=_number(used.get("last_used")) or None,
            last_from=_text(used.get("last_from")) or None,
        )
        owner = f"superuser{f' as {key.force_user}' if key.force_user else ''}"
        return Adoption(
            KEYS,
            self._key_source(file),
            owner if superuser else f"key of {user}",
            adopt(key),
            tuple(notes),
        )

    def _stats(self, file: DataFile) -> Mapping[str, Any]:
        path = file.path.with_name(f"{file.path.name}.stats")
        return self.installation.document_at(KEYS, path) or {}

    def processes(self) -> Iterator[Adoption]:
        """The live processes, and drafts without a live one."""
        folder = self.installation.etc / "bp"
        live = {
            file.stem: file for file in self.installation.data_files(PROCESSES, folder, _PROCESS)
        }
        files = [(file, False) for file in live.values()]
        for file in self._files(PROCESSES, "bp", _DRAFT):
            if file.stem in live:
                document = self.installation.document(PROCESSES, file)
                if document != self.installation.document(PROCESSES, live[file.stem]):
                    self._tell(PROCESSES, file.display, Outcome.LEFT, file.stem,
                               "changes that were not committed")  # fmt: skip
            else:
                files.append((file, True))
        for file, draft in files:
            value = self.installation.document(PROCESSES, file)
            if value is not None:
                yield from self._checked(
                    PROCESSES,
                    file.display,
                    self._process,
                    file,
                    value,
                    draft=draft,
                )

    def _process(self, file: DataFile, value: Mapping[str, Any], *, draft: bool) -> Adoption:
        number = process_statements.number_of(str(int(file.stem)))
        if number is None:
            raise BadRequest("invalid number", "expected a number from 1 on as its name")
        definition = process_model.read(value)
        losses: list[str] = []
        if self.backends.remembered(value.get("backends")):
            losses.append("it looks at all sites that are not hidden")
        for node in definition.nodes:
            if node.function.name == "custom":
                name = text_at(node.function.arguments, 0)
                self._by_hand(file, definition.name, f"node {node.id}: function {name}")
        filters = {*definition.filter, *(name for node in definition.nodes for name in node.filter)}
        for name in sorted(filters - _OWN_FILTERS):
            self._by_hand(file, definition.name, f"filter {name}")
        # A draft is kept for a day after its last change.
        changed = self.now if draft else float(file.changed)
        return Adoption(
            PROCESSES,
            file.display,
            f"{number} {definition.name!r}",
            process_statements.adopt(number, definition, changed, draft=draft),
            tuple(losses),
            ("a draft",) if draft else (),
        )

    def _by_hand(self, file: DataFile, name: str, what: str) -> None:
        self._tell(PROCESSES, file.display, Outcome.HINT, f"{name}: {what}",
                   "to be written in Python, see bp.functions_dir")  # fmt: skip

    def reports(self, config: Config, zone: tzinfo) -> Iterator[Adoption]:
        return self._records(REPORTS, "reports", _REPORT, self._report, config, zone)

    def _report(
        self, file: DataFile, value: dict[str, Any], config: Config, zone: tzinfo
    ) -> Adoption | None:
        number = _number_of(file)
        notes: list[str] = []
        given = {name: item for name, item in value.items() if name not in ("backends", "var")}
        template = given.get("template") or "sla_report.tt"
        if template not in TEMPLATES:
            self._tell(REPORTS, file.display, Outcome.LEFT,
                       f"{number} {_text(given.get('name'))!r}",
                       f"its template {_text(template)} is to be written anew, see "
                       "reports.templates")  # fmt: skip
            return None
        given["template"] = template
        given["send_types"] = _schedule(given.get("send_types"), "send_types", notes)
        given["permissions"] = _permissions(given.get("permissions"), notes)
        params = given.get("params")
        if isinstance(params, dict):
            endless = {key: "-1" for key in _ENDLESS if str(params.get(key)) == "0"}
            given["params"] = {**params, **endless}
        user = _text(value.get("user"))
        if user:
            usernames.check(user, "user")
        record = report_model.checked(given, TEMPLATES, config.reports.default_template)
        record["user"] = user
        try:
            report_settings.read(TEMPLATES[record["template"]], record["params"])
        except BadRequest as error:
            if TEMPLATES[record["template"]].kind != "url":
                raise
            notes.append(f"fails until this is changed: {error.description}")
        sites = self.backends.remembered(value.get("backends"))
        return Adoption(
            REPORTS,
            file.display,
            f"{number} {record['name']!r} of {user or 'no user'}",
            report_statements.adopt(
                number, report_statements.values(record, sites, None, self.now, zone)
            ),
            tuple(notes),
        )

    def downtimes(self, config: Config, zone: tzinfo) -> Iterator[Adoption]:
        """Recurring downtimes, those with numbers first."""
        files = list(self._documents(DOWNTIMES, "downtimes", _DOWNTIME))
        for file, value in sorted(files, key=lambda pair: number_of(pair[0].stem) is None):
            yield from self._checked(
                DOWNTIMES, file.display, self._downtime, file, value, config, zone
            )

    def _downtime(
        self, file: DataFile, value: dict[str, Any], config: Config, zone: tzinfo
    ) -> Adoption:
        losses: list[str] = []
        given = dict(value)
        given["schedule"] = _schedule(given.get("schedule"), "schedule", losses)
        named = [kind for kind in downtime_model.TARGETS if given.get(kind)]
        target = given.get("target")
        if not target:
            given["target"] = "service" if "service" in named else "host"
        elif self.fill and target not in named:
            other = "service" if {"host", "service"} <= set(named) else next(iter(named), target)
            given["target"] = other
            losses.append(f"its target was {target}: it did nothing, and does now")
        try:
            record = downtime_model.checked(given, config.commands)
        except BadRequest as error:
            others = [kind for kind in named if kind != target]
            if target in downtime_model.TARGETS and target not in named and others:
                raise BadRequest(
                    error.message,
                    f"it did nothing: its target is {target} and it names {', '.join(others)}; "
                    "--fill-targets has it begin to act",
                ) from None
            raise
        sites = self.backends.remembered(value.get("backends"))
        number = number_of(file.stem)
        if number is None:
            work: Adopting = _unnumbered(record, sites, self.now, zone)
            losses.append("it had no number")
        else:
            work = downtime_statements.adopt(number, record, sites, self.now, zone)
        what = downtime_model.Downtime(number=0, record=record).targets()
        names = ", ".join(
            " ".join(filter(None, (target.name, target.service))) for target in what[:3]
        )
        return Adoption(
            DOWNTIMES, file.display, f"{number or 'new'} {record['target']} {names}", work,
            tuple(losses), ("for all sites",) if value.get("backends") is None else (),
        )  # fmt: skip

    def broadcasts(self, zone: tzinfo) -> Iterator[Adoption]:
        return self._records(BROADCASTS, "broadcast", _BROADCAST, self._broadcast, zone)

    def _broadcast(self, file: DataFile, value: Mapping[str, Any], zone: tzinfo) -> Adoption:
        name = broadcast_model.file_name(file.stem)
        # Relative dates are of the time at which they were written.
        record = broadcast_model.checked(value, float(file.changed), zone)
        record |= {key: _text(value.get(key)) or None for key in broadcast_model.OF_AUTHOR}
        record["author"] = record["author"] or ""
        return Adoption(
            BROADCASTS,
            file.display,
            f"{name} {record['name']!r}",
            broadcast_statements.adopt(name, record, file.changed),
            notes=("a template",) if record["template"] else (),
        )

    def dashboards(self) -> Iterator[Adoption]:
        """With their backups; those that are programs become lines."""
        folder = self.installation.etc / "panorama"
        backups = self._backups()
        for file in self.installation.data_files(DASHBOARDS, folder, _DASHBOARD):
            if file.stem == "0":
                continue
            if file.executable or file.content.startswith(b"#!"):
                self._program(file)
                continue
            value = self.installation.document(DASHBOARDS, file)
            if value is not None:
                yield from self._checked(
                    DASHBOARDS,
                    file.display,
                    self._dashboard,
                    file,
                    value,
                    backups.get(file.stem, []),
                )

    def _program(self, file: DataFile) -> None:
        first = file.content.partition(b"\n")[0]
        if first.startswith(b"#!") and b"perl" not in first:
            self._tell(DASHBOARDS, file.display, Outcome.HINT, file.stem,
                       "a program: copy it to panorama.folder")  # fmt: skip
        else:
            self._tell(DASHBOARDS, file.display, Outcome.LEFT, file.stem,
                       "a program that only the old front end can run")  # fmt: skip

    def _backups(self) -> dict[str, list[DataFile]]:
        backups: dict[str, list[DataFile]] = {}
        for file in self._files(DASHBOARDS, "panorama", _BACKUP):
            backups.setdefault(file.stem.partition(".tab.")[0], []).append(file)
        return backups

    def _dashboard(
        self, file: DataFile, value: Mapping[str, Any], backups: list[DataFile]
    ) -> Adoption:
        if not dashboard_model.is_nr(file.stem):
            raise BadRequest("invalid number", "expected up to 100 letters, digits, _ and -")
        losses: list[str] = []
        notes: list[str] = []
        record = self._dashboard_record(value, losses)
        past = {}
        by_time = {int(backup.stem.rpartition(".")[2]): backup for backup in backups}
        for at in sorted(by_time)[-dashboard_statements.MOST_BACKUPS :]:
            former = self.installation.document(DASHBOARDS, by_time[at])
            if former is None:
                continue
            try:
                past[at] = self._dashboard_record(former, [])
            except RestError as error:
                self._tell(DASHBOARDS, by_time[at].display, Outcome.REFUSED, "", error.description)
        maintenance = self._maintenance(file.stem)
        if maintenance is not None:
            notes.append("in maintenance")
        if past:
            notes.append(f"with {len(past)} backups")
        title = _text(record["tab"]["xdata"].get("title"))
        return Adoption(
            DASHBOARDS,
            file.display,
            f"{file.stem} {title!r} of {record['user'] or 'no user'}",
            dashboard_statements.adopt(file.stem, record, file.changed, past, maintenance),
            tuple(losses),
            tuple(notes),
        )

    def _dashboard_record(self, value: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, item in value.items():
            taken = key in ("user", "tab", "file_version", "public")
            if taken or key in dashboard_model.COMPUTED or _PANEL.fullmatch(key):
                given[key] = item
            else:
                notes.append(f"without {key}")
        tab = given.get("tab")
        if isinstance(tab, dict) and isinstance(tab.get("xdata"), dict):
            settings = dict(tab["xdata"])
            if settings.get("backends") is not None:
                settings["backends"] = list(self.backends.remembered(settings["backends"]))
            given["tab"] = {**tab, "xdata": settings}
        return dashboard_model.parted(dashboard_model.checked(given, ""))[0]

    def _maintenance(self, nr: str) -> str | None:
        var = self.installation.var
        path = None if var is None else var / "panorama" / f"{nr}.tab.maint"
        value = None if path is None else self.installation.document_at(DASHBOARDS, path)
        text = None if value is None else value.get("maintenance")
        return text[:_LONGEST_TEXT] if isinstance(text, str) else None

    def others(self) -> None:
        """Tell of data that cannot be taken over."""
        var = self.installation.var
        if var is None:
            return
        if (facts := var / "node_control" / "_conf.json").exists():
            self._tell(OTHERS, self.installation.display(facts), Outcome.HINT, "[nodecontrol]",
                       "settings of node-control are to be written by hand")  # fmt: skip
        staged = [_STAGED.fullmatch(path.name) for path in _inside(var)]
        for key in sorted({match[1] for match in staged if match is not None}):
            self._tell(OTHERS, f"obj_retention.{key}", Outcome.HINT, f"site {key}",
                       "a user has changes of objects that are not saved: save or discard them "
                       "in the old front end before")  # fmt: skip
        teams = var / "teams"
        names = sorted(path.name for path in _inside(teams))
        if names:
            self._tell(OTHERS, self.installation.display(teams), Outcome.LEFT, ", ".join(names),
                       "there are no teams")  # fmt: skip


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _truth(value: Any) -> bool:
    return value not in (None, "", 0, "0", False)


def _number(value: Any) -> int:
    """A number that forms may have sent as text, 0 for what is none."""
    try:
        number = int(float(value)) if isinstance(value, (int, float, str)) else 0
    except (ValueError, OverflowError):
        return 0
    return number if 0 <= number < 1 << 53 else 0


def _text(value: Any) -> str:
    text = str(value) if isinstance(value, (str, int, float)) else ""
    return text.replace("\0", "")[:_LONGEST_TEXT]


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def _login(value: Any) -> dict[str, Any] | None:
    """When and from where a user logged in, or failed to."""
    if not isinstance(value, Mapping) or not _number(value.get("time")):
        return None
    login: dict[str, Any] = {"time": _number(value["time"]), "ip": _text(value.get("ip"))}
    if forwarded := _text(value.get("forwarded_for")):
        login["forwarded_for"] = forwarded
    return login


def _number_of(file: DataFile) -> int:
    number = number_of(str(int(file.stem)))
    if number is None:
        raise BadRequest("invalid number", "expected a number from 1 on as its name")
    return number


def _schedule(value: Any, name: str, notes: list[str]) -> Any:
    """A schedule without the entries that never came."""
    if not isinstance(value, list):
        return value
    entries = []
    for at, entry in enumerate(value):
        try:
            schedule.read([entry], name)
        except BadRequest as error:
            notes.append(f"without entry {at + 1} of {name}: {error.description}")
        else:
            entries.append(entry)
    return entries


def _permissions(value: Any, notes: list[str]) -> Any:
    """Permissions without the entries that meant nothing."""
    if not isinstance(value, list):
        return value
    permissions = []
    for at, entry in enumerate(value):
        names = entry.get("name") if isinstance(entry, dict) else None
        named = isinstance(names, str) or (
            isinstance(names, list) and len(names) == len(_texts(names))
        )
        if named and entry.get("type") in ("user", "group") and entry.get("perm") in ("ro", "rw"):
            permissions.append(entry)
        else:
            notes.append(f"without entry {at + 1} of permissions")
    return permissions


@transaction
def _unnumbered(
    connection: Connection,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
) -> bool:
    """Store a downtime under a free number unless there is the same one."""
    downtimes = downtime_statements.several()(connection)
    if any((stored.record, stored.sites) == (record, sites) for stored in downtimes):
        return False
    downtime_statements.add(1, record, sites, now, zone)(connection)
    return True
