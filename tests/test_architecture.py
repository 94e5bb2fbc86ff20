"""docs/architecture.md is true: its files are there, and its endpoint of twenty lines is one."""

import re
from pathlib import Path

import orjson
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.errors import NotFound
from monrest.base.values import Identity, RestRequest
from monrest.daemon.families import ENDPOINTS, FAMILIES, Family
from monrest.panorama import endpoints as panorama
from monrest.render.formats import RenderOptions, render
from tests.fakes.context import make_context

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = (REPOSITORY / "docs/architecture.md").read_text()
CODE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


def test_all_files_are_there():
    named = set(re.findall(r"`((?:monrest|docs)/[\w/.-]+)`", PAGE)) - {"monrest/greetings/"}
    assert len(named) > 40
    assert sorted(one for one in named if not (REPOSITORY / one).exists()) == []


@pytest.fixture
def context():
    namespace = {}
    exec(compile(CODE, "endpoints.py", "exec"), namespace)
    return make_context(Clock(), families=(*FAMILIES, Family(namespace["ENDPOINTS"])))


def request(path, *parameters):
    return RestRequest(
        method="GET", path=path, segments=tuple(path.strip("/").split("/")), parameters=parameters,
        identity=Identity(user="ann"),
    )  # fmt: skip


def ask(context, path, *parameters):
    done = Deferred.fromCoroutine(context.dispatch(context, request(path, *parameters)))
    context.clock.pump([0] * 20)
    return orjson.loads(b"".join(render(done.result, RenderOptions(), lambda: False).pieces))


def test_the_new_endpoint_answers_filters_and_is_listed(context):
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 20
    assert ask(context, "/mon/greetings") == [{"name": "ann"}]
    assert ask(context, "/mon/greetings", ("name[ne]", "ann")) == []
    assert ask(context, "/mon/greetings", ("columns", "upper(name) as who")) == [{"who": "ANN"}]
    listed = ask(context, "/index", ("url", "/mon/greetings"))
    assert [one["description"] for one in listed] == ["lists greetings"]


def test_a_family_without_its_line_in_the_registry_is_gone():
    families = [one for one in FAMILIES if one.endpoints is not panorama.ENDPOINTS]
    context = make_context(Clock(), families=families)
    left = [one for one in ENDPOINTS if not one.path.startswith("/mon/panorama")]
    assert 0 < len(left) == len(ENDPOINTS) - len(panorama.ENDPOINTS)
    router = context.dispatch.router
    assert router.endpoints == left
    for endpoint in left:
        path = re.sub(r"<[^>]*>", "1", endpoint.path)
        segments = tuple(path.strip("/").split("/")) if path != "/" else ()
        for method in endpoint.methods:
            assert method in router.allowed(path, segments)
    listed = {one["url"] for one in ask(context, "/index")}
    assert "/mon/broadcasts" in listed
    assert not any(url.startswith("/mon/panorama") for url in listed)
    for path in ("/mon/panorama", "/mon/panorama/1", "/mon/panorama/1/backups"):
        done = Deferred.fromCoroutine(context.dispatch(context, request(path)))
        assert done.result.type is NotFound
        done.addErrback(lambda _: None)
