"""What every handler adds to a request."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import SitesFailed
from monrest.base.values import Document, SiteProblem
from monrest.rows import statistics
from monrest.rows.columns import HOSTS
from tests.api.asking import answer, request
from tests.api.endpoints.given import DAY


@pytest.mark.parametrize(
    ("name", "value", "windowed"),
    [
        ("time[gte]", "5", False),
        ("q", "time > 5", False),
        ("q", 'host_name = "a" and (time < 5 or state = 1)', False),
        # Only a condition on the column counts, not the word.
        ("q", 'message ~ "timeout"', True),
        ("q", 'message = "time > 5"', True),
        ("message", "time", True),
        ("limit", "5", True),
        ("sort", "-time", True),
        ("columns", "time", True),
    ],
)
def test_default_window_of_logs(context, asked, name, value, windowed):
    answer(context, "/logs", (name, value))
    assert asked[0][1] == ((DAY,) if windowed else ())


def test_check_statistics_name_each_failed_site_once(context, monkeypatch):
    problem = SiteProblem("a", "A", "gone")
    seconds = iter([0.5, 0.25])

    async def fetch_stats(context, request, schema, spec, *, unseen=None):
        return Document(
            value={one.name: 0 for one in spec.fields},
            failed_sites=(problem,),
            backend_seconds=next(seconds),
        )

    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    found = answer(context, "/checks/stats")
    assert found.failed_sites == (problem,)
    assert found.backend_seconds == 0.5


def test_a_failure_of_one_half_ends_the_other(context, monkeypatch):
    waiting = Deferred()

    async def fetch_stats(context, request, schema, spec, *, unseen=None):
        if schema is HOSTS:
            return await waiting
        raise SitesFailed([SiteProblem("a", "A", "gone")])

    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    with pytest.raises(SitesFailed):
        answer(context, "/checks/stats")
    assert waiting.called


def test_cancelled_check_statistics(context, monkeypatch):
    ends = []

    async def fetch_stats(context, request, schema, spec, *, unseen=None):
        return await Deferred(lambda _: ends.append(schema.name))

    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    found = []
    running = Deferred.fromCoroutine(context.dispatch(context, request("/checks/stats")))
    running.addBoth(found.append)
    running.cancel()
    assert sorted(ends) == ["hosts", "services"]
    assert found[0].check(CancelledError)
