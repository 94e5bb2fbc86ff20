"""The rows of services by name, found by where they stand: a core lists them in the same order.

Looking up tens of thousands of pairs of names each minute is most of the work of a calculation,
so that places are kept for as long as the names in front of them are the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import compress, count
from operator import is_not
from types import MappingProxyType
from typing import cast

from attrs import define, field, frozen

from monrest.base.values import Row
from monrest.bp.states import NodeState
from monrest.livestatus.recall import Recall

Pair = tuple[str, str]
_SLICE = 2000


@frozen(eq=False)
class Places:
    """Rows in their order, their hosts and descriptions, and where the last one of each stands.

    ``sites`` are those of the rows with how many each has. ``states``: what calculations made of
    the rows, None where nobody wanted to know it. Places count from 1.
    """

    rows: Sequence[Row] = ()
    hosts: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    of: Mapping[Pair, int] = MappingProxyType({})
    sites: Sequence[tuple[str, int]] = ()
    states: list[NodeState | None] = field(factory=lambda: [None])


NOWHERE = Places()


@define(eq=False)
class Memory:
    """What is kept from one run to the next: answers of sites, and the places of services."""

    places: Places = NOWHERE
    _recalls: dict[tuple[str, str], Recall] = field(factory=dict, init=False)

    def recall(self, table: str, site: str) -> Recall:
        """Give what a site answered before to the question for this table."""
        return self._recalls.setdefault((table, site), Recall())

    def keep(self, places: Places, sites: Iterable[str]) -> None:
        """Remember where everything stands, and forget sites that are not asked any more."""
        wanted = frozenset(sites)
        self.places = places
        self._recalls = {key: one for key, one in self._recalls.items() if key[1] in wanted}


@define(eq=False)
class Services:
    """Rows by host and description; of equal ones the last counts. ``settle`` ends the adding.

    ``table`` and ``states`` begin with None, which stands for whatever is missing. ``known`` is
    where everything stood before: a row that is still the same object at the same place needs no
    look and has its state.
    """

    known: Places = NOWHERE
    table: list[Row | None] = field(factory=lambda: [None])
    states: list[NodeState | None] = field(factory=lambda: [None])
    places: Places = NOWHERE
    _hosts: list[str] = field(factory=list, init=False)
    _descriptions: list[str] = field(factory=list, init=False)
    _sites: list[tuple[str, int]] = field(factory=list, init=False)
    _same: bool = field(default=True, init=False)

    def add(self, rows: Sequence[Row], site: str, width: int) -> None:
        """Add rows of so many values, behind which is put the site of new ones.

        They can be found when ``settle`` is done. Raises TypeError for names that are none.
        """
        known, start = self.known, len(self._hosts)
        part = slice(start, start + len(rows))
        before, hosts = known.rows[part], [*known.hosts[part]]
        descriptions = [*known.descriptions[part]]
        states = known.states[start + 1 : start + 1 + len(rows)]
        missing = len(rows) - len(before)
        hosts += [""] * missing
        descriptions += [""] * missing
        states += [None] * missing
        changed = compress(range(len(before)), map(is_not, rows, before))
        for at in [*changed, *range(len(before), len(rows))]:
            row = rows[at]
            host, description = row[0], row[1]
            if host != hosts[at] or description != descriptions[at]:
                if type(host) is not str or type(description) is not str:
                    raise TypeError("a name is no text")
                self._same = False
                hosts[at], descriptions[at] = host, description
            states[at] = None
            if len(row) == width:
                row.append(site)
        self._hosts += hosts
        self._descriptions += descriptions
        self._sites.append((site, len(rows)))
        self.states += states
        self.table += rows

    def settle(self) -> Generator[None]:
        """Find out where everything stands, unless that is known."""
        hosts, descriptions, of = self._hosts, self._descriptions, self.known.of
        if not self._same or self._sites != self.known.sites:
            found: dict[Pair, int] = {}
            for at in range(0, len(hosts), _SLICE):
                part = slice(at, at + _SLICE)
                found.update(zip(zip(hosts[part], descriptions[part], strict=True), count(at + 1)))
                yield
            of = found
        rows = cast("list[Row]", self.table[1:])
        self.places = Places(rows, hosts, descriptions, of, self._sites, self.states)

    def get(self, pair: Pair) -> Row | None:
        """Give the row of a service, if there is one."""
        return self.table[self.places.of.get(pair, 0)]

    def values(self) -> Iterator[Row]:
        """Give all rows that count, in no particular order."""
        table = self.table
        return (row for at in self.places.of.values() if (row := table[at]) is not None)

    def __contains__(self, pair: Pair) -> bool:
        return pair in self.places.of
