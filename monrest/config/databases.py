"""What ``database.url`` may be, told without a database and without its driver."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

_FORMS = "sqlite:////path/to/file or postgresql+psycopg://user@host/database"
_SQLITE = "sqlite:///"
_POSTGRES = "postgresql+psycopg"
_NEARLY = ("postgres", "postgresql", "postgresql+psycopg2", "postgresql+asyncpg", "psycopg")


def problem_of(url: str) -> str:
    """Say what was expected of a database's URL; empty for a good one.

    The URL may have a password in it and is never repeated.
    """
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        return _problem_of_file(url)
    if scheme in _NEARLY:
        return f"expected {_POSTGRES}://… instead of {scheme}://…"
    if scheme != _POSTGRES:
        return f"expected {_FORMS}"
    if "#" in url:
        return "expected no # (in a password: %23)"
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        if not url.partition("?")[2]:
            return "expected a port from 1 to 65535, and passwords with @ : / ? # as %40 and so on"
        return "expected options as ?name=value&name=value"
    if port == 0:
        return "expected a port from 1 to 65535"
    if not parts.path.strip("/") and "dbname" not in options:
        return f"expected the name of a database at its end: {_POSTGRES}://user@host/database"
    return ""


def _problem_of_file(url: str) -> str:
    path = url.removeprefix(_SQLITE)
    if path == url or not path.startswith("/"):
        return "expected an absolute path, written with four slashes: sqlite:////path/to/file"
    if "?" in path or "#" in path:
        return "expected a path without ? and #"
    if path.endswith("/"):
        return "expected the path of a file, not of a directory"
    return ""
