"""What is looked up before commands are sent."""

import pytest

from monrest.base.errors import BadRequest
from tests.api.cores import NOW, host

ENTRIES = {
    "comments": [
        {"id": 7, "host_name": "h1", "comment": "mine"},
        {"id": 8, "host_name": "h1", "service_description": "s1", "comment": "of the service"},
        {"id": 9, "host_name": "h2", "comment": "other"},
    ],
    "downtimes": [
        {"id": 1, "host_name": "h1", "start_time": NOW - 10},
        {"id": 2, "host_name": "h1", "start_time": NOW + 10},
        {"id": 3, "host_name": "h1", "service_description": "s1", "start_time": NOW},
        {"id": 4, "host_name": "h2", "start_time": NOW - 10},
    ],
}


@pytest.mark.parametrize(
    ("path", "parameters", "told"),
    [
        ("/hosts/h1/cmd/del_comment", [("comment_id", "7")], ["DEL_HOST_COMMENT;7"]),
        ("/hosts/h1/cmd/del_comment", [("comment_id", "8")], []),
        ("/hosts/h1/cmd/del_comment", [("comment_id", "9")], []),
        ("/services/h1/s1/cmd/del_comment", [("comment_id", "8")], ["DEL_SVC_COMMENT;8"]),
        ("/services/h1/s1/cmd/del_comment", [("comment_id", "7")], []),
        ("/hosts/h1/cmd/del_downtime", [("downtime_id", "2")], ["DEL_HOST_DOWNTIME;2"]),
        ("/hosts/h1/cmd/del_downtime", [("downtime_id", "3")], []),
        ("/services/h1/s1/cmd/del_downtime", [("downtime_id", "3")], ["DEL_SVC_DOWNTIME;3"]),
        ("/hosts/h1/cmd/del_active_host_downtimes", [], ["DEL_HOST_DOWNTIME;1"]),
        ("/services/h1/s1/cmd/del_active_service_downtimes", [], ["DEL_SVC_DOWNTIME;3"]),
        ("/services/h1/s2/cmd/del_active_service_downtimes", [], []),
    ],
)
def test_deletions(world, one, path, parameters, told):
    one.tables |= ENTRIES
    if parameters and not told:
        (name, number), *_ = parameters
        with pytest.raises(BadRequest, match=f"{name}: there is no .* {number} of h1") as refused:
            world.post(path, *parameters)
        assert refused.value.message == f"invalid value for {name}"
        assert world.sending == []
        return
    answer = world.post(path, *parameters)
    assert one.told == told
    if not told:
        assert answer.value == {
            "message": "Nothing matched, no command was sent",
            "commands": "",
        }
        assert world.sending == []


def test_nothing_to_delete_while_a_site_is_down(world, one):
    world.site("s2").fail()
    with pytest.raises(
        BadRequest, match="comment_id: there is no host comment 99 of h1 on S1"
    ) as no:
        world.post("/hosts/h1/cmd/del_comment", ("comment_id", "99"))
    assert [site.site for site in no.value.problems] == ["s2"]
    answer = world.post("/hosts/h1/cmd/del_active_host_downtimes")
    assert answer.value["message"] == "Nothing matched, no command was sent"
    assert [site["site"] for site in answer.value["failed_sites"]] == ["s2"]


def test_deletions_are_for_each_site(world, one):
    one.tables |= ENTRIES
    two = world.site("s2", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h2"}])
    three = world.site("s3", hosts=[host("h1")], comments=[{"id": 7, "host_name": "h1"}])
    answer = world.post("/hosts/h1/cmd/del_comment", ("comment_id", "7"))
    assert answer.value["warnings"] == ["comment_id: there is no host comment 7 of h1 on S2"]
    assert (one.told, two.told, three.told) == (
        *[["DEL_HOST_COMMENT;7"], []],
        ["DEL_HOST_COMMENT;7"],
    )


def test_names_with_backslashes_are_looked_up_as_they_are(world, one):
    """Backslashes are doubled in the command line and nowhere else."""
    one.tables["hosts"].append(host("a\\b"))
    one.tables["downtimes"] = [{"id": 5, "host_name": "a\\b", "start_time": NOW - 1}]
    world.post("/hosts/a%5Cb/cmd/del_active_host_downtimes")
    assert one.told == ["DEL_HOST_DOWNTIME;5"]


def test_enabling_takes_the_comments_away(world, one):
    one.tables["comments"] = [
        {"id": 1, "host_name": "h1", "comment": "DISABLE_HOST_CHECK: maintenance"},
        {"id": 2, "host_name": "h1", "comment": "see DISABLE_HOST_CHECK"},
        {"id": 3, "host_name": "h2", "comment": "DISABLE_HOST_CHECK: other host"},
        {
            "id": 4,
            "host_name": "h1",
            "service_description": "s1",
            "comment": "DISABLE_HOST_CHECK: of a service",
        },
    ]
    world.post("/hosts/h1/cmd/enable_host_check")
    assert one.told == ["ENABLE_HOST_CHECK;h1", "DEL_HOST_COMMENT;1"]
