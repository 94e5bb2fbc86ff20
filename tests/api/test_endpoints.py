"""What handlers ask for and add to a request: roles, rights to change something, jobs, the index."""

from types import SimpleNamespace

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from monrest.api.endpoint import Endpoint
from monrest.api.rights import is_read_only, may_submit
from monrest.base.errors import BadRequest, Forbidden, RestError, SitesFailed
from monrest.base.names import Names
from monrest.base.values import (
    ADMIN,
    API,
    READ_ONLY,
    Contact,
    Document,
    Identity,
    Rows,
    SiteProblem,
)
from monrest.commands.permissions import refusal
from monrest.config import Config
from monrest.config.sections import CommandsConfig
from monrest.daemon.families import ENDPOINTS
from monrest.instance.stats import quality, wants_prometheus
from monrest.logs import endpoints as logs
from monrest.logs.model import CachedSite
from monrest.query.model import Condition
from monrest.rows import statistics
from monrest.rows.columns import HOSTS
from tests.api.asking import ROOT, answer, records, request
from tests.api.cores import FakeSite
from tests.fakes.context import make_context, make_dispatch
from tests.fakes.keystore import result
from tests.table import each

ANN = Identity(user="ann")
NOW = 1_000_000
DAY = Condition("time", ">=", str(NOW - 86_400), "path")


@pytest.fixture
def context():
    clock = Clock()
    clock.advance(NOW + 0.5)
    return make_context(clock, path="/etc/monrest/monrest.toml")


@pytest.fixture
def asked(monkeypatch):
    """The (schema, extra) of every question about logs."""
    seen = []

    async def ask(cache, context, request, schema, *, extra=()):
        seen.append((schema, extra))
        return Rows(columns=(), rows=[])

    monkeypatch.setattr(logs, "ask", ask)
    return seen


def test_index_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/index", ("q", "url ~ abc"), ("columns", "url"))
    assert ["/abc"] in found.rows
    assert ["/abc/whoami"] in found.rows
    assert answer(context, "/index", ("url[~]", "^/mon"), ("columns", "url")).rows == []


def test_instance_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/abc")
    assert "abc_version" in found.value
    assert {one.name for one in found.columns} == set(found.value)


@each(
    ("name", "expected"),
    [
        ("mon_version", "x_version"),
        ("has_mon_profile", "has_x_profile"),
        ("month", "month"),
        ("dist_version", "y_version"),
        ("cm_fqdn", "z_fqdn"),
        ("cm", "cm"),
    ],
)
def test_own_word(name, expected):
    assert Names(app="x", dist="y", cm="z").own(name) == expected


@pytest.mark.parametrize("column", ["to_rows(localtime)", "upper(to_rows(localtime))"])
def test_one_object_has_no_rows_to_take_apart(context, column):
    with pytest.raises(BadRequest) as caught:
        answer(context, "/mon", ("columns", column))
    assert caught.value.description.startswith("columns: ")


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


def test_what_ends_or_begins_a_session_is_no_job(context, started):
    for path in ("/mon/login", "/mon/logout"):
        with pytest.raises(BadRequest, match="background"):
            answer(context, path, ("background", "1"), method="POST")
    assert started == []


def test_no_job_is_started_in_demo_mode_that_changes_something(context, started):
    context.config = evolve(context.config, server=evolve(context.config.server, demo_mode=True))
    with pytest.raises(BadRequest, match="demo_mode"):
        answer(context, "/cmd", ("background", "1"), method="POST")
    assert started == []
    answer(context, "/hosts", ("background", "1"))
    assert len(started) == 1


def test_all_missing_roles_are_named():
    one = Endpoint(
        path="/x", description="", handler=None, roles=("admin", "authorized_for_reports")
    )
    with pytest.raises(Forbidden, match="certain roles: admin, authorized_for_reports"):
        one.check_roles(Identity(user="x", roles=frozenset({"authorized_for_reports"})))
    one.check_roles(ROOT)


ALL_HOSTS = "authorized_for_all_hosts"
LIMITED = {
    # limit, session: what stands behind the refusal
    (None, ""): "",
    ((ADMIN,), ""): "; the key allows it, its user ann does not hold it",
    (("authorized_for_reports",), ""): "; the key allows it, its user ann does not hold it",
    ((ALL_HOSTS,), ""): "; the key is limited to other roles",
    ((), "abc"): "; the session is limited to other roles",
}


@each(("limit", "session"), LIMITED)
def test_a_refusal_says_whether_the_key_or_its_user_is_the_reason(limit, session):
    one = Endpoint(path="/x", description="", handler=None, roles=("authorized_for_reports",))
    asking = Identity(
        user="ann", limit=None if limit is None else frozenset(limit), session=session
    )
    with pytest.raises(Forbidden) as caught:
        one.check_roles(asking)
    told = "this path requires certain roles: authorized_for_reports"
    assert caught.value.description == told + LIMITED[limit, session]


def test_so_does_the_refusal_of_a_command():
    asking = Identity(user="ann", limit=frozenset({ADMIN}))
    told = refusal(asking, "system", "", "", "").extra["help"]
    assert told.endswith("_commands; the key allows it, its user ann does not hold it")


def test_so_does_the_refusal_of_a_command_line(context):
    asking = Identity(user="ann", limit=frozenset({"authorized_for_configuration_information"}))
    with pytest.raises(Forbidden, match="; the key allows it, its user ann does not hold it"):
        answer(context, "/hosts/a/commandline", identity=asking)


class Known:
    """Contacts who may submit commands, or not; or of whom nothing is known."""

    def __init__(self, may):
        self.may = may

    async def of(self, user):
        assert user
        return Contact(can_submit_commands=self.may)


COMMAND_ROLES = [f"authorized_for_{one}_commands" for one in ("all_host", "all_service", "system")]


@each(
    ("roles", "contact", "configured", "submits", "read_only"),
    [
        ((), True, True, True, False),
        ((), True, False, True, False),
        ((), False, True, False, True),
        ((), None, True, True, False),
        ((), None, False, False, True),
        ((READ_ONLY,), True, True, False, True),
        ((READ_ONLY,), None, True, False, True),
        ((ADMIN,), False, False, True, False),
        ((ADMIN, READ_ONLY), True, True, True, True),
        *(((role,), False, False, True, False) for role in COMMAND_ROLES),
        *(((role, READ_ONLY), True, True, True, True) for role in COMMAND_ROLES),
        (("authorized_for_all_hosts",), False, True, False, True),
    ],
)
def test_who_may_submit_commands(roles, contact, configured, submits, read_only):
    identity = Identity(user="ann", roles=frozenset(roles))
    config = Config(commands=CommandsConfig(can_submit_commands=configured))
    for ask, expected in ((may_submit, submits), (is_read_only, read_only)):
        assert result(ask(identity, Known(contact), config)) is expected


def test_the_internal_users_may_submit():
    cli = Identity(user="(cli)", superuser=True)
    assert result(may_submit(cli, Known(False), Config())) is True


REASON = "the role authorized_for_read_only forbids every change"
OWN_SESSION = {("POST", "/mon/login"), ("POST", "/mon/logout")}
CHANGES = [(method, one.path) for one in ENDPOINTS for method in one.methods if method != "GET"]
READERS = (
    Identity(user="boss", roles=frozenset({ADMIN, READ_ONLY})),
    Identity(user=API, superuser=True, roles=frozenset({READ_ONLY})),
    evolve(ROOT, roles=frozenset({READ_ONLY, "authorized_for_system_commands"})),
)


def reason_of(method, path, identity, **given):
    """What a refusal says of reading, empty for any other end."""
    context = make_context(Clock(), **given)
    segments = ["x" if one.startswith("<") else one for one in path.strip("/").split("/")]
    asked = request("/" + "/".join(segments), identity=identity, method=method)
    try:
        result(context.dispatch(context, asked))
    except Forbidden as error:
        return error.description
    except (RestError, Exception):  # the family has nothing in this context
        return ""
    return ""


def test_there_are_such_endpoints():
    assert len(CHANGES) > 90
    assert set(CHANGES) >= OWN_SESSION


@each("method, path", CHANGES)
def test_who_may_only_read_changes_nothing(audited, method, path):
    for identity in READERS:
        del audited[:]
        if (method, path) in OWN_SESSION:
            assert reason_of(method, path, identity) != REASON
            assert not [line for line in audited if line["action"] == "change refused"]
            continue
        assert reason_of(method, path, identity) == REASON
        (line,) = audited
        assert (line["action"], line["user"]) == ("change refused", identity.user)
        assert line["target"].startswith(f"{method} /")


@each("method, path", [one for one in CHANGES if one not in OWN_SESSION])
def test_who_may_not_send_commands_only_reads(method, path):
    found = reason_of(method, path, Identity(user="ann"), contacts=Known(False))
    assert found.startswith((REASON, "this path requires certain roles"))


@pytest.mark.parametrize("path", ["/hosts", "/services/a/b", "/mon/jobs", "/config/objects/x"])
def test_a_post_that_only_reads_is_no_change(path):
    """The router takes it for the GET."""
    assert reason_of("POST", path, READERS[0]) == (REASON if "config" in path else "")
    assert reason_of("GET", path, READERS[0]) == ""


@each(
    ("accept", "text"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", True),
        ("TEXT/Plain;version=0.0.4", True),
        ("text/*", True),
        ("application/json, text/plain, */*", False),
        ("application/json;q=0.4, text/plain;q=0.5", True),
        ("application/json;q=0.5, text/plain;q=0.4", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1", True),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("text/plain;q=0", False),
        ("*/*, application/json;q=0", True),
        ("text/plain;q=x;;,,;", True),
    ],
)
def test_which_format_an_accept_header_means(accept, text):
    assert wants_prometheus(accept) is text


@given(st.text())
def test_no_header_is_too_strange(accept):
    assert 0 <= quality(accept, "text/plain") <= 1.999
    wants_prometheus(accept)


KNOWN = CachedSite(
    id=1, site="a", covered_from=NOW - 900, covered_until=NOW - 5, wanted_from=NOW - 900,
    compacted_until=0, firsts_until=None, items=7, data_size=700, index_size=70, last_update=NOW - 9,
    update_duration=0.5, last_compact=None, compact_duration=0.0, mode="", mode_since=NOW - 9,
    owner="", owned_until=0.0, last_entry=NOW - 5,
)  # fmt: skip


def known(**values):
    return evolve(KNOWN, **values)


class Cache:
    enabled = True

    def __init__(self, **records):
        self.records = records

    async def record(self, site):
        return self.records.get(site.id)

    def busy(self, known):
        return bool(known.owner) and not known.owner.startswith("dead:")


@each(
    ("record", "status"),
    [
        (None, "logcache not yet created"),
        (known(covered_from=None, covered_until=None), "logcache not yet created"),
        (KNOWN, "OK"),
        (known(wanted_from=NOW - 1795), "importing, 50% done"),
        (
            known(owner="4711:17", owned_until=NOW + 20.0, mode="update"),
            "running update since 1970-01-12 13:46:31 (pid: 17)",
        ),
        # A worker that died holds it no more.
        (known(owner="dead:17", owned_until=NOW + 20.0, mode="update"), "OK"),
    ],
)
def test_states_of_a_cache(record, status):
    context = make_context(Clock(), FakeSite("a"), FakeSite("b"), logcache=Cache(a=record))
    found = records(answer(context, "/mon/logcache/stats", ("columns", "key,status")))
    assert found == [
        {"key": "a", "status": status},
        {"key": "b", "status": "logcache not yet created"},
    ]
