"""What can be sent, as a person finds it out, and what the configuration forbids."""

import pytest
from harness.daemon import site

from monrest.livestatus.catalogue import ALL


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    return shared.daemon(
        [site("s1", embedded)],
        sections={"commands": {"disabled": ["restart_program", "14", "35-36"]}},
    ).start()


@pytest.fixture(scope="module")
def boss(daemon):
    with daemon.client() as client:
        yield client


def test_the_list_has_every_command(boss):
    rows = boss.rows("/cmd")
    assert len(rows) == len(ALL) == 162
    (row,) = [one for one in rows if one["name"] == "schedule_host_downtime"]
    assert row["url"] == "/hosts/<name>/cmd/schedule_host_downtime"
    assert row["needs"].startswith("the role authorized_for_all_host_commands")
    assert row["arguments"][-1] == {
        "name": "comment_data",
        "type": "string",
        "required": True,
        "aliases": ["comment"],
    }
    assert {"name": "fixed", "type": "boolean", "required": False, "default": 1} in row["arguments"]


def test_the_list_is_filtered_and_sorted(boss):
    rows = boss.rows("/cmd", {"kind": "contacts", "name[~~]": "^ENABLE", "columns": "name"})
    assert [row["name"] for row in rows] == [
        "enable_contact_host_notifications",
        "enable_contact_svc_notifications",
    ]


def test_a_path_of_a_command_describes_it(boss):
    for path in ("/hosts/nowhere/cmd/", "/hosts/web01/cmd/"):
        described = boss.get(f"{path}Acknowledge_Host_Problem").json
        assert described["message"] == "nothing was sent: POST sends the command"
        assert (described["name"], described["number"]) == ("acknowledge_host_problem", 33)
    response = boss.get("/hosts/web01/cmd/acknowledge_svc_problem")
    assert (response.status, response.json["message"]) == (404, "no such command")
    assert response.json["help"] == "acknowledge_svc_problem is a command for type service"


def test_the_index_has_every_command(boss):
    urls = {(row["protocol"], row["url"]) for row in boss.rows("/index")}
    assert ("POST", "/services/<host>/<service>/cmd/acknowledge_svc_problem") in urls
    assert ("POST", "/system/cmd/restart_program") in urls
    assert len([1 for _, url in urls if "/cmd/" in url and "<command>" not in url]) == len(ALL) + 3


def test_disabled_commands_are_forbidden_to_administrators_too(boss):
    disabled = {row["name"] for row in boss.rows("/cmd", {"disabled": "1"})}
    assert disabled == {
        "restart_program",
        "shutdown_process",
        "shutdown_program",
        "start_executing_svc_checks",
        "stop_executing_svc_checks",
    }
    for command in ("restart_program", "shutdown_program"):
        response = boss.post_form(f"/system/cmd/{command}", {"test_only": 1})
        assert response.status == 403
        assert response.json["message"] == "this command is disabled"
        assert response.json["description"] == (
            f"{command}: commands.disabled in the configuration names it"
        )


def test_a_forbidden_line_of_the_core_is_forbidden_by_every_way(made, embedded):
    """Deleting by id, and the commands of one host, send the same as the one that is named."""
    daemon = made(
        [site("s1", embedded)],
        sections={"commands": {"disabled": ["del_host_comment", "del_svc_downtime", "log"]}},
    ).start()
    with daemon.client() as boss:
        disabled = {(row["kind"], row["name"]) for row in boss.rows("/cmd", {"disabled": "1"})}
        assert disabled == {
            ("sites", "del_host_comment"),
            ("hosts", "del_comment"),
            ("sites", "del_svc_downtime"),
            ("services", "del_downtime"),
            ("services", "del_active_service_downtimes"),
            ("sites", "log"),
            ("hosts", "note"),
            ("services", "note"),
        }
        (one, *_) = boss.rows("/comments", {"service_description": "", "columns": "id"})
        response = boss.request("DELETE", f"/comments/{one['id']}?test_only=1")
        assert (response.status, response.json["message"]) == (403, "this command is disabled")
