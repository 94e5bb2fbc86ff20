"""Operations on a column that a core may be sent: the one declaration (docs/spec/livestatus.md).

Every core may be asked for the value of a column. Whether it may also filter, group, aggregate
or sort by it depends on two things: some columns end a Naemon, and others are compared by a kind of
core in a way that would change an answer. The first is ``harmless``, which the builder of requests
checks as well; both together are ``uses``, which the planner goes by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from monrest.base.values import Capabilities
from monrest.query.model import CoreFilter, Group, Test, conjuncts

Use: TypeAlias = Literal["filter", "group", "stats", "sort"]
"""A Filter line or a counting Stats line, a column beside Stats, a Stats function, a Sort line."""

COUNTERS = (
    "connections",
    "forks",
    "host_checks",
    "livecheck_overflows",
    "livechecks",
    "log_messages",
    "neb_callbacks",
    "requests",
    "service_checks",
)
"""Counters of a core since its start, each with a column ``…_rate`` per second."""

_ONLY_READ = (
    ("status", re.compile(rf"(?:{'|'.join(COUNTERS)})(?:_rate)?")),
    # A variable without a value is a null pointer there, which only a filter follows.
    ("", re.compile(r"(?:\w+_)?custom_variable_values")),
    # A text in an LMD, which ends when it adds it up, and finds 10 before 9.
    ("contacts", re.compile("id")),
)
"""Table ("" for all of them) and columns that a core only ever gets in a Columns line."""

MOST_WHOLE = 2**31 - 1
"""The greatest whole number that every core reads; a Naemon takes 4294967296 for 0."""

LOOKED_UP = frozenset({("services", "host_name")})
"""Table and column whose ``!=`` a Naemon answers with no row at all, outside of an Or: it looks the
host up that must not be. The negation of ``=`` is understood."""

TELLS_EMPTY = frozenset(
    {
        *(("hosts", name) for name in ("groups", "parents", "childs")),
        *(("services", name) for name in ("groups", "host_groups")),
    }
)
"""Table and list of which a core says rightly whether it is empty. Of ``custom_variable_names``, of
``host_contacts``, of the exceptions of time periods and of lists that are joined to comments, a
Naemon takes any row or none."""

_COMPARED_RAW = re.compile(r"(?:\w+_)?(?:notes|notes_url|action_url|icon_image)_expanded")
"""Columns that a Naemon answers with their macros replaced, and compares with these in them."""

_NEVER_ASKED = frozenset({"statehist"})

_EVERYTHING: frozenset[Use] = frozenset({"filter", "group", "stats", "sort"})
_NOTHING: frozenset[Use] = frozenset()


@lru_cache(maxsize=4096)
def harmless(table: str, column: str) -> bool:
    """Whether a core survives and answers any line about the column, not only a Columns line."""
    return not any(
        only in ("", table) and columns.fullmatch(column) for only, columns in _ONLY_READ
    )


def asked(table: str) -> bool:
    return table not in _NEVER_ASKED


def bounded(tree: CoreFilter | None) -> bool:
    """Whether a filter of the log has a lower bound on time that every core understands.

    It must not stand inside an Or: cores make an intersection of the bounds in there.
    """
    return any(
        isinstance(conjunct, Test) and conjunct.column == "time" and conjunct.op in ("=", ">", ">=")
        for conjunct in conjuncts(() if tree is None else (tree,))
    )


@lru_cache(maxsize=8192)
def uses(capabilities: Capabilities, table: str, column: str) -> frozenset[Use]:
    """The operations of the core on a column that change no answer.

    ``filter`` says that operators of the column's type may be sent, not that each of them may.
    """
    core_type = capabilities.tables.get(table, {}).get(column)
    if core_type is None or not harmless(table, column):
        return _NOTHING
    columns = set(_EVERYTHING)
    if core_type in ("list", "dict", "float") or not capabilities.sorts:
        columns.discard("sort")
    if core_type not in ("string", "int", "time"):
        columns.discard("group")
    if core_type not in ("int", "time"):
        columns.discard("stats")
    pending = column in PENDING_COLUMNS
    if capabilities.icinga2:
        compares = (pending and table != "log") or (
            (table, column) != _EMPTY_THERE and column in _ICINGA_FILTERS.get(core_type, ())
        )
    else:
        # These have no words for conditions on one custom variable.
        compares = core_type != "dict" or capabilities.kind not in ("shinken", "rest")
    if not compares or _COMPARED_RAW.fullmatch(column):
        # What a core does not compare as we do it does not sort as we do either.
        columns -= {"filter", "sort"}
    if capabilities.icinga2 and pending:
        columns.discard("sort")
    if capabilities.icinga2 and (column not in _ICINGA_GROUPS or table == "log"):
        columns -= {"group", "stats"}
    return frozenset(columns)


_EMPTY_THERE = ("log", "host_name")
"""Null in Icinga 2 for the lines of hosts; the rows are completed after they have arrived."""
_ICINGA_GROUPS = frozenset({"name", "host_name", "description", "has_been_checked"})
_ICINGA_NUMBERS = frozenset(
    {
        "has_been_checked",
        "active_checks_enabled",
        "accept_passive_checks",
        "notifications_enabled",
        "event_handler_enabled",
        "flap_detection_enabled",
        "acknowledged",
        "is_flapping",
        "scheduled_downtime_depth",
        "max_check_attempts",
        "entry_time",
        "class",
    }
)
_ICINGA_FILTERS: dict[str, frozenset[str]] = {
    "string": frozenset(
        {"name", "host_name", "description", "service_description", "address", "host_address"}
        | {"author", "type", "message"}
    ),
    "int": _ICINGA_NUMBERS,
    "time": _ICINGA_NUMBERS,
    "list": frozenset(
        {"groups", "host_groups", "service_groups", "contacts", "host_contacts"}
        | {"service_contacts"}
    ),
}
"""Core type to the columns that an Icinga 2 compares as a Naemon does."""


# In an Icinga 2 a pending host is down and a pending service unknown, of a soft state; in the API
# both have state 0 and a hard state (docs/spec/icinga2.md, "Values").
_WHILE_PENDING: Mapping[str, str] = {"state": "0", "host_state": "0", "state_type": "1"}

PENDING_COLUMNS = frozenset(_WHILE_PENDING)
"""The columns that mean something else while an object is pending."""


def in_icinga(test: Test) -> CoreFilter | None:
    """The condition for an Icinga 2 for a test of one of ``PENDING_COLUMNS``; None: it has none.

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
