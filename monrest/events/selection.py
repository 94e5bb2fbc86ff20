"""The events of a user and their visible parts: filters, rights, columns (docs/spec/events.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, evolve, field

from monrest.api.endpoint import Context
from monrest.api.visibility import CONFIGURATION, HOSTS, SERVICES, SYSTEM, visible_sites
from monrest.base.errors import BadRequest
from monrest.base.values import ADMIN, Column, Identity, Row
from monrest.events.filter import EVENTS, NAMES, EventFilter
from monrest.events.model import OWN, Event
from monrest.events.present_objects import ObjectSet
from monrest.query.bind import Bound, bind
from monrest.query.column_names import (
    ColumnNames,
    CoreColumn,
    Getter,
    View,
    cut_arguments,
)
from monrest.query.evaluate import RowTest
from monrest.query.functions import Moment
from monrest.query.model import Condition, FilterTree, Group, leaves
from monrest.query.select import Reader, items_of
from monrest.sites.registry import SiteList
from monrest.sites.site import Site

_OBJECT = "object:"


@define(eq=False)
class EventSelection:
    """The events of ``wanted`` that ``who`` may see; ``sites`` are those that are meant."""

    wanted: EventFilter
    who: Identity
    context: Callable[[], Context]
    moment: Moment
    sites: Mapping[str, Site] = field(init=False, factory=dict)
    _mine: Context = field(init=False)
    _seen: ObjectSet | None = field(init=False, default=None)
    _objects: tuple[ObjectSet, ...] = field(init=False, default=())
    _bound: Bound = field(init=False)
    _reader: Reader = field(init=False)
    _placed: tuple[Getter, ...] = field(init=False, default=())
    _test: RowTest | None = field(init=False, default=None)
    _cells: tuple[tuple[str, Getter], ...] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._mine = self.context()
        clock, who = self._mine.clock, self.who
        if not (who.may(HOSTS) and who.may(SERVICES)):
            self._seen = ObjectSet(who, None, clock)
        trees = list(self.wanted.on_objects())
        self._objects = tuple(ObjectSet(who, tree, clock) for tree in trees)
        self._bind(trees)

    def _bind(self, trees: list[FilterTree]) -> None:
        """Read the conditions and the columns; raise BadRequest for what cannot be."""
        query = self.wanted.query
        numbers = {id(tree): at for at, tree in enumerate(trees)}
        flags = [f"{_OBJECT}{at}" for at in range(len(trees))]
        # Events as rows with a flag for each part of the conditions that is on objects.
        more = {name: CoreColumn(column=Column(name, "number"), core_type="int") for name in flags}
        schema = evolve(EVENTS, columns={**EVENTS.columns, **more})
        plain = Group("and", (_without(query.filter, numbers),))
        self._bound = bound = bind(
            evolve(query, filter=plain), ColumnNames(schema), View(), self.moment
        )
        if bound.aggregates or bound.unpack is not None:
            raise BadRequest("error during request", "columns: events have no groups")
        index = {name: at for at, name in enumerate((*NAMES, *flags))}
        self._reader = reader = Reader(bound, index)
        self._placed = reader.place(items_of(bound.row_filter))
        self._test = reader.tests(bound.row_filter)
        if bound.selected is not None:
            self._cells = tuple(
                (selected.item.key, reader.item(at)) for at, selected in enumerate(bound.selected)
            )

    async def look(self) -> None:
        """See which sites are meant now; raise BadRequest when one that was named is gone."""
        context = self.context()
        sites = await visible_sites(self.who, context.sites, context.contacts)
        chosen = sites.select(self.wanted.backends)
        self._mine = evolve(context, sites=SiteList(tuple(sites.sites)))
        self.sites = {site.id: site for site in chosen}

    def waits_for(self, events: Iterable[Event]) -> list[ObjectSet]:
        """The sets that have to be read before these events can be judged."""
        sets = [part for part in (self._seen, *self._objects) if part is not None]
        if not sets:
            return []
        hosts = False
        for event in events:
            hosts = hosts or bool(event.host and event.site in self.sites)
            if event.type == "command":
                for part in sets:
                    part.expire(str(event.data["command_name"]))
        if not hosts:
            return []
        sites = self.sites.values()
        return [part for part in sets if part.stale(sites)]

    async def read(self, sets: Iterable[ObjectSet]) -> None:
        sites = tuple(self.sites.values())
        if sites:
            for part in sets:
                await part.read(self._mine, sites)

    async def check(self) -> None:
        """Raise BadRequest for what no event and no object has."""
        await self.look()
        await self.read(self._objects)

    def judge(self, event: Event) -> Mapping[str, Any] | None:
        """The part of an event that the user gets; None when it is not for them."""
        if event.type not in self.wanted.types or not self._sees(event):
            return None
        data = self._data(event)
        if self._test is None and self._cells is None:
            return data
        row = self._row(event, data)
        limit = self._reader.limit
        limit.renew()
        with limit:
            self._reader.fill([row], self._placed)
            if self._test is not None and not self._test(row):
                return None
            if self._cells is None:
                return data
            return {key: read(row) for key, read in self._cells}

    def _sees(self, event: Event) -> bool:
        if event.site == OWN:
            mine = event.owner is None or self.who.may(ADMIN)
            mine = mine or (event.owner == self.who.user and all(map(self.who.may, event.roles)))
            return mine and ("site" not in event.data or event.data["site"] in self.sites)
        if event.site not in self.sites:
            return False
        if not event.host:
            return self.who.may(SYSTEM)
        if self.who.may(SERVICES if event.service else HOSTS):
            return True
        return self._seen is not None and self._seen.holds(event.site, event.host, event.service)

    def _data(self, event: Event) -> Mapping[str, Any]:
        """Its data; arguments of commands may be as secret as the configuration."""
        if event.type != "command" or self.who.may(CONFIGURATION):
            return event.data
        cut = {name: cut_arguments(event.data.get(name)) for name in ("message", "options")}
        return {**event.data, **cut}

    def _row(self, event: Event, data: Mapping[str, Any]) -> Row:
        row: Row = [data.get(name) for name in NAMES]
        site = self.sites.get(event.site)
        if site is not None:
            row[_PEER : _PEER + 3] = [site.id, site.name, site.section]
        for part in self._objects:
            row.append(int(part.holds(event.site, event.host, event.service)))
        return row


_PEER = NAMES.index("peer_key")


def _without(tree: FilterTree, numbers: Mapping[int, int]) -> FilterTree:
    """The conditions with flags in the place of those on objects."""
    at = numbers.get(id(tree))
    if at is not None:
        parameter = next(leaves([tree])).parameter
        return Condition(f"{_OBJECT}{at}", "=", "1", parameter)
    if isinstance(tree, Group):
        return Group(tree.connector, tuple(_without(item, numbers) for item in tree.items))
    return tree
