"""The pages for people: where they are, for whom, and what they may load."""

import re

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
        "/mon/docs/x.js",
    ):
        assert ask(path, headers=BROWSER).status == 404, path


def test_without_swagger_ui_the_explorer_says_what_to_install(clock, monkeypatch):
    monkeypatch.setattr("monrest.web.pages.find_spec", lambda _: None)
    ask = asking(Room(clock))
    assert b'data-swagger=""' in ask("/mon/docs/", headers=BROWSER).body
    assert ask("/mon/docs/swagger-ui.css", headers=BROWSER).status == 404
    assert "pip install 'monrest[docs]'" in (FILES / "endpoints.js").read_text()


def test_with_it_its_files_are_there(ask):
    assert b'data-swagger="1"' in ask("/mon/docs/", headers=BROWSER).body
    assert ask("/mon/docs/swagger-ui.css", headers=BROWSER).status == 200
