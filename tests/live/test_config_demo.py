"""The demo end to end: what is edited, saved and reloaded shows in its embedded core."""

import pytest
from harness.client import Client
from harness.demo import Demo
from harness.staging import post
from harness.waiting import until
from standardwebhooks.webhooks import Webhook

from monrest.demo.service import demo_objects
from tests.fakes.receiver import HookReceiver


@pytest.fixture
def demo(tmp_path):
    """The client of a demo of its own; at its end nothing of it may be left."""
    running = Demo(tmp_path)
    try:
        _address, port, key = running.found()
        with Client(port, key) as client:
            until(
                lambda: client.rows("/sites")[0]["connected"] == 1, "the embedded core is connected"
            )
            yield client
    finally:
        running.stop()


def test_edit_save_check_reload(demo):
    shipped = {path: path.read_bytes() for path in demo_objects().iterdir()}
    assert demo.json("DELETE", "/hosts/app02/config").json["count"] == 1
    post(demo, "/config/save")
    assert post(demo, "/config/check")[0]["failed"] is True
    (answer,) = post(demo, "/config/reload")
    assert answer["failed"] is True
    assert "app02" in answer["output"]
    assert len(demo.rows("/hosts?name=app02")) == 1
    body = {"alias": "The edge", "_NEW": "yes"}
    assert demo.patch("/hosts/router-edge/config", body).json["count"] == 1
    # What refers to the removed host finds a new one; then the core takes it.
    for name in ("app02", "fresh"):
        new = {":TYPE": "host", ":FILE": "new.cfg", "host_name": name, "use": "linux-server"}
        assert demo.json("POST", "/config/objects", new).json["count"] == 1
    files = [row["file"].rpartition("/")[2] for row in demo.rows("/config/diff")]
    assert files == ["hosts.cfg", "new.cfg"]
    post(demo, "/config/save")
    (answer,) = post(demo, "/config/reload")
    assert answer["failed"] is False, answer
    assert demo.rows("/hosts/router-edge?columns=alias,_NEW") == [body]
    assert demo.rows("/hosts?name=fresh&columns=name,has_been_checked") == [
        {"name": "fresh", "has_been_checked": 0}
    ]
    assert {path: path.read_bytes() for path in demo_objects().iterdir()} == shipped


def test_a_receiver_on_the_same_machine_is_reached(served, lab):
    """The how-to page needs no configuration."""
    receiver = lab.keep(HookReceiver())
    with Client(served.port, served.key) as client:
        made = client.json("POST", "/mon/webhooks", {"name": "mine", "url": receiver.url}).json
        answer = client.json("POST", f"/mon/webhooks/{made['id']}/test", {}).json
        assert client.request("DELETE", f"/mon/webhooks/{made['id']}").status == 200
    assert (answer["taken"], answer["status"]) == (1, 204)
    ((headers, body),) = receiver.posts
    assert Webhook(made["secret"]).verify(body, headers)["type"] == "test"
