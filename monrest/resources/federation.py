"""What a request says that comes from another instance (livestatus.md, section 17.2)."""

from __future__ import annotations

import re

from monrest.errors import BadRequest, LoopDetected
from monrest.resources.declare import Context
from monrest.sites.federation.remote import HEADER, MOST_HOPS
from monrest.sites.federation.site import FederatedSite
from monrest.sites.registry import SiteList, Sites
from monrest.values import Parameters, RestRequest

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


def own_sites(sites: Sites) -> Sites:
    """Those of the sites whose core is asked by this instance itself."""
    return SiteList(tuple(site for site in sites.sites if not isinstance(site, FederatedSite)))


def selected(parameters: Parameters) -> tuple[str, ...]:
    """The sites that parameters name."""
    return tuple(
        part.strip()
        for name, value in parameters
        if name in ("backend", "backends")
        for part in value.split(",")
        if part.strip()
    )
