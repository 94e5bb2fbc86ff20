"""Instances one behind the other, and in a circle."""

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key
from harness.waiting import until


@pytest.fixture(scope="module")
def circle(embedded, shared):
    """Three daemons with a core each; every one has the sites of the next, the last the first's."""
    daemons = [shared.daemon([site(key, embedded)]).start() for key in "abc"]
    keys = [superuser_key(daemon) for daemon in daemons]
    for at, daemon in enumerate(daemons):
        after = (at + 1) % 3
        daemon.sites.append(far_site("next", daemons[after], keys[after]))
        daemon.reload()
    for at, daemon in enumerate(daemons):
        one, two = "abc"[(at + 1) % 3], "abc"[(at + 2) % 3]
        daemon.wait_connected({f"next-{one}", f"next-next-{two}"})
    return daemons


def sites_of(client):
    return {row["id"]: row for row in client.rows("/sites")}


def test_everybody_has_every_core_once(circle):
    for at, daemon in enumerate(circle):
        own, one, two = (("abc" * 2)[at + step] for step in range(3))
        with daemon.client() as client:
            wanted = {own, f"next-{one}", f"next-next-{two}"}
            until(lambda c=client, w=wanted: set(sites_of(c)) == w, "no site is listed twice")
            keys = {row["peer_key"] for row in client.rows("/hosts?columns=peer_key")}
            assert keys == wanted


def test_the_way_to_a_core(circle):
    with circle[0].client() as client:
        row = sites_of(client)["next-next-c"]
        assert row["federation_key"] == ["next-next-c", "next-c", "c"]
        assert row["federation_type"] == ["http", "http", "livestatus"]
        assert row["federation_name"] == ["NEXT NEXT C", "NEXT C", "C"]
        assert [bool(one) for one in row["federation_addr"]] == [True] * 3


def test_reads_commands_and_rights_go_all_the_way(circle):
    path = "/sites/next-next-c"
    with circle[0].client() as here, circle[2].client() as there:
        rows = here.rows(f"{path}/services?columns=host_name,description,state")
        assert rows == there.rows("/sites/c/services?columns=host_name,description,state")
        answer = here.post_form(
            f"{path}/hosts/leaf01/cmd/add_host_comment", {"comment": "far away", "wait": 20}
        )
        assert answer.status == 200, answer
        assert answer.json["effect"] == "seen"
        (row,) = there.rows("/sites/c/comments?comment=far%20away")
        sent = {"comment_id": row["id"]}
        assert here.post_form(f"{path}/hosts/leaf01/cmd/del_comment", sent).status == 200
    with circle[0].client("olga") as olga:
        assert olga.values(f"{path}/hosts", "name") == ["web01"]


def test_a_request_that_was_here_is_refused(circle):
    first = circle[0]
    number = format(int((first.folder / "var" / "node.id").read_text()), "x")
    with first.client() as client:
        for visited in (number, f"other,{number}", f"{number}, other"):
            refused(client.get("/hosts", headers={"X-Mon-Federation": visited}), 508, "loop")
        many = ",".join(f"id{at}" for at in range(6))
        refused(client.get("/hosts", headers={"X-Mon-Federation": many}), 508, "too many")
        five = ",".join(f"id{at}" for at in range(5))
        response = client.get("/hosts", headers={"X-Mon-Federation": five})
        assert response.status == 200
        assert set(response.headers["x-mon-failed-sites"].split(",")) == {"next-b", "next-next-c"}
        refused(client.get("/hosts", headers={"X-Mon-Federation": "a b"}), 400, "Federation")


def test_an_operator_may_keep_it_to_one_step(circle):
    second = circle[1]
    second.sections["federation"] = {"cascade": False}
    second.reload()
    try:
        with circle[0].client() as client, second.client() as other:
            until(lambda: set(sites_of(client)) == {"a", "next"}, "only the next one is left")
            assert client.rows("/sites/next/hosts/web01")[0]["peer_key"] == "next"
            rows = other.rows("/sites", headers={"X-Mon-Federation": "somebody"})
            assert [row["id"] for row in rows] == ["b"]
            assert len(other.rows("/sites")) == 3
    finally:
        second.sections.pop("federation")
        second.reload()
        circle[0].wait_connected({"next-b", "next-next-c"})


def test_others_are_not_told_of_their_own_sites(circle):
    second = format(int((circle[1].folder / "var" / "node.id").read_text()), "x")
    with circle[0].client() as client:
        rows = client.rows("/sites", headers={"X-Mon-Federation": second})
        assert [row["id"] for row in rows] == ["a"]
