"""A real ``nagios4 -v`` as the check command: what it says is what ``/config/check`` shows."""

import pytest
from harness.cores import OBJECTS
from harness.daemon import site
from harness.expect import refused
from harness.staging import post, saved

from tests.fakes.nagios4 import Nagios4


@pytest.fixture(scope="module")
def nagios(tmp_path_factory):
    found = Nagios4(tmp_path_factory.mktemp("nagios4"))
    text = (OBJECTS / "site.cfg").read_text()
    # A backslash is nothing that it allows in names; a semicolon is.
    (found.objects / "site.cfg").write_text(text.replace("C:\\ used\\; 5%", "C used"))
    return found


@pytest.fixture(scope="module")
def daemon(nagios, shared):
    tool = {"core_conf": str(nagios.main), "obj_check_cmd": nagios.command}
    daemon = shared.daemon([site("s1", "unix:/nonexistent/live", configtool=tool)])
    return daemon.start(connected=())


@pytest.fixture
def admin(daemon, nagios):
    before = (nagios.objects / "site.cfg").read_bytes()
    with daemon.client() as client:
        yield client
        post(client, "/config/revert")
    (nagios.objects / "site.cfg").write_bytes(before)


def checked(client, nagios):
    """The answer of the check, which is the core's own output word by word."""
    (answer,) = post(client, "/config/check")
    verdict = nagios.judge()
    assert answer == {"peer_key": "s1", "failed": not verdict.accepts, "output": verdict.output}
    return answer


def test_files_that_are_sound(admin, nagios):
    answer = checked(admin, nagios)
    assert answer["failed"] is False
    assert "Checked 11 services." in answer["output"]
    assert "Total Errors:   0" in answer["output"]
    assert admin.rows("/config/precheck") == [{"peer_key": "s1", "errors": [], "failed": False}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parents": "none"}, "'none' is not a valid parent for host 'web01'!"),
        ({"no_such": "1"}, "Invalid host object directive 'no_such'."),
    ],
)
def test_what_an_edit_breaks(admin, nagios, change, said):
    """Staged it harms no check; saved it is refused, by a check and before every restart."""
    assert admin.patch("/hosts/web01/config", change).json["count"] == 1
    (told,) = admin.rows("/config/precheck")
    assert told["failed"] is True
    assert checked(admin, nagios)["failed"] is False
    saved(admin)
    answer = checked(admin, nagios)
    assert answer["failed"] is True
    assert said in answer["output"]
    (reloaded,) = post(admin, "/config/reload")
    assert reloaded["failed"] is True
    assert said in reloaded["output"]


def test_a_change_that_is_sound_is_sound_to_the_core_as_well(admin, nagios):
    changes = {"alias": "Web; One", "parents": "router1,db01", "_NEW": "x", "contacts": "null"}
    assert admin.patch("/hosts/web01/config", changes).json["count"] == 1
    renamed = admin.patch("/hosts/router1/config", {"host_name": "core-1"})
    assert renamed.json["count"] == 1
    saved(admin)
    assert checked(admin, nagios)["failed"] is False
    refused(admin.get("/config/check"), 405, "POST")
