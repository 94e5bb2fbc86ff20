"""Random queries: conditions, q texts, columns, sort keys, limits and whole parameter lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from monrest.query.model import OPERATORS, Condition, FilterTree, Group

TEXT_COLUMNS = ("name", "alias", "address", "plugin_output")
NUMBER_COLUMNS = ("state", "num_services", "latency", "check_interval", "has_been_checked")
TIME_COLUMNS = ("last_check", "next_check", "last_state_change")
LIST_COLUMNS = ("groups", "services", "parents")
VARIABLES = ("_WORKER", "_SIZE", "_NONE")
LABELS = ("rta", "pl", "rta_unit")
COLUMNS = TEXT_COLUMNS + NUMBER_COLUMNS + TIME_COLUMNS + LIST_COLUMNS + VARIABLES + LABELS
"""Columns of hosts, as far as cores, expanded variables and performance data have them."""

SIGNS = tuple(sorted(set(OPERATORS.values())))
_WORD = re.compile(r"[A-Za-z0-9_^~.*-]+")
_KEY = re.compile(r"[A-Za-z0-9_^.*-]+")
_SPOKEN = frozenset({"and", "or", "as"})

anything = st.text(max_size=60)
"""Any text at all, control characters included."""

printable = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)
"""Text that may be a value anywhere."""

names = st.sampled_from(COLUMNS)

values = st.one_of(
    st.sampled_from(["", "web01", "linux", "0", "1", "-1", "2.5", "local", "and", "or", "~x"]),
    st.sampled_from(["-10m", "7d", "now-1h", "today", "lastweek-1d", "2026-11-21 10:00"]),
    st.integers().map(str),
    printable,
)
"""Operands of conditions."""


def conditions(
    columns: st.SearchStrategy[str] = names,
    operands: st.SearchStrategy[str] = values,
    signs: Sequence[str] = SIGNS,
) -> st.SearchStrategy[Condition]:
    """Conditions that ``q`` can express: no value holds both kinds of quotes."""
    usable = operands.filter(lambda value: not ("'" in value and '"' in value))
    return st.builds(Condition, columns, st.sampled_from(signs), usable)


def q_trees(
    leaves: st.SearchStrategy[Condition] | None = None, most: int = 12
) -> st.SearchStrategy[FilterTree]:
    """Filter trees without empty groups and without groups of one."""
    return st.recursive(
        conditions() if leaves is None else leaves,
        lambda inner: st.builds(
            lambda connector, items: Group(connector, tuple(items)),
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=4),
        ),
        max_leaves=most,
    )


def printed_condition(condition: Condition) -> str:
    """A condition in the q language, quoted where it has to be."""
    key = condition.column
    if not _KEY.fullmatch(key) or key.lower() in _SPOKEN or key[:3] == key[:1] * 3:
        sign = next(sign for sign in "`\"'" if sign not in key)
        key = f"{sign}{key}{sign}"
    value = condition.value
    if not _WORD.fullmatch(value):
        sign = "'" if '"' in value else '"'
        value = f"{sign}{value}{sign}"
    return f"{key} {condition.op} {value}"


def printed(tree: FilterTree, *, sparing: bool = False, connectors: Sequence[str] = ()) -> str:
    """A tree in the q language; ``sparing`` leaves out the brackets that the order makes needless.

    ``connectors`` are the spellings of and, then of or.
    """
    if isinstance(tree, Condition):
        return printed_condition(tree)
    spellings = connectors or ("and", "or")
    parts = []
    for position, item in enumerate(tree.items):
        text = printed(item, sparing=sparing, connectors=connectors)
        needless = position == 0 and isinstance(item, Group) and item.connector != tree.connector
        if isinstance(item, Group) and not (sparing and needless):
            text = f"({text})"
        parts.append(text)
    return f" {spellings[tree.connector == 'or']} ".join(parts)


q_texts = st.builds(
    lambda tree, sparing, connectors: printed(tree, sparing=sparing, connectors=connectors),
    q_trees(),
    st.booleans(),
    st.sampled_from([("and", "or"), ("AND", "Or"), ("&&", "||"), ("", "or")]),
)
"""Queries that are right."""

broken_q_texts = st.one_of(
    anything,
    st.lists(
        st.sampled_from(
            [
                *("and", "or", "&&", "||", "(", ")", "=", "!=", "~", "~~", ">=", "!>=", "like"),
                *("name", "state", "web01", "1", "'x y'", '"', "'", "`pl`", "`", "***", "as", ","),
                *("not", "==", "ü", "()", "count(*)", "\n", "\0", "%", "/", "<>", "=~"),
            ]
        ),
        max_size=14,
    ).map(" ".join),
)
"""Texts that are hardly ever right."""


def _function(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    number = st.integers(-5, 5).map(str)
    return st.one_of(
        st.builds("{}({})".format, st.sampled_from(["lower", "upper", "lc", "uc"]), inner),
        st.builds("{}({})".format, st.sampled_from(["hoststate", "duration", "age"]), inner),
        st.builds("substr({},{})".format, inner, number),
        st.builds("substr({},{},{})".format, inner, number, number),
        st.builds("calc({},{},{})".format, inner, st.sampled_from("+-*/"), number),
        st.builds("s({},'[0-9]','x')".format, inner),
        st.builds("concat({},' ',{})".format, inner, inner),
        st.builds("fmt('%s|%d',{},{})".format, inner, inner),
        st.builds('unit({},"ms")'.format, inner),
        st.builds("utc({},'%Y, %H:%M')".format, inner),
    )


calculations = st.builds(
    lambda first, steps: first + "".join(f"{sign}{operand}" for sign, operand in steps),
    st.sampled_from(NUMBER_COLUMNS),
    st.lists(
        st.tuples(st.sampled_from("+-*/"), st.sampled_from([*NUMBER_COLUMNS, "2", "3.5"])),
        min_size=1,
        max_size=3,
    ),
)

expressions = st.recursive(st.one_of(names, calculations), _function, max_leaves=4)
"""Expressions of one row, for ``columns`` and as sort keys and filters once they are selected."""

aggregates = st.one_of(
    st.sampled_from(["count(*)", "count()", "uniq()"]),
    st.builds("{}({})".format, st.sampled_from(["sum", "avg", "min", "max", "count"]), expressions),
)

aliases = st.sampled_from(["", " as x", " AS total", ":y", ":a:b"])


def _renamable(expression: str, alias: str) -> str:
    # After a quote sign only ``as`` renames, and a colon in front of one does not.
    return expression if alias.startswith(":") and "'" in expression else expression + alias


items = st.builds(_renamable, st.one_of(expressions, aggregates), aliases)
columns = st.lists(items, min_size=1, max_size=4).map(",".join)
"""Values of ``columns`` that are right."""

broken_columns = st.one_of(
    anything,
    st.text(alphabet="()'\"`,:+-*/ asnmecout()0.%\n\0ü", max_size=40),
    st.lists(
        st.sampled_from(
            [
                *("upper(", "count(", "to_rows(", "avg(", "calc(", "s(", "fmt(", "concat(", "foo("),
                *(")", ",", "'", '"', "`", "name", "2", "*", "+", "-", ":", " as ", "x", " ", "%"),
            ]
        ),
        max_size=14,
    ).map("".join),
)
"""Texts that are hardly ever right."""

sort_keys = st.builds("{}{}".format, st.sampled_from(["", "-", "+"]), names)
sorts = st.lists(sort_keys, min_size=1, max_size=3).map(",".join)
limits = st.integers(0, 20).map(str)

parameter_filters = st.builds(
    lambda name, operator, value: (name + operator, value),
    names,
    st.sampled_from(["", *(f"[{word}]" for word in OPERATORS)]),
    values,
)

parameters = st.lists(
    st.one_of(
        parameter_filters,
        st.tuples(st.just("q"), q_texts),
        st.tuples(st.just("columns"), columns),
        st.tuples(st.just("sort"), sorts),
        st.tuples(st.sampled_from(["limit", "offset"]), limits),
    ),
    max_size=5,
).map(tuple)
"""Whole parameter lists that are right in form."""

broken_parameters = st.lists(
    st.one_of(
        st.tuples(st.one_of(anything, st.sampled_from(["name[", "name]", "[eq]", "[]"])), anything),
        st.tuples(st.just("q"), broken_q_texts),
        st.tuples(st.just("columns"), broken_columns),
        st.tuples(st.sampled_from(["limit", "offset", "sort", "backends", "headers"]), anything),
        parameter_filters,
    ),
    max_size=5,
).map(tuple)
"""Whole parameter lists that may be wrong in any way."""
