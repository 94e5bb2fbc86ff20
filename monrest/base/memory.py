"""The shares of the memory limit; without Twisted, because the command line checks files too."""

from __future__ import annotations

from attrs import frozen


@frozen
class MemoryBudget:
    """How the memory of a process is shared out (docs/spec/memory.md, "The budget"); all bytes."""

    total: int = 512 << 20

    @property
    def bodies(self) -> int:
        """All bodies that are received or worked on."""
        return self.total // 4

    @property
    def rows(self) -> int:
        """Answers of cores that are rows in memory, which takes about five times that."""
        return self.total // 32

    @property
    def largest(self) -> int:
        """The answers of cores that one request may ever have as rows in memory."""
        return self.total // 8
