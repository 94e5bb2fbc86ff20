"""The check of a site's object files by its own command.

A Naemon or Nagios that is told to read files which do not load ends. So where a site has an
``obj_check_cmd``, it runs before everything that makes the core read its files.
"""

from __future__ import annotations

from collections.abc import Mapping

from monrest.api.endpoint import Context, Parameter
from monrest.base.values import RestRequest, nobody_follows
from monrest.objectconfig import commands
from monrest.objectconfig.commands import CommandResult
from monrest.objectconfig.hooks import environment
from monrest.sites.site import Site

FORCE = Parameter(
    name="force",
    description="1: a core reads its files again without a check of them by obj_check_cmd before",
    type="boolean",
)


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
    seconds = context.config.server.longest_wait
    # The clock of a request tells the time and starts no processes.
    reactor = context.staging.reactor
    command = check_command(context, site)
    return await commands.run(reactor, command, given, seconds, hint=hint(request))


def hint(request: RestRequest) -> str:
    """Say to whom a command was too slow what helps."""
    return "background=1 gives it more" if request.progress is nobody_follows else ""
