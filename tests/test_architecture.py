"""docs/architecture.md is true: its files are there, and its endpoint of twenty lines is one."""

import re
from pathlib import Path

import orjson
import pytest
from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.api.dispatch import Dispatch
from monrest.api.router import Router
from monrest.base.values import Identity, RestRequest
from monrest.daemon.families import ENDPOINTS
from monrest.render.formats import RenderOptions, render
from tests.fakes.context import make_context, make_dispatch

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
    router = Router("mon")
    router.add((*ENDPOINTS, *namespace["ENDPOINTS"]))
    dispatch: Dispatch = evolve(make_dispatch("mon"), router=router)
    return make_context(Clock(), dispatch=dispatch)


def ask(context, path, *parameters):
    request = RestRequest(
        method="GET", path=path, segments=tuple(path.strip("/").split("/")), parameters=parameters,
        identity=Identity(user="ann"),
    )  # fmt: skip
    done = Deferred.fromCoroutine(context.dispatch(context, request))
    context.clock.pump([0] * 20)
    return orjson.loads(b"".join(render(done.result, RenderOptions(), lambda: False).pieces))


def test_the_new_endpoint_answers_filters_and_is_listed(context):
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 20
    assert ask(context, "/mon/greetings") == [{"name": "ann"}]
    assert ask(context, "/mon/greetings", ("name[ne]", "ann")) == []
    assert ask(context, "/mon/greetings", ("columns", "upper(name) as who")) == [{"who": "ANN"}]
    listed = ask(context, "/index", ("url", "/mon/greetings"))
    assert [one["description"] for one in listed] == ["lists greetings"]
