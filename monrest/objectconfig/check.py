"""The check of a site's object files by its own command, and what a restart needs of it.

A Naemon or Nagios that is told to read files which do not load ends. So where a site has an
``obj_check_cmd``, it runs before everything that makes the core read its files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context, Parameter
from monrest.base.errors import Conflict, RestError
from monrest.base.values import RestRequest, nobody_follows
from monrest.commands.asked import longest_wait
from monrest.commands.orders import Job
from monrest.objectconfig import commands
from monrest.objectconfig.commands import CommandResult
from monrest.objectconfig.hooks import environment
from monrest.sites.site import Site

FORCE = Parameter(
    name="force",
    description="1: a core reads its files again without a check of them by obj_check_cmd before",
    type="boolean",
)

_RESTARTS = frozenset({"RESTART_PROCESS", "RESTART_PROGRAM"})
_MOST_TOLD = 4000
"""Characters of a check's output in an error."""


async def environment_of(context: Context, request: RestRequest, site: Site) -> dict[str, str]:
    """What commands of the object configuration find in their environment."""
    contact = await context.contacts.of(request.identity.user)
    return environment(
        site=site.id,
        name=site.name,
        user=request.identity.user,
        groups=sorted(contact.groups),
        alias=contact.alias or "",
        email=contact.email or "",
        url=request.path,
    )


def check_command(context: Context, site: Site) -> str:
    """The command that checks the files of a site; empty without one."""
    tool = context.config.tool_of(site.config)
    return "" if tool is None else tool.obj_check_cmd


async def check(
    context: Context, request: RestRequest, site: Site, given: Mapping[str, str]
) -> CommandResult:
    """Check the files of a site, for as long as the request or the job may take."""
    seconds = longest_wait(context.config.server)
    # The clock of a request tells the time and starts no processes.
    reactor = context.staging.reactor
    command = check_command(context, site)
    return await commands.run(reactor, command, given, seconds, hint=hint(request))


def hint(request: RestRequest) -> str:
    """Say to whom a command was too slow what helps."""
    return "background=1 gives it more" if request.progress is nobody_follows else ""


async def unchecked_restarts(
    context: Context, request: RestRequest, jobs: Sequence[Job]
) -> dict[int, RestError]:
    """Why commands that restart cores must not be sent, by index: their files do not load."""
    restarts = {
        job.asked.index: [
            site
            for site in job.sites
            if check_command(context, site)
            and any(order.name in _RESTARTS for order in job.orders.get(site.id, ()))
        ]
        for job in jobs
    }
    sites = {site.id: site for found in restarts.values() for site in found}
    told = dict(zip(sites, await _outputs(context, request, sites.values()), strict=True))
    return {
        index: Conflict("the object files do not load", "; ".join(broken))
        for index, found in restarts.items()
        if (broken := [f"{site.name}: {told[site.id]}" for site in found if told[site.id]])
    }


async def _outputs(context: Context, request: RestRequest, sites: Collection[Site]) -> list[str]:
    """What the checks of sites say against their files, all at the same time."""

    async def one(site: Site) -> str:
        result = await check(context, request, site, await environment_of(context, request, site))
        if not result.failed:
            return ""
        output = result.output.strip() or f"exit status {result.status}"
        return f"obj_check_cmd (force=1 skips it): {output[-_MOST_TOLD:]}"

    running = [Deferred.fromCoroutine(one(site)) for site in sites]
    outputs: list[str] = []
    for _, value in await DeferredList(running, consumeErrors=True):
        if isinstance(value, Failure):
            value.raiseException()
        outputs.append(value)
    return outputs
