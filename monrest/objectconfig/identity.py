"""Ids of objects: a piece of a hash of where they stood, which lasts while they are edited.

An id must never come to mean another object: one that is given up stays retired as long as the text
beside which it is kept, and when two objects claim the same one (two people created something in
one file), neither keeps it. Rules: docs/spec/objectconfig.md, "Records and ids".
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from monrest.objectconfig.names import key_of

if TYPE_CHECKING:
    from monrest.objectconfig.document import Block

DIGITS = 5
"""Hexadecimal digits of an id; more when it is taken."""


@frozen
class Marks:
    """What a file's text does not say: the ids and original lines of its objects, in file order.

    ``retired`` are ids of removed objects. Kept beside a stashed or saved text so that ids last.
    """

    ids: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    retired: tuple[str, ...] = ()


@frozen
class Claim:
    """An object in want of an id: ``line`` where it stood, 0 for a new one, and the id it had."""

    line: int
    id: str = ""


def assign(
    claims: Mapping[str, Sequence[Claim]], retired: Iterable[str] = ()
) -> dict[str, list[str]]:
    """Ids for the objects of each path. In the order of the mapping the first gets the short one.

    Claimed ids are kept unless retired or claimed twice.
    """
    claimed = Counter(item.id for items in claims.values() for item in items if item.id)
    gone = set(retired)
    taken = gone | claimed.keys()
    found: dict[str, list[str]] = {}
    for path, items in claims.items():
        ids = found[path] = []
        for item in items:
            if item.id and claimed[item.id] == 1 and item.id not in gone:
                ids.append(item.id)
            else:
                ids.append(new_id(path, item.line, taken))
                taken.add(ids[-1])
    return found


def new_id(path: str, line: int, taken: Collection[str]) -> str:
    """The shortest free id of at least five digits for an object at a place."""
    digest = hashlib.sha256(os.fsencode(f"{path}:{line}")).hexdigest()
    for length in range(DIGITS, len(digest)):
        if digest[:length] not in taken:
            return digest[:length]
    # More objects of one place than digits: new ones all stand in line 0.
    number = len(taken)
    while f"{digest}{number:x}" in taken:
        number += 1
    return f"{digest}{number:x}"


def align(
    blocks: Sequence[Block], sources: Iterable[tuple[Sequence[Block], Sequence[Claim]]]
) -> list[Claim]:
    """Find the objects of other texts again: by what they say first, then by their names.

    A source counts before those after it; an object that no source has gets its own line.
    """
    found: list[Claim | None] = [None] * len(blocks)
    used: set[str] = set()
    known = [list(zip(old, claims, strict=False)) for old, claims in sources]
    for key in (_content, _name):
        for source in known:
            waiting: dict[Hashable, list[Claim]] = {}
            for block, claim in source:
                if claim.id not in used:
                    waiting.setdefault(key(block), []).append(claim)
            for index, block in enumerate(blocks):
                if found[index] is None and waiting.get(key(block)):
                    claim = waiting[key(block)].pop(0)
                    found[index] = claim
                    used.add(claim.id)
    return [
        Claim(block.line) if claim is None else claim
        for block, claim in zip(blocks, found, strict=True)
    ]


def _content(block: Block) -> Hashable:
    return (block.type, block.disabled, frozenset(block.attributes.items()))


def _name(block: Block) -> Hashable:
    attributes = block.attributes
    return (block.type, key_of(block.type, attributes), attributes.get("name", ""))
