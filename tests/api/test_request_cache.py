"""What is known of a request that comes again, and when it is made anew."""

from twisted.internet.task import Clock

from monrest.api.endpoint import RequestCache
from monrest.base.values import Identity
from monrest.rows.columns import SERVICES
from monrest.rows.question import question
from tests.api.asking import request
from tests.api.cores import FakeSite
from tests.fakes.context import make_context
from tests.fakes.keystore import result

ADMIN = Identity(user="a", roles=frozenset({"authorized_for_admin"}))
PARAMETERS = (("columns", "host_name,state"), ("state[ne]", "0"))


class World:
    """A context of one site, and the questions that requests become there."""

    def __init__(self):
        self.site = FakeSite("one")
        self.context = make_context(Clock(), self.site)

    def ask(self, *parameters, identity=ADMIN):
        asked = request("/services", *(parameters or PARAMETERS), identity=identity)
        return result(question(self.context, asked, SERVICES))


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
