"""Where a path leads is known when it is asked for again; who may go there is not forgotten."""

from __future__ import annotations

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.api.dispatch import Dispatch
from monrest.api.endpoint import Endpoint, RequestCache
from monrest.api.router import Router
from monrest.base.errors import BadRequest, Forbidden, LoopDetected
from monrest.base.values import Caller, Document, Identity, RestRequest
from monrest.sites.federation.remote import HEADER
from monrest.sites.registry import SiteList
from tests.api.cores import FakeSite
from tests.fakes.context import KnownContacts, make_context

ADMIN = Identity(user="root", roles=frozenset({"authorized_for_admin"}))
ANN = Identity(user="ann")


class AllSites(SiteList):
    """The sites of this instance alone, for everybody as they are."""

    def acting(self, whom):
        return self


class Counted(Router):
    looked_for = 0

    def find(self, *arguments):
        self.looked_for += 1
        return super().find(*arguments)


class World:
    def __init__(self):
        router = Counted("mon")
        router.add(
            Endpoint(path=path, description="", handler=self.answer, methods=methods, roles=roles)
            for path, methods, roles in (
                ("/open/<name>", ("GET",), ()),
                ("/closed", ("GET",), ("admin",)),
                ("/changed", ("POST",), ()),
            )
        )
        self.context = make_context(
            Clock(),
            dispatch=Dispatch(router, None),
            sites=AllSites((FakeSite("one"),)),
            contacts=KnownContacts(ann=("web",)),
            instance="me",
        )

    async def answer(self, context, request, arguments):
        return Document(value=[*arguments, *(site.id for site in context.sites.sites)])

    def ask(self, path, *parameters, identity=ANN, context=None, method="GET", **more):
        context = context or self.context
        request = RestRequest(
            method=method, path=path, segments=tuple(path.strip("/").split("/")),
            parameters=parameters, identity=identity, **more,
        )  # fmt: skip
        found, failed = [], []
        work = Deferred.fromCoroutine(context.dispatch(context, request))
        work.addCallbacks(found.append, failed.append)
        for failure in failed:
            failure.raiseException()
        return found[0].value


@pytest.fixture
def world():
    return World()


def test_the_same_path_is_looked_for_once(world):
    assert world.ask("/open/a%20b") == world.ask("/open/a%20b") == ["a b", "one"]
    assert world.context.dispatch.router.looked_for == 1
    assert world.ask("/open/c") == ["c", "one"]
    world.ask("/open/c", ("limit", "1"))
    world.ask("/open/c", identity=ADMIN)
    assert world.context.dispatch.router.looked_for == 4


def test_what_one_may_is_not_what_another_may(world):
    assert world.ask("/closed", identity=ADMIN) == ["one"]
    with pytest.raises(Forbidden):
        world.ask("/closed")


def test_a_known_way_is_not_for_what_needs_a_look(world):
    world.ask("/open/a")
    with pytest.raises(BadRequest, match="json"):
        world.ask("/open/a", structured="x")
    with pytest.raises(LoopDetected):
        world.ask("/open/a", caller=Caller(headers={f"x-mon-{HEADER.lower()}": "me"}))


def test_what_changes_something_is_looked_at_each_time(world):
    world.ask("/changed", method="POST")
    server = evolve(world.context.config.server, demo_mode=True)
    context = evolve(world.context, config=evolve(world.context.config, server=server))
    with pytest.raises(BadRequest, match="demo_mode"):
        world.ask("/changed", method="POST", context=context)


def test_other_sites_are_another_way(world):
    world.ask("/open/a")
    world.context.sites = SiteList((FakeSite("one"), FakeSite("two", groups=("db",))))
    assert world.ask("/open/a") == ["a", "one"]
    assert world.context.contacts.asked == ["ann"]


def test_a_long_path_is_not_kept(world):
    path = f"/open/{'x' * RequestCache.LONGEST}"
    world.ask(path)
    world.ask(path)
    assert world.context.dispatch.router.looked_for == 2
