"""The target of a command and its line for a core, as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

Last: TypeAlias = Literal["field", "text", "output"]
"""The characters that the last field of a command may have.

``field``: no semicolon, like every field before it. ``text``: semicolons too. ``output``: as
``text``, and the two characters backslash and n stand for a newline, so they reach a core that
decodes backslashes as they are, whereas every other backslash is doubled.
"""


@frozen(cache_hash=True)
class Target:
    """An object by its exact name: the plural kind, the name (of the host), the service.

    ``Target("sites")`` is a core as a whole.
    """

    kind: str
    name: str = ""
    service: str = ""


@frozen(cache_hash=True)
class CoreCommand:
    """One command for a core: its name there and its fields, plain and free of control characters.

    Nothing is escaped: ``external.line`` doubles backslashes, because only some cores decode
    them. No field has a semicolon, except the last one as ``last`` says.
    """

    name: str
    fields: tuple[str, ...] = ()
    last: Last = "field"
