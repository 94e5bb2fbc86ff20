"""Asking the cores for all that processes look at: each table once for each site.

Rules: docs/spec/bp.md, "Calculation".
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.concurrency import sliced
from monrest.base.errors import SitesFailed
from monrest.base.values import Capabilities, Row, SiteProblem
from monrest.bp.live import Layout, Live, Needs, Question
from monrest.bp.services import NOWHERE, Memory, Services
from monrest.livestatus.recall import Recall
from monrest.query.model import CoreFilter, Pushed, Test
from monrest.query.pushdown import both
from monrest.sites.fanout import Gathered, fan_out
from monrest.sites.site import Site

_SLICE = 500
LIE = "the core sent rows of wrong types"


@frozen
class Answers:
    """What was learned, and which sites could not say everything."""

    live: Live
    problems: tuple[SiteProblem, ...] = ()


Rule: TypeAlias = Callable[[str], CoreFilter | None]
"""What somebody may see of a table of the cores; None for all of it."""


async def gather(
    sites: Sequence[Site],
    needs: Needs,
    clock: IReactorTime,
    memory: Memory | None = None,
    rule: Rule = lambda _: None,
) -> Answers:
    """Ask all sites at once; those that fail or lie are told as problems.

    With a ``memory`` services that are as they were before are the same rows. Without a ``rule``
    it is all that there is, whoever asks.
    """
    questions = needs.questions()
    live = Live(services=Services(memory.places if memory else NOWHERE))
    problems: dict[str, SiteProblem] = {}
    if not sites or not questions:
        return Answers(live)
    asked = [evolve(one, filter=both(one.filter, rule(one.table))) for one in questions]
    waiting = [Deferred.fromCoroutine(ask(sites, one, clock, memory)) for one in asked]
    wanted = frozenset(needs.matched_hosts)
    outcomes = await DeferredList(waiting, consumeErrors=True)
    for question, (_, outcome) in zip(questions, outcomes, strict=True):
        if isinstance(outcome, Failure):
            outcome.raiseException()
        problems.update((one.site, one) for one in outcome.problems)
        # The first of several sites that have an object counts, so it is taken last.
        for answer in reversed(outcome.answers):
            site = answer.site
            work = live.take(question, site.id, answer.rows, wanted)
            try:
                await sliced(work, clock)
            except (TypeError, ValueError):
                problems[site.id] = SiteProblem(site.id, site.name, LIE)
    await sliced(live.services.settle(), clock)
    if memory is not None:
        memory.keep(live.services.places, [site.id for site in sites])
    return Answers(live, tuple(problems.values()))


async def ask(
    sites: Sequence[Site], question: Question, clock: IReactorTime, memory: Memory | None = None
) -> Gathered:
    """Ask one question; that no site answers at all is no error."""
    recalls = None
    if memory is not None and question.table in ("hosts", "services"):
        recalls = partial(_recall, memory, question.table)

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        known = core.tables.get(question.table)
        return question.pushed(known) if known else None

    try:
        return await fan_out(sites, plan, question.layout, clock, recalls=recalls)
    except SitesFailed as error:
        return Gathered((), error.problems, 0.0)


def _recall(memory: Memory, table: str, site: Site) -> Recall:
    return memory.recall(table, site.id)


_CARRIERS: Mapping[str, Layout] = {
    "hosts": (("name", "string"), ("custom_variables", "dict")),
    "services": (("host_name", "string"), ("description", "string"), ("custom_variables", "dict")),
}


async def carriers(
    sites: Sequence[Site],
    table: str,
    variable: str,
    seen: CoreFilter | None,
    clock: IReactorTime,
) -> dict[tuple[str, str, str], str]:
    """Which hosts or services carry the number of a process: (site, host, service) to number.

    ``seen`` is the visibility filter of the asker, None for everybody's eyes. Raises SitesFailed
    when no site answers.
    """
    layout = _CARRIERS[table]
    columns = tuple(name for name, _ in layout)
    has = Test("custom_variable_names", ">=", variable)

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        if not core.has(table, "custom_variables"):
            return None
        # Icinga 2 has no such list to search in: all rows are looked at.
        limit = seen if core.kind == "icinga2" else both(seen, has)
        return Pushed(table=table, columns=columns, filter=limit)

    found: dict[tuple[str, str, str], str] = {}
    if not sites:
        return found
    gathered = await fan_out(sites, plan, layout, clock)
    for answer in gathered.answers:
        await sliced(_carried(answer.site.id, answer.rows, variable, found), clock)
    return found


def _carried(
    site: str, rows: Sequence[Row], variable: str, found: dict[tuple[str, str, str], str]
) -> Generator[None]:
    for at, (host, *service, variables) in enumerate(rows):
        if at % _SLICE == _SLICE - 1:
            yield
        if isinstance(variables, dict) and variable in variables:
            found[site, str(host), str(service[0]) if service else ""] = str(variables[variable])
