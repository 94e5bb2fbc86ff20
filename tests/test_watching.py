"""Figures, dashboards and alert rules, and the runbook ask for metrics, paths and lines that exist."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from twisted.internet.defer import Deferred

from monrest.base.errors import Unavailable
from monrest.base.meters import METERS
from monrest.base.metrics import Metrics
from monrest.daemon.families import ENDPOINTS
from tests.fakes.keystore import result

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


def test_all_sources_are_asked_each_time():
    figures, values, problems = Metrics(), {"users_total": 1}, []

    async def users():
        if problems:
            raise problems[0]
        return dict(values)

    async def processes():
        return {"business_process_total": 3}

    def now():
        return result(Deferred.fromCoroutine(figures.current()))

    assert now() == {}
    figures.offer(users)
    figures.offer(processes)
    assert now() == {"business_process_total": 3, "users_total": 1}
    values["users_total"] = 2
    assert now() == {"business_process_total": 3, "users_total": 2}
    problems.append(Unavailable("cannot read", "gone"))
    with pytest.raises(Unavailable):
        now()
    problems.clear()
    assert now()["users_total"] == 2


ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/howto/runbook.md").read_text("utf-8")


def test_each_alert_has_a_heading():
    rules = yaml.safe_load((ROOT / "etc/prometheus/monrest.rules.yml").read_text("utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    assert sorted(re.findall(r"^## (Monrest\w+): ", PAGE, re.MULTILINE)) == sorted(alerts)


def texts():
    """Every text of the daemon, with braces for what is filled in."""
    for path in (ROOT / "monrest").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(one, "value", None) for one in node.values)
                yield "".join(one if isinstance(one, str) else "{}" for one in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_lines_of_the_log_are_those_of_the_daemon():
    # `site … is down: …`: the words between what is filled in, in this order.
    named = re.findall(r"[Ll]og: `([^`]+)`|, `([^`]+: …)`", " ".join(PAGE.split()))
    lines = {line for pair in named for line in pair if line}
    assert len(lines) > 15
    written = [text for text in texts() if len(text) < 300]
    for line in lines:
        words = [re.escape(one) for part in line.split("…") if (one := part.strip(" :"))]
        assert any(re.search(".*".join(words), text) for text in written), line
