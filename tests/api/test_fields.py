"""Each limit that the reference page shows is the one that is kept."""

import pkgutil
import re
from datetime import UTC
from importlib import import_module

import pytest

import monrest
from monrest.api.endpoint import Parameter
from monrest.api.fields import (
    Choice,
    Date,
    Field,
    Fields,
    NameList,
    Number,
    Reading,
    Ruled,
    Second,
    Seconds,
    Text,
)
from monrest.base.errors import BadRequest
from monrest.commands.asked import EffectWait
from monrest.commands.fill import orders
from monrest.commands.orders import check_names
from monrest.daemon.families import ENDPOINTS
from monrest.daemon.reference import reference
from monrest.livestatus.catalogue import find
from monrest.livestatus.command import Target
from monrest.objectconfig.attributes import canonical
from monrest.panorama.model import Refresh, Rights, SiteIds
from monrest.query.functions import Moment
from monrest.query.parse import parse_query
from monrest.query.regex import compile_pattern
from tests.table import each


def of_modules():
    """All fields that a module declares, also those that no endpoint takes alone."""
    for module in pkgutil.walk_packages(monrest.__path__, "monrest."):
        if ".migrations" in module.name or module.name.endswith("__main__"):
            continue
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Field):
                yield value
            elif isinstance(value, Fields):
                yield from value.declared


TAKEN = list(dict.fromkeys(one for endpoint in ENDPOINTS for one in endpoint.parameters))
FIELDS = [one for one in dict.fromkeys((*TAKEN, *of_modules())) if isinstance(one, Field)]
LIMITED = [one for one in FIELDS if one.limit]


def entries(number):
    return [{"type": "day", "hour": 1, "minute": 1}] * number


def rights(number):
    return [{"type": "user", "name": ["x"], "perm": "ro"}] * number


def addresses(number):
    return ",".join(f"a{at}@example.org" for at in range(number))


def names_of(number):
    return [f"n{at}" for at in range(number)]


MADE = {
    "roles": lambda number: ["admin"] * number,
    "comment": lambda number: "x" * number,
    "name": lambda number: "x" * number,
    "nodes": lambda number: [{"id": f"node{at + 1}"} for at in range(number)],
    "schedule": entries,
    "send_types": entries,
    "permissions": rights,
    "to": addresses,
    "cc": addresses,
    "url": lambda number: "http://h/".ljust(number, "x"),
    "template": lambda number: {"x": "y" * (number - 8)},
    "headers": lambda number: {f"X-{at}": "1" for at in range(number)},
}
"""Values of fields that do not take everything, with as much in them as is asked for."""


def bounds(one):
    """Values of a field that are just within its limit, and just beyond."""
    match one:
        case Text():
            return ["x" * one.longest], ["x" * (one.longest + 1)]
        case Number():
            return [one.least, one.most], [one.least - 1, one.most + 1]
        case Seconds():
            return [one.least, str(one.most)], [one.least - 0.01, one.most + 0.01]
        case Date() | Second():
            most = int(one.limit.split()[0])
            return ["9".zfill(most)], ["9".zfill(most + 1)]
        case NameList():
            names = MADE.get(one.name, names_of)(one.most + 1)
            within, beyond = [names[1:], ",".join(names[1:])], [names, ",".join(names)]
            if one.longest:
                within.append(["x" * one.longest])
                beyond.append(["x" * (one.longest + 1)])
            return within, beyond
        case Refresh():
            return ["-999999999", 999_999_999], ["1" * 10, -(10**9)]
        case EffectWait():
            longest = one.server.longest_wait
            return [f"{longest:g}", "1"], [f"{longest + 0.5:g}", "2 s"]
        case SiteIds() | Rights():
            entry = "site" if isinstance(one, SiteIds) else {"ann": "read-only"}
            most = int(one.limit.split()[0])
            return [[entry] * most], [[entry] * (most + 1)]
        case Choice():
            return list(one.words), [f"{one.words[0]}x", 1]
        case Ruled():
            most = int(one.most.split()[0])
            return [MADE[one.name](most)], [MADE[one.name](most + 1)]
    raise AssertionError(f"{one.name}: nothing is known of the limit of such a field")


@each("one", LIMITED, ids=lambda one: one.name)
def test_fields(one):
    within, beyond = bounds(one)
    where = "" if isinstance(one, Ruled) else "in."
    at = Reading(where, Moment(now=0, zone=UTC))
    for value in within:
        one.read(value, at)
    for value in beyond:
        with pytest.raises(BadRequest) as caught:
            one.read(value, at)
        assert caught.value.description.startswith(f"{where}{one.name}: ")


def functions(number):
    return ",".join("lower(" * depth + "a" + ")" * depth for depth in spread(number, 400))


def spread(number, over):
    return [number // over + (at < number % over) for at in range(over)]


QUERIES = {
    ("columns", "items"): lambda number: [("columns", ",".join(names_of(number)))],
    ("columns", "functions"): lambda number: [("columns", functions(number))],
    ("columns", "nested"): lambda number: [("columns", f"{'lower(' * number}a{')' * number}")],
    ("columns", "characters"): lambda number: [("columns", "a" * number)],
    ("<column>[<op>]", "conditions"): lambda number: [(f"c{at}", "1") for at in range(number)],
    ("<column>[<op>]", "names of characters"): lambda number: [("c" * number, "1")],
    ("q", "characters"): lambda number: [("q", f"a = {'x' * (number - 4)}")],
    ("q", "conditions"): lambda number: [("q", " and ".join(["a = 1"] * number))],
    ("q", "nested brackets"): lambda number: [("q", f"{'(' * number}a = 1{')' * number}")],
    ("sort", "keys"): lambda number: [("sort", ",".join(names_of(number)))],
    ("sort", "characters"): lambda number: [("sort", "a" * number)],
    ("limit", "digits"): lambda number: [("limit", "1" * number)],
    ("offset", "digits"): lambda number: [("offset", "1" * number)],
}
"""Parameters of a query with as much in them as is asked for."""


OBJECTS = {
    "host": "hosts",
    "hostgroup": "hostgroups",
    "servicegroup": "servicegroups",
    "contact": "contacts",
    "contactgroup": "contactgroups",
}


def read(name, what, number):
    if name in OBJECTS or name == "service":
        service = "x" * number if name == "service" else ""
        target = Target(OBJECTS.get(name, "services"), "h" if service else "x" * number, service)
        check_names(target)
    elif name == "<argument>":
        orders(find("sites", "log"), Target("sites"), {"log": "x" * number})
    elif name == "<attribute>":
        canonical("host", "x" * number)
    elif what == "patterns of bytes":
        compile_pattern("x" * number, ignore_case=True, parameter="c")
    else:
        parse_query(tuple(QUERIES[name, what](number)))


def of_queries():
    for one in TAKEN:
        if isinstance(one, Parameter) and one.limit and one.name != ":FILE":
            for part in one.limit.split(", "):
                number = re.search("[0-9]+", part)[0]
                yield one.name, " ".join(part.replace(number, "").split()), int(number)


@each(("name", "what", "number"), sorted(set(of_queries())))
def test_queries(name, what, number):
    read(name, what, number)
    with pytest.raises(BadRequest) as caught:
        read(name, what, number + 1)
    named = {"<column>[<op>]": "c", "<attribute>": "x", "<argument>": "LOG: "}.get(name, name)
    assert caught.value.description.startswith(named)


def test_the_reference_page_has_them():
    page = "\n".join(reference().values())
    for one in TAKEN:
        if one.limit:
            assert f"| `{one.name}` | {one.type} | {one.limit} |" in page, one
