"""Lists of commands: all or nothing before sending, one result each afterwards."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest, Forbidden, RestError
from monrest.commands.endpoints import MOST_COMMANDS
from tests.api.cores import ANN, World, host, service
from tests.examples import examples


@pytest.fixture
def world(monkeypatch):
    world = World(monkeypatch)
    world.site(
        "s1",
        hosts=[host(f"h{n}", "ann", groups=["g"]) for n in range(100)],
        services=[service(f"h{n}", "ping", groups=["sg"], host_contacts=["ann"]) for n in range(100)],
        hostgroups=[{"name": "g"}],
        servicegroups=[{"name": "sg"}],
        contacts=[{"name": "ann"}],
        comments=[{"id": n, "host_name": f"h{n}"} for n in range(100)],
        downtimes=[],
    )  # fmt: skip
    return world


def enable(n):
    return {"cmd": "enable_host_flap_detection", "host": f"h{n}"}


def test_json_values(world):
    """null is absent, true is 1, numbers are themselves."""
    entry = {
        "cmd": "add_host_comment",
        "host": "h1",
        "comment_data": 5,
        "persistent_comment": False,
    }
    world.bulk(entry | {"persistent_comment": True, "comment_author": None}, entry)
    assert world.sites[0].told == ["ADD_HOST_COMMENT;h1;1;admin;5", "ADD_HOST_COMMENT;h1;0;admin;5"]


GOOD = enable(1)
BAD = [
    ("text", 400, "expected an object"),
    (None, 400, "expected an object"),
    (["cmd", "log"], 400, "expected an object"),
    ({}, 400, "cmd is a required argument"),
    ({"cmd": ["log", "log"]}, 400, "cmd: expected one value"),
    ({"cmd": {"a": 1}}, 400, "cmd: expected a text"),
    ({"cmd": "log"}, 400, "log is a required argument"),
    ({"cmd": "log", "log": ["a", "b"]}, 400, "log: expected one value"),
    ({"cmd": "log", "log": [["a"]]}, 400, "log: expected a text"),
    ({"cmd": "log", "log": "x", "wait": 1}, 400, "wait: expected in the query string"),
    ({"cmd": "log", "log": "x", "test_only": 1}, 400, "test_only: expected in the query string"),
    ({"cmd": "log", "log": "x", "backends": "nope"}, 400, "backends: expected"),
    ({"cmd": "nonsense"}, 404, "there is no command nonsense"),
    ({"cmd": "nonsense", "host": "h1"}, 404, "there is no command nonsense for type host"),
    ({"cmd": "enable_host_check", "host": "none"}, 400, "host=none"),
    ({"cmd": "enable_host_check", "host": "a\nb"}, 400, "control characters"),
    ({"cmd": "add_host_comment", "host": "h1", "comment_data": "x\x00"}, 400, "comment_data"),
    ({"cmd": "enable_svc_check", "service": "ping"}, 400, "host is a required"),
]


@pytest.mark.parametrize(("entry", "code", "words"), BAD)
def test_nothing_is_sent_if_one_is_wrong(world, entry, code, words):
    error = world.refused(BadRequest, "/cmd", document=[GOOD, entry, GOOD], structured="")
    (problem,) = error.extra["problems"]
    assert (problem["index"], problem["code"]) == (1, code)
    assert words in f"{problem['message']}: {problem['description']}"
    assert error.description.startswith("index 1: ")
    assert error.message == "nothing was sent, because 1 of 3 commands cannot be sent"
    assert world.sending == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"cmd": "add_host_coment", "host": "h1"}, "similar commands: add_host_comment"),
        ({"cmd": "add_host_comment", "hst": "h1"}, "add_host_comment is a command for type host"),
        ({"cmd": "add_host_comment", "host": "h1"}, "Attach a comment to the host. Arguments: "),
    ],
)
def test_help_is_that_of_the_first_problem(world, entry, words):
    entries = [GOOD, entry, {"cmd": "nonsense"}]
    error = world.refused(BadRequest, "/cmd", document=entries, structured="")
    assert error.extra["help"].startswith(words)


def test_forbidden_only_is_403(world):
    entries = [GOOD, {"cmd": "enable_notifications"}, {"cmd": "enable_host_check", "host": "other"}]
    error = world.refused(Forbidden, "/cmd", document=entries, structured="", identity=ANN)
    assert [(one["index"], one["code"]) for one in error.extra["problems"]] == [(1, 403), (2, 403)]
    assert (error.code, world.sending) == (403, [])
    assert [entry["result"] for entry in world.audited] == ["not allowed"] * 2
    mixed = [*entries, {"cmd": "nonsense", "host": "h1"}]
    error = world.refused(BadRequest, "/cmd", document=mixed, structured="", identity=ANN)
    assert [one["code"] for one in error.extra["problems"]] == [403, 403, 404]


@pytest.mark.parametrize(
    ("document", "parameters", "words"),
    [
        ([], (), "at least one"),
        ([GOOD] * (MOST_COMMANDS + 1), (), "at most 10000 commands"),
        ([GOOD], (("host", "h1"),), "host: expected in the entries"),
        ([GOOD], (("cmd", "log"),), "cmd: expected in the entries"),
        ([GOOD], (("wait", "x"),), "wait: expected"),
    ],
)
def test_the_list_as_a_whole(world, document, parameters, words):
    error = world.refused(BadRequest, "/cmd", *parameters, document=document, structured="")
    assert words in error.description
    assert world.sending == []


def test_lists_are_for_cmd_only(world):
    for path in ("/hosts/h1/cmd/enable_host_check", "/system/cmd/log"):
        error = world.refused(BadRequest, path, document=[GOOD], structured="")
        assert error.description.startswith("request body")


def test_entries_choose_their_sites(world):
    two = world.site("s2")
    world.bulk(
        {"cmd": "log", "log": "one", "backends": "s1"},
        {"cmd": "log", "log": "two", "backends": ["s2"]},
        {"cmd": "log", "log": "both"},
    )
    assert world.sites[0].told == ["LOG;one", "LOG;both"]
    assert two.told == ["LOG;two", "LOG;both"]
    # The path wins, as everywhere.
    world.bulk({"cmd": "log", "log": "path", "backends": "s1"}, sites=("s2",))
    assert two.told[-1] == "LOG;path"
    assert len(world.sites[0].told) == 2


@pytest.mark.parametrize("identity", [None, ANN])
@pytest.mark.parametrize("count", [3, 100])
def test_one_query_for_each_table(world, identity, count):
    """However many commands: permission or existence, and the entries of look-ups."""
    entries = []
    for n in range(count):
        entries += [
            enable(n),
            {"cmd": "add_svc_comment", "host": f"h{n}", "service": "ping", "comment": "x"},
            {"cmd": "del_comment", "host": f"h{n}", "comment_id": n + 1},
            {"cmd": "enable_host_check", "host": f"h{n}"},
        ]
    world.sites[0].tables["comments"] = [{"id": n + 1, "host_name": f"h{n}"} for n in range(count)]
    entries += [{"cmd": "enable_hostgroup_svc_checks", "hostgroup": "g"}]
    world.bulk(*entries, **({"identity": identity} if identity else {}))
    tables = [one.table for one in world.sites[0].asked]
    assert tables.count("services") == 1
    assert tables.count("comments") == 1
    # Who is no administrator needs the members of host groups too.
    assert tables.count("hosts") == (2 if identity else 1)
    assert tables.count("hostgroups") == (0 if identity else 1)
    assert len(world.sending) == 1


def test_few_objects_are_asked_for_by_name(world):
    world.bulk(enable(1), enable(2))
    assert world.sites[0].asked[0].filter is not None
    world.bulk(*[enable(n) for n in range(100)])
    assert world.sites[0].asked[-1].filter is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["cmd", "host", "service", "hostgroup", "comment_data", "backends", "wait"])
VALUES = JSON | st.sampled_from(["h1", "ping", "g", "add_host_comment", "log", "s1", "ALL"])
ENTRIES = JSON | st.dictionaries(NAMES | st.text(max_size=5), VALUES, max_size=5)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ENTRIES, min_size=1, max_size=4))
def test_any_json(world, entries):
    """Each list has an answer, or a RestError and nothing is sent."""
    world.sending.clear()
    answer = error = None
    try:
        answer = world.bulk(*entries)
    except RestError as raised:
        error = raised
    if error is not None:
        assert error.code == 400
        assert world.sending == []
    else:
        assert len(answer.value) == len(entries)
        for _, lines in world.sending:
            assert all("\n" not in text and text.startswith("COMMAND [") for text in lines)
