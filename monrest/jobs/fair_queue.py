"""The queue of jobs that wait for their turn; users take turns, whoever asks for how many."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class FairQueue(Generic[T]):
    """Items of several owners: each owner's in their order, one owner after the other."""

    _waiting: dict[str | None, deque[T]] = field(factory=dict, init=False)
    _count: int = field(default=0, init=False)

    def __len__(self) -> int:
        return self._count

    def add(self, owner: str | None, item: T) -> None:
        """Put ``item`` behind everything of its owner."""
        self._waiting.setdefault(owner, deque()).append(item)
        self._count += 1

    def take(self) -> T | None:
        """Take out the next item; its owner has his next turn after all others."""
        if not self._count:
            return None
        owner = next(iter(self._waiting))
        items = self._waiting.pop(owner)
        item = items.popleft()
        if items:
            self._waiting[owner] = items
        self._count -= 1
        return item

    def remove(self, owner: str | None, item: T) -> bool:
        """Take out an item wherever it is; False when it does not wait."""
        items = self._waiting.get(owner)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[owner]
        self._count -= 1
        return True

    def count(self, owner: str | None) -> int:
        """How many items of an owner wait."""
        return len(self._waiting.get(owner, ()))
