"""Files that come with the code: the configuration example, units, the demo's objects, the book."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path:
    """Find a file or folder of ``etc``: beside the package in a checkout, else inside it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "etc"
    return (inside if inside.is_dir() else package.parent / "etc") / name


def shipped_book() -> Path | None:
    """The folder of the book in HTML, in a checkout where ``make docs`` leaves it; None without."""
    package = Path(__file__).resolve().parent.parent
    folders = (package / "book", package.parent / "docs" / "_build")
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)
