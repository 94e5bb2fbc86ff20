"""Commands whose lines a test tells apart by their numbers."""

from __future__ import annotations

from monrest.livestatus.command import CoreCommand


def log(*numbers):
    return tuple(CoreCommand("LOG", (f"n{number}",), "text") for number in numbers)
