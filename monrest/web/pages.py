"""The pages for people: what this is, the explorer, the book (docs/spec/http.md, "Pages").

They are files with nothing secret in them; what they show of the monitoring, their scripts get from
the API as every client does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import define, field

from monrest.base.concurrency import Threads
from monrest.base.installed import shipped_book
from monrest.base.names import Names
from monrest.base.values import Answer, Document, Page

FILES = Path(__file__).parent / "files"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_GUARDED = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
"""The rules of browsers for a page: nothing from other servers."""


@define(eq=False, kw_only=True)
class Pages:
    """Finds pages by their paths, reads each once and keeps it packed: a megabyte in all.

    Without ``public_docs`` the book needs an account, and no page shows the version.
    """

    names: Names
    version: str
    threads: Threads
    public_docs: bool = True
    _paths: dict[bytes, Callable[[], Answer]] = field(init=False)
    _greeting: frozenset[bytes] = field(init=False)
    _book: bytes = field(init=False)
    _has_book: bool = field(init=False, default=False)
    _read: dict[bytes, Answer] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        app = self.names.app
        docs = f"/{app}/docs"
        self._book = f"{docs}/book".encode("ascii")

        def html(name: str, base: str) -> Callable[[], Answer]:
            return lambda: self._html(name, base)

        pages = {
            "/": html("index.html", f"{app}/"),
            f"/{app}": html("index.html", f"{app}/"),
            f"/{app}/": html("index.html", ""),
            docs: html("explorer.html", "docs/"),
            f"{docs}/": html("explorer.html", ""),
            # Links in the book are relative to its folder.
            f"{docs}/book": lambda: Document(
                value={}, status=302, headers=(("Location", "book/"),)
            ),
        }
        self._greeting = frozenset(path.encode("ascii") for path in tuple(pages)[:3])
        files = [
            path for path in FILES.iterdir() if path.suffix in _TYPES and path.suffix != ".html"
        ]
        pages |= {f"{docs}/{file.name}": _file(file) for file in files}
        self._paths = {path.encode("ascii"): make for path, make in pages.items()}
        self._add_book()

    def _add_book(self) -> None:
        book = shipped_book()
        if book is None:
            self._paths[self._book + b"/"] = lambda: self._html("no-book.html", "../")
            return
        self._has_book = True
        self._read.pop(self._book + b"/", None)
        self._paths[self._book + b"/"] = _file(book / "index.html")
        for path in book.rglob("*"):
            if path.suffix in _TYPES:
                name = quote(path.relative_to(book).as_posix()).encode("ascii")
                self._paths[self._book + b"/" + name] = _file(path)

    def has(self, path: bytes, accept: bytes) -> bool:
        """Whether there is a page; for a client that does not want HTML, the root is no page."""
        if path.startswith(self._book) and not self._has_book:
            # ``make demo`` builds it while the daemon runs already.
            self._add_book()
        return path in self._paths and (path not in self._greeting or b"text/html" in accept)

    def public(self, path: bytes) -> bool:
        """Whether a page needs no account."""
        return self.public_docs or not path.startswith(self._book)

    async def page(self, path: bytes) -> Answer:
        if path not in self._read:
            self._read[path] = await self.threads.run(self._paths[path])
        return self._read[path]

    def _html(self, name: str, base: str) -> Page:
        """A page of ours with what it has to know of this service."""
        text = (FILES / name).read_text("utf-8")
        header = self.names.header
        words: Mapping[str, Any] = {
            "app": self.names.app,
            "base": base,
            "key": header("Auth-Key").title(),
            "user": header("Auth-User").title(),
            "token": header("CSRF-Token").title(),
            "failed": header("Failed-Sites").title(),
            "warnings": header("Warnings").title(),
            "version": self.version if self.public_docs else "",
        }
        for word, value in words.items():
            text = text.replace(f"{{{{{word}}}}}", escape(value))
        return _page(".html", text.encode())


def _file(path: Path) -> Callable[[], Page]:
    return lambda: _page(path.suffix, path.read_bytes())


def _page(suffix: str, body: bytes) -> Page:
    return Page.of(_TYPES[suffix], body, _GUARDED)
