"""What every handler adds to a request, with the road to the cores replaced by a recorder."""

from types import SimpleNamespace

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from monrest.errors import BadRequest, Forbidden, RestError, SitesFailed
from monrest.names import Names
from monrest.query.model import Condition
from monrest.resources import core, instance, logs, statistics
from monrest.resources.columns import CONTACTS, HOSTS, LOGS, PROCESSINFO, SERVICES
from monrest.resources.declare import Endpoint, holds
from monrest.resources.dispatch import dispatch
from monrest.resources.logs import ALERTS, NOTIFICATIONS
from monrest.resources.registry import ENDPOINTS
from monrest.resources.specs import HOST_STATS, SERVICE_STATS, SERVICE_TOTALS
from monrest.values import ADMIN, READ_ONLY, Document, Identity, RestRequest, Rows, SiteProblem
from tests.fakes.context import make_context

ROOT = Identity(user="root", superuser=True)
ANN = Identity(user="ann")
NOW = 1_000_000
DAY = Condition("time", ">=", str(NOW - 86_400), "path")


@pytest.fixture
def context():
    clock = Clock()
    clock.advance(NOW + 0.5)
    return make_context(clock, version="1.2.3", config_path="/etc/monrest/monrest.toml")


@pytest.fixture
def asked(monkeypatch):
    """The (schema, extra) or (schema, spec, extra) of every fetch."""
    seen = []

    async def fetch(context, request, schema, *, extra=()):
        seen.append((schema, extra))
        return Rows(columns=(), rows=[])

    async def fetch_stats(context, request, schema, spec, *, extra=()):
        seen.append((schema, spec, extra))
        return Document(value={one.name: 1 for one in spec.fields})

    for module in (core, logs):
        monkeypatch.setattr(module, "fetch", fetch)
    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    return seen


def request(path, *parameters, identity=ROOT, method="GET"):
    segments = tuple(path.strip("/").split("/")) if path != "/" else ()
    return RestRequest(
        method=method, path=path, segments=segments, parameters=parameters, identity=identity
    )


def answer(context, path, *parameters, **more):
    return result(dispatch(context, request(path, *parameters, **more)))


def result(coroutine):
    found = []
    Deferred.fromCoroutine(coroutine).addBoth(found.append)
    (value,) = found
    if hasattr(value, "raiseException"):
        value.raiseException()
    return value


def equal(column, value):
    return Condition(column, "=", value, "path")


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

    async def fetch_stats(context, request, schema, spec):
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

    async def fetch_stats(context, request, schema, spec):
        if schema is HOSTS:
            return await waiting
        raise SitesFailed([SiteProblem("a", "A", "gone")])

    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    with pytest.raises(SitesFailed):
        answer(context, "/checks/stats")
    assert waiting.called


def test_cancelled_check_statistics(context, monkeypatch):
    ends = []

    async def fetch_stats(context, request, schema, spec):
        return await Deferred(lambda _: ends.append(schema.name))

    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    found = []
    running = Deferred.fromCoroutine(dispatch(context, request("/checks/stats")))
    running.addBoth(found.append)
    running.cancel()
    assert sorted(ends) == ["hosts", "services"]
    assert found[0].check(CancelledError)


def test_process_statistics_are_numbers_of_their_kind(context, asked):
    found = answer(context, "/processinfo/stats")
    assert len(found.value) == 15
    for name, value in found.value.items():
        assert type(value) is (float if name.endswith("_rate") else int)


# -------------------------------------------------------------------- roles, background


def test_commands_need_the_admin_role(context, asked):
    for path in ("/commands", "/commands/ping", "/command/ping"):
        with pytest.raises(Forbidden) as caught:
            answer(context, path, identity=ANN)
        assert caught.value.message == "not authorized"
        assert caught.value.description == "this path requires certain roles: admin"
    assert asked == []
    answer(context, "/commands", identity=Identity(user="bob", roles=frozenset({ADMIN})))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("roles", "role", "held"),
    [
        ((), "admin", False),
        ((ADMIN,), "admin", True),
        ((ADMIN,), "authorized_for_reports", True),
        (("authorized_for_reports",), "authorized_for_reports", True),
        (("authorized_for_reports",), "admin", False),
        ((ADMIN,), READ_ONLY, False),
    ],
)
def test_roles(roles, role, held):
    assert holds(Identity(user="x", roles=frozenset(roles)), role) is held


def test_all_missing_roles_are_named():
    one = Endpoint(
        path="/x", description="", handler=None, roles=("admin", "authorized_for_reports")
    )
    with pytest.raises(Forbidden, match="certain roles: admin, authorized_for_reports"):
        one.check_roles(Identity(user="x", roles=frozenset({"authorized_for_reports"})))
    one.check_roles(ROOT)


def test_command_lines_need_their_role(context):
    for path in ("/hosts/a/commandline", "/services/a/b/commandline"):
        with pytest.raises(Forbidden, match="not authorized to view the command line"):
            answer(context, path, identity=ANN)


class StartedJobs:
    """Keeps what is to become a job."""

    def __init__(self):
        self.works = []

    async def start(self, work):
        self.works.append(work)
        return SimpleNamespace(id=4711)


@pytest.fixture
def started(context):
    context.jobs = StartedJobs()
    return context.jobs.works


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

    async def fetch(context, request, schema, *, extra=()):
        seen.append((context, request))
        return Rows(columns=(), rows=[])

    monkeypatch.setattr(core, "fetch", fetch)
    sent = evolve(
        request("/hosts/a%2Fb", ("x", "1"), ("background", "1"), ("headers", "0"), identity=ANN),
        sites=("a", "b"),
        format="csv",
        pretty=True,
    )
    result(dispatch(context, sent))
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
    assert own.config.server.request_timeout > 86_400
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


# -------------------------------------------------------------------- index, instance


def records(found):
    return [dict(zip([c.name for c in found.columns], row, strict=False)) for row in found.rows]


def test_index(context):
    found = records(answer(context, "/"))
    assert found == records(answer(context, "/index"))
    listed = sorted((one.path, method) for one in ENDPOINTS for method in one.methods)
    assert sorted((one["url"], one["protocol"]) for one in found) == listed
    assert [one["url"] for one in found] == [path for path, _ in listed]
    assert all(one["description"] for one in found)


def test_index_is_a_list_like_any_other(context):
    found = answer(context, "/index", ("url[~]", "^/mon"), ("sort", "-url"), ("columns", "url"))
    own = [one.path for one in ENDPOINTS if one.path.startswith("/mon") for _ in one.methods]
    assert found.rows == [[path] for path in sorted(own, reverse=True)]
    assert ["/mon/whoami"] in found.rows


def test_index_spells_the_configured_word(context):
    context.names = Names(app="abc")
    found = answer(context, "/index", ("q", "url ~ abc"), ("columns", "url"))
    assert ["/abc"] in found.rows
    assert ["/abc/whoami"] in found.rows
    assert answer(context, "/index", ("url[~]", "^/mon"), ("columns", "url")).rows == []


def test_instance(context):
    found = answer(context, "/mon", identity=ANN)
    assert found.value["rest_version"] == "1"
    assert found.value["mon_version"] == "1.2.3"
    assert found.value["localtime"] == NOW + 0.5
    assert found.value["etc_path"] == "/etc/monrest"
    assert {one.name for one in found.columns} == set(found.value)
    assert answer(context, "/mon", ("columns", "mon_version:v")).value == {"v": "1.2.3"}


def test_instance_spells_the_configured_word(context):
    context.names = Names(app="abc")
    found = answer(context, "/abc")
    assert "abc_version" in found.value
    assert {one.name for one in found.columns} == set(found.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mon_version", "x_version"), ("has_mon_profile", "has_x_profile"), ("month", "month")],
)
def test_own_word(name, expected):
    assert instance.own_word(name, "x") == expected


def test_lmd_sites_without_lmd(context):
    assert answer(context, "/lmd/sites").rows == []


@pytest.mark.parametrize("column", ["to_rows(localtime)", "upper(to_rows(localtime))"])
def test_one_object_has_no_rows_to_take_apart(context, column):
    with pytest.raises(BadRequest) as caught:
        answer(context, "/mon", ("columns", column))
    assert caught.value.description.startswith("columns: ")
