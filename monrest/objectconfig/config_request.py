"""A request on the object configuration: its user, the sites it is for, its audit lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from monrest.api import csrf
from monrest.api.csrf import SAFE
from monrest.api.endpoint import Context
from monrest.api.fields import named_in
from monrest.api.rights import require_change
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import RestRequest, SiteProblem
from monrest.objectconfig.federated_tools import FederatedTools
from monrest.objectconfig.model import ConfigSite, UnreadableError
from monrest.objectconfig.parameters import REFRESH
from monrest.objectconfig.personal_view import PersonalView
from monrest.objectconfig.service import Staging
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

MOST_NAMED = 20
"""Objects that an audit line names."""


@frozen(kw_only=True)
class Tool:
    """A selected site with its object configuration, as the user sees it."""

    site: Site
    config: ConfigSite
    view: PersonalView = field(repr=False)


@frozen(kw_only=True)
class ConfigRequest:
    """``sites`` have an object configuration here, those of ``far`` at another instance."""

    staging: Staging
    context: Context
    request: RestRequest
    sites: tuple[Site, ...]
    far: FederatedTools

    @classmethod
    def of(cls, staging: Staging, context: Context, request: RestRequest) -> ConfigRequest:
        """Select the sites; those without an object configuration are left out.

        Raises BadRequest for unknown sites and for an Icinga 2, whose files are in another
        language.
        """
        selected = context.sites.select(request.sites or named_in(request.parameters))
        sites = tuple(site for site in selected if context.config.tool_of(site.config) is not None)
        for site in sites:
            if site.capabilities is not None and site.capabilities.icinga2:
                raise _icinga2(
                    site,
                    "expected a core with Nagios object files; take the configtool section away "
                    "or select other sites",
                )
        federated = tuple(site for site in selected if isinstance(site, FederatedSite))
        far = FederatedTools(context=context, request=request, sites=federated)
        return cls(staging=staging, context=context, request=request, sites=sites, far=far)

    @property
    def user(self) -> str:
        """The owner of the stash: the user, or a common name for keys without a user."""
        return self.request.identity.user or "(system)"

    def config_site(self, site: Site) -> ConfigSite:
        """The site as staging knows it; it must have an object configuration."""
        tool = self.context.config.tool_of(site.config)
        assert tool is not None
        return ConfigSite(id=site.id, name=site.name, tool=tool)

    async def tools(self) -> list[Tool]:
        """All sites here as the user sees them. Raises UnreadableError if one cannot be read."""
        tools, unreadable = await self._read()
        for _, error in unreadable:
            raise error
        return tools

    async def readable_tools(self) -> tuple[list[Tool], list[SiteProblem]]:
        """The sites that can be read, and the others; UnreadableError if no site answers at all."""
        tools, unreadable = await self._read()
        if unreadable and not tools and not self.far.sites:
            raise unreadable[0][1]
        return tools, [SiteProblem(site.id, site.name, error.message) for site, error in unreadable]

    async def _read(self) -> tuple[list[Tool], list[tuple[Site, UnreadableError]]]:
        """Read one site after the other.

        With ``refreshdata=1`` the user's changes in files with conflicts are dropped before. Raises
        BadRequest for a site whose files are in another language.
        """
        refresh = REFRESH.asked(self.request.parameters)
        if refresh:
            await self._check_refresh()
        tools: list[Tool] = []
        unreadable: list[tuple[Site, UnreadableError]] = []
        for site in self.sites:
            config = self.config_site(site)
            try:
                if refresh and (dropped := await self.staging.refresh(config, self.user)):
                    self.note("refresh", target=site.id, files=dropped)
                view = await self.staging.view(config, self.user)
            except UnreadableError as error:
                unreadable.append((site, error))
                continue
            if view.model.files.foreign:
                raise _icinga2(site, view.model.files.foreign)
            tools.append(Tool(site=site, config=config, view=view))
        return tools, unreadable

    async def _check_refresh(self) -> None:
        """Dropping changes is a change, also by a GET: no page of another site may cause it."""
        request, context = self.request, self.context
        await require_change(request, context.contacts, context.config)
        if request.method in SAFE:
            headers = request.caller.headers
            csrf.check(request.identity, "POST", request.parameters, headers, context.names)

    def note(self, action: str, *, target: str = "", result: str = "ok", **more: Any) -> None:
        """Write an audit line; ``action`` is what follows ``config``."""
        identity, caller = self.request.identity, self.request.caller
        audit(identity, caller, f"config {action}", target=target, result=result, **more)

    def note_failure(self, action: str, error: RestError) -> None:
        target = ",".join(site.id for site in (*self.sites, *self.far.sites))
        self.note(action, target=target, result=error.message, error=error.description)


def _icinga2(site: Site, reason: str) -> BadRequest:
    return BadRequest(
        "object configuration is not available for Icinga 2", f"{site.name}: {reason}"
    )


def named(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Objects for an audit line: type, file and id of each."""
    return tuple(f"{record[':TYPE']} {record[':FILE']} {record[':ID']}" for record in records)
