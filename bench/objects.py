"""Lines about object files: reading those of a large site, against tokenising the same bytes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.clients import BrokenRunError
from bench.lines import in_turns
from bench.report import Line, times
from monrest.objectconfig.document import ConfigFile

ROUNDS = 7

_HOST = """\
# Host {host}, rack {rack}.
define host {{
    use                     generic-host
    host_name               host-{host:05}
    alias                   Host number {host}
    address                 10.0.{high}.{low}
    parents                 router-{rack:02}
    hostgroups              rack-{rack:02},linux  ; moves with the host
    _RACK                   {rack}
}}

"""
_SERVICE = """\
define service {{
    use                     generic-service
    host_name               host-{host:05}
    service_description     Check {number:02}
    check_command           check_nrpe!check_{number}!80!90{comment}
    servicegroups           group-{group}
    contact_groups          admins,operators
    notes_url               https://wiki.example.org/checks/{number}?host={host}
    _LEVEL                  {group}
}}

"""


def write_site(folder: Path, hosts: int, services: int) -> list[Path]:
    """Object files of that many hosts and services, one for each host with its services."""
    most, rest = divmod(services, max(hosts, 1))
    paths = []
    for host in range(hosts):
        high, low = host // 250, host % 250 + 1
        text = [_HOST.format(host=host, high=high, low=low, rack=host % 40)]
        for number in range(most + (host < rest)):
            comment = "" if number % 5 else "  ; watched closely"
            text.append(
                _SERVICE.format(host=host, number=number, group=number % 7, comment=comment)
            )
        path = folder / f"host-{host:05}.cfg"
        path.write_text("".join(text))
        paths.append(path)
    return paths


def parsing(folder: Path, hosts: int, services: int) -> Iterator[Line]:
    """All files of a site as documents that can be changed, against their words line by line."""
    folder = folder / "objects"
    folder.mkdir()
    paths = write_site(folder, hosts, services)

    def ours() -> list[ConfigFile]:
        return [ConfigFile.parse(str(path), path.read_bytes()) for path in paths]

    def limit() -> list[list[list[str]]]:
        return [
            [line.split(None, 1) for line in path.read_bytes().decode().split("\n")]
            for path in paths
        ]

    files = ours()
    found = sum(len(file.blocks) for file in files)
    attributes = sum(len(block.attributes) for file in files for block in file.blocks)
    if (found, attributes) != (hosts + services, 7 * hosts + 8 * services):
        raise BrokenRunError(f"parsing: {found} objects with {attributes} attributes were read")
    if any(file.problems or file.data() != Path(file.path).read_bytes() for file in files):
        raise BrokenRunError("parsing: a file is not written as it was read")
    del files
    took, words = in_turns(_timed(ours), _timed(limit), ROUNDS)
    what = f"parsing the object files of {hosts} hosts and {services} services"
    yield times(what, took, words, 3, beside=" reading and tokenising")


def _timed(work: Callable[[], object]) -> Callable[[], float]:
    """Seconds that ``work`` takes, with the garbage collector that a daemon has."""

    def run() -> float:
        gc.collect()
        gc.enable()
        started = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
        gc.disable()
        del result
        return seconds

    return run
