"""Row filters: operators, aliases, lists, custom variables, performance data, times, q (4, 5)."""

import pytest
from harness.client import raw_status
from harness.expect import HOSTS, refused

from tests.table import each

WEB = ["web01", "web02"]
LINUX = ["db01", "web01", "web02"]
REST = ["leaf01", "pend01", "router1"]
CHECKED = ["db01", "leaf01", "router1", "web01", "web02"]
ALL = list(HOSTS)


def but(*names):
    return [host for host in HOSTS if host not in names]


HOST_FILTERS = [
    # equality and its aliases
    ("name", "web01", ["web01"]),
    ("name[=]", "web01", ["web01"]),
    ("name[eq]", "web01", ["web01"]),
    ("name[EQ]", "web01", ["web01"]),
    ("name[ NE ]", "web01", but("web01")),
    ("name", "WEB01", []),
    ("name[!=]", "web01", but("web01")),
    ("name[ne]", "web01", but("web01")),
    ("name[ne]", "WEB01", ALL),
    ("host_name", "web01", ["web01"]),
    ("notes", "", but("web01")),
    ("notes[ne]", "", ["web01"]),
    ("address", "127.0.0.3", ["web01"]),
    # regular expressions
    ("name[~]", "^WEB", []),
    ("name[~]", "^web", WEB),
    ("name[sregex]", "^web", WEB),
    ("name[~~]", "^WEB", WEB),
    ("name[regex]", "^WEB", WEB),
    ("name[like]", "EB0", WEB),
    ("name[!~]", "^web", but(*WEB)),
    ("name[!~]", "^WEB", ALL),
    ("name[snregex]", "^web", but(*WEB)),
    ("name[!~~]", "^WEB", but(*WEB)),
    ("name[nregex]", "^WEB", but(*WEB)),
    ("name[unlike]", "^WEB", but(*WEB)),
    ("name[regex]", "^(web|db)01$", ["db01", "web01"]),
    ("name[regex]", r"^\D+\d$", ["router1"]),
    ("name[regex]", r"^\w{4}\d\d$", ["leaf01", "pend01"]),
    ("name[regex]", "", ALL),
    ("alias[~]", "ü$", ["web01"]),
    ("alias[~~]", "Ü$", ["web01"]),
    ("alias", "Web 01 · ü", ["web01"]),
    ("perf_data_expanded[~]", "^rta=12", ["db01"]),
    ("perf_data_expanded[~]", "^pl$", ["db01", "router1", "web01"]),
    # numbers
    ("state", "0", ["db01", "pend01", "web01"]),
    ("state", "0.0", ["db01", "pend01", "web01"]),
    ("state[ne]", "0", ["leaf01", "router1", "web02"]),
    ("state[>]", "0", ["leaf01", "router1", "web02"]),
    ("state[gt]", "1", ["leaf01"]),
    ("state[gte]", "1", ["leaf01", "router1", "web02"]),
    ("state[>=]", "1", ["leaf01", "router1", "web02"]),
    ("state[lt]", "1", ["db01", "pend01", "web01"]),
    ("state[<]", "1.5", but("leaf01")),
    ("state[lte]", "1", but("leaf01")),
    ("state[<=]", "1", but("leaf01")),
    ("check_interval", "60", ALL),
    ("check_interval", "60.0", ALL),
    ("check_interval[ne]", "60", []),
    ("has_been_checked", "0", ["pend01"]),
    ("num_services[gt]", "2", ["web01"]),
    # names of states
    ("state", "up", ["db01", "pend01", "web01"]),
    ("state", "DOWN", ["router1", "web02"]),
    ("state[ne]", "Up", ["leaf01", "router1", "web02"]),
    ("state", "down,unreachable", ["leaf01", "router1", "web02"]),
    ("state[gte]", "down", ["leaf01", "router1", "web02"]),
    ("state[~]", "down|unreachable", ["leaf01", "router1", "web02"]),
    ("state", "pending", ["pend01"]),
    ("state[ne]", "pending", but("pend01")),
    ("q", "state = DOWN", ["router1", "web02"]),
    ("q", "state = down,unreachable and name ~ web", ["web02"]),
    ("accept_passive_checks", "YES", ALL),
    ("accept_passive_checks", "off", []),
    # lists
    ("groups[gte]", "linux", LINUX),
    ("groups[>=]", "linux", LINUX),
    ("groups[lte]", "linux", REST),
    ("groups[<=]", "linux", REST),
    ("groups[notin]", "linux", REST),
    ("groups[!>=]", "linux", REST),
    ("groups", "linux", ["db01"]),
    ("groups[ne]", "linux", but("db01")),
    ("groups", "", ["leaf01", "router1"]),
    ("groups[ne]", "", ["db01", "pend01", *WEB]),
    ("groups[~]", "^l", LINUX),
    ("groups[~]", "^L", []),
    ("groups[~~]", "^L", LINUX),
    ("groups[!~]", "^l", REST),
    ("groups[!~~]", "^L", REST),
    ("groups[gte]", "knowledge", []),
    ("groups[gte]", "5d", []),
    ("parents[gte]", "router1", ["leaf01"]),
    ("contacts[gte]", "olga", ["web01"]),
    ("services[~]", "^http$", WEB),
    # custom variables
    ("_WORKER", "local", ["web01"]),
    ("_WORKER[ne]", "local", but("web01")),
    ("_WORKER", "", but(*WEB)),
    ("_WORKER[ne]", "", WEB),
    ("_WORKER[~]", "^l", ["web01"]),
    ("_SIZE[gt]", "5", ["db01"]),
    ("_SIZE[lt]", "5", ["web01"]),
    ("_SIZE[gte]", "2", ["db01", "web01"]),
    ("_NONE", "x", []),
    ("custom_variable_names[gte]", "WORKER", WEB),
    # performance data
    ("pl[gte]", "1", ["db01", "router1"]),
    ("pl[lt]", "1", ["web01"]),
    ("rta[lt]", "1", ["router1", "web01"]),
    ("pl", "100", ["router1"]),
    ("rta_unit", "ms", ["db01", "router1", "web01"]),
    # times, given relatively
    ("last_check[gt]", "-10m", CHECKED),
    ("last_check[gte]", "-1h30m", CHECKED),
    ("last_check[lt]", "-10m", ["pend01"]),
    ("last_check[gt]", "yesterday", CHECKED),
    ("last_check[gt]", "now - 1h", CHECKED),
    ("last_check[gt]", "now-3600", CHECKED),
    ("last_check[lte]", "now", ALL),
    ("last_check[lt]", "7d", ALL),
    ("last_check[lt]", "+10m", ALL),
    ("last_check[lt]", "tomorrow", ALL),
    ("last_check[gt]", "lastyear", CHECKED),
    ("last_check[gt]", "2020-01-01 10:00", CHECKED),
    ("last_check[gt]", "2020-01-01", CHECKED),
    # what the service adds to a row
    ("peer_key", "s1", ALL),
    ("peer_key[ne]", "s1", []),
    ("peer_name[~]", "^Site", ALL),
    ("peer_section", "Europe/Munich", ALL),
    # no filter at all
    ("", "x", ALL),
]


@each(("name", "value", "expected"), HOST_FILTERS)
def test_host_filters(client, name, value, expected):
    assert client.values("/hosts", "name", **{name: value}) == expected


@each(
    ("name", "value", "expected"),
    [
        ("description", "ping", ["db01", "pend01", "router1", "web01", "web02"]),
        ("service_description", "http", WEB),
        ("host_name[~]", "^web", ["web01"] * 4 + ["web02"] * 2),
        ("host_state", "1", ["router1", "router1", "web02", "web02"]),
        ("host_state", "down", ["router1", "router1", "web02", "web02"]),
        ("state", "CRITICAL", ["router1", "web01", "web02"]),
        ("state", "warning,unknown", ["db01", "router1", "web02"]),
        ("q", "state = critical or state = Unknown", ["router1", "router1", "web01", "web02"]),
        ("q", "state = critical,unknown", ["router1", "router1", "web01", "web02"]),
        ("host_groups[gte]", "web", ["web01"] * 4 + ["web02"] * 2),
        ("service_groups[gte]", "http", WEB),
        ("groups[gte]", "http", WEB),
        ("_HOSTWORKER", "remote", ["web02", "web02"]),
        ("_HOSTSIZE[gt]", "5", ["db01", "db01"]),
        ("_LEVEL", "gold", ["db01"]),
        ("host_pl[gte]", "100", ["router1", "router1"]),
        ("time[gt]", "2", ["web02"]),
        ("/var", "80", ["db01"]),
        ("/var[gte]", "80", ["db01"]),
        ("Größe", "5", ["web01"]),
        ("plugin_output[~]", "5 €$", ["web01"]),
        ("plugin_output[~]", "not 75%", ["db01"]),
        ("description[~]", "; 5%$", ["web01"]),
        ("state[gte]", "2", ["router1", "router1", "web01", "web02"]),
        ("acknowledged", "1", ["web01"]),
        ("comments_info[~]", "looks fine", ["db01"]),
        ("state_order", "4", ["router1", "web01", "web02"]),
    ],
)
def test_service_filters(client, name, value, expected):
    assert client.values("/services", "host_name", **{name: value}) == expected


def test_all_filters_must_hold(client):
    assert client.values("/hosts", "name", **{"state": "1", "groups[gte]": "web"}) == ["web02"]
    assert client.rows("/hosts?name=web01&name=web02") == []
    rows = client.rows("/hosts?columns=name&name[ne]=web01&name[ne]=web02")
    assert [row["name"] for row in rows] == ["db01", "leaf01", "pend01", "router1"]


def test_filters_apply_to_every_collection(client):
    assert client.values("/hostgroups", "name", **{"members[gte]": "pend01"}) == ["idle"]
    assert client.values("/hostgroups", "name", **{"peer_key[gte]": "s1"}) == [
        "idle",
        "linux",
        "web",
    ]
    assert client.values("/contacts", "name", **{"email[~]": "^olga"}) == ["olga"]
    assert client.values("/contactgroups", "name", **{"members[gte]": "olga"}) == ["webteam"]
    assert client.values("/downtimes", "comment", fixed="1") == ["new disks"]
    assert client.values("/comments", "author", **{"comment[~]": "fine$"}) == ["olga"]
    assert client.values("/comments", "comment", service_description="http") == ["on it"]
    assert client.values("/timeperiods", "name", alias="Always") == ["24x7"]
    assert client.values("/servicegroups", "name", **{"num_services[gt]": "2"}) == ["pings"]


Q = [
    ('name = "web01"', ["web01"]),
    ("name = 'web01'", ["web01"]),
    ("name=web01", ["web01"]),
    ("  name\n=\n web01 ", ["web01"]),
    ("", ALL),
    ("()", ALL),
    ("(((name = web01)))", ["web01"]),
    ("name = web01 or name = web02", WEB),
    ("name = web01 OR name = web02", WEB),
    ("name = web01 || name = web02", WEB),
    ("state = 1 and groups >= linux", ["web02"]),
    ("state = 1 && groups >= linux", ["web02"]),
    ("state = 1 groups >= linux", ["web02"]),
    ("name = db01 or state = 1 and groups >= linux", ["db01", "web02"]),
    ("state = 1 and groups >= linux or name = db01", ["db01", "web02"]),
    ("name = leaf01 or (state = 1 and groups >= linux)", ["leaf01", "web02"]),
    ("name = leaf01 or state = 1 and groups >= linux", ["web02"]),
    ("name = web01 or name = db01 and state = 1 or name = router1", ["router1"]),
    ("name ~ WEB", []),
    ("name ~~ WEB", WEB),
    ("name~^web", WEB),
    ("name !~ web", but(*WEB)),
    ("name like WEB", WEB),
    ("name unlike WEB", but(*WEB)),
    ("name ~ '^(web|db)'", LINUX),
    ("host = web01", ["web01"]),
    ("host_name = web01", ["web01"]),
    ('"name" = web01', ["web01"]),
    ("`pl` > 1", ["db01", "router1"]),
    ("pl > 1 or rta < 1", ["db01", "router1", "web01"]),
    ("_WORKER = local", ["web01"]),
    ("_WORKER = local or state = 1", ["router1", *WEB]),
    ("_WORKER != ''", WEB),
    ("groups = ''", ["leaf01", "router1"]),
    ("groups !>= linux", REST),
    ("last_check > -10m", CHECKED),
    ("last_check>=-10m and state = 0", ["db01", "web01"]),
    ("last_check < 'now - 10m'", ["pend01"]),
    ("duration < 1d and name ~ '^(db|web)01'", ["db01", "web01"]),
    ("duration > 1d and has_been_checked = 1", []),
    ("execution_time < 1m", ALL),
    ("alias = 'Web 01 · ü'", ["web01"]),
    ('***name = "web01"***', ["web01"]),
    ('///name = "web01"/// and nothing else', ["web01"]),
    ("xxxstate = 1xxx", ["router1", "web02"]),
    ("******", ALL),
    ("(()())", ALL),
    ("() and name = web01", ["web01"]),
    ("name = web02 or () and state = 0", []),
    ("(name = web01)or(name = web02)", WEB),
    ("state = 1(groups >= linux)", ["web02"]),
    ("name = web01 AS total ", ["web01"]),
    ("(name = web01 or name = web02) as total", WEB),
    ("alias = 'x as y'", []),
    ("alias != '(1) and b = \"2 : % @ , \\'", ALL),
    ('alias != "it\'s"', ALL),
    ("alias != and", ALL),
    ("name = '\"web01\"'", []),
    ("alias != web-01.x_^*", ALL),
]


@each(("q", "expected"), Q)
def test_q(client, q, expected):
    assert client.values("/hosts", "name", q=q) == expected


@pytest.mark.parametrize(
    "query",
    [
        'q=***name%20=%20"web01"***&columns=name',
        'q=***name="web01"***&columns=name',
        "columns=name&q=///name%20=%20web01///",
        "q=+++name+=+'web01'+++&columns=name",
        "q=%2A%2A%2Aname+%3D+web01%2A%2A%2A&columns=name",
        "columns=name&q=***name=web01||(name=\"a&b\"&&alias='x=y')***",
        "columns=name&q=name%20%3D%20web01",
    ],
)
def test_raw_q_in_the_url(daemon, query):
    status, body = raw_status(daemon.port, b"/mon/r/hosts?" + query.encode(), daemon.key)
    assert (status, body) == (200, b'[{"name":"web01"}]\n')


def test_several_q_and_filters_must_all_hold(client):
    rows = client.rows("/hosts?columns=name&q=state=1&q=groups%20%3E=%20web")
    assert rows == [{"name": "web02"}]
    assert client.values("/hosts", "name", q="state = 1", name="router1") == ["router1"]


def test_service_q(client):
    values = client.values("/services", "host_name", q="service = ping and host ~ ^web")
    assert values == WEB
    values = client.values("/services", "host_name", q="_HOSTWORKER = remote and state = 2")
    assert values == ["web02"]


@each(
    ("parameters", "words"),
    [
        ({"nope": "1"}, ["nope", "possible typo in filter"]),
        ({"nope[gt]": "1", "name": "nothing"}, ["nope"]),
        ({"q": "nope = 1"}, ["nope"]),
        ({"q": "or-1 = x"}, ["or-1", "possible typo in filter"]),
        ({"q": "name = web01 or nope = 1"}, ["nope"]),
        ({"name[foo]": "x"}, ["name[foo]"]),
        ({"name[]": "x"}, ["name"]),
        ({"groups[gt]": "x"}, ["groups"]),
        ({"groups[lt]": "x"}, ["groups"]),
        ({"name[notin]": "x"}, ["name"]),
        ({"last_check[gt]": "some day"}, ["last_check"]),
        ({"last_check[gt]": "-10x"}, ["last_check"]),
        ({"last_check[gt]": "nextday"}, ["last_check"]),
        ({"state": "critical"}, ["state", "expected up, down, unreachable, pending or a number"]),
        ({"q": "state = broken"}, ["q: ", "state", "'broken'"]),
        ({"num_services[gt]": "many"}, ["num_services[gt]", "expected a number, got 'many'"]),
        ({"num_services": "many"}, ["num_services", "expected a number"]),
        ({"latency[lt]": "soon"}, ["latency", "a number of seconds or a duration"]),
        ({"accept_passive_checks": "maybe"}, ["accept_passive_checks", "0 or 1"]),
        ({"last_check": "some day"}, ["last_check", "cannot parse time"]),
        ({"columns": "count(*),state", "count(*)[gt]": "many"}, ["count(*)", "a number"]),
        ({"name[regex]": "("}, ["name", "("]),
        ({"name[regex]": "a{100000}"}, ["name"]),
        ({"name[regex]": "(?=x)"}, ["name"]),
        ({"name[regex]": r"(a)\1"}, ["name"]),
        ({"name[regex]": "x" * 5000}, ["name"]),
        ({"columns": "name,state as s", "s": "1"}, ["alias column name used in filter", "state"]),
        ({"columns": "count(*):n,state", "n": "1"}, ["alias column name", "count(*)"]),
        ({"columns": "state", "count(*)[gt]": "1"}, ["count(*)"]),
    ],
)
def test_wrong_filters_are_refused(client, parameters, words):
    refused(client.get("/hosts", parameters), 400, *words)


@each(
    ("q", "description"),
    [
        ('a = "x', 'parse error at "x (character 5)'),
        ("a = 1,b = 2", "parse error at = 2 (character 9)"),
        ("a = 1/2", "parse error at /2 (character 6)"),
        ("a = @", "parse error at @ (character 5)"),
        ("a = ü", "parse error at ü (character 5)"),
        ("a = `b`", "parse error at `b` (character 5)"),
        ("a 'x' = 1", "parse error at 'x' = 1 (character 3)"),
        ("'' = 1", "parse error at '' = 1 (character 1)"),
        ("count(*) > 2", "parse error at (*) > 2 (character 6)"),
        ("a =~ x", "unknown operator =~ at =~ x (character 3)"),
        ("a gt 1", "unknown operator gt at gt 1 (character 3)"),
        ("not a = 1", "unknown operator a at a = 1 (character 5)"),
        ("a =", "unexpected end of query after = (character 4)"),
        ("(a = 1 or", "unexpected end of query after or (character 10)"),
        ("a = 1 && || b = 2", "unexpected end of query after && at || b = 2 (character 10)"),
        ("|| a = 1", "unexpected OR at || a = 1 (character 1)"),
        ("a = 1 ( and b = 2", "unexpected AND at and b = 2 (character 9)"),
        ("((a = 1) and b = 2", "expected closing bracket for ((a = 1) and b = 2 (character 1)"),
        ("a = 1) or b = 2", "unexpected closing bracket at ) or b = 2 (character 6)"),
        ("(a = 1 and)", "unexpected closing bracket at ) (character 11)"),
        ("  (a = 1", "expected closing bracket for (a = 1 (character 3)"),
        (
            "a = 1 and\n  (b = 2 or (c = 3)",
            "expected closing bracket for (b = 2 or (c = 3) (character 13)",
        ),
        ("***(a = 1***", "expected closing bracket for (a = 1 (character 4)"),
        ("a = 1;" + "x" * 1000, "parse error at ;" + "x" * 99 + "… (character 6)"),
        ("name == x", "unknown operator == at == x (character 6)"),
        ("name <> x", "unknown operator <> at <> x (character 6)"),
        ("name LIKE b", "unknown operator LIKE at LIKE b (character 6)"),
        ("name", "unexpected end of query after name (character 5)"),
        ("name = b c", "unexpected end of query after c (character 11)"),
        ("(" * 500 + "name = x" + ")" * 500, "at most 20 brackets may be nested"),
    ],
)
def test_wrong_q_is_refused_with_the_reason_and_its_place(client, q, description):
    document = refused(client.get("/hosts", {"q": q}), 400)
    assert document["message"] == "error during request"
    assert document["description"] == f"q: {description}"


def test_a_wrong_pattern_in_q_is_refused(client):
    refused(client.get("/hosts", {"q": 'name ~ "("'}), 400, "invalid regex in")
