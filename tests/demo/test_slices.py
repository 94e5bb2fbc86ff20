"""Long work is done in slices: on a clock that moves a little whenever it is read."""

import json
from random import Random

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from monrest.demo.core import Core
from monrest.demo.invented import invented_objects
from monrest.demo.inventory import make_inventory
from monrest.demo.service import livestatus
from monrest.demo.simulation import Simulation
from tests.fakes.clocks import Wall

KEPT = "ResponseHeader: fixed16\nKeepAlive: on\nOutputFormat: json\n"


class RestlessClock(Clock):
    """Every look at the clock takes two milliseconds."""

    def seconds(self):
        self.rightNow += 0.002
        return super().seconds()


def make(hosts, services):
    clock = RestlessClock()
    clock.advance(1795000000)
    inventory = make_inventory({"x.cfg": invented_objects(hosts, services)}, checked=False)
    core = Core(clock, Wall(clock), inventory, Random(1), None)
    core.program_start = 1
    return core, clock


def test_a_large_answer_lets_others_in_between():
    core, clock = make(50, 1000)
    factory = livestatus(Simulation(core), print)
    large, small = StringTransport(), StringTransport()
    first, second = factory.buildProtocol(None), factory.buildProtocol(None)
    first.makeConnection(large)
    second.makeConnection(small)
    tail = f"GET hosts\n{KEPT}Stats: state = 0\n\n"
    first.dataReceived(f"GET services\n{KEPT}\n{tail}".encode())
    assert large.value() == b""
    second.dataReceived(tail.encode())
    assert small.value().endswith(b"[[50]]\n")
    assert large.value() == b""
    clock.advance(0)
    assert large.value().endswith(b"[[50]]\n")
    size = int(large.value()[4:15])
    rows = json.loads(large.value()[16 : 16 + size])
    at = rows[0].index("host_name"), rows[0].index("description")
    listed = [tuple(row[place] for place in at) for row in rows[1:]]
    assert listed == list(core.inventory.services)
    assert len(listed) == 1000
    # A client that leaves in the middle leaves no work behind.
    first.dataReceived(f"GET services\n{KEPT}\n".encode())
    first.connectionLost()
    second.connectionLost()
    assert not clock.getDelayedCalls()


def test_time_limits_end_a_long_answer():
    core, clock = make(50, 1000)
    factory = livestatus(Simulation(core), print)
    transport = StringTransport()
    connection = factory.buildProtocol(None)
    connection.makeConnection(transport)
    connection.dataReceived(f"GET services\n{KEPT}Timelimit: 1\n\n".encode())
    clock.advance(2)
    for _ in range(5):
        clock.advance(0)
    assert transport.value().startswith(b"413 ")
    assert b"Maximum query time of 1 seconds exceeded" in transport.value()


def test_checks_that_are_due_at_once_are_made_little_by_little():
    core, clock = make(20, 100)
    simulation = Simulation(core)
    simulation.start()
    for target in core.inventory.targets():
        simulation.plan(target, 1795000000)
    clock.advance(1)

    def checked():
        return sum(target.has_been_checked for target in core.inventory.targets())

    assert 0 < checked() < 10
    while checked() < 120:
        before = checked()
        clock.advance(0.03)
        assert checked() > before
    simulation.stop()
    assert not clock.getDelayedCalls()
