"""Routing: literals before variables, names decoded once, methods, singular words."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.api.endpoint import Endpoint
from monrest.api.router import Router
from monrest.base.errors import MethodNotAllowed, NotFound
from monrest.daemon.families import ENDPOINTS
from tests.fakes.context import make_dispatch
from tests.table import each


async def nothing(context, request, arguments):
    raise AssertionError("not called")


def endpoint(path, *methods):
    return Endpoint(path=path, description=path, handler=nothing, methods=methods or ("GET",))


def find(path, method="GET", app="mon"):
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
    match = find(path)
    assert match.endpoint.path == template
    assert match.arguments == arguments


@pytest.mark.parametrize(
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
        find(path)
    assert caught.value.message == f"unknown rest path: {path}"


def test_the_instance_goes_by_the_configured_word():
    assert find("/abc/whoami", app="abc").endpoint.path == "/mon/whoami"
    with pytest.raises(NotFound):
        find("/mon/whoami", app="abc")


@pytest.mark.parametrize(("path", "app"), [("/ops", "ops"), ("/ops/whoami", "ops")])
def test_the_configured_word_has_no_singular(path, app):
    assert find(path, app=app).endpoint.path.startswith("/mon")
    with pytest.raises(NotFound):
        find(path.replace("ops", "op"), app=app)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_head_and_post_are_get_where_there_is_only_get(method):
    assert find("/hosts", method).endpoint.path == "/hosts"


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "TRACE", "get", ""])
def test_other_methods_are_refused(method):
    with pytest.raises(MethodNotAllowed) as caught:
        find("/hosts/a", method)
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
        match = find(path, method)
        assert match.endpoint is one
        assert match.arguments == tuple(f"x-{name}" for name in one.variables)


@given(st.text(min_size=1).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_any_name_survives_encoding(name):
    assert find(f"/comments/{quote(name, safe='')}").arguments == (name,)


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
            find(path)
        if not raised.value.description.startswith(expected):
            wrong.append((path, raised.value.description))
    assert not wrong
