"""An installation without the extras: what needs them says how they are installed."""

import os
import subprocess
import sys

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

SAME_FOR_ALL_CORES = "no core is asked for what an installation lacks"

BLOCKED = """
import sys
for name in ("psycopg", "reportlab", "xlsxwriter"):
    sys.modules[name] = None
"""
CHECK = "import sys; from monrest.cli.main import main; sys.exit(main())"
REPORTS = "expected an installation by pip install 'monrest[reports]'"
POSTGRESQL = "expected an installation by pip install 'monrest[postgresql]'"


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """Where Python finds what makes the packages of the extras impossible to import."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text(BLOCKED)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def boss(core, without, shared):
    daemon = shared.daemon([site("s1", core)], sections={"mail": {"host": "127.0.0.1", "port": 1}})
    with daemon.start(**without).client() as client:
        yield client


def test_excel_is_refused_and_other_formats_are_not(boss):
    refused(boss.get("/xls/hosts?columns=name"), 501, f"Excel files: {REPORTS}")
    assert boss.get("/csv/hosts?columns=name").status == 200


def test_reports_have_the_other_forms(boss):
    fields = {
        "name": "plain",
        "template": "sla_report.tt",
        "backends": "s1",
        "to": "a@example.org",
        "params": {"timeperiod": "last24hours", "breakdown": "days", "host": "web01"},
    }
    made = boss.post_json("/mon/reports", fields)
    path = f"/mon/reports/{made.json['id']}"
    page = boss.get(f"{path}/report?html=1")
    assert page.status == 200, page
    assert b"<html" in page.body
    assert boss.get(f"{path}/report?type=csv").status == 200
    refused(boss.get(f"{path}/report"), 501, f"PDF files: {REPORTS}")
    refused(boss.get(f"{path}/report?type=xls"), 501, f"Excel files: {REPORTS}")
    # A mail would lack the file that it is sent for.
    assert boss.post_json(f"{path}/generate", {"mail": 1}).status == 200
    until(lambda: REPORTS in str(boss.rows(path)), "the report says why it is not mailed")


def test_a_database_is_refused_by_the_check(without, tmp_path):
    config = tmp_path / "monrest.toml"
    config.write_text('[database]\nurl = "postgresql+psycopg://monrest@127.0.0.1/monrest"\n')
    check = [sys.executable, "-c", CHECK, "check-config", str(config)]
    said = subprocess.run(
        check, env={**os.environ, **without}, capture_output=True, text=True, check=False
    )
    assert said.returncode != 0
    assert f"database.url: {POSTGRESQL}" in said.stdout + said.stderr
