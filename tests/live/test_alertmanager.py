"""A real Alertmanager is told what is wrong, and is left with nothing that is not."""

import signal

import pytest
from harness.alertmanager import Alertmanager
from harness.daemon import site
from harness.waiting import until

SAME_FOR_ALL_CORES = "what is sent does not depend on the core"
PATH = "/mon/webhooks"


@pytest.fixture
def manager(tmp_path):
    one = Alertmanager(tmp_path)
    yield one.start()
    one.stop()


@pytest.fixture
def core(lab):
    return lab.core()


def test_alerts_begin_and_end_also_when_either_side_is_killed(manager, core, lab):
    daemon = lab.daemon([site("s1", core)], sections={"webhooks": {"allow": ["127.0.0.1"]}})
    daemon.start()
    with daemon.client() as client:
        record = {
            "name": "alerts", "url": manager.base, "body": "alertmanager",
            "filter": "host_name=web01",
        }  # fmt: skip
        answer = client.post_json(PATH, record)
        number = answer.json["id"]
        assert client.post_json(f"{PATH}/{number}/test", {}).json["taken"] == 1
    # It begins with what is wrong already.
    until(lambda: ("web01", "http", "critical") in manager.firing(), "what is wrong is firing")
    assert {one[0] for one in manager.firing()} == {"web01"}
    (alert,) = [one for one in manager.alerts() if one["labels"].get("service") == "http"]
    assert alert["labels"]["alertname"] == "http"
    assert (alert["labels"]["site"], alert["labels"]["groups"]) == ("s1", ",linux,web,http,")
    core.command("PROCESS_SERVICE_CHECK_RESULT;web01;ping;1;slow")
    until(lambda: ("web01", "ping", "warning") in manager.firing(), "a new problem is firing")
    core.command("PROCESS_SERVICE_CHECK_RESULT;web01;ping;2;gone")
    until(lambda: ("web01", "ping", "critical") in manager.firing(), "it is worse")
    until(lambda: ("web01", "ping", "warning") not in manager.firing(), "the first one is over")
    # The Alertmanager forgets everything, and the daemon is killed while one of both ends.
    manager.stop()
    daemon.stop(signal.SIGKILL)
    core.command("PROCESS_SERVICE_CHECK_RESULT;web01;http;0;fine")
    manager.start()
    assert manager.firing() == set()
    daemon.start()
    until(lambda: manager.firing() == {("web01", "ping", "critical")}, "what is left is firing")
    core.command("PROCESS_SERVICE_CHECK_RESULT;web01;ping;0;fine")
    until(lambda: manager.firing() == set(), "nothing is left firing")
