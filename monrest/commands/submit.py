"""Sending what was prepared, and writing it down (docs/spec/commands.md).

From the first byte to a core on, a command goes its way to the end and into the audit log, even
if the client does not wait for it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.base.audit import audit
from monrest.base.concurrency import pause, shielded, together
from monrest.base.errors import Conflict, Forbidden, RestError
from monrest.base.values import RestRequest, SiteProblem
from monrest.commands.asked import AskedCommand, Manner
from monrest.commands.orders import EFFORT, Preparation, PreparedCommand
from monrest.commands.outcome import CommandOutcome, capabilities_of
from monrest.commands.readback import Watch
from monrest.livestatus.catalogue import find, singular
from monrest.livestatus.command import CoreCommand, Target
from monrest.livestatus.external import decodes_backslashes, line
from monrest.objectconfig.site_commands import check, check_command, environment_of
from monrest.query.limit import Limit
from monrest.sites.commands import SentToSite, send
from monrest.sites.site import Site

ACTION = "command"
OK = 200

_AT_ONCE = 100
"""Entries of the audit log that are written in one go."""

_RESTARTS = frozenset({"RESTART_PROCESS", "RESTART_PROGRAM"})
_LONGEST_OUTPUT = 4000
"""Characters of a check's output in an error."""


async def submit(
    context: Context,
    request: RestRequest,
    asked: Sequence[AskedCommand],
    how: Manner,
    problems: dict[int, RestError],
) -> list[CommandOutcome]:
    """Send the commands, each to its sites, and return their outcomes in the same order.

    If there are ``problems`` by index, or preparing finds some more, which are added, nothing is
    sent and the list is empty. Raise SitesFailed when the cores cannot be asked what has to be
    known before.
    """
    began = context.clock.seconds()
    preparation = Preparation(context, request.identity)
    try:
        await preparation.run(asked)
    except RestError as error:
        await _audit_refused(context, request, asked, {}, error)
        raise
    problems |= preparation.problems
    if not problems and not how.force:
        problems |= await _refused_restarts(context, request, preparation.jobs)
    if problems:
        await _audit_refused(context, request, asked, problems)
        return []
    outcomes = [
        CommandOutcome(job=job, tested=how.test_only, failed=list(job.failed))
        for job in preparation.jobs
    ]
    if how.test_only:
        at = int(context.wall.now())
        cores = capabilities_of(outcomes)

        def write_lines(_: Limit) -> None:
            for outcome in outcomes:
                for site in outcome.job.sites:
                    core = cores[site.id]
                    decodes = core is not None and decodes_backslashes(core)
                    for order in dict.fromkeys(outcome.job.orders[site.id]):
                        outcome.lines.append(line(order, at, decodes_backslashes=decodes))

        await context.compute(write_lines, len(outcomes) * EFFORT)
        return outcomes
    watch = Watch(context, outcomes) if how.wait is not None else None
    if watch is not None:
        await watch.before()
    await shielded(_send(context, request, outcomes))
    if watch is not None and how.wait is not None:
        # The answer must come before the request times out, however long sending took.
        spent = context.clock.seconds() - began
        await watch.after(min(how.wait, context.config.server.longest_wait - spent))
    return outcomes


async def _refused_restarts(
    context: Context, request: RestRequest, jobs: Sequence[PreparedCommand]
) -> dict[int, RestError]:
    """The errors of commands that restart cores whose object files do not load, by index."""
    restarts = {
        job.index: [
            site
            for site in job.sites
            if check_command(context, site)
            and any(order.name in _RESTARTS for order in job.orders.get(site.id, ()))
        ]
        for job in jobs
    }
    sites = {site.id: site for restarted in restarts.values() for site in restarted}
    outputs = dict(zip(sites, await _check(context, request, sites.values()), strict=True))
    return {
        index: Conflict("the object files do not load", "; ".join(broken))
        for index, restarted in restarts.items()
        if (
            broken := [f"{site.name}: {outputs[site.id]}" for site in restarted if outputs[site.id]]
        )
    }


async def _check(context: Context, request: RestRequest, sites: Collection[Site]) -> list[str]:
    """Check the object files of all sites at the same time; empty for those that load."""

    async def check_site(site: Site) -> str:
        result = await check(context, request, site, await environment_of(context, request, site))
        if not result.failed:
            return ""
        output = result.output.strip() or f"exit status {result.status}"
        return f"obj_check_cmd (force=1 skips it): {output[-_LONGEST_OUTPUT:]}"

    return await together(check_site(site) for site in sites)


async def _send(context: Context, request: RestRequest, outcomes: Sequence[CommandOutcome]) -> None:
    """Send each site its lines in order; note the answers and write the audit log."""
    effort = len(outcomes) * EFFORT
    queues = await context.compute(lambda _: _queued(outcomes), effort)
    if queues:
        orders = [(queue.site, tuple(queue.places)) for queue in queues]
        sent = await send(orders, context.clock, context.wall)

        def note(_: Limit) -> None:
            for queue, results in zip(queues, sent, strict=True):
                queue.note(results)

        await context.compute(note, effort)
    await _audit_sent(context, request, outcomes)


@define(eq=False)
class _Queue:
    """The orders of one site: each once, with the outcomes that it belongs to."""

    site: Site
    places: dict[CoreCommand, list[CommandOutcome]] = field(factory=dict)

    def note(self, sent: SentToSite) -> None:
        """Note in the outcomes what became of their lines."""
        failed = sent.problem
        lines = (*sent.lines, *sent.unsent)
        for at, (text, outcomes) in enumerate(zip(lines, self.places.values(), strict=True)):
            for outcome in outcomes:
                if at >= len(sent.lines):
                    outcome.fail(failed or self._problem("was not sent"))
                    continue
                outcome.lines.append(text)
                if at in sent.refused:
                    outcome.refused.append(f"{self.site.name}: {sent.refused[at]}")
                elif at in sent.doubtful:
                    late = failed is not None and failed.timed_out
                    outcome.fail(self._problem(sent.doubtful[at], late), uncertain=True)
                else:
                    outcome.accepted.add(self.site.id)

    def _problem(self, reason: str, timed_out: bool = False) -> SiteProblem:
        return SiteProblem(self.site.id, self.site.name, reason, timed_out)


def _queued(outcomes: Sequence[CommandOutcome]) -> list[_Queue]:
    queues: dict[str, _Queue] = {}
    for outcome in outcomes:
        for site in outcome.job.sites:
            for order in outcome.job.orders[site.id]:
                queue = queues.get(site.id)
                if queue is None:
                    queue = queues[site.id] = _Queue(site)
                belongs = queue.places.setdefault(order, [])
                if outcome not in belongs[-1:]:
                    belongs.append(outcome)
    return list(queues.values())


async def _audit_sent(
    context: Context, request: RestRequest, outcomes: Sequence[CommandOutcome]
) -> None:
    for at, outcome in enumerate(outcomes, 1):
        if at % _AT_ONCE == 0:
            await pause(context.clock)
        asked = outcome.job.asked
        audit(
            request.identity,
            request.caller,
            ACTION,
            target=_called(asked.target),
            result=outcome.message if outcome.code != OK else "ok",
            command=outcome.job.command.name,
            lines=tuple(outcome.lines),
            sites=tuple(site.id for site in outcome.job.sites),
            failed_sites=tuple(problem.site for problem in outcome.failed),
            error=outcome.error,
        )


async def _audit_refused(
    context: Context,
    request: RestRequest,
    asked: Sequence[AskedCommand],
    problems: Mapping[int, RestError],
    error: RestError | None = None,
) -> None:
    """Write down what was not sent; ``error`` stopped all of it, ``problems`` one each."""
    for at, refused in enumerate(asked, 1):
        if at % _AT_ONCE == 0:
            await pause(context.clock)
        why = error or problems.get(refused.index)
        if why is None:
            continue
        command = find(refused.target.kind, refused.command)
        audit(
            request.identity,
            request.caller,
            ACTION,
            target=_called(refused.target),
            result="not allowed" if isinstance(why, Forbidden) else "not sent",
            command=command.name if command is not None else refused.command,
            sites=tuple(site.id for site in refused.sites),
            error=str(why),
        )


def _called(target: Target) -> str:
    names = (singular(target.kind), target.name, target.service)
    return " ".join(name for name in names if name)
