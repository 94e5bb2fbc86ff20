"""What becomes a job, and what is refused before."""

from types import SimpleNamespace

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Rows
from monrest.rows import fetch as core
from tests.api.asking import ROOT, answer, request
from tests.api.endpoints.given import ANN
from tests.fakes.context import make_dispatch
from tests.fakes.keystore import result


class StartedJobs:
    """Keeps what is to become a job."""

    def __init__(self):
        self.works = []

    async def start(self, work):
        self.works.append(work)
        return SimpleNamespace(id=4711)


@pytest.fixture
def started(context):
    jobs = StartedJobs()
    context.dispatch = make_dispatch(jobs=jobs)
    return jobs.works


@pytest.mark.parametrize(
    ("value", "starts"), [("1", True), ("yes", True), ("0", False), ("", False), ("false", False)]
)
def test_background(context, asked, started, value, starts):
    found = answer(context, "/hosts", ("background", value))
    assert len(started) == int(starts)
    assert len(asked) == int(not starts)
    if starts:
        assert found.value == {
            "job_id": "4711",
            "message": "the request runs as a background job",
            "result_url": "/mon/r/mon/jobs/4711/output",
            "success": True,
        }
        assert found.plain


def test_a_job_is_the_same_request_without_its_time_limit(context, monkeypatch, started):
    seen = []

    async def fetch(context, request, schema, *, extra=(), late=False):
        seen.append((context, request))
        return Rows(columns=(), rows=[])

    monkeypatch.setattr(core, "fetch", fetch)
    sent = evolve(
        request("/hosts/a%2Fb", ("x", "1"), ("background", "1"), ("headers", "0"), identity=ANN),
        sites=("a", "b"),
        format="csv",
        pretty=True,
    )
    result(context.dispatch(context, sent))
    (work,) = started
    assert seen == []
    assert work.identity is ANN
    assert not work.changes
    assert work.cmd == "GET /csv/sites/a,b/hosts/a%2Fb?x=1&headers=0"
    assert (work.options.format, work.options.headers, work.options.pretty) == ("csv", False, True)

    def progress(percent, remaining=None, message=""):
        raise AssertionError

    result(work.call(progress))
    ((own, again),) = seen
    assert again == evolve(sent, parameters=(("x", "1"), ("headers", "0")))
    assert again.progress is progress
    assert own.config.server.request_timeout == own.config.jobs.timeout > 86_400
    assert context.config.server.request_timeout == 40


@pytest.mark.parametrize(
    ("method", "path", "identity"),
    [
        ("GET", "/nosuch", ROOT),
        ("GET", "/commands", ANN),
        ("DELETE", "/hosts", ROOT),
        ("POST", "/mon/login", ROOT),
        ("POST", "/mon/logout", ROOT),
        ("POST", "/mon/api_keys", ROOT),
        ("GET", "/mon/jobs/1/output", ROOT),
    ],
)
def test_what_is_refused_starts_no_job(context, started, method, path, identity):
    with pytest.raises(RestError) as caught:
        answer(context, path, ("background", "1"), method=method, identity=identity)
    assert caught.value.code in (400, 403, 404, 405)
    assert started == []


def test_no_job_is_started_in_demo_mode_that_changes_something(context, started):
    context.config = evolve(context.config, server=evolve(context.config.server, demo_mode=True))
    with pytest.raises(BadRequest, match="demo_mode"):
        answer(context, "/cmd", ("background", "1"), method="POST")
    assert started == []
    answer(context, "/hosts", ("background", "1"))
    assert len(started) == 1
