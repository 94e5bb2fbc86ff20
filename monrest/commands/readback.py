"""Looking in the cores what came of commands (docs/spec/commands.md, "Effects").

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
from monrest.commands.effects import Effect, Unseen, expected
from monrest.commands.orders import EFFORT
from monrest.commands.outcome import NOTHING_MATCHED, SEEN, CommandOutcome
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

    @property
    def was_sent(self) -> bool:
        """Whether the core took the command, or may have."""
        return self.site.id in self.outcome.accepted or self.site.id in self.outcome.uncertain

    def settle(self, text: str) -> None:
        """Note what was found."""
        self.outcome.effects[self.site.id] = text


@define(eq=False)
class Watch:
    """The effects of all commands of a request."""

    context: Context
    outcomes: Sequence[CommandOutcome]
    open: list[_Open] = field(factory=list, init=False)

    async def before(self) -> None:
        """Say what to look for, and look how it is before anything is sent."""
        await self.context.compute(lambda _: self._expect(), len(self.outcomes) * EFFORT)
        wanted = [one for one in self.open if one.effect.before]

        def take(one: _Open, rows: list[Row]) -> None:
            one.before = rows

        if wanted:
            await self._look(wanted, take)
        for one in wanted:
            if one.before is None:
                one.settle("nothing to read back: the site could not be asked before")
        self.open = [one for one in self.open if not one.effect.before or one.before is not None]

    async def after(self, seconds: float) -> None:
        """Look until every effect was found, or there is none to be found, or time is over."""
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
            settled: set[int] = set()

            def take(one: _Open, rows: list[Row], settled: set[int] = settled) -> None:
                if text := _found(one, rows):
                    one.settle(text)
                    settled.add(id(one))

            await self._look(self.open, take)
            self.open = [one for one in self.open if id(one) not in settled]
        for one in self.open:
            one.settle(f"not seen within {max(round(seconds, 1), 0):g} seconds")

    def _forget_unsent(self) -> None:
        """Take out what no core was told, or refused: other members of the answer say so."""
        for outcome in self.outcomes:
            told = outcome.accepted | outcome.uncertain
            for site, orders in outcome.job.orders.items():
                if orders and site not in told:
                    outcome.effects.pop(site, None)
        kept = []
        for one in self.open:
            if not one.was_sent:
                continue
            if one.overtaken is not None and one.overtaken.was_sent:
                one.settle(OVERTAKEN)
            else:
                kept.append(one)
        self.open = kept

    def _expect(self) -> None:
        now = self.context.wall.now()
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
                found = expected(
                    job.command, job.asked.target, job.arguments, now, site.capabilities, ids
                )
                if isinstance(found, Unseen):
                    outcome.effects[site.id] = f"nothing to read back: {found.reason}"
                    continue
                one = _Open(outcome, site, found)
                other = same.setdefault((site.id, found.table, found.filter), one)
                if other is not one:
                    one.alone = other.alone = False
                if found.state:
                    place = (site.id, found.table, found.filter, found.columns)
                    earlier = states.get(place)
                    if earlier is not None and earlier.effect.what != found.what:
                        earlier.overtaken = one
                    states[place] = one
                self.open.append(one)

    async def _look(
        self, wanted: Sequence[_Open], take: Callable[[_Open, list[Row]], None]
    ) -> None:
        tables: dict[str, list[_Open]] = defaultdict(list)
        for one in wanted:
            tables[one.effect.table].append(one)
        for table, some in tables.items():
            await self._look_at(table, some, take)

    async def _look_at(
        self, table: str, wanted: Sequence[_Open], take: Callable[[_Open, list[Row]], None]
    ) -> None:
        """Ask all sites for one table; what cannot be asked now is asked again later."""
        parts, names = _parted(wanted)
        sites = [part.site for part in parts.values()]
        layout = _layout(table, names, sites)

        def plan(site: Site, core: Capabilities) -> Pushed | None:
            columns = tuple(name for name, _ in layout if core.has(table, name))
            asked = Pushed(
                table=table,
                columns=columns,
                filter=_joined(table, parts[site.id].filters),
                waits_long=table == "log",
            )
            return asked if columns else None

        try:
            gathered = await fan_out(sites, plan, layout, self.context.clock)
        except SitesFailed:
            return
        for answer in gathered.answers:
            deal = partial(_deal, tuple(names), answer.rows, parts[answer.site.id].open, take)
            effort = 10 * len(answer.rows) + EFFORT * len(wanted)
            await self.context.compute(deal, effort)


@define(eq=False)
class _Part:
    """What one site is asked about, and the different filters of it."""

    site: Site
    open: list[_Open] = field(factory=list, init=False)
    filters: dict[CoreFilter | None, None] = field(factory=dict, init=False)


def _parted(wanted: Iterable[_Open]) -> tuple[dict[str, _Part], dict[str, None]]:
    """What to ask by site, and the names of all columns that are needed."""
    parts: dict[str, _Part] = {}
    names: dict[str, None] = {}
    for one in wanted:
        part = parts.get(one.site.id)
        if part is None:
            part = parts[one.site.id] = _Part(one.site)
        part.open.append(one)
        part.filters[one.effect.filter] = None
        names.update(dict.fromkeys((*one.effect.columns, *columns_of(one.effect.filter))))
    return parts, names


def _found(one: _Open, rows: list[Row]) -> str:
    """What the rows say about the effect; empty if that is open."""
    one.looks += 1
    try:
        return _judged(one, rows)
    except (TypeError, ValueError, LookupError):
        return ""  # a core that lies about its types shows nothing


def _judged(one: _Open, rows: list[Row]) -> str:
    effect = one.effect
    nothing = effect.nothing(one.before if one.before is not None else rows)
    if nothing and effect.before and one.alone:
        return f"{NOTHING_MATCHED}: {nothing}"
    if effect.seen(one.before, rows):
        return SEEN
    # A second look, because another command of the list may just have made something to act on.
    return f"{NOTHING_MATCHED}: {nothing}" if nothing and one.looks > 1 else ""


def _layout(table: str, names: Iterable[str], sites: Iterable[Site]) -> RowTypes:
    known = _TYPES[table]
    cores = [site.capabilities for site in sites]

    def type_of(name: str) -> CoreType:
        if name in known:
            return known[name]
        tables = (core.tables.get(table, {}) for core in cores if core is not None)
        # Detection lets no other types in.
        return cast("CoreType", next((one[name] for one in tables if name in one), "string"))

    return tuple((name, type_of(name)) for name in names)


def _joined(table: str, filters: Collection[CoreFilter | None]) -> CoreFilter | None:
    """A filter that lets the rows of all effects through, and perhaps more."""
    if table == "log":
        # What is new in the log is little, and its other columns are not the same in all cores.
        return _times(next(iter(filters)))
    if None in filters or len(filters) > _FEW:
        return None
    some = [one for one in filters if one is not None]
    return joined("or", some)


def _times(found: CoreFilter | None) -> CoreFilter | None:
    tests = conjuncts(() if found is None else (found,))
    return joined("and", (one for one in tests if isinstance(one, Test) and one.column == "time"))


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
    for one in wanted:
        dealt.setdefault(one.effect.filter, [])
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
    for one in wanted:
        places = [at[name] for name in one.effect.columns]
        take(one, [[row[place] for place in places] for row in dealt[one.effect.filter]])


def _equalities(limit: CoreFilter | None) -> tuple[Test, ...] | None:
    """The tests of a filter that only compares texts; None for any other one."""
    found = () if limit is None else tuple(conjuncts([limit]))
    tests = tuple(one for one in found if isinstance(one, Test) and one.op == "=")
    return tests if limit is not None and len(tests) == len(found) else None


def passes(limit: CoreFilter | None, row: Row, at: Mapping[str, int]) -> bool:
    """Whether a row passes; effects compare with = and >= only, else LookupError."""
    match limit:
        case None:
            return True
        case Test(column=column, op="=", value=value):
            return _text(row[at[column]]) == value
        case Test(column=column, op=">=", value=value):
            found = row[at[column]]
            return value in found if isinstance(found, list) else found >= float(value)
        case Group("and", items=items):
            return all(passes(one, row, at) for one in items)
        case Group("or", items=items):
            return any(passes(one, row, at) for one in items)
    raise LookupError(limit)


def _text(value: Any) -> str:
    if value is True or value is False:
        return str(int(value))
    return value if isinstance(value, str) else str(value)
