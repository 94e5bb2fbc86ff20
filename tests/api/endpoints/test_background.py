"""What becomes a job, and what is refused before."""

from types import SimpleNamespace

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest, RestError
from tests.api.asking import ROOT, answer
from tests.api.endpoints.given import ANN
from tests.fakes.context import make_dispatch


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
