"""Scripts of other origins: who may use the API, over the whole web room."""

import pytest

from monrest.config import ServerConfig
from monrest.config.check import problems_of
from monrest.config.sections import Config
from tests.table import each
from tests.web.room import Room, asking

GRAFANA = "https://grafana.example.org:3000"
ROOT = "/mon/r"
ASKS_FIRST = {"Origin": GRAFANA, "Access-Control-Request-Method": "GET"}


@pytest.fixture
def open_room(clock):
    """A room that pages of Grafana may use."""
    return Room(clock, server=ServerConfig(cors_origins=(GRAFANA,)))


@pytest.fixture
def knock(open_room):
    return asking(open_room)


def test_a_browser_that_asks_first_needs_no_credentials(open_room, knock):
    nobody = {"X-Mon-Auth-Key": None, "X-Mon-Auth-User": None}
    reply = knock(f"{ROOT}/nope", "OPTIONS", {**nobody, **ASKS_FIRST})
    assert (reply.status, reply.body, open_room.seen) == (204, b"", [])
    headers = reply.headers
    assert headers["access-control-allow-origin"] == GRAFANA
    assert "DELETE" in headers["access-control-allow-methods"]
    asked = headers["access-control-allow-headers"].lower().split(", ")
    assert {"x-mon-auth-key", "content-type", "authorization", "if-none-match"} <= set(asked)
    assert headers["vary"].startswith("Origin")
    assert "access-control-allow-credentials" not in headers


def test_answers_and_errors_may_be_read_by_the_page(open_room, knock):
    reply = knock(f"{ROOT}/hosts", headers={"Origin": GRAFANA.upper().replace("HTTPS", "https")})
    assert reply.status == 200
    assert "x-mon-failed-sites" in reply.headers["access-control-expose-headers"].lower()
    assert reply.headers["vary"] == "Origin, Accept, Accept-Encoding"
    refused = knock(f"{ROOT}/hosts", headers={"Origin": GRAFANA, "X-Mon-Auth-Key": "wrong"})
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (403, GRAFANA)


def test_pages_of_others_are_not_admitted(open_room, knock, room, ask):
    others = {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"}
    for who, headers in ((knock, others), (ask, ASKS_FIRST)):
        stranger = {**headers, "X-Mon-Auth-Key": None}
        reply = who(f"{ROOT}/hosts", "OPTIONS", stranger)
        assert (reply.status, "access-control-allow-origin" in reply.headers) == (401, False)
        reply = who(f"{ROOT}/hosts", headers=headers)
        assert (reply.status, "access-control-allow-origin" in reply.headers) == (200, False)


def test_a_star_admits_all(clock):
    ask = asking(Room(clock, server=ServerConfig(cors_origins=("*",))))
    reply = ask(f"{ROOT}/hosts", headers={"Origin": "https://example.org"})
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "Origin" not in reply.headers["vary"]


@each(
    ("origin", "good"),
    [
        ("*", True),
        ("https://grafana.example.org", True),
        ("http://[::1]:3000", True),
        ("https://grafana.example.org/", False),
        ("grafana.example.org", False),
        ("https://*.example.org", False),
        ("null", False),
        ("", False),
    ],
)
def test_origins_are_looked_at_when_the_configuration_is_read(origin, good):
    config = Config(server=ServerConfig(var_dir="/tmp", cors_origins=(origin,)))
    wrong = [one for one in problems_of(config) if one.startswith("server.cors_origins[0]: ")]
    assert (not wrong) is good
