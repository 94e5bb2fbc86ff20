"""The pages for people: what this is, and the explorer (docs/spec/http.md, "Pages").

They are files with nothing secret in them; what they show of the monitoring, their scripts ask for
as anybody does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import define, field

from monrest.base.concurrency import Threads
from monrest.base.names import Names
from monrest.base.values import Page

FILES = Path(__file__).parent / "files"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_SWAGGER = ("swagger-ui.css", "swagger-ui-bundle.js")
_GUARDED = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
"""What browsers allow in a page: nothing that does not come from here."""


def swagger_folder() -> Path | None:
    """Where the files of Swagger UI are; None where its package is not installed."""
    found = find_spec("swagger_ui")
    for folder in (found and found.submodule_search_locations) or ():
        static = Path(folder) / "static"
        if all((static / name).is_file() for name in _SWAGGER):
            return static
    return None


@define(eq=False, kw_only=True)
class Pages:
    """Finds pages by their paths, reads each once and keeps it packed: half a megabyte in all.

    ``version`` is empty where strangers are not to know it.
    """

    names: Names
    version: str
    threads: Threads
    _swagger: Path | None = field(init=False, factory=swagger_folder)
    _paths: Mapping[bytes, Callable[[], Page]] = field(init=False)
    _greeting: frozenset[bytes] = field(init=False)
    _read: dict[bytes, Page] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        app = self.names.app

        def html(name: str, base: str) -> Callable[[], Page]:
            return lambda: self._html(name, base)

        def file(path: Path) -> Callable[[], Page]:
            return lambda: _page(path.suffix, path.read_bytes())

        found = {
            "/": html("index.html", f"{app}/"),
            f"/{app}": html("index.html", f"{app}/"),
            f"/{app}/": html("index.html", ""),
            f"/{app}/docs": html("explorer.html", "docs/"),
            f"/{app}/docs/": html("explorer.html", ""),
        }
        self._greeting = frozenset(path.encode("ascii") for path in tuple(found)[:3])
        files = [one for one in FILES.iterdir() if one.suffix not in (".html", ".py")]
        if self._swagger is not None:
            files += [self._swagger / name for name in _SWAGGER]
        found |= {f"/{app}/docs/{one.name}": file(one) for one in files if one.suffix in _TYPES}
        self._paths = {path.encode("ascii"): make for path, make in found.items()}

    def has(self, path: bytes, accept: bytes) -> bool:
        """Whether there is a page; to who does not ask for one, the root is no page."""
        return path in self._paths and (path not in self._greeting or b"text/html" in accept)

    async def page(self, path: bytes) -> Page:
        """Give a page that is there."""
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
            "swagger": "1" if self._swagger else "",
            "version": self.version,
        }
        for word, value in words.items():
            text = text.replace(f"{{{{{word}}}}}", escape(value))
        return _page(".html", text.encode())


def _page(suffix: str, body: bytes) -> Page:
    return Page.of(_TYPES[suffix], body, _GUARDED)
