"""Sites behind an LMD: what the daemon asks it, what it makes of its answers, how it fails."""

import socket
import threading

import pytest
from harness.client import Client
from harness.daemon import site
from harness.lmd import DOWN, PENDING, SYNCING, WARNING, Behind, FakeLmd
from harness.waiting import until

from monrest.cli.probe import probed
from monrest.config import Config, SiteConfig
from monrest.config.sections import AN_LMD

SAME_FOR_ALL_CORES = "the LMD answers, not the core"


def fake(lab, core):
    """An LMD with the same core as three sites."""
    return lab.keep(FakeLmd(lab.folder() / "lmd", dict.fromkeys("abc", core.socket)))


def behind(lab, *lmds, sites=(), own=()):
    """A running daemon; ``own`` are entries of ``[[lmd.sites]]``."""
    address = [one.address for one in lmds]
    sections = {"lmd": {"address": address if len(lmds) > 1 else address[0], "sites": own}}
    return lab.daemon(list(sites), sections=sections).start()


@pytest.fixture
def lmd(embedded, lab):
    """An LMD that a test has for itself."""
    return fake(lab, embedded)


@pytest.fixture(scope="module")
def pair(embedded, shared):
    lmd = fake(shared, embedded)
    return lmd, behind(shared, lmd)


@pytest.fixture
def known(pair):
    """An LMD all of whose sites answer; its only daemon knows that."""
    lmd, daemon = pair
    with daemon.client() as client:
        ready(client, "a", "b", "c")
    del lmd.requests[:]
    sites = dict(lmd.sites)
    yield lmd
    lmd.sites, lmd.delay, lmd.refuses = sites, "", ""
    for one in sites.values():
        one.status, one.error = 0, ""


@pytest.fixture
def client(pair, known):
    with pair[1].client() as client:
        yield client


def ready(client, *keys):
    """Wait until exactly these sites are connected."""

    def connected():
        rows = client.get("/sites").json
        return [row["id"] for row in rows if row["connected"]] == list(keys)

    until(connected, f"connected: {keys}")


def asked(lmd, table):
    return [lines for lines in lmd.requests if lines[0] == f"GET {table}"]


PATHS = [
    "/hosts",
    "/services",
    "/hosts?columns=name,peer_key&sort=-name&limit=4&offset=2",
    "/hosts?columns=name,peer_key&limit=4&offset=5",
    "/services?columns=host_name,description,peer_key,state&sort=-state,host_name&limit=9&offset=3",
    "/services?columns=count(*):n,state",
    "/services?columns=count(*):n,sum(state),max(state),avg(state),peer_name",
    "/services?columns=sum(state),min(last_check)",
    "/contacts?columns=count(*),sum(id),max(id)",
    "/contacts?columns=name&id[gt]=0&sort=-id,name",
    "/services?columns=count(*):n,state&description=none such",
    "/hosts/totals",
    "/services/totals?state=2",
    "/hosts/stats",
    "/services/stats",
    "/hostgroups",
    "/servicegroups?columns=name,members",
    "/contacts",
    "/contactgroups",
    "/timeperiods",
    "/commands",
    "/comments?columns=host_name,service_description,comment,author,peer_key",
    "/downtimes?columns=host_name,comment,peer_key",
    "/hosts/web01/services?columns=description,state,peer_key",
    "/hosts?q=custom_variable_names != nosuch and groups >= linux",
    "/services?q=host_name != web01&columns=host_name,description",
    "/services?q=host_alias ~~ WEB&columns=host_name,host_alias,host_state",
    "/hosts?q=name ~ 'web0{1}1' or name = WEB01",
    "/hosts?state[gte]=1&columns=name,state,plugin_output",
    "/hosts?peer_key=b&columns=name,peer_key",
    "/sites/a,c/hosts?columns=name,peer_key",
    "/sites/a/services/totals",
    "/logs?columns=time,message,peer_key&limit=20",
    "/alerts?columns=host_name,state,peer_key",
]
ORDERED_THERE = (
    "services",
    "services_with_info",
    "services_with_state",
    "groups",
    "contact_groups",
)


def comparable(value):
    """An answer without what an LMD is known to say in another order, or lacks."""
    if isinstance(value, str):
        # Emoji that a Naemon damages cannot be asked for once more over an LMD.
        return "".join("?" if 0x7C0 <= ord(one) < 0x800 or one > "\uffff" else one for one in value)
    if isinstance(value, list):
        return [comparable(one) for one in value]
    if not isinstance(value, dict):
        return value
    lacking = ("comment",) if "lineno" in value else ()
    return {
        name: comparable(sorted(one) if name in ORDERED_THERE else one)
        for name, one in value.items()
        if name not in LACKING and name not in lacking
    }


LACKING = {
    *("id", "acknowledgement_type", "check_timeout", "check_flapping_recovery_notification"),
    *("filename", "no_more_notifications", "notified_on", "pending_flex_downtime"),
    *("statusmap_image", "x_3d", "y_3d", "z_3d", "depends_exec_with_info"),
    *("depends_notify_with_info", "peer_addr", "last_check", "next_check", "staleness"),
}


@pytest.fixture(scope="module")
def direct(embedded, shared):
    return shared.daemon([site(key, embedded, name=f"Site {key}") for key in "abc"]).start()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("user", ["admin", "olga"])
def test_the_same_answers_as_from_the_cores_themselves(pair, direct, user):
    with direct.client(user) as theirs, pair[1].client(user) as ours:
        wrong = []
        for path in PATHS:
            spelled = path.replace(" ", "%20")
            expected, found = theirs.get(spelled), ours.get(spelled)
            if expected.status != found.status:
                wrong.append((path, expected.text, found.text))
            else:
                wrong += differences(path, comparable(expected.json), comparable(found.json))
        assert not wrong


def differences(path, expected, found):
    """Where two answers differ, row by row and key by key."""
    if not isinstance(expected, list) or len(expected) != len(found):
        return [] if expected == found else [(path, expected, found)]
    wrong = []
    for at, (one, other) in enumerate(zip(expected, found, strict=True)):
        names = [name for name in {**one, **other} if one.get(name, ...) != other.get(name, ...)]
        wrong += [(path, at, name, one.get(name, ...), other.get(name, ...)) for name in names]
    return wrong[:8]


def test_one_request_asks_all_sites(client, known):
    rows = client.rows("/hosts", {"columns": "name,peer_key", "sort": "-name", "limit": "4"})
    assert [row["peer_key"] for row in rows] == ["a", "b", "c", "a"]
    (lines,) = asked(known, "hosts")
    assert lines[1:] == [
        "ResponseHeader: fixed16",
        "KeepAlive: on",
        "OutputFormat: wrapped_json",
        "Columns: name peer_key",
        "Sort: name desc",
        "Sort: peer_key asc",
        "Limit: 4",
        "Backends: a b c",
    ]


def test_a_limit_counts_over_the_sites_of_its_request(client, known):
    """Who asks for fewer sites at the same moment gets rows of these, and not what is left."""
    found = {}

    def ask(path):
        with Client(client.port, client.key) as another:
            found[path] = another.rows(f"{path}?columns=name,peer_key&sort=name&limit=3")

    paths = ("/hosts", "/sites/b/hosts", "/sites/a,b/hosts")
    before = len(asked(known, "hosts"))
    known.gate.clear()
    threads = [threading.Thread(target=ask, args=(path,)) for path in paths]
    for count, one in enumerate(threads, before + 1):
        one.start()
        until(lambda count=count: len(asked(known, "hosts")) == count, "it is asked")
    known.gate.set()
    for one in threads:
        one.join()
    keys = [[row["peer_key"] for row in found[path]] for path in paths]
    assert keys == [["a", "b", "c"], ["b", "b", "b"], ["a", "b", "a"]]


def test_statistics_are_one_request(client, known):
    client.get("/services/totals")
    (lines,) = asked(known, "services")
    assert "Columns: peer_key" in lines
    assert "Backends: a b c" in lines


def test_more_conditions_than_an_lmd_takes(client, known):
    names = " or ".join([*(f"name = h{at}" for at in range(950)), "name = web01"])
    answer = client.post_json("/hosts", {"q": names, "columns": "name,peer_key"})
    assert answer.status == 200, answer
    assert [row["peer_key"] for row in answer.json] == ["a", "b", "c"]


def test_selected_sites_alone_are_named(client, known):
    client.get("/sites/b/hosts")
    client.get("/hosts?backends=a,c")
    assert [lines[-1] for lines in asked(known, "hosts")] == ["Backends: b", "Backends: a c"]


def test_only_sites_that_the_asker_may_use_are_named(lab, lmd):
    settings = [{"id": "b", "groups": ["nobody"]}, {"id": "c", "hidden": True}]
    daemon = behind(lab, lmd, own=settings)
    with daemon.client() as admin, daemon.client("olga") as olga:
        until(lambda: len(admin.get("/sites").json) >= 2, "the sites are known")
        del lmd.requests[:]
        olga.get("/hosts")
        olga.get("/sites/ALL/hosts")
        assert [lines[-1] for lines in asked(lmd, "hosts")] == ["Backends: a", "Backends: a c"]
        assert olga.get("/sites/b/hosts").status == 400
        assert {row["key"] for row in olga.get("/lmd/sites").json} <= {"a", "c"}


def test_a_site_that_is_down_is_named(client, known):
    known.sites["b"].status, known.sites["b"].error = DOWN, "connection refused"
    answer = client.get("/hosts?columns=name,peer_key")
    assert {row["peer_key"] for row in answer.json} == {"a", "c"}
    assert answer.headers["x-mon-failed-sites"] == "b"
    ready(client, "a", "c")
    (row,) = [row for row in client.get("/sites").json if row["id"] == "b"]
    assert (row["status"], row["last_error"]) == (1, "connection refused")
    (row,) = [row for row in client.get("/lmd/sites").json if row["key"] == "b"]
    assert (row["status"], row["last_error"]) == (2, "connection refused")
    del known.requests[:]
    assert client.get("/hosts/totals").headers["x-mon-failed-sites"] == "b"
    assert asked(known, "hosts")[0][-1] == "Backends: a c"
    known.sites["b"].status, known.sites["b"].error = 0, ""
    ready(client, "a", "b", "c")


def test_no_site_answers(client, known):
    for one in known.sites.values():
        one.status, one.error = DOWN, "gone"
    answer = client.get("/hosts")
    assert answer.status == 502
    assert "a: gone; b: gone; c: gone" in answer.json["description"]


def test_a_stale_site_serves_what_it_has(client, known):
    known.sites["b"].status = WARNING
    answer = client.get("/hosts?columns=peer_key")
    assert {row["peer_key"] for row in answer.json} == {"a", "b", "c"}
    assert "x-mon-failed-sites" not in answer.headers


@pytest.mark.parametrize("status", [PENDING, SYNCING])
def test_a_site_that_is_being_read_is_never_just_missing(client, known, status):
    known.sites["c"].status = status
    answer = client.get("/hosts?columns=peer_key")
    failed = answer.headers.get("x-mon-failed-sites", "")
    assert {row["peer_key"] for row in answer.json} | {failed} >= {"a", "b", "c"}
    ready(client, "a", "b")
    known.sites["c"].status = 0
    ready(client, "a", "b", "c")


def test_the_lmd_dies_and_comes_back(client, known):
    known.die()
    ready(client)
    answer = client.get("/hosts")
    assert answer.status == 502
    assert answer.headers["x-mon-failed-sites"] == "a,b,c"
    known.listen()
    ready(client, "a", "b", "c")
    assert client.get("/hosts").status == 200


def test_the_lmd_is_away_at_the_start(lab, lmd):
    lmd.die()
    with behind(lab, lmd).client() as client:
        until(lambda: client.get("/hosts").status == 502, "no LMD")
        assert client.get("/hosts").headers["x-mon-failed-sites"] == "lmd"
        lmd.listen()
        ready(client, "a", "b", "c")
        assert client.get("/hosts").status == 200


def test_sites_come_and_go(client, known, embedded):
    known.sites["d"] = Behind(embedded.socket, "Fourth")
    ready(client, "a", "b", "c", "d")
    assert {row["peer_name"] for row in client.get("/hosts?columns=peer_name").json} >= {"Fourth"}
    del known.sites["a"], known.sites["d"]
    ready(client, "b", "c")
    answer = client.get("/hosts?columns=peer_key")
    assert {row["peer_key"] for row in answer.json} == {"b", "c"}
    assert client.get("/sites/a/hosts").status == 400


def test_another_lmd_takes_over(lab, lmd, embedded):
    second = fake(lab, embedded)
    with behind(lab, lmd, second).client() as client:
        ready(client, "a", "b", "c")
        assert not second.requests
        lmd.die()
        until(lambda: second.requests and client.get("/hosts").status == 200, "the second one")
        ready(client, "a", "b", "c")
        del second.requests[:]
        lmd.listen()
        assert client.get("/hosts/totals").status == 200
        assert asked(second, "hosts")


def test_an_lmd_that_hangs_is_left(lab, lmd, embedded):
    second = fake(lab, embedded)
    with behind(lab, lmd, second).client() as client:
        ready(client, "a", "b", "c")
        lmd.gate.clear()
        client.get("/hosts")
        until(lambda: second.requests and client.get("/hosts").status == 200, "the second one")


def test_beside_sites_that_are_asked_directly(lab, lmd, embedded):
    direct = [site("x", embedded), site("b", embedded)]
    daemon = behind(lab, lmd, sites=direct)
    with daemon.client() as client:
        ready(client, "x", "b", "a", "c")
        assert (
            "a site of the LMD is left out, because its id b is that of another site" in daemon.log
        )
        del lmd.requests[:]
        rows = client.rows("/hosts", {"columns": "name,peer_key", "sort": "name", "limit": "5"})
        assert [row["peer_key"] for row in rows][:4] == ["x", "b", "a", "c"]
        assert asked(lmd, "hosts")[0][-1] == "Backends: a c"
        assert {row["peer_key"] for row in client.get("/hosts?backends=x,c").json} == {"x", "c"}
        counted = client.rows("/hosts", {"columns": "count(*):n,peer_key"})
        assert {row["peer_key"] for row in counted} == {"x", "b", "a", "c"}
        assert len({row["n"] for row in counted}) == 1


def comments(client, text):
    return client.rows("/comments", {"columns": "host_name,peer_key", "comment": text})


def test_commands_go_to_their_site_alone(client, known):
    form = [("comment_data", "over the LMD"), ("backends", "b")]
    answer = client.post_form("/hosts/web01/cmd/add_host_comment", form)
    assert answer.status == 200
    (lines,) = [lines for lines in known.requests if lines[0].startswith("COMMAND")]
    assert lines[1:] == ["Backends: b", "ResponseHeader: fixed16", "OutputFormat: wrapped_json"]
    assert "ADD_HOST_COMMENT;web01;1;admin;over the LMD" in lines[0]
    until(lambda: comments(client, "over the LMD"), "the comment is there")


def test_a_command_that_a_site_refuses(client, known):
    known.refuses = "400: Unknown command 'X'"
    answer = client.post_form("/hosts/web01/cmd/add_host_comment", [("comment_data", "refused")])
    assert answer.status == 400, answer
    assert "Unknown command" in answer.text


def test_a_command_that_is_still_on_its_way(client, known):
    known.delay = "slow"
    answer = client.post_form(
        "/hosts/web01/cmd/add_host_comment", [("comment_data", "slow"), ("backends", "a")]
    )
    assert answer.status >= 500
    assert "still being sent" in answer.text
    assert len([one for one in known.requests if one[0].startswith("COMMAND")]) == 1


def test_what_the_lmd_says_of_its_sites(client):
    rows = client.get("/lmd/sites").json
    assert [row["key"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["lmd_last_cache_update"] == rows[0]["last_update"] > 0
    assert rows[0]["flags"] == ["Naemon"]
    assert rows[0]["addr"].endswith("/live")
    assert client.get("/lmd/sites?columns=key&status=0&limit=1").json == [{"key": "a"}]


@pytest.mark.usefixtures("known")
def test_who_may_not_see_addresses(pair):
    with pair[1].client("olga") as olga:
        row = olga.get("/lmd/sites").json[0]
        assert (row["key"], row["addr"], row["last_error"]) == ("a", "", "")


H = "ResponseHeader: fixed16\nOutputFormat: wrapped_json\nKeepAlive: on\n"
"""Request (or requests) to what comes back: a part of it, and whether the connection stays."""
FACTS = {
    "several requests in one write": (f"GET hosts\n{H}Limit: 1\n\nGET status\n{H}", '"total_count":', True),
    "the default format is json": ("GET hosts\nColumns: peer_key\nLimit: 1", '[["a"]]', False),
    "csv": ("GET hosts\nOutputFormat: csv", "bad request: unrecognized outputformat", False),
    "total before limit": (f"GET hosts\n{H}Columns: peer_key\nFilter: name = web01\nLimit: 1", '"total_count":3', True),
    "an unknown site": (f"GET hosts\n{H}Columns: name\nFilter: name = web01\nBackends: a zz", '"failed": {"zz": "bad request: backend zz', True),
    "unknown sites only, json": ("GET hosts\nResponseHeader: fixed16\nBackends: zz", "502 ", False),
    "an unknown table": (f"GET nosuch\n{H}", "bad request: table nosuch does not exist\n", False),
    "an unknown header": (f"GET hosts\n{H}Timelimit: 5", "bad request: unrecognized header", False),
    "separators": (f"GET hosts\n{H}Separators: 10 1 2 3", "bad request: unrecognized header", False),
    "an unknown sort column": (f"GET hosts\n{H}Sort: nosuch asc", "unknown sort column nosuch\n", False),
    "a broken number": (f"GET hosts\n{H}Filter: state = x", "bad request: ", False),
    "look-ahead": (f"GET hosts\n{H}Filter: name ~ (?=web)", "bad request: ", False),
    "braces": (f"GET hosts\n{H}Columns: name\nFilter: name ~ web0{{1}}1\nBackends: a", '[["web01"]]', True),
    "an unknown column": (f"GET hosts\n{H}Columns: name nosuch\nFilter: name = web01\nBackends: a", '[["web01", ""]]', True),
    "an unknown column in a filter": (f"GET hosts\n{H}Columns: name\nFilter: nosuch = 1", '"total_count":0', True),
    "offset over all sites": (f"GET hosts\n{H}Columns: name peer_key\nFilter: name = web01\nSort: peer_key desc\nOffset: 1\nLimit: 1", '[["web01", "b"]]', True),
    "statistics over all sites": (f"GET hosts\n{H}Filter: name = web01\nStats: state = 0", "[[3]]", True),
    "groups are texts": (f"GET hosts\n{H}Columns: state peer_key\nFilter: name = web01\nStats: state = 0\nBackends: b", '[["0", "b", 1]]', True),
    "other statistics": (f"GET hosts\n{H}Stats: std state", "bad request: ", False),
    "And: 0": (f"GET hosts\n{H}Columns: name\nFilter: name = web01\nAnd: 0\nBackends: a", '[["web01"]]', True),
    "less on a list": (f"GET hosts\n{H}Columns: name\nFilter: groups < linux", '"total_count":0', True),
    "=~ with capitals": (f"GET hosts\n{H}Columns: name\nFilter: name =~ WEB01", '"total_count":0', True),
    "too many filters": (f"GET hosts\n{H}" + "Filter: name = x\n" * 1001, "bad request: maximum", False),
    "the types of ids": (f"GET contacts\n{H}Columns: id\nLimit: 1\nBackends: a", '[["0"]]', True),
    "custom variables": (f"GET columns\n{H}Columns: type\nFilter: x = y", '"list"', True),
}  # fmt: skip


@pytest.mark.parametrize("behind_it", ["ab", "a"])
def test_an_lmd_among_the_sites_says_where_it_belongs(made, embedded, tmp_path, behind_it):
    lmd = FakeLmd(tmp_path / "other", dict.fromkeys(behind_it, embedded.socket))
    address = lmd.address
    with made([site("s", address)]).start(connected=()).client() as client:
        until(lambda: client.get("/sites").json[0]["last_error"] == AN_LMD, "it is known")
        answer = client.get("/hosts")
        assert (answer.status, answer.json["description"]) == (502, f"s: {AN_LMD}")
    (line,) = probed(Config(sites=(SiteConfig(id="s", name="S", address=address),)))
    assert (line.core, line.problem) == ("LMD", AN_LMD)
    lmd.close()


def test_the_fake_is_as_a_running_one_was(lmd):
    wrong = []
    for what, (text, expected, stays) in FACTS.items():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(lmd.path))
            connection.sendall(text.rstrip("\n").encode() + b"\n\n")
            said = connection.recv(1 << 20).decode()
            try:
                connection.settimeout(0.05 if stays else 5)
                ended = connection.recv(1 << 20) == b""
            except TimeoutError:
                ended = False
            if expected not in said or ended is stays:
                wrong.append((what, said[:300], ended))
    assert not wrong
