"""The rows of services by name, found by where they stand: a core lists them in the same order.

Looking up tens of thousands of pairs of names each minute is most of the work of a calculation,
so that places are kept for as long as the names in front of them are the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from attrs import define, field, frozen

from monrest.values import Row

Pair = tuple[str, str]
_SLICE = 2000


@frozen(eq=False)
class Places:
    """Hosts and descriptions of rows in their order, and where the last row of each pair stands."""

    hosts: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    of: Mapping[Pair, int] = MappingProxyType({})


NOWHERE = Places()


@define(eq=False)
class Services:
    """Rows by host and description; of equal ones the last counts. ``settle`` ends the adding.

    ``table`` begins with None, which stands for whatever is missing.
    """

    table: list[Row | None] = field(factory=lambda: [None])
    places: Places = NOWHERE

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows; they can be found when ``settle`` is done."""
        self.table += rows

    def settle(self, known: Places) -> Generator[None]:
        """Find out where everything stands; ``known`` is how it was before, if it is still so.

        Raises TypeError for names that are none.
        """
        hosts: list[str] = []
        descriptions: list[str] = []
        size, same = len(self.table), len(self.table) - 1 == len(known.hosts)
        for at in range(1, size, _SLICE):
            some = self.table[at : at + _SLICE]
            hosts += [row[0] for row in some if row]
            descriptions += [row[1] for row in some if row]
            part = slice(at - 1, at - 1 + len(some))
            same = same and (
                hosts[part] == known.hosts[part] and descriptions[part] == known.descriptions[part]
            )
            yield
        if same:
            self.places = known
            return
        of: dict[Pair, int] = {}
        for at in range(0, size - 1, _SLICE):
            part = slice(at, at + _SLICE)
            of.update(zip(zip(hosts[part], descriptions[part], strict=True), count(at + 1)))
            yield
        self.places = Places(hosts, descriptions, of)

    def get(self, pair: Pair) -> Row | None:
        """Give the row of a service, if there is one."""
        return self.table[self.places.of.get(pair, 0)]

    def values(self) -> Iterator[Row]:
        """Give all rows that count, in no particular order."""
        table = self.table
        return (row for at in self.places.of.values() if (row := table[at]) is not None)

    def __contains__(self, pair: Pair) -> bool:
        return pair in self.places.of
