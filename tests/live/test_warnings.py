"""Typing errors in ``columns`` and ``sort`` are told: header, wrapped JSON, command line, jobs."""

import os
import subprocess
import sys

import pytest
from harness.expect import refused
from harness.waiting import until

SAME_FOR_ALL_CORES = "what has no column is not asked for"

NAM = "columns: no row has a column nam"

CASES = [
    # a collection with performance data, where only the rows can tell
    ("/hosts", {"columns": "name,nam"}, NAM),
    ("/hosts", {"columns": "upper(nam) as x"}, NAM),
    ("/hosts", {"columns": "nam:name"}, NAM),
    ("/hosts", {"columns": "count(*),nam"}, NAM),
    ("/hosts", {"columns": "avg(nam)"}, NAM),
    ("/hosts", {"columns": "state+nam"}, NAM),
    ("/hosts", {"columns": "to_rows(nam)"}, NAM),
    ("/hosts", {"columns": "uniq(to_rows(nam)),count(*)"}, NAM),
    ("/hosts", {"columns": "to_rows(groups)", "to_rows(groups)": "nowhere"}, None),
    ("/hosts", {"columns": "name", "sort": "-nam"}, "sort: no row has a column nam"),
    ("/hosts", {"columns": "nam", "sort": "nan"}, f"{NAM}; sort: no row has a column nan"),
    ("/hosts", {"sort": "nam"}, "sort: no row has a column nam"),
    ("/hosts", {"columns": "count(*),state", "sort": "name"}, "sort: no row has a column name"),
    ("/hosts", {"columns": "_WORKR"}, "columns: no row has a column _WORKR"),
    ("/hosts", {"columns": "größe%;"}, "columns: no row has a column gr%C3%B6%C3%9Fe%25%3B"),
    ("/hosts", {"columns": "name,rta,pl_unit,_WORKER,peer_key", "sort": "rta"}, None),
    ("/hosts", {"columns": "count(*),state", "sort": "count(*)"}, None),
    ("/hosts", {"columns": "name,rta", "name": "nowhere"}, None),
    ("/hosts", {"columns": "name,rta", "limit": "1"}, None),
    ("/hosts", {}, None),
    ("/mon/whoami", {"columns": "id"}, None),
]

NOTHING = "no row has a column"
IMPOSSIBLE = [
    # what has no performance data and no variables knows all of its names
    ("/hostgroups", {"columns": "nam"}, "columns: there is no column nam, did you mean name?"),
    ("/hostgroups", {"columns": "nam", "name": "nowhere"}, "columns: there is no column nam"),
    ("/contacts", {"sort": "-nam"}, "sort: there is no column nam"),
    ("/logs", {"columns": "upper(mesage):x"}, "columns: there is no column mesage, did you mean"),
    # records of the front end, single objects, statistics
    ("/sites", {"columns": "id,nam"}, "columns: there is no column nam"),
    ("/sites", {"sort": "nam"}, "sort: there is no column nam"),
    ("/hosts/totals", {"columns": "up,nam"}, NAM),
    ("/mon/whoami", {"columns": "id,nam"}, NAM),
]
STRICT = [
    ("/hosts", {"columns": "name,nam"}, NAM),
    ("/hosts", {"columns": "name", "sort": "-nam"}, f"sort: {NOTHING} nam"),
    ("/hosts", {"columns": "count(*),state", "sort": "name"}, f"sort: {NOTHING} name"),
    ("/hosts", {"columns": "_WORKR"}, f"columns: {NOTHING} _WORKR"),
    ("/services", {"columns": "_HOSTWORKR,rta", "limit": "1"}, f"columns: {NOTHING} _HOSTWORKR"),
    ("/hosts", {"columns": "name,rta,_WORKER,peer_key"}, None),
    ("/hosts", {"columns": "nam", "name": "nowhere"}, None),
    ("/hosts", {"strict": "perhaps"}, "strict: expected 0 or 1"),
]


def test_names_that_nothing_can_have_are_an_error(client):
    for path, parameters, expected in IMPOSSIBLE:
        for prefix in ("", "/csv", "/wrapped_json"):
            if not prefix:
                refused(client.get(path, parameters), 400, expected)
            assert client.get(prefix + path, parameters).status == 400, (prefix, path)


def test_names_that_no_row_has_are_an_error_of_a_strict_request(client):
    wrong = []
    for path, parameters, expected in STRICT:
        asked = {"strict": "1", **parameters}
        answer = client.get(path, asked)
        told = None if answer.status == 200 else answer.json["description"]
        if (told or "").startswith(expected or "") is not True or bool(told) != bool(expected):
            wrong.append((path, parameters, answer.status, told, expected))
        sent = client.post_form(path, asked)
        assert sent.status == answer.status, (path, parameters)
    assert not wrong
    refused(client.get("/hosts?columns=nam&strict=1&background=0"), 400, NAM)
    assert client.get("/hosts?columns=nam&strict=0").status == 200


def test_what_other_rows_have_is_no_error_of_a_strict_request(client):
    """Of a label or variable that one object has not it is known that others have it."""
    hosts = client.rows("/hosts?columns=name,_WORKER,rta")
    for name in ("_WORKER", "rta"):
        without = [row["name"] for row in hosts if row[name] is None]
        assert len(without) < len(hosts)
        for host in without[:1]:
            answer = client.get("/hosts", {"columns": name, "name": host, "strict": "1"})
            assert (answer.status, answer.json) == (200, [{name: None}])
            assert "x-mon-warnings" not in answer.headers


def test_the_header_names_what_no_row_has(client):
    wrong = []
    for path, parameters, expected in CASES:
        answer = client.get(path, parameters)
        told = answer.headers.get("x-mon-warnings")
        if (answer.status, told) != (200, expected):
            wrong.append((path, parameters, answer.status, told, expected))
    assert not wrong


def test_ten_are_named_and_the_others_counted(client):
    answer = client.get("/hosts", {"columns": ",".join(f"x{at}" for at in range(12))})
    told = answer.headers["x-mon-warnings"].split("; ")
    assert told[0] == "columns: no row has a column x0"
    assert len(told) == 11
    assert told[-1] == "and 2 more"


@pytest.mark.parametrize("path", ["/hosts", "/services"])
def test_wrapped_json_has_them_in_its_meta(client, path):
    assert client.rows(f"/wrapped_json{path}", {"columns": "nam"})["meta"]["warnings"] == [NAM]
    assert "warnings" not in client.rows(f"/wrapped_json{path}")["meta"]


def test_the_result_of_a_job_has_them_too(client):
    started = client.rows("/hosts", {"columns": "nam", "background": "1"})
    path = started["result_url"].removeprefix(client.root)
    answer = until(lambda: (got := client.get(path)).status == 200 and got, "the job is done")
    assert answer.headers["x-mon-warnings"] == NAM


def test_the_command_line_tells_them_on_standard_error(daemon, tmp_path):
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MONREST_")}
    environment = {
        **kept,
        "XDG_CONFIG_HOME": str(tmp_path),
        "MONREST_URL": f"http://127.0.0.1:{daemon.port}",
        "MONREST_KEY": daemon.key,
        "MONREST_USER": "admin",
    }

    def told(*words, fails=False):
        main = "import sys; from monrest.cli.main import main; sys.exit(main())"
        ran = subprocess.run(
            [sys.executable, "-c", main, "r", *words],
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert (ran.returncode == 0) is not fails
        return ran.stdout.decode(), ran.stderr.decode()

    url = "/hosts?columns=nam,größe&name=web01"
    wanted = f"monrest: {NAM}\nmonrest: columns: no row has a column größe\n"
    output, errors = told("--no-strict", url)
    assert errors == wanted
    assert "null" in output
    assert told("--no-strict", "-o", "{0}", url)[1] == wanted
    assert told("--quiet", "--no-strict", url)[1] == ""
    assert told("/hosts?columns=name")[1] == ""
    output, _ = told(url, fails=True)
    assert "columns: no row has a column nam" in output
    assert told("/hosts?columns=nam&strict=0")[1] == f"monrest: {NAM}\n"
