"""Every command line of the tutorial and of the page on checks works as a reader would type it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .harness.demo import Demo

DOCS = Path(__file__).parents[2] / "docs"
MONREST = Path(sys.executable).with_name("monrest")
INDENTED = re.compile(r"(?m)^ {4}(?:\$ )?monrest (r .+?)(?: {2,}#.*)?$")
IN_A_TABLE = re.compile(r"`monrest (r -.+?)` \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    demo = Demo(tmp_path_factory.mktemp("demo"))
    try:
        address, _port, key = demo.found()
        yield {
            "MONREST_URL": address.rstrip("/"),
            "MONREST_KEY": key,
            "MONREST_USER": "admin",
        }
    finally:
        demo.stop()


def lines():
    for page in ("../README.md", "tutorial.md", "howto/plugin.md"):
        text = (DOCS / page).read_text()
        for pattern in (INDENTED, IN_A_TABLE):
            yield from ((page, line.replace("\\|", "|")) for line in pattern.findall(text))


def test_lines_are_found():
    found = [line for _page, line in lines()]
    assert len(found) > 30
    assert len([line for line in found if " -c " in line]) >= 3


def test_every_line_works(settings):
    wrong = []
    for page, line in lines():
        done = subprocess.run(
            [MONREST, *shlex.split(line)],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        plugin = " -w " in line or " -c " in line
        if done.returncode not in ((0, 1, 2) if plugin else (0,)) or not done.stdout:
            wrong.append(
                f"{page}: monrest {line}: {done.returncode} {done.stdout[:300]} {done.stderr[:300]}"
            )
    assert wrong == []
