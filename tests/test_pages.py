"""The book builds, and pages, headings and modules that comments and pages name are in this repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_book_builds_without_a_warning(tmp_path):
    """All pages as one, and one of them alone with what is beside the pages."""
    for builder, *more in (("singlehtml", "-W", "--keep-going"), ("html",)):
        line = ["-m", "sphinx", "-q", "-b", builder, "-d", tmp_path / "read", *more]
        # Its search would not find all pages, which is a warning.
        pages = ["docs/index.md"] if builder == "html" else []
        done = subprocess.run(
            [sys.executable, *line, "docs", tmp_path / builder, *pages],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "Background jobs" in (tmp_path / "singlehtml/index.html").read_text()
    elsewhere, inline = set(), set()
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        elsewhere.update(
            re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', text)
        )
        inline.update(re.findall(r"<script>|<style|<[^>]*\s(?:style|on\w+)=", text))
    assert elsewhere == set(), "a page that is read offline loads nothing from elsewhere"
    assert inline == set(), "browsers run and style nothing inline at /mon/docs/book"


FOLDERS = ("bench", "docs", "etc", "monrest", "tests")

ELSEWHERE = (
    "DESIGN", "auth-and-commands", "findings", "frontend-data", "house", "icinga2-livestatus",
    "node-control", "object-config", "query-engine", "style-models",
)  # fmt: skip
"""Pages that a reader of the repository does not have."""

PAGE = re.compile(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.md)\b")
MODULE = re.compile(
    r"(?<![\w./-])(?:bench|etc|monrest|tests)/[\w/-]+\.(?:cfg|json|py|service|toml)\b"
)
HEADING = re.compile(r'(?:`|\))?(?:,| and| \()\s*"([^"]+)"')
COMMENT = re.compile(r"(?m)(?:^|\s)# (.*)$")
MARKS = (".md", "ection ", "ections ", *(f"{folder}/" for folder in FOLDERS))
"""Most files cite nothing, and to read all of them takes its time."""

NUMBERED = re.compile(r"(?<!RFC \d{4}, )\b[Ss]ections? \d")


def files() -> Iterator[Path]:
    for suffix in ("py", "md", "toml"):
        yield from sorted(ROOT.glob(f"*.{suffix}"))
        for folder in FOLDERS:
            yield from sorted((ROOT / folder).rglob(f"*.{suffix}"))


def prose(path: Path) -> Iterator[str]:
    """What people wrote for people, each text in one line."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield " ".join(text.split())
    elif path.suffix == ".toml":
        yield " ".join(line.partition("#")[2].strip() for line in text.splitlines())
    elif any(mark in text for mark in MARKS):
        yield from docstrings(ast.parse(text))
        yield " ".join(COMMENT.findall(text))


def docstrings(node: ast.AST) -> Iterator[str]:
    """Texts that stand alone as a statement, below modules, classes and functions."""
    for one in getattr(node, "body", ()):
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            yield " ".join(str(one.value.value).split())
        elif isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from docstrings(one)


def headings(page: Path) -> set[str]:
    lines = page.read_text("utf-8").splitlines()
    return {line.lstrip("#").strip() for line in lines if line.startswith("#")}


def wrong(text: str, folder: Path) -> Iterator[str]:
    """What is wrong with the citations in a text of a file in ``folder``."""
    for found in PAGE.finditer(text):
        page = next((at / found[1] for at in (ROOT, folder) if (at / found[1]).is_file()), None)
        if page is None:
            yield f"{found[1]} is not there"
            continue
        known, end = headings(page), found.end()
        while heading := HEADING.match(text, end):
            if heading[1] not in known:
                yield f"{found[1]} has no heading {heading[1]!r}"
            end = heading.end()
    yield from (
        f"{one[0]} is not there" for one in MODULE.finditer(text) if not (ROOT / one[0]).is_file()
    )
    yield from (f"{found[0]}: of which page?" for found in NUMBERED.finditer(text))


def test_cited_pages_and_headings_are_in_the_repository():
    problems = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in files()
        for text in prose(path)
        for problem in wrong(text, path.parent)
    ]
    assert not problems, "\n".join(problems)


def test_no_page_is_named_that_a_reader_does_not_have():
    names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, ELSEWHERE))})\.md\b")
    problems = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files()
        for found in names.finditer(path.read_text("utf-8"))
    ]
    assert not problems, "\n".join(problems)


def test_wrong_citations_are_noticed():
    folder = ROOT / "docs" / "spec"
    for text, problems in (
        ('as docs/spec/query.md, "Sort" and "Filters", says', []),
        ('see `http.md`, "Errors"', []),
        (
            'docs/spec/query.md, "Sort" and "Nothing"',
            ["docs/spec/query.md has no heading 'Nothing'"],
        ),
        ('docs/spec/nothing.md, "Sort"', ["docs/spec/nothing.md is not there"]),
        ("the rules of section 4.7", ["section 4: of which page?"]),
        ("`monrest/nothing.py` does it", ["monrest/nothing.py is not there"]),
        ("RFC 9110, section 12.5.1", []),
    ):
        assert list(wrong(text, folder)) == problems
