"""The objects of a core that stand for processes, and the file with all of them.

The file is written as a whole, and only if it changes; it has a lock of its own and one on its
folder, so that daemons of one machine do not write what another one has already replaced.

Rules: docs/spec/bp.md, "Export".
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from attrs import define, field, frozen
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, shielded
from monrest.base.errors import BadRequest, RestError
from monrest.bp.delivery import sole
from monrest.bp.model import ILLEGAL, ROOT, ProcessDefinition, ProcessNode, StoredProcess
from monrest.bp.store import DefinitionCheck
from monrest.config import BpConfig, ConfigTool
from monrest.objectconfig import site_commands
from monrest.objectconfig.document import Block, UnwritableError
from monrest.objectconfig.save import SaveRoom, Writable, Write, digest, lock, put, write
from monrest.objectconfig.site_commands import Reload, environment
from monrest.objectconfig.site_files import setting
from monrest.sites.registry import Sites
from monrest.sites.site import Site

HOST_TEMPLATE = "{app}-bp-template"
SERVICE_TEMPLATE = "{app}-bp-node-template"


Place: TypeAlias = tuple[str, str, str]
"""host or service, the name of the host, and that of the service if it is one."""


@frozen
class Exported:
    """The objects of one live process by their places, as texts; ``name`` is for people."""

    number: str
    name: str
    blocks: Mapping[Place, str]


def exported(number: str, definition: ProcessDefinition, app: str, form: str) -> Exported:
    """``app`` is the word in names of variables. UnwritableError for what no file can say."""
    blocks: dict[Place, str] = {}
    for node in definition.exported:
        host = definition.host_of(node)
        if node.id == ROOT and definition.create_host_object:
            own = {
                "host_name": host,
                "alias": f"Business Process: {node.label}",
                "use": definition.template or HOST_TEMPLATE.format(app=app),
                **_attributes(number, node, app),
                **node.host_object_attributes,
            }
            blocks["host", host, ""] = _block("host", own, form)
        own = {
            "host_name": host,
            "service_description": node.label,
            "display_name": node.label,
            "use": node.template or SERVICE_TEMPLATE.format(app=app),
            **_attributes(number, node, app),
            **node.service_object_attributes,
        }
        blocks["service", host, node.label] = _block("service", own, form)
    return Exported(number, definition.name, blocks)


def _attributes(number: str, node: ProcessNode, app: str) -> dict[str, str]:
    word = app.upper()
    given = {
        f"_{word}_BP_ID": number,
        f"_{word}_NODE_ID": node.id,
        "contacts": ",".join(node.contacts),
        "contact_groups": ",".join(node.contactgroups),
        "notification_period": node.notification_period,
        "max_check_attempts": node.max_check_attempts,
        "event_handler": node.event_handler,
    }
    return {name: value for name, value in given.items() if value}


NAGIOS, ICINGA2 = FORMATS = ("nagios", "icinga2")

_HEADER = (
    "mon: readonly",
    "Written by monrest from its business processes, and again whenever one of them changes.",
)
_OWNER = re.compile(
    r"""^ +(?:vars\["[A-Z]\w*_BP_ID"\] = "|_[A-Z]\w*_BP_ID +)(\d+)"?$""", re.MULTILINE
)
_KIND = re.compile(r'(?:define|object) (\w+) (?:"(.*)")?')
_HOST = re.compile(r'^  host_name(?: = "| +)(.*?)"?$', re.MULTILINE)
_SERVICE = re.compile(r"^  service_description +(.*)$", re.MULTILINE)
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?\Z")
_LISTS = {"contacts": "contacts", "contact_groups": "contact_groups"}
_TEXTS = {"notification_period": "notification_period"}
"""Directives without an attribute in Icinga 2: custom variables, for rules of notifications."""


def _block(kind: Literal["host", "service"], attributes: Mapping[str, str], form: str) -> str:
    if form == ICINGA2:
        return "\n".join(_object(kind, attributes))
    return Block.new(kind, attributes, "", "\n").text.strip()


def joined(blocks: Mapping[Place, str], form: str) -> bytes:
    """Return the content of the file: hosts by name, then services by host and name."""
    mark = "//" if form == ICINGA2 else "#"
    header = "".join(f"{mark} {line}\n" for line in _HEADER)
    return "".join([header, *(f"\n{blocks[place]}\n" for place in sorted(blocks))]).encode()


def place_of(text: str) -> Place:
    kind, host, service = (pattern.search(text) for pattern in (_KIND, _HOST, _SERVICE))
    word, named = (kind[1].lower(), kind[2] or "") if kind else ("", "")
    if word == "host":
        return word, host[1] if host else named, ""
    return word, host[1] if host else "", service[1] if service else named


def split(content: bytes | None) -> list[tuple[str, str]]:
    """The objects of a file that ``joined`` made, each with the number of its process."""
    blocks = []
    for block_text in (content or b"").decode("utf-8", "replace").split("\n\n"):
        number = _OWNER.search(block_text)
        if number is not None:
            blocks.append((number[1] or number[2], block_text.strip("\n")))
    return blocks


def _object(kind: str, attributes: Mapping[str, str]) -> Iterator[str]:
    name = attributes["host_name" if kind == "host" else "service_description"]
    yield f"object {kind.capitalize()} {_quoted(name)} {{"
    for template in filter(None, map(str.strip, attributes.get("use", "").split(","))):
        yield f"  import {_quoted(template)}"
    for key, value in attributes.items():
        if key == "host_name":
            if kind == "service":
                yield f"  host_name = {_quoted(value)}"
        elif key not in ("use", "service_description", "alias"):
            yield f"  {_attribute(key, value)}"
    yield "}"


def _attribute(key: str, value: str) -> str:
    if key.startswith("_"):
        return f"vars[{_quoted(key[1:])}] = {_quoted(value)}"
    if key in _LISTS:
        members = ", ".join(_quoted(part) for part in value.split(",") if part)
        return f'vars["{_LISTS[key]}"] = [ {members} ]'
    if key in _TEXTS:
        return f'vars["{_TEXTS[key]}"] = {_quoted(value)}'
    if key == "event_handler":
        return f"event_command = {_quoted(value)}"
    if _NUMBER.match(value):
        return f"{key} = {value}{'m' if key.endswith('_interval') else ''}"
    return f"{key} = {_quoted(value)}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def forbidden_characters(config: BpConfig, tool: ConfigTool | None) -> str:
    """Return what the core that reads the objects does not take; nothing where none reads any.

    A Nagios or Naemon says it in its main file, if that is known. Blocks.
    """
    if not config.objects_save_file:
        return ""
    if config.objects_save_format == ICINGA2:
        return "!"
    refusals = (
        setting(tool.core_conf, "illegal_object_name_chars") if tool and tool.core_conf else None
    )
    return ILLEGAL if refusals is None else refusals


def name_problems(definition: ProcessDefinition, illegal: str) -> Iterator[str]:
    """Return what is wrong with the names of the objects that stand for a process."""
    if not illegal:
        return
    at = {node.id: number for number, node in enumerate(definition.nodes)}
    names = [("name", definition.name)]
    for node in definition.exported:
        where = f"nodes[{at[node.id]}]"
        names += [(f"{where}.label", node.label), (f"{where}.host_name", node.host_name)]
    for where, name in names:
        letters = [letter for letter in dict.fromkeys(name) if letter in illegal]
        if letters:
            yield f"{where}: expected none of {' '.join(illegal)} in what is exported, got {name}"


MOST_TRIED = 5
"""Processes that are tried one by one when a core refuses all of them together."""


class ExportFailedError(RestError):
    """The objects did not reach the core."""

    def __init__(self, reason: str) -> None:
        super().__init__("reload command failed", reason.strip())


class ExportRefusedError(ExportFailedError):
    """The check command has something against the objects."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the check command refuses the objects: {reason}")


@frozen
class Refusal:
    """The objects of a process that the check command refused, and why."""

    blocks: Mapping[Place, str]
    reason: str


@define(eq=False, kw_only=True)
class Candidates:
    """All processes, and the file: what it has, how it is written, and what looks at it.

    ``put`` replaces one content by another, and blocks; ``check`` says what a core has against
    the file, None for nothing.
    """

    wanted: Sequence[Exported]
    old: bytes | None
    form: str
    threads: Threads
    put: Callable[[bytes | None, bytes | None], None]
    check: Callable[[], Awaitable[str | None]]
    current: bytes | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.current = self.old

    async def content(self, held: Collection[str]) -> bytes:
        def work() -> bytes:
            blocks: dict[Place, str] = {}
            for process in self.wanted:
                if process.number not in held:
                    # Of two processes with the same object the first counts.
                    blocks = {**process.blocks, **blocks}
            for number, text in split(self.old):
                if number in held:
                    blocks.setdefault(place_of(text), text)
            return joined(blocks, self.form)

        return await self.threads.run(work)

    async def write(self, content: bytes | None) -> None:
        if content != self.current:
            before = self.current
            await self.threads.run(lambda: self.put(before, content))
            self.current = content

    async def tried(self, content: bytes) -> str | None:
        """Write it and say what the check command has against it."""
        await self.write(content)
        return await self.check()

    async def accepted(
        self, refused: Collection[str], writer: str, reason: str
    ) -> dict[str, Refusal]:
        """Write the objects that the check command accepts, and return those that it refuses.

        ``refused`` were refused before and are not tried again, ``writer`` is tried first.
        ``reason`` is its error for all. Raises ExportRefusedError when no process of which
        it sees something new is to blame.
        """
        suspects = {
            suspect.number: suspect
            for suspect in await self._suspects()
            if suspect.number not in refused
        }
        reasons = dict.fromkeys(suspects, reason)
        held = {*refused, *suspects}
        good = await self.content(held)
        if not suspects:
            raise ExportRefusedError(reason)
        if good != self.old:
            without = await self.tried(good)
            if without is not None:
                raise ExportRefusedError(without)
        tried = sorted(suspects, key=lambda number: number != writer) if len(suspects) > 1 else ()
        for number in tried[:MOST_TRIED]:
            content = await self.content(held - {number})
            refusal = await self.tried(content)
            if refusal is None:
                held.remove(number)
                good = content
            else:
                reasons[number] = refusal
        await self.write(good)
        return {
            number: Refusal(refused.blocks, reasons[number])
            for number, refused in suspects.items()
            if number in held
        }

    async def _suspects(self) -> list[Exported]:
        """Return the processes of which the file did not have everything before."""

        def work() -> list[Exported]:
            present = {text for _, text in split(self.old)}
            return [
                process
                for process in self.wanted
                if not present.issuperset(process.blocks.values())
            ]

        return await self.threads.run(work)


_ROOM = "(business processes)"

Load: TypeAlias = Callable[[], Awaitable[Iterable[StoredProcess]]]


@define(eq=False, kw_only=True)
class Exporter:
    """Keeps the file, and has a core read it; ``var_dir`` is the state folder.

    ``left_out`` names live processes that the last export could not have, with the reason.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    threads: Threads
    sites: Sites
    var_dir: Path
    left_out: tuple[str, ...] = field(default=(), init=False)
    _refused: dict[str, Refusal] = field(factory=dict, init=False)

    async def check(self, config: BpConfig) -> DefinitionCheck:
        """A function that refuses a definition that the core would not accept."""
        illegal = await self._illegal(config)

        def check(definition: ProcessDefinition) -> None:
            for problem in name_problems(definition, illegal):
                raise BadRequest("invalid name of an exported object", problem)

        return check

    async def export(
        self, config: BpConfig, app: str, load: Load, writer: int | None = None
    ) -> None:
        """Write the objects of all live processes into the configuration of the core.

        ``load`` is called while no other export writes. What the check command refuses of a
        process is not written: the file keeps what it had of that one until it is changed. Raises
        RestError with the message ``reload command failed`` if one of them is ``writer``, and if
        the core does not read the file, which stays as it is then.
        """
        left_out: tuple[str, ...] = ()
        if config.objects_save_file:
            number = "" if writer is None else str(writer)
            left_out = await shielded(self._export(config, app, load, number))
        for text in left_out:
            if text not in self.left_out:
                self.log.warn("business process not exported: {text}", text=text)
        self.left_out = left_out

    async def _export(self, config: BpConfig, app: str, load: Load, writer: str) -> tuple[str, ...]:
        site, path, run = self._site(config), Path(config.objects_save_file), self.threads.run
        given = environment(
            site=site.id if site else "", name=site.name if site else "", user=f"({app})"
        )
        try:
            room = await run(lambda: SaveRoom.of(self.var_dir, _ROOM))
            with ExitStack() as stack:
                await lock(self.reactor, stack, room, (str(path.parent),))
                wanted, left_out = await self._wanted(config, app, load)
                # What was refused of processes that are others now, or gone, does not count.
                present = {
                    process.number: process.blocks for process in wanted if process.number != writer
                }
                self._refused = {
                    number: refusal
                    for number, refusal in self._refused.items()
                    if present.get(number) == refusal.blocks
                }
                file = Candidates(
                    wanted=wanted,
                    old=await run(lambda: _present(path)),
                    form=config.objects_save_format,
                    threads=self.threads,
                    put=partial(self._put, room, str(path)),
                    check=partial(self._check, site, given),
                )
                checked = False
                if wanted or file.old is not None:
                    checked = await self._write(file, writer)
            # Another process may have written this change, and its reload may have failed.
            read = room.folder / "read"
            current = b"" if file.current is None else f"{digest(file.current)} {path}".encode()
            if current and current != await run(lambda: _present(read)):
                await self._reload(config, site, given, checked=checked)
                await run(lambda: put(read, current))
        except ExportFailedError:
            raise
        except (OSError, RestError, UnwritableError) as error:
            raise ExportFailedError(str(error)) from None
        if writer in self._refused:
            raise ExportRefusedError(self._refused[writer].reason)
        for process in wanted:
            if process.number in self._refused:
                reason = self._refused[process.number].reason.strip()
                left_out.append(f"{process.name} ({process.number}): {reason}")
        return tuple(left_out)

    async def _wanted(
        self, config: BpConfig, app: str, load: Load
    ) -> tuple[list[Exported], list[str]]:
        """Return all live processes, and a line for each that a core would not take."""
        illegal, form = await self._illegal(config), config.objects_save_format
        wanted: list[Exported] = []
        unusable: list[str] = []
        live = [process for process in await load() if not process.draft]

        def work() -> None:
            for process in live:
                problem = process.broken or next(name_problems(process.definition, illegal), "")
                if problem:
                    unusable.append(f"{process.definition.name} ({process.id}): {problem}")
                else:
                    wanted.append(exported(process.id, process.definition, app, form))

        await self.threads.run(work)
        return wanted, unusable

    async def _write(self, file: Candidates, writer: str) -> bool:
        """Write what differs; returns whether it was checked."""
        new = await file.content(self._refused)
        if new == file.old:
            return False
        try:
            reason = await file.tried(new)
            if reason is not None:
                self._refused |= await file.accepted(self._refused, writer, reason)
        except BaseException:
            # A core would not start any more with a file that it refuses.
            await file.write(file.old)
            raise
        return True

    def _put(self, room: SaveRoom, path: str, old: bytes | None, new: bytes | None) -> None:
        change = Write(path=path, base_hash=digest(old), content=new)
        allowed = Writable(folders=(), files=frozenset({path}))
        write(room, (change,), allowed, note={"time": int(self.wall.now())})

    async def _check(self, site: Site | None, given: Mapping[str, str]) -> str | None:
        """The error of the check command of the site; None: the files are accepted."""
        command = _check_command(site)
        if not command:
            return None
        result = await site_commands.run(
            self.reactor, command, given, site_commands.LONGEST_COMMAND
        )
        return result.output if result.failed else None

    async def _reload(
        self, config: BpConfig, site: Site | None, given: Mapping[str, str], *, checked: bool
    ) -> None:
        command = config.objects_reload_cmd
        if site is not None and site.connected:
            work = Reload(
                site=site,
                clock=self.reactor,
                wall=self.wall,
                seconds=2 * site_commands.LONGEST_COMMAND,
                check="" if checked else _check_command(site),
                command=command,
                environment=given,
            )
            done = await work.run()
            failed, output = done.failed, done.output
        elif site is None and command:
            result = await site_commands.run(
                self.reactor, command, given, site_commands.LONGEST_COMMAND
            )
            failed, output = result.failed, result.output
        else:
            # It reads the file when it starts.
            self.log.info(
                "the objects of business processes are written, no core was asked to read them"
            )
            failed, output = False, ""
        if failed:
            raise ExportFailedError(output)

    def _site(self, config: BpConfig) -> Site | None:
        return sole(config.result_backend, self.sites.sites)

    async def _illegal(self, config: BpConfig) -> str:
        site = self._site(config)
        tool = site.config.configtool if site else None
        return await self.threads.run(lambda: forbidden_characters(config, tool))


def _check_command(site: Site | None) -> str:
    tool = site.config.configtool if site else None
    return "" if tool is None else tool.obj_check_cmd


def _present(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportFailedError(f"{path}: {error.strerror}") from None
