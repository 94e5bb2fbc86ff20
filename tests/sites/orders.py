"""Commands whose lines a test tells apart by their numbers."""

from __future__ import annotations

from monrest.commands.values import CoreCommand


def log(*numbers):
    return tuple(CoreCommand("LOG", (f"n{number}",), "text") for number in numbers)
