"""Every documented column of every list and object of statistics, in batches that name what fails."""

from __future__ import annotations

import re

from monrest.daemon.families import ENDPOINTS
from monrest.query.column_names import CoreColumn, DerivedColumn

NUMBER, TEXT = "-987654", "zzz"
COMPARED = ("=", "!=", ">", "<", ">=", "<=")
MATCHED = ("~", "!~", "~~", "!~~")
OPERATORS = {
    "string": [(op, TEXT) for op in (*COMPARED, *MATCHED)] + [("=", ""), ("!=", "")],
    "number": [(op, NUMBER) for op in (*COMPARED, "~", "!~")],
    "list": [(op, TEXT) for op in ("=", "!=", ">=", "<=", "!>=", *MATCHED)]
    + [("=", ""), ("!=", "")],
    "flag": [("=", "1"), ("!=", "1")],
    "object": [(op, TEXT) for op in ("=", "!=", *MATCHED)],
}
"""Kind of column to the operators that its values have, each with an operand no value has."""

WORDS = {"=": "eq", "!=": "ne", ">": "gt", "<": "lt", ">=": "gte", "<=": "lte", "!>=": "notin",
         "~": "sregex", "!~": "snregex", "~~": "regex", "!~~": "nregex"}  # fmt: skip
WRONG = {
    "number": [("=", TEXT), (">", "abc")],
    "flag": [("=", TEXT), ("!=", "7")],
    "list": [(">", "1"), ("<", "1")],
    "string": [("~", "("), ("~~", "[")],
}
"""What may be refused as an error of type, with 400."""

OF_CORES = ("/hosts", "/services", "/hostgroups", "/servicegroups", "/contacts", "/contactgroups",
            "/timeperiods", "/commands", "/comments", "/downtimes", "/processinfo", "/logs",
            "/alerts", "/notifications")  # fmt: skip
STATISTICS = ("/hosts/stats", "/hosts/totals", "/services/stats", "/services/totals",
              "/contacts/totals", "/checks/stats", "/processinfo/stats")  # fmt: skip


NOT_HERE = {
    "/mon/cluster/restart": "a single node has none",
    "/mon/login": "needs a password file",
}
"""Lists that the daemon of the suite refuses as a whole."""


HELD = {("/lmd/sites", "status"): "number"}
"""What a column holds whose label says something else."""

NEVER = re.compile(r"\Z.")
OF_OTHERS = {
    "/hosts/availability": re.compile(r"(?:scheduled_)?time_(?:ok|warning|critical|unknown)"),
    "/services/availability": re.compile(r"(?:scheduled_)?time_(?:up|down|unreachable)"),
}
"""Columns that a list has with another ``type`` only."""


def listed():
    """Path to (column, kind, type in the core) for every list that a GET without names gives."""
    found = {}
    for endpoint in ENDPOINTS:
        if endpoint.path in NOT_HERE:
            continue
        others = OF_OTHERS.get(endpoint.path, NEVER)
        if endpoint.shape == "list" and "GET" in endpoint.methods and not endpoint.variables:
            if endpoint.schema is not None:
                found[endpoint.path] = [
                    (name, kind(spec), getattr(spec, "core_type", ""))
                    for name, spec in endpoint.schema.columns.items()
                ]
            else:
                found[endpoint.path] = [
                    (one.name, HELD.get((endpoint.path, one.name), api_kind(one)), "")
                    for one in endpoint.columns
                    if "<" not in one.name and not others.match(one.name)
                ]
    return found


def kind(spec: CoreColumn | DerivedColumn) -> str:
    """The key of ``OPERATORS`` for a column of a core's table."""
    by_core = {"list": "list", "dict": "object", "string": "string"}
    if isinstance(spec, CoreColumn):
        return by_core.get(spec.core_type, "number")
    return api_kind(spec.column)


def api_kind(column) -> str:
    """The key of ``OPERATORS`` for a declared type."""
    if column.name.startswith("federation_"):
        return "list"  # one entry for each instance on the way
    types = {
        "boolean": "flag",
        "number": "number",
        "time": "number",
        "array_of_strings": "list",
        "object": "object",
    }
    return types.get(column.type, "string")


def batches(items, size):
    """Columns of one kind and core type, ``size`` at a time: what a core can do of one it can do
    of all, so that the whole batch reaches it."""
    groups = {}
    for item in items:
        groups.setdefault(item[1:], []).append(item)
    for group in groups.values():
        for start in range(0, len(group), size):
            yield group[start : start + size]


def failing(client, path, items, parameters, statuses=(200,)):
    """The smallest parts of a batch that are answered with another status, as texts."""
    asked = parameters(items)
    answer = client.get(path, asked)
    if answer.status in statuses:
        return []
    if len(items) > 1:
        middle = len(items) // 2
        parts = (items[:middle], items[middle:])
        found = [one for part in parts for one in failing(client, path, part, parameters, statuses)]
        if found:
            return found
    return [f"{path} {asked}: {answer.status} {answer.text[:200]}"]
