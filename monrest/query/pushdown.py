"""The part of a bound filter that a core can evaluate without changing the answer.

Livestatus cores differ from each other and from the API's own rules. Which columns they may
compare at all is declared in ``sendable``. A condition is pushed when the core keeps at least
every row that the local rule keeps; ``exact`` says that it keeps no other row either. A condition
that is not exact is evaluated here again.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from monrest.base.values import Capabilities
from monrest.query.bind import Check, CheckTree
from monrest.query.column_names import CoreSource, Variable, View, secret
from monrest.query.model import CoreFilter, Group, Test, columns_of, joined
from monrest.query.regex import pushability
from monrest.query.scalars import number_of
from monrest.query.sendable import MOST_WHOLE, PENDING_COLUMNS, TELLS_EMPTY, in_icinga, uses

_MOST_LMD_LINES = 900
"""An LMD refuses more than 1000 lines, those of statistics and of visibility included."""
_LONGEST_OPERAND = 10_000
"""Letters of the longest operand that is sent; a line of a request has room for 65,536 bytes."""
_NEGATIVE = {"!=": "=", "!~": "~", "!~~": "~~"}

# The core prints floats with ten digits after the first, so a value read back may differ from
# the one that the core compares by half of the last digit; the pushed bound is that much wider.
_SLACK = 1e-9


@frozen
class Pushable:
    """A core filter that keeps every row the tree keeps, None for "all rows"."""

    filter: CoreFilter | None
    exact: bool


NOTHING = Pushable(None, exact=False)


def push_all(
    trees: Iterable[CheckTree], table: str, capabilities: Capabilities, view: View
) -> Pushable:
    """The conditions that can be pushed, of conditions joined by ``and``."""
    whole = _join("and", [_push(tree, table, capabilities, view) for tree in trees])
    if capabilities.kind == "lmd" and sum(1 for _ in columns_of(whole.filter)) > _MOST_LMD_LINES:
        return NOTHING
    return whole


def both(first: CoreFilter | None, second: CoreFilter | None) -> CoreFilter | None:
    """Both filters hold; None is no restriction."""
    return joined("and", (tree for tree in (first, second) if tree is not None))


def _push(tree: CheckTree, table: str, capabilities: Capabilities, view: View) -> Pushable:
    if isinstance(tree, Group):
        return _join(
            tree.connector, [_push(item, table, capabilities, view) for item in tree.items]
        )
    source = tree.source
    if table == "log" and isinstance(source, CoreSource) and source.name == "time":
        # Time bounds decide which files a core reads; inside an or they become an intersection
        # there, so only the plain ones are pushed, by the caller.
        return NOTHING
    if isinstance(source, Variable):
        return _push_variable(tree, source, table, capabilities, view)
    if not isinstance(source, CoreSource) or "filter" not in uses(capabilities, table, source.name):
        return NOTHING
    if view.masks(source.name):
        return _push_cut(tree, source)
    if capabilities.icinga2 and source.name in PENDING_COLUMNS and table != "log":
        return _push_icinga_state(tree, source)
    if source.core_type == "list":
        return _push_list(tree, source, table)
    if source.core_type == "string":
        return _push_text(tree, source)
    if source.core_type in ("int", "time"):
        return _push_integer(tree, source)
    return _push_float(tree, source) if source.core_type == "float" else NOTHING


@frozen(kw_only=True)
class LogTimes:
    """Top-level bounds on the time of log lines, as the core gets them.

    ``lowest`` is the lowest moment wanted, None without a lower bound; ``rest`` are the checks
    that these bounds do not fully express.
    """

    tests: tuple[Test, ...]
    lowest: int | None
    rest: tuple[CheckTree, ...]

    @property
    def first(self) -> int:
        """The first second that lines may have."""
        return earliest(self.rest) if self.lowest is None else self.lowest

    @property
    def highest(self) -> int | None:
        """The second before which all lines are; None without an upper bound."""
        ends = [
            int(test.value) + (test.op != "<") for test in self.tests if test.op in ("<", "<=", "=")
        ]
        return min(ends, default=None)


def push_log_times(trees: Iterable[CheckTree]) -> LogTimes:
    """The bounds on time among conditions that all have to hold."""
    tests: list[Test] = []
    rest: list[CheckTree] = []
    lowest: int | None = None
    for tree in trees:
        number = number_of(tree.operand) if isinstance(tree, Check) else None
        if (
            not isinstance(tree, Check)
            or number is None
            or not isinstance(tree.source, CoreSource)
            or tree.source.name != "time"
            or tree.condition.op not in (">", "<", ">=", "<=", "=")
        ):
            rest.append(tree)
            continue
        op = tree.condition.op
        # Log times are whole seconds; a fraction is widened outwards and checked here again.
        # Icinga 2 closes the connection at a number that it cannot hold.
        within = min(max(number, 0), MOST_WHOLE)
        bound = int(within) if op in (">", ">=", "=") else -int(-within // 1)
        if bound == number:
            tests.append(Test("time", op, str(bound)))
        elif op != "=":
            tests.append(Test("time", op[0] + "=", str(bound)))
            rest.append(tree)
        else:
            rest.append(tree)
            continue
        if op in (">", ">=", "="):
            lowest = bound if lowest is None else max(lowest, bound)
    return LogTimes(tests=tuple(tests), lowest=lowest, rest=tuple(rest))


def earliest(trees: Iterable[CheckTree]) -> int:
    """The first second that lines may have which match all of these checks; 0 if any may."""
    return max((_since(tree) for tree in trees), default=0)


def _since(tree: CheckTree) -> int:
    if isinstance(tree, Group):
        if tree.connector == "and":
            return earliest(tree.items)
        return min((_since(item) for item in tree.items), default=0)
    number = number_of(tree.operand)
    if not isinstance(tree.source, CoreSource) or tree.source.name != "time" or number is None:
        return 0
    return int(min(max(number, 0), MOST_WHOLE)) if tree.condition.op in (">", ">=", "=") else 0


def _join(connector: str, parts: list[Pushable]) -> Pushable:
    exact = all(part.exact for part in parts)
    filters = [part.filter for part in parts]
    if connector == "and":
        return Pushable(joined("and", (tree for tree in filters if tree is not None)), exact)
    if not parts:
        return Pushable(None, exact=True)
    kept = tuple(tree for tree in filters if tree is not None)
    if len(kept) < len(filters):
        # One branch is true for every row, or cannot be expressed: the core must keep them all.
        return Pushable(None, exact)
    return Pushable(joined("or", kept), exact)


def _clean(text: str) -> bool:
    """Whether a core reads the operand as it was sent: spaces at its ends would be cut off.

    A very long one would cost the connection. Characters beyond U+FFFF arrive changed in a core's
    JSON, and control characters never leave.
    """
    return (
        len(text) <= _LONGEST_OPERAND
        and text == text.strip()
        and all(" " <= letter <= "\uffff" for letter in text)
        and "\x7f" not in text
    )


def _push_text(check: Check, source: CoreSource) -> Pushable:
    op, value = check.condition.op, check.condition.value
    if not _clean(value):
        return NOTHING
    if op in ("=", "!="):
        return Pushable(Test(source.name, op, value), exact=True)
    if op in ("~", "!~", "~~", "!~~"):
        how = pushability(value, ignore_case=op.endswith("~~"))
        if how == "exact":
            return Pushable(Test(source.name, op, value), exact=True)
        if how == "wider" and op not in _NEGATIVE:
            return Pushable(Test(source.name, op, value), exact=False)
    return NOTHING


def _push_cut(check: Check, source: CoreSource) -> Pushable:
    """A pattern found in a log line whose end is cut off is found in the whole line as well."""
    if secret(source.name) != "event" or check.condition.op not in ("~", "~~"):
        return NOTHING
    if "$" in check.condition.value:
        return NOTHING
    return Pushable(_push_text(check, source).filter, exact=False)


def _push_integer(check: Check, source: CoreSource) -> Pushable:
    op = check.condition.op
    number = number_of(check.operand)
    if op not in ("=", "!=", ">", "<", ">=", "<=") or number is None:
        return NOTHING
    if number != int(number) or abs(number) > MOST_WHOLE:
        return NOTHING
    return Pushable(Test(source.name, op, str(int(number))), exact=True)


def _push_float(check: Check, source: CoreSource) -> Pushable:
    op = check.condition.op
    number = number_of(check.operand)
    if number is None or op not in (">", "<", ">=", "<=") or abs(number) >= 2**53:
        return NOTHING
    slack = abs(number) * _SLACK
    bound = number - slack if op[0] == ">" else number + slack
    return Pushable(Test(source.name, f"{op[0]}=", f"{bound:.12f}"), exact=False)


def _push_list(check: Check, source: CoreSource, table: str) -> Pushable:
    op, value = check.condition.op, check.condition.value
    if value == "":
        if op in ("=", "!=") and (table, source.name) in TELLS_EMPTY:
            return Pushable(Test(source.name, op, ""), exact=True)
        return NOTHING
    # Lists of ids and of pairs have no portable "contains"; an element that looks like a number
    # compares as one here and as text there.
    if not _clean(value) or number_of(value) is not None or source.name not in _NAME_LISTS:
        return NOTHING
    if op == ">=":
        return Pushable(Test(source.name, ">=", value), exact=True)
    if op in ("<=", "!>="):
        return Pushable(Test(source.name, "!>=", value), exact=True)
    return NOTHING


_NAME_LISTS = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "host_", "service_")
    for name in ("groups", "contacts", "contact_groups", "parents", "childs", "services", "members")
) - {"service_parents", "service_services", "service_members", "host_members"}
"""List columns whose members are plain names on every core."""


def _push_variable(
    check: Check, source: Variable, table: str, capabilities: Capabilities, view: View
) -> Pushable:
    name = source.key[len(source.prefix) :]
    op, value = check.condition.op, check.condition.value
    if "filter" not in uses(capabilities, table, source.source):
        return NOTHING
    if not view.variables.all_visible or name != name.upper() or " " in name:
        return NOTHING
    if not value or not _clean(value) or not _clean(name):
        return NOTHING
    if op in ("=", "!="):
        return Pushable(Test(source.source, op, f"{name} {value}"), exact=True)
    return NOTHING


def _push_icinga_state(check: Check, source: CoreSource) -> Pushable:
    number = number_of(check.operand)
    op = check.condition.op
    if op not in ("=", "!=") or number is None or number != int(number):
        return NOTHING
    asked = in_icinga(Test(source.name, op, str(int(number))))
    return NOTHING if asked is None else Pushable(asked, exact=True)
