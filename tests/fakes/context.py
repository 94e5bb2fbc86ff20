"""What handlers get, with only those parts that a test is about."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

from attrs import fields, frozen
from twisted.internet.defer import succeed

from monrest.api.endpoint import Context, RequestCache
from monrest.base.metrics import Metrics
from monrest.base.names import Names
from monrest.base.spool import RowRoom, Spools
from monrest.config import Config
from monrest.daemon.families import dispatch_of
from monrest.sites.registry import SiteList
from tests.fakes.clocks import Wall
from tests.fakes.threads import Reactor


@frozen
class Groups:
    """A contact, as far as its groups go."""

    groups: frozenset[str]


class KnownContacts:
    """Contacts by name with their groups; ``asked`` are the names that were looked up."""

    def __init__(self, **groups):
        self.groups = groups
        self.asked = []

    async def of(self, user):
        self.asked.append(user)
        return Groups(frozenset(self.groups.get(user, ())))


class NoUsers:
    """Nobody has a profile."""

    async def get(self, user):
        return None


class NoThreads:
    """Calls at once what else runs in a thread."""

    def run(self, function):
        return succeed(function())


def make_context(clock: Any, *sites: Any, **given: Any) -> Context:
    """A context of these sites; parts that are not ``given`` are missing."""
    known = {
        **dict.fromkeys([one.name for one in fields(Context)]),
        "dispatch": dispatch_of("mon"),
        "clock": clock,
        "wall": Wall(clock),
        "sites": SiteList(sites),
        "config": Config(),
        "names": Names(),
        "zone": UTC,
        "contacts": KnownContacts(),
        "started": 0.0,
        "version": "1",
        "config_path": "",
        "figures": Metrics(clock),
        "threads": NoThreads(),
        "users": NoUsers(),
        "spools": Spools(Reactor(), Path("not started, so nothing is written")),
        "room": RowRoom(Reactor()),
        "request_cache": RequestCache(),
    }
    return Context(**{**known, **given})
