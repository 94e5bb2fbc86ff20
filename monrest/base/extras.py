"""Packages that an installation may do without: ``pip install 'monrest[postgresql,reports]'``."""

from __future__ import annotations

from importlib.util import find_spec

from monrest.base.errors import NotInstalled

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
