"""What every handler adds to a request."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import SitesFailed
from monrest.base.values import Document, SiteProblem
from monrest.logs.endpoints import ALERTS, NOTIFICATIONS
from monrest.query.model import Condition
from monrest.rows import statistics
from monrest.rows.columns import CONTACTS, HOSTS, LOGS, PROCESSINFO, SERVICES
from monrest.rows.statistics_specs import HOST_STATS, SERVICE_STATS, SERVICE_TOTALS
from tests.api.asking import answer, request
from tests.api.endpoints.given import DAY, equal


@pytest.mark.parametrize(
    ("path", "schema", "extra"),
    [
        ("/hosts", HOSTS, ()),
        ("/services", SERVICES, ()),
        ("/processinfo", PROCESSINFO, ()),
        ("/hosts/web*", HOSTS, (equal("name", "web*"),)),
        ("/hosts/a%2Fb/services", SERVICES, (equal("host_name", "a/b"),)),
        ("/services/h/s", SERVICES, (equal("host_name", "h"), equal("description", "s"))),
        (
            "/services/web*/*",
            SERVICES,
            (
                Condition("host_name", "~~", "^web", "path"),
                Condition("description", "~~", ".*", "path"),
            ),
        ),
        ("/contacts/ann", CONTACTS, (equal("name", "ann"),)),
        ("/logs", LOGS, (DAY,)),
        ("/alerts", LOGS, (DAY, ALERTS)),
        ("/notifications", LOGS, (DAY, NOTIFICATIONS)),
        ("/hosts/web01/alerts", LOGS, (DAY, ALERTS, equal("host_name", "web01"))),
        (
            "/hosts/web*/notifications",
            LOGS,
            (DAY, NOTIFICATIONS, Condition("host_name", "~~", "^web", "path")),
        ),
    ],
)
def test_what_a_path_adds(context, asked, path, schema, extra):
    answer(context, path)
    ((seen_schema, seen_extra),) = asked
    assert seen_schema is schema
    assert [(one.column, one.op, one.value) for one in seen_extra] == [
        (one.column, one.op, one.value) for one in extra
    ]


@pytest.mark.parametrize("name", ["comments", "downtimes"])
def test_numbered_entries(context, asked, name):
    answer(context, f"/{name}/17")
    assert asked[0][1] == (equal("id", "17"),)


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


@pytest.mark.parametrize(
    ("path", "schema", "spec", "extra"),
    [
        ("/hosts/stats", HOSTS, HOST_STATS, ()),
        ("/services/totals", SERVICES, SERVICE_TOTALS, ()),
        ("/hostgroups/g/stats", HOSTS, HOST_STATS, (Condition("groups", ">=", "g", "path"),)),
        (
            "/servicegroups/g/stats",
            SERVICES,
            SERVICE_STATS,
            (Condition("groups", ">=", "g", "path"),),
        ),
    ],
)
def test_statistics(context, asked, path, schema, spec, extra):
    found = answer(context, path)
    assert asked == [(schema, spec, extra)]
    assert found.value == {one.name: 1 for one in spec.fields}
    assert {one.name for one in found.columns} == set(found.value)


def test_columns_of_statistics(context, asked):
    found = answer(context, "/hosts/totals", ("columns", "up+down as n,total"))
    assert found.value == {"n": 2, "total": 1}


def test_check_statistics_ask_both_tables(context, asked):
    found = answer(context, "/checks/stats")
    assert [one[0] for one in asked] == [HOSTS, SERVICES]
    assert len(found.value) == 76
    assert found.value["hosts_active_5_perc"] == 100
    assert list(found.value) == sorted(found.value)
    assert [one.name for one in found.columns] == sorted(found.value)
    narrowed = answer(context, "/checks/stats", ("columns", "services_latency_avg as l"))
    assert narrowed.value == {"l": 1}


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


def test_process_statistics_are_numbers_of_their_kind(context, asked):
    found = answer(context, "/processinfo/stats")
    assert len(found.value) == 15
    for name, value in found.value.items():
        assert type(value) is (float if name.endswith("_rate") else int)
