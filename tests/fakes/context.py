"""What handlers get, with only those parts that a test is about."""

from __future__ import annotations

from datetime import UTC
from types import SimpleNamespace
from typing import Any

from attrs import fields

from monrest.accounts.family import Accounts
from monrest.api.dispatch import Dispatch
from monrest.api.endpoint import Context, RequestCache
from monrest.base.meters import Meters
from monrest.base.metrics import Metrics
from monrest.base.names import Names
from monrest.base.values import Contact
from monrest.config import Config
from monrest.daemon.families import FAMILIES, dispatch_of
from monrest.logs.source import CORES
from monrest.sites.registry import SiteList
from tests.fakes.clocks import Wall
from tests.fakes.threads import NoThreads, Reactor, own_memory


class KnownContacts:
    """Contacts by name with their groups; ``asked`` are the names that were looked up."""

    def __init__(self, **groups):
        self.groups = groups
        self.asked = []

    async def of(self, user):
        self.asked.append(user)
        return Contact(groups=frozenset(self.groups.get(user, ())))


class NoUsers:
    """No user has a profile."""

    async def get(self, user):
        return None


class NoLogCache:
    """Nothing is cached."""

    enabled = False

    def planned(self, *_):
        return None

    def source(self):
        return CORES

    async def objects(self, *_):
        return None


class Missing(SimpleNamespace):
    """What families share, and their services by name: those that are not given are None."""

    def __getattr__(self, _):
        return None

    def the(self, kind):
        return self if kind is Accounts else getattr(self, kind.__name__.lower())


def make_dispatch(app: str = "mon", *, families=FAMILIES, **parts: Any) -> Dispatch:
    """All endpoints, of families that are made of these parts."""
    return dispatch_of(app, Missing(**parts), families)


def make_context(clock: Any, *sites: Any, families=FAMILIES, **given: Any) -> Context:
    """A context of these sites, whose families are made of what is ``given``."""
    known = {
        "clock": clock,
        "wall": Wall(clock),
        "sites": SiteList(sites),
        "config": Config(),
        "names": Names(),
        "zone": UTC,
        "contacts": KnownContacts(),
        "path": "",
        "figures": Metrics(),
        "meters": Meters(clock),
        "logcache": NoLogCache(),
        "threads": NoThreads(),
        "users": NoUsers(),
        "memory": own_memory(Reactor()),
        "request_cache": RequestCache(),
        **given,
    }
    if "dispatch" not in known:
        known["dispatch"] = make_dispatch(known["names"].app, families=families, **known)

    async def chosen_zone(user):
        profile = await known["users"].get(user)
        return None if profile is None else profile.zone

    known["chosen_zone"] = chosen_zone
    return Context(**{one.name: known.get(one.name) for one in fields(Context)})
