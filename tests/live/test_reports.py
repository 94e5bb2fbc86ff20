"""Reports over the API: a life, rights, bad input, files, mails, paths of the API, own templates."""

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

from tests.fakes.smtp import MailServer
from tests.table import each

SAME_FOR_ALL_CORES = "reports ask as every client does"

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
def mails(shared):
    return shared.keep(MailServer())


@pytest.fixture(scope="module")
def server(core, mails, folder, shared):
    return shared.daemon(
        [site("s1", core, name="One"), site("s2", "unix:/nowhere/live")],
        sections={
            "mail": {"host": "127.0.0.1", "port": mails.port},
            "reports": {"templates": str(folder)},
        },
    ).start(connected=["s1"])


@pytest.fixture
def boss(server):
    with server.client() as client:
        yield client
        for row in client.rows(PATH):
            client.request("DELETE", f"{PATH}/{row['nr']}")


@pytest.fixture
def olga(server):
    """Contact of web01 and of the service ping on db01."""
    with server.client("olga") as client:
        yield client


def create(client, template="sla_report.tt", params=None, **fields):
    day = {"timeperiod": "last24hours", "breakdown": "days"}
    record = {"template": template, "params": day if params is None else params, "backends": "s1"}
    response = client.post_json(PATH, {**record, **fields})
    assert response.status == 200, response
    return response.json["id"]


def over(client, url, **fields):
    return create(client, URL, {"url": url, **fields.pop("params", {})}, **fields)


def test_a_life(boss):
    number = create(boss, name="Größe <b>", own=[1], to="a@x.org")
    row = boss.rows(f"{PATH}/{number}")
    assert (row["nr"], row["name"], row["own"], row["user"]) == (
        str(number),
        "Größe <b>",
        [1],
        "admin",
    )
    assert (row["backends"], row["failed"], row["readonly"]) == (["s1"], 0, 0)
    assert boss.values(PATH, "nr") == [number]
    saved = {"count": 1, "message": "successfully saved 1 report."}
    changed = {
        "params": {"sla": 99},
        "own": None,
        "send_types": [{"type": "cust", "cust": "0 5 * * 1"}],
    }
    assert boss.patch(f"{PATH}/{number}", changed).json == saved
    row = boss.rows(f"/mon/report/{number}")
    assert (row["params"]["sla"], row["params"]["breakdown"]) == (99, "days")
    assert "own" not in row
    assert boss.post_json(f"{PATH}/{number}", {**row, "name": "x"}).json == saved
    assert boss.rows(f"{PATH}/{number}")["name"] == "x"
    assert boss.request("DELETE", f"{PATH}/{number}").json == {
        "count": 1, "message": "successfully removed 1 report.",
    }  # fmt: skip
    for path in ("", "/report"):
        refused(boss.get(f"{PATH}/{number}{path}"), 404, "no such report")


@pytest.mark.parametrize(
    ("kind", "begin", "content"),
    [("pdf", b"%PDF-", "application/pdf"), ("html", b"<!DOCTYPE html>", "text/html"),
     ("xls", b"PK", "application/vnd.openxml"), ("csv", b"#Host;", "text/csv"),
     ("json", b"{", "application/json")],
)  # fmt: skip
def test_files(boss, kind, begin, content):
    number = create(boss, name="My report: é")
    response = boss.get(f"{PATH}/{number}/report?type={kind}")
    assert response.status == 200, response
    assert response.body.startswith(begin)
    assert response.type.startswith(content)
    assert 'filename="My_report_.xlsx"' in response.headers["content-disposition"] or (
        "My_report_" in response.headers["content-disposition"]
    )
    assert response.headers["x-content-type-options"] == "nosniff"


def test_prefixes_and_html(boss):
    number = create(boss)
    assert boss.get(f"{PATH}/{number}/report?html=1").body.startswith(b"<!DOCTYPE")
    assert boss.get(f"/csv{PATH}/{number}/report").body.startswith(b"#Host;")
    assert boss.get(f"/xls{PATH}/{number}/report").body.startswith(b"PK")


def test_the_owner_sees_what_he_may(boss, olga):
    """Every reader of a report gets what its owner may see."""
    number = create(boss, user="olga", is_public=1)
    text = boss.get(f"{PATH}/{number}/report?type=csv").text
    assert "web01" in text
    assert "router1" not in text
    assert olga.rows(f"{PATH}/{number}")["readonly"] == 0
    refused(olga.post_json(PATH, {"template": "problems.tt"}), 403, "not authorized")
    assert olga.patch(f"{PATH}/{number}", {"user": "admin"}).status == 403


def test_a_missing_site_is_no_report(boss):
    number = create(boss, backends="s1,s2")
    response = boss.get(f"{PATH}/{number}/report")
    assert response.status == 502
    assert response.json["message"] == "Some backends are not connected, cannot create report!"
    row = boss.rows(f"{PATH}/{number}")
    assert (row["failed"], row["error"]) == (1, response.json["message"])
    assert boss.rows(f"{PATH}?failed=1&columns=nr") == [{"nr": number}]
    assert boss.patch(f"{PATH}/{number}", {"failed_backends": "continue"}).status == 200
    page = boss.get(f"{PATH}/{number}/report?html=1")
    assert "Sites that did not answer: S2" in page.text
    assert boss.rows(f"{PATH}/{number}")["failed"] == 0


@each(
    ("path", "words"),
    [("?type=doc", "type: expected one of pdf"), ("?html=maybe", "html: expected 0 or 1"),
     ("?what=1", "'what': expected html or type"), ("?background=1", "background: expected 0")],
)  # fmt: skip
def test_bad_questions(boss, path, words):
    number = create(boss)
    response = boss.get(f"{PATH}/{number}/report{path}")
    assert (response.status, words in response.text) == (400, True), response


def test_a_job_and_a_mail(boss, mails):
    mails.mails.clear()
    number = create(boss, to="a@example.org", cc="b@example.org", name="Größe")
    started = boss.post_json(f"{PATH}/{number}/generate", {})
    assert started.json["message"] == "report started in background"
    done = boss.get(f"/mon/jobs/{started.json['job']}/output")
    assert done.json == {"id": number, "message": "report finished"}
    assert mails.mails == []
    assert boss.post_json(f"{PATH}/{number}/generate", {"mail": 1}).json == {
        "message": "report queued"
    }
    until(lambda: mails.mails, 60)
    (mail,) = mails.mails
    assert mail.recipients == ["a@example.org", "b@example.org"]
    assert mail.message["Subject"] == "Report: Größe"
    lonely = create(boss)
    refused(boss.post_json(f"{PATH}/{lonely}/generate", {"mail": 1}), 400, "cannot be mailed")


@pytest.mark.parametrize(
    ("prefix", "content", "ending"),
    [("", "application/json", "json"), ("/wrapped_json", "application/json", "json"),
     ("/csv", "text/csv", "csv"), ("/text", "text/plain", "txt"),
     ("/xls", "application/vnd.openxml", "xlsx")],
)  # fmt: skip
def test_what_the_path_answers(boss, prefix, content, ending):
    """The same bytes as for a client of the path, in the form in which it is asked for."""
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


def test_a_right_to_change_is_none_to_read_as_the_owner(boss, olga):
    """An owner who shares a report does not share all that he may read himself."""
    shared = {"permissions": [{"type": "user", "name": ["olga"], "perm": "rw"}]}
    plain = create(boss, "problems.tt", {}, **shared)
    url = over(boss, "/mon/r/hosts?columns=name", **shared)

    def change(number, **fields):
        return olga.patch(f"{PATH}/{number}", fields)

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


@each(
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
    assert boss.patch(f"{PATH}/{number}", {"failed_backends": "continue"}).status == 200
    assert boss.get(f"{PATH}/{number}/report").json
    assert "Sites that did not answer: S2" in boss.get(f"{PATH}/{number}/report?html=1").text


def test_a_template_of_ones_own(boss):
    number = create(boss, "ours.tt", {}, name="Größe <b>")
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
