"""Invented plugin output: for each kind of check a text and performance data that fit a state."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from monrest.demo.objects import HOST_STATES, SERVICE_STATES, Host, Target

Output: TypeAlias = tuple[str, str, str]
"""First line, further lines (newlines as backslash and n), performance data."""


def _level(rng: Random, state: int, warning: float, critical: float, top: float) -> float:
    """A number that a plugin with these thresholds would report in this state."""
    spans = ((0.1 * warning, 0.9 * warning), (warning, critical), (critical, top), (0.0, warning))
    low, high = spans[state]
    return rng.uniform(low, high)


def _ping(rng: Random, state: int, _target: Target) -> Output:
    if state == 3:
        return "UNKNOWN - could not resolve the name", "", ""
    rta = _level(rng, state, 100, 500, 900)
    loss = (0, rng.choice((0, 20)), rng.choice((60, 100)))[state]
    word = SERVICE_STATES[state]
    text = f"PING {word} - Packet loss = {loss}%, RTA = {rta:.2f} ms"
    return text, "", f"rta={rta:.6f}ms;100.000000;500.000000;0.000000 pl={loss}%;20;60;0"


def _disk(rng: Random, state: int, target: Target) -> Output:
    mount = target.description.partition(" ")[2] or "/"
    size = 10_000 + sum(map(ord, target.description)) * 50
    used = _level(rng, state, 80, 90, 99.9)
    free = size * (100 - used) / 100
    word = SERVICE_STATES[state]
    perf = f"{mount}={size - free:.0f}MB;{size * 0.8:.0f};{size * 0.9:.0f};0;{size}"
    text = f"DISK {word} - free space: {mount} {free:.0f} MB ({100 - used:.0f}% inode=93%):"
    return text, "", perf


def _load(rng: Random, state: int, _target: Target) -> Output:
    values = [_level(rng, state, limit, limit * 2, limit * 4) for limit in (5.0, 4.0, 3.0)]
    limits = ("5.000;10.000;0;", "4.000;8.000;0;", "3.000;6.000;0;")
    names = ("load1", "load5", "load15")
    perf = " ".join(
        f"{name}={value:.3f};{limit}"
        for name, value, limit in zip(names, values, limits, strict=True)
    )
    shown = ", ".join(f"{value:.2f}" for value in values)
    return f"{SERVICE_STATES[state]} - load average: {shown}", "", perf


def _memory(rng: Random, state: int, _target: Target) -> Output:
    used = _level(rng, state, 80, 95, 99.9)
    perf = f"mem_used={used:.1f}%;80;95;0;100 swap_used={rng.uniform(0, 20):.1f}%;;;0;100"
    lines = "cached: 1893 MB\\nbuffers: 211 MB\\nshared: 96 MB"
    return f"MEMORY {SERVICE_STATES[state]} - {used:.1f}% used", lines, perf


def _http(rng: Random, state: int, _target: Target) -> Output:
    if state == 3:
        return "HTTP UNKNOWN - Name or service not known", "", ""
    seconds = _level(rng, state, 1, 3, 10)
    answer = ("200 OK", "200 OK", "503 Service Unavailable")[state]
    size = rng.randrange(2_000, 60_000)
    word = SERVICE_STATES[state]
    text = f"HTTP {word}: HTTP/1.1 {answer} - {size} bytes in {seconds:.3f} second response time"
    return text, "", f"time={seconds:.6f}s;1.000000;3.000000;0.000000 size={size}B;;;0"


def _users(rng: Random, state: int, _target: Target) -> Output:
    number = int(_level(rng, state, 5, 10, 25))
    text = f"USERS {SERVICE_STATES[state]} - {number} users currently logged in"
    return text, "", f"users={number};5;10;0"


def _processes(rng: Random, state: int, _target: Target) -> Output:
    number = int(_level(rng, state, 250, 400, 900))
    text = f"PROCS {SERVICE_STATES[state]}: {number} processes"
    return text, "", f"procs={number};250;400;0;"


def _traffic(rng: Random, state: int, _target: Target) -> Output:
    received, sent = (_level(rng, state, 80e6, 95e6, 100e6) for _ in range(2))
    perf = (
        f"'in traffic'={received:.0f}B;80000000;95000000;0;100000000 "
        f"'out traffic'={sent:.0f}B;80000000;95000000;0;100000000"
    )
    word = SERVICE_STATES[state]
    text = f"INTERFACE {word} - in {received / 1e6:.1f} MB/s, out {sent / 1e6:.1f} MB/s"
    return text, "", perf


def _temperature(rng: Random, state: int, _target: Target) -> Output:
    degrees = _level(rng, state, 28, 35, 48)
    return (
        f"TEMPERATURE {SERVICE_STATES[state]} - {degrees:.1f} °C",
        "",
        f"temperature={degrees:.1f};28;35",
    )


def _backup(rng: Random, state: int, _target: Target) -> Output:
    hours = _level(rng, state, 26, 50, 200)
    text = f"BACKUP {SERVICE_STATES[state]} - last backup {hours:.0f} hours ago"
    return text, "", f"age={hours * 3600:.0f}s;93600;180000;0"


def _generic(rng: Random, state: int, target: Target) -> Output:
    word = SERVICE_STATES[state]
    value = _level(rng, state, 70, 90, 100)
    return f"{word} - {target.description} at {value:.1f}%", "", f"value={value:.1f}%;70;90;0;100"


_PLUGINS: dict[str, Callable[[Random, int, Target], Output]] = {
    "ping": _ping,
    "disk": _disk,
    "load": _load,
    "mem": _memory,
    "http": _http,
    "user": _users,
    "proc": _processes,
    "traffic": _traffic,
    "interface": _traffic,
    "temp": _temperature,
    "backup": _backup,
}


def _host(rng: Random, state: int, _host: Host) -> Output:
    if state:
        word = HOST_STATES[min(state, 2)]
        lines = "" if state == 1 else "no way through the hosts before it"
        perf = "rta=0.000ms;3000.000;5000.000;0; pl=100%;80;100;;"
        return f"CRITICAL - {word}: no answer, lost 100%", lines, perf
    rta = rng.uniform(0.02, 40)
    perf = f"rta={rta:.3f}ms;3000.000;5000.000;0; pl=0%;80;100;;"
    return f"OK - rta {rta:.3f}ms, lost 0%", "", perf


def output_of(rng: Random, target: Target, state: int) -> Output:
    """Invent the output of a check of a target that ends in a state."""
    if isinstance(target, Host):
        return _host(rng, state, target)
    command = target.check_command.split("!")[0]
    for word, plugin in _PLUGINS.items():
        if word in command:
            return plugin(rng, state, target)
    return _generic(rng, state, target)
