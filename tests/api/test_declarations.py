"""Endpoints as they are declared: routes, limits of parameters, words for yes and no, the reference."""

import pkgutil
import re
from datetime import UTC
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import monrest
from monrest.api.endpoint import Endpoint, Parameter
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
from monrest.api.router import Router
from monrest.base.errors import BadRequest, MethodNotAllowed, NotFound
from monrest.base.truth import flag, truth
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
from tests.fakes.context import make_dispatch
from tests.table import each


async def nothing(context, request, arguments):
    raise AssertionError("not called")


def endpoint(path, *methods):
    return Endpoint(path=path, description=path, handler=nothing, methods=methods or ("GET",))


def route(path, method="GET", app="mon"):
    segments = tuple(path.strip("/").split("/")) if path != "/" else ()
    return make_dispatch(app).router.find(method, path, segments)


@each(
    ("path", "template", "arguments"),
    [
        ("/", "/", ()),
        ("/index", "/index", ()),
        ("/hosts", "/hosts", ()),
        ("/hosts/web01", "/hosts/<name>", ("web01",)),
        ("/hosts/stats", "/hosts/stats", ()),
        ("/hosts/totals", "/hosts/totals", ()),
        ("/hosts/%73tats", "/hosts/<name>", ("stats",)),
        ("/hosts/stats/services", "/hosts/<name>/services", ("stats",)),
        ("/hosts/a%2Fb", "/hosts/<name>", ("a/b",)),
        ("/hosts/a%252Fb", "/hosts/<name>", ("a%2Fb",)),
        ("/hosts/a+b", "/hosts/<name>", ("a+b",)),
        ("/hosts/%C3%BC", "/hosts/<name>", ("ü",)),
        ("/hosts/c:%5Cx;y", "/hosts/<name>", ("c:\\x;y",)),
        ("/services/h/disk%20%2Fvar", "/services/<host>/<service>", ("h", "disk /var")),
        ("/services/h/s/commandline", "/services/<host>/<service>/commandline", ("h", "s")),
        ("/host/web01", "/hosts/<name>", ("web01",)),
        ("/service/h/s", "/services/<host>/<service>", ("h", "s")),
        ("/log", "/logs", ()),
        ("/check/stats", "/checks/stats", ()),
        ("/processinfos", "/processinfo", ()),
        ("/mon", "/mon", ()),
        ("/mon/whoami", "/mon/whoami", ()),
        ("/mon/api_key", "/mon/api_keys", ()),
        ("/mon/api_key/k", "/mon/api_keys/<id>", ("k",)),
        ("/mon/job/1/output", "/mon/jobs/<id>/output", ("1",)),
        ("/config/file", "/config/files", ()),
        ("/config/object", "/config/objects", ()),
        ("/config/fullobject", "/config/fullobjects", ()),
        ("/lmd/site", "/lmd/sites", ()),
        ("/host/h/service", "/hosts/<name>/services", ("h",)),
        ("/hosts/h/alert", "/hosts/<name>/alerts", ("h",)),
        ("/hosts/h/notification", "/hosts/<name>/notifications", ("h",)),
        ("/mon/bp/1/object/recursive", "/mon/bp/<nr>/objects/recursive", ("1",)),
        # A host may have the name of the singular.
        ("/hosts/total", "/hosts/<name>", ("total",)),
        ("/services/outage/x", "/services/<host>/<service>", ("outage", "x")),
    ],
)
def test_paths(path, template, arguments):
    match = route(path)
    assert match.endpoint.path == template
    assert match.arguments == arguments


@each(
    "path",
    [
        "/HOSTS", "/%68osts", "/nope", "/hosts//services", "/hosts/a/nope", "/services/h",
        "/services/h/s/commandline/x", "/lmd", "/s",
        # Only collections have a plural.
        "/mons", "/indexs", "/lmds/sites",
    ],
)  # fmt: skip
def test_unknown_paths(path):
    with pytest.raises(NotFound) as caught:
        route(path)
    assert caught.value.message == f"unknown rest path: {path}"


def test_the_instance_goes_by_the_configured_word():
    assert route("/abc/whoami", app="abc").endpoint.path == "/mon/whoami"
    with pytest.raises(NotFound):
        route("/mon/whoami", app="abc")


@each(("path", "app"), [("/ops", "ops"), ("/ops/whoami", "ops")])
def test_the_configured_word_has_no_singular(path, app):
    assert route(path, app=app).endpoint.path.startswith("/mon")
    with pytest.raises(NotFound):
        route(path.replace("ops", "op"), app=app)


@each("method", ["GET", "HEAD", "POST"])
def test_head_and_post_are_get_where_there_is_only_get(method):
    assert route("/hosts", method).endpoint.path == "/hosts"


@each("method", ["PATCH", "DELETE", "TRACE", "get", ""])
def test_other_methods_are_refused(method):
    with pytest.raises(MethodNotAllowed) as caught:
        route("/hosts/a", method)
    assert caught.value.headers == (("Allow", "GET, POST, HEAD, PUT, OPTIONS"),)


def test_a_method_of_its_own_comes_before_the_tolerance():
    made = Router("mon")
    read, write = endpoint("/things/<id>"), endpoint("/things/<id>", "POST", "DELETE")
    made.add([read, write])
    assert made.find("GET", "/things/1", ("things", "1")).endpoint is read
    assert made.find("POST", "/things/1", ("things", "1")).endpoint is write
    assert made.find("DELETE", "/things/1", ("things", "1")).endpoint is write
    expected = ("GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS")
    assert made.allowed("/things/1", ("things", "1")) == expected


def test_no_tolerance_without_get():
    made = Router("mon")
    made.add([endpoint("/things", "POST")])
    assert made.allowed("/things", ("things",)) == ("POST", "PUT", "OPTIONS")
    for method in ("GET", "HEAD"):
        with pytest.raises(MethodNotAllowed):
            made.find(method, "/things", ("things",))


def test_allowed_of_an_unknown_path():
    with pytest.raises(NotFound):
        make_dispatch("mon").router.allowed("/nope", ("nope",))


def test_a_literal_that_leads_nowhere_leaves_the_variable():
    made = Router("mon")
    made.add([endpoint("/a/b/c"), endpoint("/a/<x>/d"), endpoint("/a/<x>")])
    assert made.find("GET", "/a/b/d", ("a", "b", "d")).arguments == ("b",)
    assert made.find("GET", "/a/b", ("a", "b")).arguments == ("b",)


def test_the_same_path_and_method_twice():
    made = Router("mon")
    with pytest.raises(ValueError, match="GET /a/<y> is declared twice"):
        made.add([endpoint("/a/<x>"), endpoint("/a/<y>")])


@each("one", ENDPOINTS, ids=[one.path for one in ENDPOINTS])
def test_every_endpoint_is_reachable(one):
    path = one.path.replace("<", "x-").replace(">", "")
    for method in one.methods:
        match = route(path, method)
        assert match.endpoint is one
        assert match.arguments == tuple(f"x-{name}" for name in one.variables)


@given(st.text(min_size=1).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_any_name_survives_encoding(name):
    assert route(f"/comments/{quote(name, safe='')}").arguments == (name,)


def test_an_unknown_path_tells_those_that_are_like_it():
    wrong = []
    for path, expected in {
        "/hots": "similar paths: /hosts",
        "/hosts/web01/servces": "similar paths: /hosts/<name>/services",
        "/config/diffs": "similar paths: /config/diff",
        "/mon/api_kez": "similar paths: /mon/api_keys",
        "/mon/broadcast/x/y/z/a/b": "/index lists all paths",
        "/" + "x" * 10_000: "/index lists all paths",
    }.items():
        with pytest.raises(NotFound) as raised:
            route(path)
        if not raised.value.description.startswith(expected):
            wrong.append((path, raised.value.description))
    assert not wrong


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


FOLDER = Path(__file__).parents[2] / "docs" / "api"


def test_the_pages_are_up_to_date(pages):
    stored = {path.stem: path.read_text() for path in FOLDER.glob("*.md")}
    assert stored == pages, "run: make docs"


@pytest.fixture(scope="module")
def pages():
    return reference()


@pytest.fixture(scope="module")
def text(pages):
    return "\n".join(pages.values())


@each("one", ENDPOINTS, ids=[one.path for one in ENDPOINTS])
def test_every_endpoint_is_declared_whole(text, one):
    assert one.description
    assert "\n" not in one.description
    # A file, or what only ever is an error, has no columns: its text says what it is.
    assert one.schema or one.columns or one.text
    for column in one.columns:
        assert column.type
        assert column.description
    assert len({column.name for column in one.columns}) == len(one.columns)
    assert text.count(f"\n## {', '.join(one.methods)} `{one.path}`\n") == 1


YES = ["1", "true", "yes", "on", "TRUE", "Yes", "oN", " 1 ", 1, 1.0, True]
NO = ["0", "false", "no", "off", "FALSE", "No", "oFF", "", "  ", 0, 0.0, False, None]
NEITHER = ["2", "y", "n", "ja", "10", "-1", "01", "1.0", "null", "truee", 2, -1, 0.5, [], {}, ["1"]]


def test_every_word():
    assert {str(one): truth(one) for one in YES} == dict.fromkeys(map(str, YES), True)
    assert {str(one): truth(one) for one in NO} == dict.fromkeys(map(str, NO), False)
    assert {str(one): truth(one) for one in NEITHER} == dict.fromkeys(map(str, NEITHER), None)


@each("value", NEITHER)
def test_anything_else_is_refused_by_the_name_of_the_parameter(value):
    with pytest.raises(BadRequest) as caught:
        flag("pretty", value)
    assert caught.value.description == (
        "pretty: expected 0 or 1 (or false, no, off, true, yes, on)"
    )
