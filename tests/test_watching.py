"""The dashboards and alert rules that are shipped ask for metrics and paths that exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from monrest.base.meters import METERS
from monrest.daemon.families import ENDPOINTS

ETC = Path(__file__).parents[1] / "etc"
RULES = ETC / "prometheus" / "monrest.rules.yml"
DASHBOARDS = sorted((ETC / "grafana").glob("*.json"))


def known():
    for one in METERS:
        name = one.name if one.name.startswith("process_") else f"monrest_{one.name}"
        yield name, one.labels
        if one.kind == "histogram":
            yield f"{name}_bucket", (*one.labels, "le")


KNOWN = dict(known())


def test_rules_are_right():
    if shutil.which("promtool") is None:
        assert "MONREST_CI" not in os.environ, "promtool is missing"
        pytest.skip("promtool (Debian's prometheus) is not installed")
    done = subprocess.run(
        ["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def expressions():
    yield from re.findall(r"expr: (?:>-)?([^#]+?)\n\s+for:", RULES.read_text())
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            yield from (one["expr"] for one in panel["targets"] if "expr" in one)


def test_metrics_and_labels_exist():
    wrong, seen = [], 0
    for text in expressions():
        for name, labels in re.findall(r"\b((?:monrest|process)_\w+)(?:\{([^}]*)\})?", text):
            seen += 1
            asked = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", labels))
            if name not in KNOWN or not asked <= {*KNOWN[name], "job", "instance"}:
                wrong.append((name, labels))
    assert seen > 30
    assert wrong == []


def test_paths_of_the_dashboards_exist():
    declared = {one.path: one for one in ENDPOINTS}
    urls = [
        target["url"]
        for path in DASHBOARDS
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
        if "url" in target
    ]
    assert len(urls) == 3
    for url in urls:
        parts = urlsplit(url.removeprefix("${address}"))
        endpoint = declared[parts.path]
        chosen = dict(parse_qsl(parts.query))["columns"].split(",")
        names = {re.sub(r".*\((\w+)\):\w+", r"\1", one) for one in chosen}
        assert names <= set(endpoint.schema.columns), url


def test_panels_have_numbers_of_their_own():
    for path in DASHBOARDS:
        numbers = [panel["id"] for panel in json.loads(path.read_text())["panels"]]
        assert len(numbers) == len(set(numbers))
