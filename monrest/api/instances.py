"""Requests that come from another instance (docs/spec/sites.md, "Federation")."""

from __future__ import annotations

import re

from attrs import evolve

from monrest.api.endpoint import Context
from monrest.base.errors import BadRequest, LoopDetected
from monrest.base.values import Identity, RestRequest
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.federation.remote import HEADER, MOST_HOPS
from monrest.sites.registry import SiteList, Sites

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def visited_of(context: Context, request: RestRequest) -> tuple[str, ...]:
    """The ids of the instances that the request has come through, the first one first.

    Raise LoopDetected when this one is among them or when there are too many of them.
    """
    name = context.names.header(HEADER)
    text = request.caller.headers.get(name, "")
    if not text.strip():
        return ()
    visited = tuple(part.strip() for part in text.split(","))
    spelled = name.title()
    if not all(map(_ID.fullmatch, visited)):
        raise BadRequest("bad request", f"{spelled}: expected ids of instances between commas")
    if context.instance in visited:
        raise LoopDetected(
            "loop of instances", f"{spelled}: this instance has seen the request already"
        )
    if len(visited) > MOST_HOPS:
        raise LoopDetected(
            "too many instances", f"{spelled}: expected at most {MOST_HOPS} of them on the way"
        )
    return visited


def for_instance(context: Context, identity: Identity, sites: Sites) -> tuple[Context, Sites]:
    """The context and the sites for a request of another instance.

    Where the operator forbids cascades, only sites whose cores are asked from here. An instance
    names the author of its own commands, such as recurring downtimes, as at its own sites.
    """
    config = context.config
    if not config.federation.cascade:
        own = (site for site in sites.sites if not isinstance(site, FederatedSite))
        sites = SiteList(tuple(own))
    if identity.superuser:
        commands = evolve(config.commands, lock_author_names=False)
        context = evolve(context, config=evolve(config, commands=commands))
    return context, sites
