"""Webhooks of each kind of core: what it says arrives, also when it was killed meanwhile."""

import json
import signal

import pytest
from harness.cores import CORES
from harness.daemon import site
from harness.waiting import until
from standardwebhooks.webhooks import Webhook as ReferenceWebhook

PATH = "/mon/webhooks"
HOST, SERVICE = "web01", "ping"


@pytest.mark.parametrize("kind", ["embedded", pytest.param("icinga2", marks=pytest.mark.icinga2)])
def test_what_a_core_says_arrives_also_when_it_was_killed(kind, receiver, lab):
    core = lab.core(CORES[kind])
    daemon = lab.daemon([site("s1", core)], sections={"webhooks": {"allow": ["127.0.0.1"]}})
    count = iter(range(1, 1000))

    def change():
        """A problem and its end; the texts."""
        texts = []
        for state in (2, 0):
            texts.append(f"result {next(count)}")
            core.command(f"PROCESS_SERVICE_CHECK_RESULT;{HOST};{SERVICE};{state};{texts[-1]}")
            until(lambda text=texts[-1]: output() == text, "the core has the result")
        return texts

    def output():
        ((text,),) = core.ask(
            f"GET services\nColumns: plugin_output\nFilter: host_name = {HOST}\n"
            f"Filter: description = {SERVICE}"
        )
        return text

    def arrived():
        return [json.loads(body)["data"]["plugin_output"] for _, body in receiver.posts]

    daemon.start()
    with daemon.client() as client:
        record = {
            "name": kind, "url": receiver.url,
            "filter": f"types=state&host_name={HOST}&plugin_output[regex]=^result",
        }  # fmt: skip
        made = client.post_json(PATH, record).json
    texts = change()
    until(lambda: arrived() == texts, "both arrive")
    core.process.send_signal(signal.SIGKILL)
    core.process.wait(300)
    core.stop()
    core.start()
    texts += change()
    until(lambda: texts[-1] in arrived(), "what it says then arrives")
    # In order, and nothing that was told before the core was killed comes again.
    assert arrived() == texts
    assert len(set(receiver.ids)) == len(receiver.ids)
    for headers, body in receiver.posts:
        event = ReferenceWebhook(made["secret"]).verify(body, headers)
        assert event["subject"] == f"services/{HOST}/{SERVICE}"
