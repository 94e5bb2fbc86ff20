"""Files that are installed with the code, and packages that may be missing.

``etc`` has the configuration example, units and the demo's objects.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from monrest.base.errors import NotInstalled


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


_EXTRAS = {"psycopg": "postgresql", "reportlab": "reports", "xlsxwriter": "reports"}
"""Which extra of ``setup.py`` a module comes with."""


def is_installed(module: str) -> bool:
    """Whether the module is there; it is not imported."""
    return find_spec(module) is not None


def remedy(module: str) -> str:
    return f"expected an installation by pip install 'monrest[{_EXTRAS[module]}]'"


def require(module: str, what: str) -> None:
    """Raise NotInstalled unless the module is there, which ``what`` needs."""
    if not is_installed(module):
        raise NotInstalled(f"{what} cannot be made here", f"{what}: {remedy(module)}")
