"""States of objects that were never checked, in the words of an Icinga 2.

There a pending host is down and a pending service unknown, of a soft state; in the API both have
state 0 and a hard state (docs/spec/icinga2.md, "Values").
"""

from __future__ import annotations

from collections.abc import Mapping

from monrest.query.model import CoreFilter, Group, Test

_WHILE_PENDING: Mapping[str, str] = {"state": "0", "host_state": "0", "state_type": "1"}

COLUMNS = frozenset(_WHILE_PENDING)
"""The columns that mean something else while an object is pending."""


def in_icinga(test: Test) -> CoreFilter | None:
    """What to ask an Icinga 2 for a test of one of ``COLUMNS``; None where it has no words for it.

    ``test`` compares with a whole number.
    """
    prefix = "host_" if test.column.startswith("host_") else ""
    checked = Test(f"{prefix}has_been_checked", "=", "1")
    pending = Test(f"{prefix}has_been_checked", "=", "0")
    holds_while_pending = test.value == _WHILE_PENDING[test.column]
    if test.op == "!=":
        holds_while_pending = not holds_while_pending
    elif test.op != "=":
        return None
    return Group("or", (pending, test)) if holds_while_pending else Group("and", (checked, test))
