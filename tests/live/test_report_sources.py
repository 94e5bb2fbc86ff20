"""Reports over paths of the API, and over templates of the operator's own, on a real daemon."""

import json

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

SAME_FOR_ALL_CORES = "reports ask as anybody does"

PATH = "/mon/reports"
URL = "report_from_url.tt"
OURS = """+++
like = "sla_report.tt"
title = "Ours"
[defaults]
timeperiod = "last24hours"
breakdown = "days"
+++
{{ heading("Ours: " ~ name) }}
{{ table("Host", ("%", "percent")) }}
{% for one in availability %}{{ row(one.host, one.percent) }}{% endfor %}
{{ part("Availability over time") }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("templates")
    (made / "ours.tt").write_text(OURS)
    (made / "broken.tt").write_text("no head")
    (made / "paths.tt").write_text('+++\nlike = "report_from_url.tt"\n+++\n')
    return made


@pytest.fixture(scope="module")
def server(core, folder, shared):
    return shared.daemon(
        [site("s1", core, name="One"), site("s2", "unix:/nowhere/live")],
        sections={"reports": {"templates": str(folder)}},
    ).start(connected=["s1"])


@pytest.fixture
def boss(server):
    with server.client() as client:
        yield client
        for row in client.rows(PATH):
            client.request("DELETE", f"{PATH}/{row['nr']}")


def create(client, template, params=(), **fields):
    record = {"template": template, "params": dict(params), "backends": "s1", **fields}
    response = client.post_json(PATH, record)
    assert response.status == 200, response
    return response.json["id"]


def over(client, url, **fields):
    return create(client, URL, {"url": url, **fields.pop("params", {})}, **fields)


@pytest.mark.parametrize(
    ("prefix", "content", "ending"),
    [("", "application/json", "json"), ("/wrapped_json", "application/json", "json"),
     ("/csv", "text/csv", "csv"), ("/text", "text/plain", "txt"),
     ("/xls", "application/vnd.openxml", "xlsx")],
)  # fmt: skip
def test_what_the_path_answers(boss, prefix, content, ending):
    """The same bytes as for whoever asks for the path, in the form in which it is asked for."""
    path = f"{prefix}/sites/s1/hosts?columns=name,alias&sort=name"
    number = over(boss, f"/mon/r{path}", name="All hosts")
    made = boss.get(f"{PATH}/{number}/report")
    assert made.status == 200, made
    assert made.type.startswith(content)
    assert made.headers["content-disposition"] == f'attachment; filename="All_hosts.{ending}"'
    if ending != "xlsx":
        assert made.body == boss.get(path).body
    page = boss.get(f"{PATH}/{number}/report?html=1").text
    assert "web01" in page
    assert boss.get(f"{PATH}/{number}/report?type=pdf").body.startswith(b"%PDF-")


def test_as_pdf(boss):
    number = over(boss, "/mon/r/csv/sites/s1/services/totals", params={"pdf": "yes"})
    made = boss.get(f"{PATH}/{number}/report")
    assert (made.type, made.body[:5]) == ("application/pdf", b"%PDF-")


def test_a_path_is_read_as_the_owner(boss):
    mine = over(boss, "/mon/r/hosts?columns=name", user="olga", is_public=1)
    assert [row["name"] for row in boss.get(f"{PATH}/{mine}/report").json] == ["web01"]
    refusing = over(boss, "/mon/r/mon/config", user="olga", is_public=1)
    refused(boss.get(f"{PATH}/{refusing}/report"), 403, "not authorized")
    assert boss.rows(f"{PATH}/{refusing}")["failed"] == 1


def test_who_may_change_it_does_not_read_as_the_owner(boss, server):
    """Whoever shares a report does not share all that he may read himself."""
    shared = {"permissions": [{"type": "user", "name": ["olga"], "perm": "rw"}]}
    plain = create(boss, "problems.tt", **shared)
    url = over(boss, "/mon/r/hosts?columns=name", **shared)
    with server.client("olga") as olga:

        def change(number, **fields):
            body = json.dumps(fields)
            headers = {"Content-Type": "application/json"}
            return olga.request("PATCH", f"{PATH}/{number}", body=body, headers=headers)

        path = {"url": "/mon/r/mon/config"}
        for number in (plain, url):
            refused(change(number, template=URL, params=path), 403, "permission denied")
            refused(change(number, template="paths.tt", params=path), 403, "permission denied")
            assert change(number, name="Ours").status == 200
        refused(olga.post_json(f"{PATH}/{url}", {"template": URL, "params": path}), 403)
        assert change(url, params={"pdf": "yes"}, template="paths.tt").status == 200
        assert change(url, template="problems.tt").status == 200
        refused(change(url, template=URL), 403, "permission denied")
    assert boss.rows(f"{PATH}/{plain}")["name"] == "Ours"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/mon/r/hosts", "expected a path of this API"),
        ("//example.org/mon/r/hosts", "expected a path of this API"),
        ("/other/r/hosts", "expected a path that begins with /mon/r/"),
        ("/mon/r/no/such", "unknown rest path: /no/such"),
        ("/mon/r/mon/logcache/update", "expected a path that can be read"),
        ("/mon/r/config/save", "expected a path that can be read"),
        ("/mon/r/mon/reports/1/report", "not for one reader only"),
        ("/mon/r/mon/jobs/1/output", "not for one reader only"),
        ("/mon/r/hosts?background=1", "expected a path without background"),
    ],
)
def test_paths_that_no_report_is_about(boss, url, words):
    response = boss.post_json(PATH, {"template": URL, "params": {"url": url}})
    assert (response.status, words in response.json["description"]) == (400, True), response


def test_a_wrong_filter_is_seen(boss):
    number = over(boss, "/mon/r/hosts?nonsense=1")
    refused(boss.get(f"{PATH}/{number}/report"), 400, "possible typo in filter")
    assert "possible typo in filter" in boss.rows(f"{PATH}/{number}")["error"]


def test_a_site_that_is_missing(boss):
    number = over(boss, "/mon/r/hosts?columns=name", backends="", params={"delay": 0, "retries": 2})
    refused(boss.get(f"{PATH}/{number}/report"), 502, "Some backends are not connected")
    job = boss.post_json(f"{PATH}/{number}/generate", {}).json["job"]
    refused(boss.get(f"/mon/jobs/{job}/output"), 502, "Some backends are not connected")
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"failed_backends": "continue"})
    assert boss.request("PATCH", f"{PATH}/{number}", body=body, headers=headers).status == 200
    assert boss.get(f"{PATH}/{number}/report").json
    assert "Sites that did not answer: S2" in boss.get(f"{PATH}/{number}/report?html=1").text


def test_a_template_of_ones_own(boss):
    number = create(boss, "ours.tt", name="Größe <b>")
    params = boss.rows(f"{PATH}/{number}")["params"]
    assert (params["timeperiod"], params["sla"]) == ("last24hours", 98)
    text = boss.get(f"{PATH}/{number}/report?html=1").text
    assert "<h2>Ours: Größe &lt;b&gt;</h2>" in text
    assert "<svg" in text
    assert boss.get(f"{PATH}/{number}/report?type=csv").text.startswith("#Host;%\n")
    assert boss.get(f"{PATH}/{number}/report").body.startswith(b"%PDF-")


def test_a_broken_one_is_none(boss, server):
    refused(boss.post_json(PATH, {"template": "broken.tt"}), 400, "invalid report template")
    assert "report template broken.tt: expected a head" in server.log


def test_a_folder_is_read_again(boss, server, folder):
    """A new template, one with a mistake, and one that is gone; reports of it say so."""
    late = folder / "late.tt"
    late.write_text(OURS)
    server.hang_up()
    body = {"template": "late.tt", "backends": "s1"}
    number = until(lambda: boss.post_json(PATH, body).json.get("id"), "it is known")
    assert boss.get(f"{PATH}/{number}/report").status == 200
    late.write_text(OURS.replace("~ name", "~ nobody"))
    server.hang_up()
    generate = f"{PATH}/{number}/generate"

    def failed():
        job = boss.post_json(generate, {}).json["job"]
        return boss.get(f"/mon/jobs/{job}/output").status == 400

    until(failed, "its mistake is seen")
    assert boss.rows(f"{PATH}/{number}")["error"] == (
        "report template 'late.tt' failed, line 1 below its head: UndefinedError: "
        "'nobody' is undefined"
    )
    late.unlink()
    server.hang_up()
    gone = "report template 'late.tt' not available"
    until(lambda: boss.rows(f"{PATH}/{number}")["error"] == gone, "it is gone")
    refused(boss.post_json(f"{PATH}/{number}", body), 400, "invalid report template")
    # What was made with it is still there.
    assert boss.get(f"{PATH}/{number}/report").body.startswith(b"%PDF-")
