"""Generated requests: a success or a clear refusal, never 5xx, nothing unexpected in LQL."""

import json
import string
from urllib.parse import quote, urlencode

from harness.client import raw_status
from harness.expect import ODD, refused
from harness.recorder import problems
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples

GENERATED = settings(
    max_examples=examples(150),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

NAMES = [
    *("name", "state", "groups", "alias", "_WORKER", "pl", "rta_unit", "last_check", "nope"),
    *("host_name", "service_description", "count(*)", "to_rows(groups)", "peer_key", "latency"),
]
OPERATORS = ["", "=", "!=", "~", "!~", "~~", "!~~", ">", "<", ">=", "<=", "!>=", "eq", "lte", "x"]
WORDS = [
    *("and", "or", "&&", "||", "(", ")", "=", "!=", "~", "~~", ">=", "<", "!>=", "like", "unlike"),
    *("name", "state", "groups", "web01", "1", "-10m", "'x y'", '"', "'", "`pl`", "***", "as", ","),
    *("duration", "1d", "_WORKER", "^web", "[", "\\", "not", "==", "now", "ü", "()", "count(*)"),
]
FUNCTIONS = [
    *("upper", "lower", "substr", "calc", "s", "concat", "fmt", "unit", "age", "duration", "utc"),
    *("date", "hoststate", "servicestate", "count", "avg", "sum", "min", "max", "uniq", "to_rows"),
    *("as_rows", "nope", "lc", "uc"),
]
anything = st.text(max_size=40)
values = st.one_of(
    anything,
    st.text(alphabet="()[]{}^$.*+?|\\dwsDWb0123456789a,-", max_size=20),
    st.sampled_from([*ODD, "-10m", "now-1h", "today+1d", "7d", "2026-11-21", "lastweek"]),
    st.integers().map(str),
    st.floats().map(str),
)
arguments = st.recursive(
    st.sampled_from(["name", "state", "'x'", "2", "", "`pl`", "*", "groups", "'%s%d%999999999d'"]),
    lambda inner: st.builds(
        lambda function, parts: f"{function}({','.join(parts)})",
        st.sampled_from(FUNCTIONS),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)
columns = st.lists(
    st.one_of(
        arguments,
        st.text(alphabet=string.printable[:95] + "ü", max_size=20),
        st.builds("{}{}{}".format, arguments, st.sampled_from(":+-*/"), arguments),
        st.builds("{} as {}".format, arguments, anything),
    ),
    max_size=4,
).map(",".join)
parameter = st.one_of(
    st.tuples(
        st.builds("{}[{}]".format, st.sampled_from(NAMES), st.sampled_from(OPERATORS)), values
    ),
    st.tuples(st.sampled_from(NAMES), values),
    st.tuples(st.just("q"), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)),
    st.tuples(st.just("q"), anything),
    st.tuples(st.just("columns"), columns),
    st.tuples(st.just("sort"), st.one_of(anything, arguments, st.sampled_from(["-name", "state"]))),
    st.tuples(st.sampled_from(["limit", "offset"]), values),
    st.tuples(
        st.sampled_from(["start", "end", "timeperiod", "type", "backtrack", "rpttimeperiod"]),
        values,
    ),
    st.tuples(st.sampled_from(["backends", "backend"]), st.one_of(anything, st.just("s1"))),
    st.tuples(anything, anything),
)
paths = st.one_of(
    st.sampled_from(
        [
            *("/hosts", "/services", "/hosts/totals", "/services/stats", "/hostgroups", "/logs"),
            *("/contacts", "/comments", "/processinfo", "/checks/stats", "/sites", "/index"),
            *("/hosts/availability", "/services/outages", "/hosts/web01/availability"),
            *("/csv/hosts", "/text/services", "/wrapped_json/hosts", "/hosts/*/commandline"),
        ]
    ),
    st.builds(lambda text: f"/services/{quote(text, safe='*')}/*", anything),
    st.builds(lambda text: f"/hosts/{quote(text, safe='')}/alerts", anything),
    st.builds(lambda text: f"/{quote(text)}", anything),
)
documents = st.dictionaries(
    st.sampled_from([*NAMES, "q", "columns", "limit", "sort", "backends", "name[regex]"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), anything),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=4,
)
KINDS = [
    *("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"),
    "",
]


def sound(response):
    """A success, or a refusal with its three keys (in the format that was asked for)."""
    assert response.status == 200 or 400 <= response.status < 500, response
    if response.status != 200 and response.type == "application/json":
        refused(response, response.status)


# The generated tests are inner functions because pytest-twisted wraps an outer one anew for
# every parameter of a fixture and so cannot run it a second time.


def test_generated_requests(client):
    @GENERATED
    @given(path=paths, parameters=st.lists(parameter, max_size=4))
    def check(path, parameters):
        pairs = [tuple(text.encode(errors="replace") for text in pair) for pair in parameters]
        sound(client.get(f"{path}?{urlencode(pairs)}" if pairs else path))

    check()


def test_generated_query_strings(client):
    @GENERATED
    @given(query=st.text(alphabet="&=;[]%+?#/*'\"`~!<>(),.ab0", max_size=60))
    def check(query):
        sound(client.get(f"/hosts?{quote(query, safe='&=;[]%+?/*!~(),')}"))

    check()


def test_generated_documents(client):
    @GENERATED
    @given(document=documents)
    def check(document):
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        sound(client.request("POST", "/hosts", body=body, headers=headers))

    check()


def test_generated_bodies(client):
    @GENERATED
    @given(body=st.binary(max_size=200), kind=st.sampled_from(KINDS))
    def check(body, kind):
        sound(client.request("POST", "/hosts", body=body, headers={"Content-Type": kind}))

    check()


def test_generated_raw_targets(daemon):
    @GENERATED
    @given(data=st.binary(max_size=60))
    def check(data):
        target = b"/mon/r/" + bytes(byte for byte in data if byte > 32 and byte != 35)
        status, _body = raw_status(daemon.port, target, daemon.key)
        assert status is not None
        assert status == 200 or 400 <= status < 500

    check()


def test_afterwards_everything_still_works(daemon, client, recorder):
    assert client.rows("/hosts/web01?columns=name") == [{"name": "web01"}]
    assert client.rows("/sites")[0]["connected"] == 1
    assert "Traceback" not in daemon.log
    for request in recorder.requests:
        assert not problems(request), request
