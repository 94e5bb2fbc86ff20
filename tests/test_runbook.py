"""The runbook has each alert, and names lines of the log that the daemon writes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

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
