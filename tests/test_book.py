"""The book builds, and every page and every link in it leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_book_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "docs",
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "index.html").read_text()
    assert "Background jobs" in first
    elsewhere, inline = set(), set()
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        elsewhere.update(
            re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', text)
        )
        inline.update(re.findall(r"<script>|<style|<[^>]*\s(?:style|on\w+)=", text))
    assert elsewhere == set(), "a page that is read offline loads nothing from elsewhere"
    assert inline == set(), "browsers run and style nothing inline at /mon/docs/book"
