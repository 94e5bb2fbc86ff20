"""``/openapi.json`` is valid OpenAPI, has every endpoint, and the daemon keeps to it."""

import json
import re

import pytest
import requests
import schemathesis
from harness.client import Client
from harness.daemon import site
from harness.waiting import until
from hypothesis import HealthCheck, Phase, given, seed, settings
from openapi_spec_validator import validate
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from monrest.base.names import Names
from monrest.daemon.families import ENDPOINTS
from monrest.explorer.openapi import openapi
from monrest.livestatus.catalogue import ALL
from tests.examples import examples

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
UNTRIED = {"/mon/jobs/{id}/output", "/events"}
"""What waits for half a minute, and what has no end."""

RECORDS = (
    ("/mon/broadcasts", {"text": "hello", "expires": "+7d"}),
    ("/mon/bp", {"name": "shop", "nodes": [{"label": "web", "function": 'status("web01")'}]}),
    ("/mon/reports", {"name": "r", "template": "sla_host.tt", "params": {"host": "web01"}}),
    (
        "/mon/recurring_downtimes",
        {"target": "host", "host": ["web01"], "duration": 5, "comment": "x",
         "schedule": [{"type": "day", "hour": 1, "minute": 0}]},
    ),
    ("/mon/panorama", {"tab": {"xdata": {"title": "x"}}}),
    ("/mon/api_keys", {"comment": "x"}),
    ("/hosts?background=1", {}),
)  # fmt: skip
"""So that lists of the daemon's own are not empty."""


@pytest.fixture(scope="module")
def served(embedded, shared):
    """A daemon with a core, a site that is away, and some records of its own."""
    sites = [site("s1", embedded), site("gone", "unix:/nowhere/live")]
    daemon = shared.daemon(sites).start(connected={"s1"})
    with daemon.client() as client:
        for path, record in RECORDS:
            assert client.post_json(path, record).status == 200, path
    return daemon


@pytest.fixture(scope="module")
def document(served):
    return stranger(served).rows("/openapi.json")


def stranger(daemon):
    """Somebody without an account, who asks beside the root of the API too."""
    return Client(daemon.port, None, None, root="")


def test_it_is_valid(document):
    assert document["openapi"].startswith("3.1.")
    validate(document)


def test_it_has_every_path_method_parameter_and_column(document):
    paths, missing = document["paths"], []
    for one in ENDPOINTS:
        item = paths[re.sub(r"<(\w+)>", r"{\1}", one.path)]
        missing += [(one.path, each) for each in one.methods if each.lower() not in item]
        text = json.dumps([item, document["components"]["parameters"]])
        names = {each.name for each in one.parameters if "<" not in each.name}
        missing += [(one.path, name) for name in names if json.dumps(name) not in text]
    missing += [one.name for one in ALL if not any(f"/{one.name}" in path for path in paths)]
    assert missing == []
    hosts = document["components"]["schemas"]["Hosts"]["properties"]
    latency = hosts["latency"]
    assert (latency["type"], latency["x-type"], latency["x-unit"]) == ("number", "number", "s")
    assert latency["description"]
    assert hosts["peer_key"]["type"] == ["string", "null"]


def test_pretty_and_background_are_declared_once_and_wherever_they_work(document):
    parameters = document["components"]["parameters"]
    assert parameters["pretty"]["in"] == parameters["background"]["in"] == "query"
    wrong = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            given = {each.get("$ref", "") for each in operation.get("parameters", ())}
            content = operation["responses"]["200"]["content"]
            started = "StartedJob" in json.dumps(content.get("application/json", "StartedJob"))
            if ("#/components/parameters/background" in given) > started:
                wrong.append((method, path, "the answer of a job is not described"))
            if ("#/components/parameters/pretty" in given) < ("text/csv" in content):
                wrong.append((method, path, "pretty is missing"))
    assert wrong == []
    assert "background" not in json.dumps(document["paths"]["/mon/login"])
    assert "pretty" not in json.dumps(document["paths"]["/events"])


def test_limits_bodies_errors_and_ways_in(document):
    components = document["components"]
    timeout = components["parameters"]["timeout"]["schema"]
    assert (timeout["minimum"], timeout["maximum"]) == (0.1, 300)
    body = document["paths"]["/mon/broadcasts"]["post"]["requestBody"]["content"]
    for kind in ("application/json", "application/x-www-form-urlencoded"):
        schema = body[kind]["schema"]
        assert schema["properties"]["text"]["maxLength"] == 10000
        assert schema["properties"]["annotation"]["enum"] == ["info", "warning"]
        assert schema["required"] == ["text"]
    downtime = document["paths"]["/hosts/{name}/cmd/schedule_host_downtime"]["post"]
    command = downtime["requestBody"]["content"]["application/json"]["schema"]
    assert {"comment_data", "start_time", "end_time", "fixed", "wait"} <= set(command["properties"])
    assert command["required"] == ["comment_data"]
    refused = document["paths"]["/hosts"]["get"]["responses"]["400"]["$ref"].rsplit("/")[-1]
    example = components["responses"][refused]["content"]["application/json"]["example"]
    assert example["code"] == 400
    schemes = components["securitySchemes"]
    assert (schemes["key"]["name"], schemes["user"]["name"]) == (
        "X-Mon-Auth-Key",
        "X-Mon-Auth-User",
    )
    assert (schemes["basic"]["scheme"], schemes["session"]["in"]) == ("basic", "cookie")
    assert document["paths"]["/mon/login"]["post"]["security"] == []
    assert document["servers"][0]["url"] == "/mon/r"


def test_who_has_it_is_told_so(served):
    with stranger(served) as client:
        first = client.get("/openapi.json")
        assert first.type == "application/json"
        again = {"If-None-Match": first.headers["etag"]}
        assert client.get("/openapi.json", headers=again).status == 304
        same = client.get("/mon/r/openapi.json", headers=again)
        assert (same.status, same.body) == (304, b"")
        assert client.get("/mon/r/csv/openapi.json").body == first.body
        packed = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(first.body) / 5
        assert packed.headers["etag"] != first.headers["etag"]


def drive(served, document, mode, count, checks):
    """Send generated requests to every path that reads, and give what went wrong with them."""
    session = requests.Session()
    session.headers.update(served.client().credentials())
    wrong, tried, known = {}, 0, set()
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = result.ok()
        entry = document["paths"][operation.path].get(operation.method)
        if operation.method != "get" or operation.path in UNTRIED:
            continue
        if mode is GenerationMode.NEGATIVE:
            # What is wrong with parameters is said by one reader: one path for each set of them.
            parameters = json.dumps(entry.get("parameters"))
            if parameters in known or parameters == "null":
                continue
            known.add(parameters)

        def ask(case):
            nonlocal tried
            given = str((case.query or {}).get("background", 0)).lower()
            if mode is GenerationMode.NEGATIVE and given in ("1", "true"):
                return  # what is wrong is in the output of the job
            tried += 1
            response = case.call(
                base_url=f"http://127.0.0.1:{served.port}/mon/r", session=session, timeout=300
            )
            try:
                case.validate_response(response, checks=checks)
            except BaseException as error:
                wrong.setdefault((case.path, response.status_code), str(error))

        once = settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(1)(once(given(case=operation.as_strategy(generation_mode=mode))(ask)))()
    session.close()
    return tried, wrong


def test_good_requests_are_answered_as_described(served, document):
    tried, wrong = drive(served, document, GenerationMode.POSITIVE, examples(20, 2), CHECKS)
    assert tried > 160
    assert wrong == {}


def test_wrong_requests_are_refused_as_described(served, document):
    checks = [*CHECKS, negative_data_rejection]
    tried, wrong = drive(served, document, GenerationMode.NEGATIVE, examples(20, 2), checks)
    assert tried > 20
    assert wrong == {}


def test_a_site_has_its_own_words():
    document = openapi(ENDPOINTS, Names(app="watch"), "1", {})
    assert "/watch/whoami" in document["paths"]
    assert document["servers"][0]["url"] == "/watch/r"
    assert document["components"]["securitySchemes"]["key"]["name"] == "X-Watch-Auth-Key"
    assert "watch_version" in document["components"]["schemas"]["Instance"]["properties"]


def test_without_public_docs_it_needs_credentials(served):
    served.sections["server"]["public_docs"] = False
    served.reload()
    with stranger(served) as nobody, served.client() as admin:
        until(lambda: nobody.get("/openapi.json").status == 401, "it needs credentials")
        assert nobody.get("/mon/r/openapi.json").status == 401
        assert admin.get("/openapi.json").status == 200
