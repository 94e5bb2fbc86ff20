"""Gathering of facts about a node: by a command, or on this host itself.

A command gets in ``MON_GATHER`` what is wanted, ``runtime`` (what changes by the minute) or
``facts`` (everything), and in ``MON_NODE`` the node. It prints one JSON object with as many of the
documented keys as it knows and with any others, and ends with status 0.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import psutil
from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred

from monrest import __version__
from monrest.base import processes
from monrest.base.concurrency import Shared, Threads
from monrest.nodecontrol.model import GatherError, GatherKind, facts_of

_SAMPLE = 0.5
"""Seconds over which the load of the processors is measured."""

_OS_RELEASE = (Path("/etc/os-release"), Path("/usr/lib/os-release"))
_MEGABYTE = 1024 * 1024
_INSTALLED = re.compile(r"^Inst (\S+) (?:\[[^\]]*\] )?\(([^)]*)\)", re.MULTILINE)
_UPDATE = re.compile(r"^([^\s.]\S*)\.[a-z0-9_]+[ \t]+[0-9]\S*[ \t]+\S+[ \t]*$", re.MULTILINE)
_ADVISORY = re.compile(
    r"^\S+[ \t]+\S+[ \t]+(\S+?)-[^-\s]+-[^-\s]+\.[a-z0-9_]+[ \t]*$", re.MULTILINE
)
_UPDATES_COMING = 100


@frozen
class NodeFacts:
    """``data`` as documented; ``problem`` is why some of it is missing, empty without any."""

    data: Mapping[str, Any]
    problem: str = ""


Gatherer: TypeAlias = Callable[[GatherKind], Coroutine[Deferred[Any], Any, NodeFacts]]
"""Learns about one node, or raises GatherError. Cancelling ends everything that was started."""


async def ask_command(
    reactor: Any, threads: Threads, site: str, command: str, seconds: float, what: GatherKind
) -> NodeFacts:
    """The facts that ``command`` prints about the node of ``site``, run by a shell."""
    environment = {"MON_GATHER": what, "MON_NODE": site}
    ended = await processes.run(reactor, processes.shell(command), environment, seconds)
    if reason := ended.reason():
        raise GatherError(reason)
    if ended.dropped:
        raise GatherError(f"expected at most {processes.MOST_OUTPUT} bytes of output")
    return NodeFacts(await threads.run(lambda: facts_of(ended.out)))


def os_release(text: str) -> tuple[str, str]:
    """Read name and version of the system from ``/etc/os-release``."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.startswith("#"):
            try:
                values[key.strip()] = " ".join(shlex.split(value))
            except ValueError:  # quotes that do not end
                continue
    return values.get("NAME", ""), values.get("VERSION_ID", "")


def apt_updates(text: str) -> tuple[list[str], list[str]]:
    """Read all updates, and those for security, from a simulated upgrade of apt-get."""
    installed = _INSTALLED.findall(text)
    security = {name for name, source in installed if "security" in source.lower()}
    return sorted({name for name, _ in installed}), sorted(security)


def dnf_updates(text: str) -> list[str]:
    """Read the names from a list of updates of dnf or yum, without what is made obsolete."""
    return sorted(set(_UPDATE.findall(text.partition("\nObsoleting")[0])))


def dnf_advisories(text: str) -> list[str]:
    """Read the names from a list of advisories of dnf or yum."""
    return sorted(set(_ADVISORY.findall(text)))


def full_name(host: str, resolve: Callable[..., Sequence[Any]]) -> str:
    """Return the name of a host with its domain, as the resolver has it; else the host's own.

    ``resolve`` is ``getaddrinfo``. Where the own name is only an alias of localhost, that says
    nothing about the host.
    """
    try:
        addresses = resolve(host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return host
    name = next((str(address[3]) for address in addresses if address[3]), host)
    return host if name.partition(".")[0] == "localhost" else name


async def _awaited(work: Awaitable[NodeFacts]) -> NodeFacts:
    return await work


@frozen
class _Sources:
    """The sources of facts; ``missing`` has the reason of each that could not be read."""

    missing: list[str] = field(factory=list)

    def read(self, source: str, reading: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The facts of a source; none, and a reason, where the system does not tell them."""
        try:
            return reading()
        except OSError as error:
            self.missing.append(f"{error.filename or source}: {error.strerror or error}")
        except (LookupError, TypeError, ValueError):  # of psutil, for what it does not expect
            self.missing.append(f"{source}: unknown format")
        return {}


@define(eq=False, kw_only=True)
class LocalHost:
    """The host of this daemon as one gathering finds it: asked once, for all sites on it.

    ``folder`` is on the disk whose size is measured. The package manager gets ``seconds`` for its
    lists; ``find`` says where a program is.
    """

    reactor: Any
    threads: Threads
    folder: str
    seconds: float
    find: Callable[[str], str | None] = shutil.which
    _asked: dict[GatherKind, tuple[Shared[NodeFacts], Deferred[NodeFacts]]] = field(
        factory=dict, init=False
    )
    _waiting: Counter[GatherKind] = field(factory=Counter, init=False)

    async def ask(self, core_down: Callable[[], bool], what: GatherKind) -> NodeFacts:
        """The node of a core on this host; see ``Gatherer``. Never fails."""
        learned = await self.learn(what)
        down = int(core_down())
        status = {"core": down, "monrest": 0, "OVERALL": down}
        return evolve(learned, data={**learned.data, "dist_status": status})

    async def learn(self, what: GatherKind) -> NodeFacts:
        """Facts, once for all callers; when the last caller leaves, everything is ended."""
        if what not in self._asked:
            shared: Shared[NodeFacts] = Shared()
            self._asked[what] = (shared, Deferred.fromCoroutine(self._learn(what)))
            shared.run(_awaited(self._asked[what][1]), lambda: None)
        shared, doing = self._asked[what]
        self._waiting[what] += 1
        try:
            return await shared.wait()
        finally:
            self._waiting[what] -= 1
            if not self._waiting[what]:
                doing.cancel()

    async def _learn(self, what: GatherKind) -> NodeFacts:
        sources = _Sources()
        data = await self.threads.run(lambda: self._runtime(sources))
        if what == "facts":
            data |= await self.threads.run(lambda: self._facts(sources))
            data |= await self._machine(sources)
            data |= await self._updates(sources)
        return NodeFacts(data, "; ".join(sources.missing))

    def _runtime(self, sources: _Sources) -> dict[str, Any]:
        """The facts that change by the minute, measured in a thread; an unknown one is never 0."""

        def processors() -> Mapping[str, float]:
            return {"cpu_perc": psutil.cpu_percent(_SAMPLE)}

        def memory() -> Mapping[str, int]:
            usage = psutil.virtual_memory()
            return {"memtotal": usage.total // _MEGABYTE, "memfree": usage.available // _MEGABYTE}

        def disk() -> Mapping[str, int]:
            usage = psutil.disk_usage(self.folder)
            return {"dist_disk_free": usage.free, "dist_disk_total": usage.total}

        return {
            **sources.read("processors", processors),
            **sources.read("memory", memory),
            **sources.read("disk", disk),
        }

    def _facts(self, sources: _Sources) -> dict[str, Any]:
        def system() -> Mapping[str, str]:
            path = next(
                (candidate for candidate in _OS_RELEASE if candidate.is_file()), _OS_RELEASE[0]
            )
            name, version = os_release(path.read_text(errors="replace"))
            return {"os_name": name, "os_version": version}

        return {
            "cm_fqdn": full_name(socket.gethostname(), socket.getaddrinfo),
            "cpu_cores": len(os.sched_getaffinity(0)),
            "dist_version": __version__,
            "dist_versions": [__version__],
            "kernel": os.uname().release,
            **sources.read("operating system", system),
        }

    async def _run(self, *arguments: str) -> processes.Ended:
        return await processes.run(self.reactor, arguments, {"LC_ALL": "C"}, self.seconds)

    async def _machine(self, sources: _Sources) -> Mapping[str, str]:
        """The kind of guest that the host is, empty if it is none."""

        def processor() -> Mapping[str, str]:
            flags = Path("/proc/cpuinfo").read_text(errors="replace")
            guest = re.search(r"^flags\b.*\bhypervisor\b", flags, re.MULTILINE)
            return {"machine_type": "virtual" if guest else ""}

        program = self.find("systemd-detect-virt")
        if program is None:
            return await self.threads.run(lambda: sources.read("/proc/cpuinfo", processor))
        kind = (await self._run(program)).out.decode("ascii", "replace").strip()
        return {"machine_type": "" if kind == "none" else kind}

    async def _updates(self, sources: _Sources) -> Mapping[str, list[str]]:
        """Updates of the system, where a package manager lists them."""
        if (program := self.find("apt-get")) is not None:
            ended = await self._run(program, "-s", "-o", "Debug::NoLocking=true", "upgrade")
            if reason := ended.reason():
                sources.missing.append(f"{program}: {reason}")
                return {}
            updates, security = apt_updates(ended.out.decode("utf-8", "replace"))
            return {"os_security": security, "os_updates": updates}
        program = self.find("dnf") or self.find("yum")
        if program is None:
            sources.missing.append("os_updates: expected apt-get, dnf or yum")
            return {}
        ended = await self._run(program, "-q", "check-update")
        if ended.status not in (0, _UPDATES_COMING):
            sources.missing.append(f"{program}: {ended.reason()}")
            return {}
        facts = {"os_updates": dnf_updates(ended.out.decode("utf-8", "replace"))}
        advisories = await self._run(program, "-q", "updateinfo", "list", "security")
        if reason := advisories.reason():
            sources.missing.append(f"{program}: {reason}")
            return facts
        security = dnf_advisories(advisories.out.decode("utf-8", "replace"))
        return {**facts, "os_security": security}
