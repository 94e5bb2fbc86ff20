"""Looking in the cores for the effects of commands (docs/spec/commands.md, "Effects").

Cores acknowledge a command before it acts, so what it should change is read again and again, one
query for each table and site for everything that is still open. In a list of commands the effect
of one is what is left of it after all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.base.concurrency import pause
from monrest.base.errors import SitesFailed
from monrest.base.values import Capabilities, Row
from monrest.commands.effects import expected
from monrest.commands.orders import EFFORT
from monrest.commands.outcome import NOTHING_MATCHED, SEEN, CommandOutcome, capabilities_of
from monrest.commands.predicates import Effect, Unseen
from monrest.query.column_names import CoreColumn, CoreType
from monrest.query.limit import Limit
from monrest.query.model import CoreFilter, Group, Pushed, Test, columns_of, conjuncts, joined
from monrest.rows.columns import SCHEMAS
from monrest.sites.fanout import fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

_FIRST = 0.05
_GROWTH = 1.6
_LONGEST_PAUSE = 1.0
"""Seconds between two looks: the first, how they grow, the longest."""

_FEW = 20
"""Different filters up to which a core tests them; more of them are tested here."""

OVERTAKEN = "nothing to read back: a later command of the list sets the same"

_TYPES: Mapping[str, Mapping[str, CoreType]] = {
    schema.table: {
        name: spec.core_type
        for name, spec in schema.columns.items()
        if isinstance(spec, CoreColumn)
    }
    for schema in SCHEMAS.values()
}


@define(eq=False)
class _Open:
    """The effect of one command on one site; ``alone``: no other command here looks at the same.

    ``overtaken``: a later one of the list that sets the same to something else.
    """

    outcome: CommandOutcome
    site: Site
    effect: Effect
    alone: bool = True
    overtaken: _Open | None = None
    before: list[Row] | None = None
    looks: int = 0
    settled: bool = False

    @property
    def was_sent(self) -> bool:
        """Whether the core took the command, or may have."""
        return self.site.id in self.outcome.accepted or self.site.id in self.outcome.uncertain

    def settle(self, text: str) -> None:
        self.outcome.effects[self.site.id] = text
        self.settled = True

    def remember(self, rows: list[Row]) -> None:
        self.before = rows

    def judge(self, rows: list[Row]) -> None:
        """Settle it if the rows show the effect, or that there was nothing to act on."""
        self.looks += 1
        effect = self.effect
        try:
            nothing = effect.nothing(self.before if self.before is not None else rows)
            if nothing and effect.before and self.alone:
                self.settle(f"{NOTHING_MATCHED}: {nothing}")
            elif effect.seen(self.before or (), rows):
                self.settle(SEEN)
            elif nothing and self.looks > 1:
                # Not at the first look: another command of the list may just have made something.
                self.settle(f"{NOTHING_MATCHED}: {nothing}")
        except (TypeError, ValueError, LookupError):
            return  # a core that lies about its types shows nothing


@define(eq=False)
class Watch:
    """The effects of all commands of a request."""

    context: Context
    outcomes: Sequence[CommandOutcome]
    open: list[_Open] = field(factory=list, init=False)

    async def before(self) -> None:
        """Work out what to look for, and look at it before anything is sent."""
        now = self.context.wall.now()
        cores = capabilities_of(self.outcomes)
        await self.context.compute(lambda _: self._expect(now, cores), len(self.outcomes) * EFFORT)
        wanted = [watched for watched in self.open if watched.effect.before]
        await self._look(wanted, _Open.remember)
        for watched in wanted:
            if watched.before is None:
                watched.settle("nothing to read back: the site could not be asked before")
        self.open = [watched for watched in self.open if not watched.settled]

    async def after(self, seconds: float) -> None:
        """Look until all effects are settled, or the time is over."""
        clock = self.context.clock
        end = clock.seconds() + seconds
        await self.context.compute(lambda _: self._forget_unsent(), len(self.outcomes) * EFFORT)
        delay = _FIRST
        while self.open:
            left = end - clock.seconds()
            if left <= 0:
                break
            await pause(clock, min(delay, left))
            delay = min(delay * _GROWTH, _LONGEST_PAUSE)
            await self._look(self.open, _Open.judge)
            self.open = [watched for watched in self.open if not watched.settled]
        for watched in self.open:
            watched.settle(f"not seen within {max(round(seconds, 1), 0):g} seconds")

    def _forget_unsent(self) -> None:
        """Take out what was not sent or was refused: other members of the answer report it."""
        for outcome in self.outcomes:
            sent = outcome.accepted | outcome.uncertain
            for site, orders in outcome.job.orders.items():
                if orders and site not in sent:
                    outcome.effects.pop(site, None)
        self.open = [watched for watched in self.open if watched.was_sent]
        for watched in self.open:
            if watched.overtaken is not None and watched.overtaken.was_sent:
                watched.settle(OVERTAKEN)
        self.open = [watched for watched in self.open if not watched.settled]

    def _expect(self, now: float, cores: Mapping[str, Capabilities | None]) -> None:
        same: dict[tuple[str, str, CoreFilter | None], _Open] = {}
        states: dict[tuple[str, str, CoreFilter | None, tuple[str, ...]], _Open] = {}
        for outcome in self.outcomes:
            job = outcome.job
            for site in job.sites:
                ids: tuple[int, ...] = ()
                if job.command.lookup:
                    ids = tuple(int(order.fields[0]) for order in job.orders[site.id])
                if not job.orders[site.id]:
                    outcome.effects[site.id] = NOTHING_MATCHED
                    continue
                effect = expected(
                    job.command, job.asked.target, job.arguments, now, cores[site.id], ids
                )
                if isinstance(effect, Unseen):
                    outcome.effects[site.id] = f"nothing to read back: {effect.reason}"
                    continue
                watched = _Open(outcome, site, effect)
                other = same.setdefault((site.id, effect.table, effect.filter), watched)
                if other is not watched:
                    watched.alone = other.alone = False
                if effect.state:
                    place = (site.id, effect.table, effect.filter, effect.columns)
                    earlier = states.get(place)
                    if earlier is not None and earlier.effect.what != effect.what:
                        earlier.overtaken = watched
                    states[place] = watched
                self.open.append(watched)

    async def _look(
        self, wanted: Sequence[_Open], take: Callable[[_Open, list[Row]], None]
    ) -> None:
        tables: dict[str, list[_Open]] = defaultdict(list)
        for watched in wanted:
            tables[watched.effect.table].append(watched)
        for table, some in tables.items():
            await self._look_at(table, some, take)

    async def _look_at(
        self, table: str, wanted: Sequence[_Open], take: Callable[[_Open, list[Row]], None]
    ) -> None:
        """Ask all sites for one table; what cannot be asked now is asked again later."""
        parts: dict[str, list[_Open]] = defaultdict(list)
        filters: dict[str, dict[CoreFilter | None, None]] = defaultdict(dict)
        names: dict[str, None] = {}
        for watched in wanted:
            limit = watched.effect.filter
            parts[watched.site.id].append(watched)
            filters[watched.site.id][limit] = None
            names.update(dict.fromkeys((*watched.effect.columns, *columns_of(limit))))
        sites = [some[0].site for some in parts.values()]
        layout = _layout(table, names, sites)

        def plan(site: Site, core: Capabilities) -> Pushed | None:
            columns = tuple(name for name, _ in layout if core.has(table, name))
            asked = Pushed(
                table=table,
                columns=columns,
                filter=_joined(table, filters[site.id]),
                waits_long=table == "log",
            )
            return asked if columns else None

        try:
            gathered = await fan_out(sites, plan, layout, self.context.clock)
        except SitesFailed:
            return
        for answer in gathered.answers:
            deal = partial(_deal, tuple(names), answer.rows, parts[answer.site.id], take)
            effort = 10 * len(answer.rows) + EFFORT * len(wanted)
            await self.context.compute(deal, effort)


def _layout(table: str, names: Iterable[str], sites: Iterable[Site]) -> RowTypes:
    types = _TYPES[table]
    cores = [site.capabilities for site in sites]

    def type_of(name: str) -> CoreType:
        if name in types:
            return types[name]
        tables = (core.tables.get(table, {}) for core in cores if core is not None)
        # Detection lets no other types in.
        return cast("CoreType", next((table[name] for table in tables if name in table), "string"))

    return tuple((name, type_of(name)) for name in names)


def _joined(table: str, filters: Collection[CoreFilter | None]) -> CoreFilter | None:
    """A filter that lets the rows of all effects through, and perhaps more."""
    some = [tree for tree in filters if tree is not None]
    if table == "log":
        # What is new in the log is little, and its other columns are not the same in all cores.
        tests = conjuncts(some[:1])
        times = (test for test in tests if isinstance(test, Test) and test.column == "time")
        return joined("and", times)
    return joined("or", some) if len(some) == len(filters) <= _FEW else None


def _deal(
    names: Sequence[str],
    rows: Sequence[Row],
    wanted: Sequence[_Open],
    take: Callable[[_Open, list[Row]], None],
    _: Limit,
) -> None:
    """Call ``take`` with every effect and the rows that pass its filter, with its columns."""
    at = {name: place for place, name in enumerate(names)}
    dealt: dict[CoreFilter | None, list[Row]] = {}
    for watched in wanted:
        dealt.setdefault(watched.effect.filter, [])
    keyed: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = defaultdict(dict)
    others: list[CoreFilter | None] = []
    for limit, bucket in dealt.items():
        tests = _equalities(limit)
        if tests is None:
            others.append(limit)
        else:
            columns = tuple(test.column for test in tests)
            keyed[columns][tuple(test.value for test in tests)] = bucket
    for row in rows:
        for columns, buckets in keyed.items():
            passed = buckets.get(tuple([_text(row[at[name]]) for name in columns]))
            if passed is not None:
                passed.append(row)
        for limit in others:
            if passes(limit, row, at):
                dealt[limit].append(row)
    for watched in wanted:
        places = [at[name] for name in watched.effect.columns]
        take(watched, [[row[place] for place in places] for row in dealt[watched.effect.filter]])


def _equalities(limit: CoreFilter | None) -> tuple[Test, ...] | None:
    """The tests of a filter that only compares texts; None for any other one."""
    parts = () if limit is None else tuple(conjuncts([limit]))
    tests = tuple(part for part in parts if isinstance(part, Test) and part.op == "=")
    return tests if limit is not None and len(tests) == len(parts) else None


def passes(limit: CoreFilter | None, row: Row, at: Mapping[str, int]) -> bool:
    """Whether a row passes; effects compare with = and >= only, else LookupError."""
    match limit:
        case None:
            return True
        case Test(column=column, op="=", value=value):
            return _text(row[at[column]]) == value
        case Test(column=column, op=">=", value=value):
            cell = row[at[column]]
            return value in cell if isinstance(cell, list) else cell >= float(value)
        case Group("and", items=items):
            return all(passes(item, row, at) for item in items)
        case Group("or", items=items):
            return any(passes(item, row, at) for item in items)
    raise LookupError(limit)


def _text(value: Any) -> str:
    if value is True or value is False:
        return str(int(value))
    return value if isinstance(value, str) else str(value)
