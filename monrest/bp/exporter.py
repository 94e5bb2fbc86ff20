"""Putting the objects of all processes into the configuration of a core.

The file is written as a whole, and only if it changes; it has a lock of its own and one on its
folder, so that daemons of one machine do not write what another one has already replaced.

Rules: docs/spec/bp.md, "Export".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, field
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import RestError
from monrest.bp.candidates import Candidates, FailedError, Refusal, RefusedError
from monrest.bp.export import Exported
from monrest.config import BpConfig
from monrest.objectconfig import commands
from monrest.objectconfig.document import UnwritableError
from monrest.objectconfig.hooks import environment
from monrest.objectconfig.journal import Room
from monrest.objectconfig.reload import Commands, reload
from monrest.objectconfig.save import Allowed, Write, write
from monrest.objectconfig.saving import lock
from monrest.objectconfig.targets import digest
from monrest.sites.site import Site

_ROOM = "(business processes)"

Objects = Callable[[], Awaitable[Sequence[Exported]]]


@define(eq=False, kw_only=True)
class Exporter:
    """``var_dir`` is the state folder; ``who`` the name that commands find as that of the user."""

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    threads: Threads
    var_dir: Path
    _unread: bool = field(default=False, init=False)
    """Whether the core has not read the file since it was written."""
    _refused: dict[str, Refusal] = field(factory=dict, init=False)

    async def export(
        self, config: BpConfig, site: Site | None, objects: Objects, who: str, writer: str = ""
    ) -> tuple[str, ...]:
        """Make the file hold these objects, and have ``site`` read it if anything differs.

        ``objects`` is asked while nobody else writes. What the check command refuses of a process
        is not written: the file keeps what it had of that one until it is changed. Gives a line
        for each of these. Raises RestError with the message ``reload command failed`` if one of
        them is ``writer``, and if the core does not read the file, which stays as it is then.
        """
        if not config.objects_save_file:
            return ()
        given = environment(site=site.id if site else "", name=site.name if site else "", user=who)
        try:
            wanted, checked = await self._write(config, site, objects, given, writer)
            if self._unread:
                await self._reload(config, site, given, checked=checked)
        except FailedError:
            raise
        except (RestError, UnwritableError) as error:
            raise FailedError(str(error)) from None
        if writer in self._refused:
            raise RefusedError(self._refused[writer].reason)
        return tuple(
            f"{one.name} ({one.number}): {self._refused[one.number].reason.strip()}"
            for one in wanted
            if one.number in self._refused
        )

    async def _write(
        self,
        config: BpConfig,
        site: Site | None,
        objects: Objects,
        given: Mapping[str, str],
        writer: str,
    ) -> tuple[Sequence[Exported], bool]:
        """Write what differs; give all processes, and whether the file was checked with it."""
        path = Path(config.objects_save_file)
        run = self.threads.run
        room = await run(lambda: Room.of(self.var_dir, _ROOM))
        with ExitStack() as stack:
            await lock(self.reactor, stack, room, (str(path.parent),))
            wanted = await objects()
            self._forget(wanted, writer)
            file = Candidates(
                wanted=wanted,
                old=await run(lambda: _present(path)),
                form=config.objects_save_format,
                threads=self.threads,
                put=partial(self._put, room, str(path)),
                check=partial(self._check, site, given),
            )
            new = await file.content(self._refused)
            if new == file.old or (file.old is None and not wanted):
                return wanted, False
            try:
                reason = await file.tried(new)
                if reason is not None:
                    self._refused |= await file.accepted(self._refused, writer, reason)
            except BaseException:
                # A core would not start any more with a file that it refuses.
                await file.write(file.old)
                raise
            self._unread = self._unread or file.current != file.old
        return wanted, True

    def _forget(self, wanted: Sequence[Exported], writer: str) -> None:
        """Forget what was refused of processes that are others now, or gone."""
        present = {one.number: one.objects for one in wanted if one.number != writer}
        self._refused = {
            number: refusal
            for number, refusal in self._refused.items()
            if present.get(number) == refusal.objects
        }

    def _put(self, room: Room, path: str, old: bytes | None, new: bytes | None) -> None:
        """Replace the whole file; blocks."""
        change = Write(path=path, base_hash=digest(old), content=new)
        allowed = Allowed(folders=(), files=frozenset({path}))
        write(room, (change,), allowed, note={"time": int(self.wall.now())})

    async def _check(self, site: Site | None, given: Mapping[str, str]) -> str | None:
        """What the check command of the site has against its files; None: nothing."""
        command = _check_command(site)
        if not command:
            return None
        result = await commands.run(self.reactor, command, given, commands.LONGEST)
        return result.output if result.failed else None

    async def _reload(
        self, config: BpConfig, site: Site | None, given: Mapping[str, str], *, checked: bool
    ) -> None:
        command = config.objects_reload_cmd
        if site is not None and site.connected:
            check = "" if checked else _check_command(site)
            told = Commands(check=check, reload=command, environment=given)
            done = await reload(site, self.reactor, self.wall, told, seconds=2 * commands.LONGEST)
            failed, output = done.failed, done.output
        elif site is None and command:
            result = await commands.run(self.reactor, command, given, commands.LONGEST)
            failed, output = result.failed, result.output
        else:
            # It reads the file when it starts.
            self.log.info("the objects of business processes are written, no core is told")
            failed, output = False, ""
        self._unread = failed
        if failed:
            raise FailedError(output)


def _check_command(site: Site | None) -> str:
    tool = site.config.configtool if site else None
    return "" if tool is None else tool.obj_check_cmd


def _present(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FailedError(f"{path}: {error.strerror}") from None
