"""Sites for members of contact groups only: for everybody else they do not exist."""

import pytest
from harness.daemon import site
from harness.expect import refused

from tests.table import each


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    address = embedded.address
    return shared.daemon(
        [
            site("open", address),
            site("web", address, name="Web Team", section="Asia", groups=["webteam", "x"]),
            site("night", address, section="Asia", hidden=True, groups=["nobody"]),
        ],
        sections={"auth.roles": {"admin": ["admin"], "all_hosts": ["viewer"]}},
    ).start()


SEEN = {
    "admin": ["open", "web", "night"],
    "olga": ["open", "web"],
    "viewer": ["open"],
}


@pytest.fixture(scope="module", params=SEEN)
def user(request, daemon):
    with daemon.client(request.param) as client:
        yield client


def test_the_list_of_sites(user):
    assert user.values("/sites", "id") == SEEN[user.user]


def test_rows_come_from_ones_own_sites(user):
    shown = [one for one in SEEN[user.user] if one != "night"]
    for path in ("/hosts", "/timeperiods", "/contactgroups"):
        assert list(dict.fromkeys(user.values(path, "peer_key"))) == shown
    everywhere = user.rows("/sites/ALL/timeperiods?columns=peer_key")
    assert [row["peer_key"] for row in everywhere] == SEEN[user.user]
    (group,) = user.rows("/hostgroups/idle")
    assert group["peer_key"] == shown
    hosts = 1 if user.user == "olga" else 6
    assert user.rows("/hosts/totals")["total"] == hosts * len(shown)
    assert user.rows("/mon/whoami")["id"] == user.user


@each("how", ["/sites/{}/hosts", "/hosts?backends={}", "/hosts?backend={}"])
@each("name", ["web", "Web Team", "night", "NIGHT"])
def test_a_forbidden_site_is_an_unknown_one(user, how, name):
    response = user.get(how.format(name).replace(" ", "%20"))
    site = {"Web Team": "web", "NIGHT": "night"}.get(name, name)
    if site in SEEN[user.user]:
        assert {row["peer_key"] for row in response.json} == {site}
        return
    document = refused(response, 400, f"failed to find backend(s): {name}")
    unknown = refused(user.get(how.format("nope")), 400)
    assert document["description"] == unknown["description"]


def test_a_section_has_only_ones_own_sites(user):
    asia = [one for one in SEEN[user.user] if one != "open"]
    response = user.get("/sites/Asia/timeperiods?columns=peer_key")
    if asia:
        assert [row["peer_key"] for row in response.json] == asia
    else:
        refused(response, 400, "failed to find backend(s): Asia")


def test_commands_do_not_reach_other_sites(user):
    answer = user.post_form("/sites/night/cmd/enable_notifications", [("test_only", "1")])
    if user.user == "admin":
        assert answer.status == 200, answer
    else:
        document = answer.json
        assert answer.status == 400, answer
        assert document["message"] == "failed to find backend(s): night"
