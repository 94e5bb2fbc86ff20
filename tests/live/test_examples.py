"""Every endpoint has an example on the reference page, and a demo answers it as the page says."""

import pytest

from monrest.daemon.families import ENDPOINTS
from monrest.explorer.examples import example_requests, examples

from .harness.client import Client
from .harness.demo import Demo
from .harness.documented import answers, differences


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    demo = Demo(tmp_path_factory.mktemp("demo"))
    try:
        _address, port, key = demo.found()
        with Client(port, key) as client:
            found = list(answers(client))
    finally:
        demo.stop()
    return found


def test_every_endpoint_has_an_example():
    declared = {f"{method} {one.path}" for one in ENDPOINTS for method in one.methods}
    assert declared == {one.endpoint for one in example_requests()}


def test_the_demo_answers_as_the_reference_says(answered):
    wrong = []
    kept = examples()
    seen = set()
    for asked, now in answered:
        if asked.endpoint in seen:
            continue
        seen.add(asked.endpoint)
        one = kept[asked.endpoint]
        if (one.status, one.type) != (now["status"], now["type"]):
            wrong.append(f"{asked.endpoint}: {now}")
        wrong += [f"{asked.endpoint}{text}" for text in differences(one.answer, now["answer"])]
    assert wrong == []


def test_no_example_is_a_failure_of_ours(answered):
    """What the demo lacks is refused: a cluster, passwords, messages that were sent."""
    refused = {asked.endpoint: now["status"] for asked, now in answered if now["status"] != 200}
    assert set(refused.values()) <= {400, 403, 404, 501}
    assert all(
        endpoint.split()[1].startswith(
            (
                *("/mon/cluster", "/mon/login", "/mon/logout", "/mon/sessions"),
                *("/mon/node-control", "/mon/webhooks/<id>/deliveries/<nr>"),
            )
        )
        for endpoint in refused
    ), refused
