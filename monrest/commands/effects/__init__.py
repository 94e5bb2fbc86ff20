"""How to see in a core that a command had its effect, declared for every command.

Cores acknowledge a command before it acts, and most say nothing at all; what they show afterwards
is in their tables (docs/spec/commands.md, "Effects").
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from monrest.base.values import Capabilities
from monrest.commands.effects.entries import comments, downtimes
from monrest.commands.effects.event_effects import checks, logged, process
from monrest.commands.effects.icinga2 import UNKNOWN_TO_ICINGA2
from monrest.commands.effects.model import Effect, ReadEffect, SentCommand, Unseen
from monrest.commands.effects.switches import settings, switches
from monrest.livestatus.catalogue import Command, CommandKind
from monrest.livestatus.command import Target
from monrest.query.model import columns_of

__all__ = ["READINGS", "UNKNOWN_TO_ICINGA2", "Effect", "Unseen", "expected"]

READINGS: Mapping[tuple[CommandKind, str], ReadEffect] = {
    (kind, name): reading
    for kind, name, reading in chain(
        switches(), settings(), comments(), downtimes(), checks(), logged(), process()
    )
}
"""Kind and name of every command to how its effect is read back."""


def expected(
    command: Command,
    target: Target,
    arguments: Mapping[str, str],
    now: float,
    core: Capabilities | None = None,
    ids: tuple[int, ...] = (),
) -> Effect | Unseen:
    """What to look for after ``command`` was sent with ``arguments`` (those of ``parse``).

    ``now`` is the time of the request in Unix time, ``core`` what the site can do (None: a
    Naemon). ``ids`` are the comments or downtimes found for a command resolved by lookup.
    """
    if core is not None and core.icinga2 and command.core_name in UNKNOWN_TO_ICINGA2:
        return Unseen("Icinga 2 does not know this command")
    sent = SentCommand(
        command=command, target=target, arguments=arguments, now=now, core=core, ids=ids
    )
    found = READINGS[command.kind, command.name](sent)
    if core is None or isinstance(found, Unseen):
        return found
    for column in (*found.columns, *columns_of(found.filter)):
        if not core.has(found.table, column):
            return Unseen(f"the core has no column {column} in its table {found.table}")
    return found
