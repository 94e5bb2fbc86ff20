"""Files that come with the code: the configuration example, units, the objects of the demo."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path:
    """Find a file or folder of ``etc``: beside the package in a checkout, else inside it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "etc"
    return (inside if inside.is_dir() else package.parent / "etc") / name
