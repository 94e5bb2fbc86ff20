"""Doors through which only the reactor's thread may go, watched in every daemon that is forked.

Threads work on what they were given and touch nothing else. One that goes through a door fails, and its
daemon's log says so, for which the harness looks at the end of each daemon.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading

STRAY = "not on the reactor's thread: "

DOORS = {
    "monrest.sites.site:Site": "ask query verdict broken learn_order within problem",
    "monrest.sites.registry:Registry": "select permitted acting configure startService stopService",
    "monrest.sites.health:Breaker": "verdict hear failed suspect slow",
    "monrest.sites.inflight:InFlight": "run wait over end",
    "monrest.livestatus.pool:Pool": "query keep retire stop",
    "monrest.livestatus.command_channel:CommandChannel": "transmit keep end stop",
    "monrest.livestatus.inbox:Inbox": "admit begin_work end_work let_go",
    "monrest.base.room:RowRoom": "share turn configure give_back",
    "monrest.base.room:Share": "admit release",
    "monrest.base.concurrency:Threads": "run stoppable",
    "monrest.store.database:Database": "run change",
    "monrest.api.dispatch:Dispatch": "__call__",
    "monrest.web.respond:Responder": "answer error",
}


def watched(door, name):
    """The same function, which raises in any thread but the main one, where the reactor is."""

    @functools.wraps(door)
    def through(*arguments, **named):
        if threading.current_thread() is not threading.main_thread():
            sys.stderr.write(f"{STRAY}{name}\n")
            raise AssertionError(STRAY + name)
        return door(*arguments, **named)

    return through


def services():
    """Every service of the daemon, with its doors."""
    from twisted.application.service import Service

    found, waiting = [], [Service]
    while waiting:
        for one in waiting.pop().__subclasses__():
            waiting.append(one)
            if one.__module__.startswith("monrest."):
                found.append(one)
    return found


def watch():
    """Watch all doors of what is imported."""
    for place, names in DOORS.items():
        module, _, kind = place.partition(":")
        owner = getattr(importlib.import_module(module), kind)
        for name in names.split():
            setattr(owner, name, watched(vars(owner)[name], f"{kind}.{name}"))
    for owner in services():
        for name in {"startService", "stopService", "configure"}.intersection(vars(owner)):
            if not hasattr(vars(owner)[name], "__wrapped__"):
                setattr(owner, name, watched(vars(owner)[name], f"{owner.__name__}.{name}"))
