"""Reports over the API: a life, rights, bad input, files, and a mail on a real connection."""

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

from tests.fakes.smtp import MailServer

SAME_FOR_ALL_CORES = "reports ask as anybody does"

PATH = "/mon/reports"


@pytest.fixture(scope="module")
def mails(shared):
    return shared.keep(MailServer())


@pytest.fixture(scope="module")
def server(core, mails, shared):
    return shared.daemon(
        [site("s1", core, name="One"), site("s2", "unix:/nowhere/live")],
        sections={"mail": {"host": "127.0.0.1", "port": mails.port}},
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


def create(client, **fields):
    fields = {"template": "sla_report.tt", "backends": "s1", **fields}
    fields["params"] = {
        "timeperiod": "last24hours",
        "breakdown": "days",
        **fields.get("params", {}),
    }
    response = client.post_json(PATH, fields)
    assert response.status == 200, response
    return response.json["id"]


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
    """Whoever asks for it, a report says what its owner may see."""
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
    assert boss.patch(f"{PATH}/{number}", {"failed_backends": "continue"}).status == 200
    page = boss.get(f"{PATH}/{number}/report?html=1")
    assert "Sites that did not answer: S2" in page.text
    assert boss.rows(f"{PATH}/{number}")["failed"] == 0


@pytest.mark.parametrize(
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
