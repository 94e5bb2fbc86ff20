"""The pages for people: where they are, for whom, and what they may load."""

import re

import pytest

from monrest.base.names import Names
from monrest.web.pages import FILES
from tests.table import each
from tests.web.room import Room, asking

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "X-Mon-Auth-Key": None,
    "X-Mon-Auth-User": None,
}


@each("path", ["/", "/mon", "/mon/"])
def test_a_browser_gets_a_page_without_an_account(clock, path):
    ask = asking(Room(clock))
    reply = ask(path, headers=BROWSER)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<h1>" in reply.body
    assert b"{{" not in reply.body
    base = b"" if path == "/mon/" else b"mon/"
    assert b'href="%sdocs/style.css"' % base in reply.body
    again = ask(path, headers={**BROWSER, "If-None-Match": reply.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert ask(path, "HEAD", BROWSER).body == b""


def test_several_slashes_at_the_start_count_as_one(ask):
    for path in ("//", "///mon/", "//mon/docs/", "//mon/docs/style.css"):
        assert ask(path, headers=BROWSER).status == 200, path


def test_programs_get_there_what_they_got(ask):
    for path in ("/", "/mon", "/mon/"):
        for accept in ("application/json", "*/*", None):
            reply = ask(path, headers={"Accept": accept})
            assert (reply.status, reply.headers["content-type"][:16]) == (404, "application/json")


def test_a_page_is_only_read(ask):
    reply = ask("/", "POST", BROWSER, body=b"a=1")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_what_a_page_loads_is_here_and_browsers_let_nothing_else_in(room, ask):
    for page in ("/mon/", "/mon/docs/"):
        reply = ask(page, headers=BROWSER)
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        text = reply.body.decode()
        assert not re.search(r"<(style|script)>|\son\w+=|\sstyle=|https?://", text)
        for name in re.findall(r'(?:src|href)="((?:docs/)?[\w.-]+\.(?:js|css|svg))"', text):
            base = "/mon/docs/" if "docs" in page and not name.startswith("docs") else "/mon/"
            found = ask(base + name)
            assert found.status == 200, name
            assert found.headers["content-security-policy"] == policy
            assert found.headers["x-content-type-options"] == "nosniff"


def test_every_script_finds_what_it_imports_and_asks_nobody_else():
    for path in FILES.glob("*.js"):
        text = path.read_text()
        for name in re.findall(r'from "\./([^"]+)"', text):
            assert (FILES / name).is_file(), (path.name, name)
        assert not re.search(r"https?://|\beval\(|innerHTML|new Function", text), path.name


def test_a_site_has_its_own_words(clock):
    ask = asking(Room(clock, names=Names(app="watch")))
    text = ask("/watch/", headers=BROWSER).body.decode()
    assert "X-Watch-Auth-Key" in text
    assert "/watch/r/services" in text
    assert "/mon/" not in text
    assert ask("/mon/", headers=BROWSER).status == 404


def test_nothing_else_is_served(ask):
    for path in (
        "/mon/docs/../app.py",
        "/mon/docs/%2e%2e/app.py",
        "/mon/docs/index.html",
        "/mon/docs/no-book.html",
        "/mon/docs/x.js",
    ):
        assert ask(path, headers=BROWSER).status == 404, path


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder where the book is looked for, empty at first; a file beside it is no part of it."""
    (tmp_path / "secret.html").write_text("secret")
    monkeypatch.setattr(
        "monrest.base.installed.__file__", str(tmp_path / "monrest/base/installed.py")
    )
    folder = tmp_path / "monrest" / "book"
    (folder / "guide").mkdir(parents=True)
    return folder


def built(book):
    (book / ".doctrees").mkdir()
    (book / "objects.inv").write_bytes(b"inventory")
    (book / "guide" / "jobs.html").write_text("<h1>Jobs</h1>")
    (book / "index.html").write_text("<h1>Book</h1>")


def test_the_book_is_served_with_the_headers_of_other_pages(book, ask):
    built(book)
    policy = ask("/mon/docs/", headers=BROWSER).headers["content-security-policy"]
    for path, text in (("", b"<h1>Book</h1>"), ("index.html", b"<h1>Book</h1>"), ("guide/jobs.html", b"<h1>Jobs</h1>")):  # fmt: skip
        reply = ask(f"/mon/docs/book/{path}", headers=BROWSER)
        assert (reply.status, reply.body) == (200, text)
        assert reply.headers["content-security-policy"] == policy
        again = ask(
            f"/mon/docs/book/{path}", headers={**BROWSER, "If-None-Match": reply.headers["etag"]}
        )
        assert (again.status, again.body) == (304, b"")
    followed = ask("/mon/docs/book", headers=BROWSER)
    assert (followed.status, followed.body) == (200, b"<h1>Book</h1>")


def test_nothing_but_the_pages_of_the_book_is_served_there(book, ask):
    built(book)
    for path in (
        "nosuch.html",
        "objects.inv",
        "guide",
        "guide/",
        "../../secret.html",
        "../secret.html",
        "%2e%2e/%2e%2e/secret.html",
        "..%2f..%2fsecret.html",
        "guide/../index.html",
        "/etc/passwd",
    ):
        assert ask(f"/mon/docs/book/{path}", headers=BROWSER).status == 404, path


def test_where_the_book_is_not_built_a_page_says_how_to_get_it_until_it_is(book, ask):
    reply = ask("/mon/docs/book/", headers=BROWSER)
    assert reply.status == 200
    assert b"make docs" in reply.body
    assert b"{{" not in reply.body
    assert ask("/mon/docs/book/guide/jobs.html", headers=BROWSER).status == 404
    built(book)
    assert ask("/mon/docs/book/", headers=BROWSER).body == b"<h1>Book</h1>"
    assert ask("/mon/docs/book/guide/jobs.html", headers=BROWSER).status == 200


def test_without_public_docs_the_book_needs_an_account_and_pages_show_no_version(book, clock):
    built(book)
    ask = asking(Room(clock, public_docs=False))
    for path in ("", "guide/jobs.html"):
        assert ask(f"/mon/docs/book/{path}", headers=BROWSER).status == 401
        assert ask(f"/mon/docs/book/{path}").status == 200, "with the key of the room"
    assert b'<span class="version"></span>' in ask("/mon/docs/", headers=BROWSER).body
