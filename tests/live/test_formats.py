"""Output formats: JSON, wrapped JSON, CSV, Excel, text (14)."""

import io
import json

import openpyxl
import pytest
from harness.expect import HOSTS, refused

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SAME_FOR_ALL_CORES = "rows are written long after they came from a core"


def sheet(response):
    """The rows of the only worksheet of a workbook."""
    assert response.status == 200, response
    book = openpyxl.load_workbook(io.BytesIO(response.body))
    assert book.sheetnames == ["data"]
    return [list(row) for row in book["data"].iter_rows(values_only=True)]


def test_empty_answers(client):
    assert client.get("/hosts/nope").body == b"[]\n"
    assert client.get("/hosts?columns=count(*)&count(*)[gt]=99").body == b"{}\n"
    assert client.get("/csv/hosts/nope?columns=name,state").text == "#name;state\n"
    assert client.get("/csv/hosts/nope?columns=name,state&headers=0").body == b""
    text = client.get("/text/hosts/nope?columns=name").text
    assert "| name |" in text
    rows = sheet(client.get("/xls/hosts/nope?columns=name,state"))
    assert rows == [["name", "state"]]


def test_errors_are_never_wrapped(client):
    refused(client.get("/wrapped_json/nope"), 404, "unknown rest path")
    refused(client.get("/wrapped_json/hosts?limit=x"), 400, "limit")
    headers = {"X-Mon-OutputFormat": "wrapped_json"}
    refused(client.get("/hosts?q=(", headers=headers), 400)
    unknown = client.get("/hosts", headers={"X-Mon-OutputFormat": "pdf"})
    refused(unknown, 400, "unknown output format", "X-Mon-Outputformat")
    assert client.get("/csv/hosts?columns=name", headers=headers).text.startswith("#name\n")


def test_the_keys_of_a_list_are_one_row(client):
    """Also those that only some of its rows have: custom variables and performance data."""
    header = {"X-Mon-Output-Metadata-Only": "true"}
    for path in ("/hosts", "/services", "/comments", "/logs", "/sites", "/mon/sessions", "/index"):
        rows = client.rows(path)
        found = client.get(path, headers=header).json
        assert len(found) == min(1, len(rows)), path
        assert {key for row in found for key in row} == {key for row in rows for key in row}, path
    wrapped = client.get("/wrapped_json/services?sort=description", headers=header).json
    (row,) = wrapped["data"]
    assert len(row) > len(client.rows("/services?sort=description")[0])
    assert [one["name"] for one in wrapped["meta"]["columns"]] == sorted(row)
    chosen = "/hosts?columns=name,state&sort=name"
    assert client.get(chosen, headers=header).json == client.rows(chosen)
    for path in ("/hosts/totals", "/mon/config"):
        assert client.get(path, headers=header).json.keys() == client.rows(path).keys()
    no = client.get("/hosts?columns=name", headers={"X-Mon-Output-Metadata-Only": "maybe"})
    refused(no, 400, "X-Mon-Output-Metadata-Only: expected 0 or 1")


def test_a_row_a_line(client):
    asked = {"columns": "name,state", "sort": "name"}
    whole = client.get("/hosts", asked).json
    for response in (
        client.get("/ndjson/hosts", asked),
        client.get("/hosts", asked, headers={"Accept": "application/x-ndjson"}),
        client.get("/hosts", asked, headers={"X-Mon-OutputFormat": "ndjson"}),
    ):
        assert response.headers["content-type"] == "application/x-ndjson"
        assert response.text.endswith("\n")
        assert [json.loads(line) for line in response.text.splitlines()] == whole
    every = client.get("/ndjson/hosts?sort=name").text.splitlines()
    assert [json.loads(line) for line in every] == client.get("/hosts?sort=name").json
    assert client.get("/ndjson/hosts?name=nope").body == b""
    totals = client.get("/ndjson/hosts/totals?pretty=1").text.splitlines()
    assert [json.loads(line) for line in totals] == [client.get("/hosts/totals").json]
    wrong = client.get("/ndjson/hosts?limit=x")
    assert (wrong.status, wrong.json["code"]) == (400, 400)
    assert (
        client.get("/csv/hosts", asked, headers={"Accept": "application/x-ndjson"}).text[0] == "#"
    )


def test_accept_chooses_a_format(client):
    asked = {"columns": "name,state", "name": "web01"}
    csv = client.get("/hosts", asked, headers={"Accept": "text/csv"})
    assert (csv.type, csv.text) == ("text/csv", "#name;state\nweb01;0\n")
    assert "Accept" in csv.headers["vary"]
    rows = sheet(client.get("/hosts", asked, headers={"Accept": EXCEL}))
    assert rows == [["name", "state"], ["web01", 0]]
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert client.get("/hosts", asked, headers=browser).type == "application/json"
    refused = client.get("/hosts?limit=x", headers={"Accept": "text/csv"})
    assert (refused.status, refused.type) == (400, "text/csv")
    assert "content-disposition" not in refused.headers


def test_csv(client):
    columns = "name,state,groups,custom_variables,plugin_output,nope,alias as a"
    response = client.get("/csv/hosts", {"columns": columns, "name": "web01"})
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="rest.csv"'
    head, row = response.text.split("\n")[:-1]
    assert head == "#name;state;groups;custom_variables;plugin_output;nope;a"
    fields = row.split(";")
    assert fields[:2] == ["web01", "0"]
    assert sorted(fields[2].strip('"').split(",")) == ["linux", "web"]
    assert fields[3] == '"{""SIZE"":""2"",""WORKER"":""local""}"'
    assert fields[4:] == ["OK - alive", "", "Web 01 · ü"]


def test_csv_quotes_separators(client):
    parameters = {"columns": "description,plugin_output", "host_name": "db01"}
    lines = client.get("/csv/services", parameters).text.splitlines()
    assert lines[1] == 'Disk /var;"WARNING: 80% used, not 75%"'
    lines = client.get("/csv/services/web01/*", {"columns": "description"}).text.splitlines()
    assert lines[1] == '"C:\\ used; 5%"'


def test_excel(client):
    columns = "name,state,groups,alias,custom_variables,nope"
    response = client.get("/xls/hosts", {"columns": columns})
    assert "rest.xls" in response.headers["content-disposition"]
    assert response.headers["content-disposition"].startswith("attachment")
    rows = sheet(response)
    assert rows[0] == ["name", "state", "groups", "alias", "custom_variables", "nope"]
    assert [row[0] for row in rows[1:]] == list(HOSTS)
    web01 = rows[1 + HOSTS.index("web01")]
    assert web01[1] == 0
    assert sorted(web01[2].split(", ")) == ["linux", "web"]
    assert web01[3] == "Web 01 · ü"
    assert json.loads(web01[4]) == {"SIZE": "2", "WORKER": "local"}
    assert web01[5] is None


def test_text_of_objects_and_wide_letters(client):
    text = client.get("/text/hosts/totals").text
    assert "| total " in text
    text = client.get("/text/services/web01/*", {"columns": "description,groups"}).text
    assert "Größe ü/€" in text
    assert len({len(line) for line in text.splitlines()}) == 1


@pytest.mark.parametrize("prefix", ["csv", "text", "xls"])
def test_errors_come_in_the_asked_format(client, prefix):
    response = client.get(f"/{prefix}/hosts", {"limit": "x"})
    assert response.status == 400
    if prefix == "xls":
        book = openpyxl.load_workbook(io.BytesIO(response.body))
        keys = [row[0] for row in book["data"].iter_rows(values_only=True)]
    else:
        keys = [
            line.strip("|# ").split(";")[0].split(" ")[0] for line in response.text.splitlines()
        ]
    assert {"code", "message", "description"} <= set(keys)
