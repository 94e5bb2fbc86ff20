"""What is known of a request that comes again, and when it is made anew."""

from attrs import evolve
from twisted.internet.task import Clock

from monrest.api.endpoint import RequestCache
from monrest.base.values import Capabilities, Identity
from monrest.rows.columns import SERVICES
from monrest.rows.question import question
from monrest.sites.registry import SiteList
from tests.api.asking import request
from tests.api.cores import TABLES, FakeSite
from tests.fakes.context import make_context
from tests.fakes.keystore import result

ADMIN = Identity(user="a", roles=frozenset({"authorized_for_admin"}))
PARAMETERS = (("columns", "host_name,state"), ("state[ne]", "0"))


class World:
    """A context of one site, and the questions that requests become there."""

    def __init__(self):
        self.site = FakeSite("one")
        self.context = make_context(Clock(), self.site)

    def ask(self, *parameters, identity=ADMIN, context=None):
        asked = request("/services", *(parameters or PARAMETERS), identity=identity)
        return result(question(context or self.context, asked, SERVICES))


def test_the_same_request_is_the_same_question_again():
    world = World()
    assert world.ask() is world.ask()


def test_a_question_belongs_to_who_asks():
    world = World()
    first = world.ask()
    for other in (
        Identity(user="a"),
        Identity(user="b", roles=ADMIN.roles),
        Identity(user="a", roles=ADMIN.roles, superuser=True),
    ):
        assert world.ask(identity=other) is not first
    nobody = world.ask(identity=Identity(user="nobody"))
    assert "nobody" in repr(nobody.seen)
    assert first.seen is None


def test_another_core_is_asked_anew():
    world = World()
    first = world.ask()
    world.site.capabilities = Capabilities(kind="mk", tables=TABLES, key="mk")
    second = world.ask()
    assert second is not first
    assert second.plans is not first.plans
    world.site.capabilities = None
    assert world.ask().cores == (None,)


def test_other_sites_with_the_same_cores_are_asked_the_same():
    world = World()
    first = world.ask()
    other = FakeSite("two")
    other.capabilities = world.site.capabilities
    second = world.ask(context=evolve(world.context, sites=SiteList((other,))))
    assert second.sites == (other,)
    assert second.plans is first.plans
    two = world.ask(context=evolve(world.context, sites=SiteList((world.site, other))))
    assert two.plans is not first.plans


def test_what_means_something_else_a_moment_later_is_not_kept():
    world = World()
    for parameter in (
        ("last_check[gt]", "-60m"),
        ("last_check[gt]", "2026-01-01 00:00:00"),
        ("description", "x" * RequestCache.LONGEST),
    ):
        assert world.ask(parameter) is not world.ask(parameter), parameter


def test_what_is_kept_is_bounded():
    kept = RequestCache()
    for number in range(RequestCache.MOST + 1):
        kept.keep(number, number)
    assert kept.find(RequestCache.MOST) == RequestCache.MOST
    assert kept.find(0) is None
