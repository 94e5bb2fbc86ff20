"""A small core on a clock, asked through its own protocol in memory."""

import json
from datetime import UTC
from random import Random

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from monrest.demo.core import Core
from monrest.demo.inventory import make_inventory
from monrest.demo.service import livestatus
from monrest.demo.simulation import Simulation
from tests.fakes.clocks import Wall

START = 1795000000
"""2026-11-18 11:06:40 UTC."""

SITE = r"""
define command {
    command_name ping
    command_line $USER1$/check_ping -H $HOSTADDRESS$
}
define command {
    command_name mail
    command_line /usr/bin/mail
}
define timeperiod {
    timeperiod_name always
    alias All day
    sunday 00:00-24:00
    monday 00:00-24:00
    tuesday 00:00-24:00
    wednesday 00:00-24:00
    thursday 00:00-24:00
    friday 00:00-24:00
    saturday 00:00-24:00
    january 1 00:00-01:00,02:00-03:00
}
define timeperiod {
    timeperiod_name never
    alias Never
}
define contact {
    name con
    host_notification_commands mail
    service_notification_commands mail
    host_notification_options a
    service_notification_options a
    register 0
}
define contact {
    use con
    contact_name ann
    alias Ann
    email ann@example.org
    address1 first
    _TEAM blue
}
define contact {
    use con
    contact_name ben
}
define contactgroup {
    contactgroup_name ops
    members ann
}
define host {
    name hst
    check_command ping!1
    max_check_attempts 3
    check_interval 5
    check_period always
    contact_groups ops
    register 0
}
define host {
    use hst
    host_name alpha
    alias Alpha ü
    address 10.0.0.1
    hostgroups red,both
    notes see $HOSTADDRESS$
    _COLOUR red
    _SIZE 10
}
define host {
    use hst
    host_name beta
    parents alpha
    hostgroups both
    contacts ben
    _COLOUR blue
}
define host {
    use hst
    host_name gamma
    check_command null
    contact_groups null
}
define service {
    name svc
    check_command ping!2
    max_check_attempts 3
    check_interval 5
    register 0
}
define service {
    use svc
    host_name alpha
    service_description disk /var
    servicegroups disks
    notification_interval 10
}
define service {
    use svc
    host_name alpha
    service_description load
    parents disk /var
    contacts ben
    _LEVEL gold
}
define service {
    use svc
    host_name beta
    service_description C:\ a\; b
    servicegroups disks
}
define hostgroup {
    hostgroup_name red
}
define hostgroup {
    hostgroup_name both
}
define hostgroup {
    hostgroup_name empty
}
define servicegroup {
    servicegroup_name disks
}
define servicedependency {
    host_name alpha
    service_description disk /var
    dependent_service_description load
    notification_failure_criteria c,w
}
"""


class Bench:
    """A core, its clock, and connections to it."""

    def __init__(self, text=SITE, seed=1):
        self.clock = Clock()
        self.clock.advance(START)
        inventory = make_inventory({"site.cfg": text})
        self.core = Core(self.clock, Wall(self.clock), inventory, Random(seed), UTC)
        self.core.program_start = START
        self.simulation = Simulation(self.core)
        self.deaths = []
        self.factory = livestatus(self.simulation, self.deaths.append)
        self.tables = self.factory.tables

    def connect(self):
        """An open connection: its protocol and transport."""
        protocol = self.factory.buildProtocol(None)
        transport = StringTransport()
        protocol.makeConnection(transport)
        return protocol, transport

    def raw(self, request):
        """Send bytes or text on a connection of its own; the bytes that come back."""
        protocol, transport = self.connect()
        protocol.dataReceived(request.encode() if isinstance(request, str) else request)
        answer = transport.value()
        protocol.connectionLost()
        return answer

    def status(self, *lines):
        """Status code and body text of a request that asks for fixed16 first of all."""
        head, *rest = lines
        text = "\n".join([head, "ResponseHeader: fixed16", *rest]) + "\n\n"
        answer = self.raw(text)
        assert len(answer) == 16 + int(answer[4:15])
        return int(answer[:3]), answer[16:].decode()

    def ask(self, *lines):
        """The rows of a request, from JSON."""
        code, body = self.status(lines[0], "OutputFormat: json", *lines[1:])
        assert code == 200, body
        return json.loads(body)

    def column(self, *lines):
        """The values of a request with one column."""
        return [row[0] for row in self.ask(*lines)]

    def command(self, line):
        """The answer to a command: empty when it was accepted."""
        return self.raw(f"COMMAND [{START}] {line}\n\n").decode()

    def host(self, name):
        """A host of the core."""
        return self.core.inventory.hosts[name]

    def service(self, host, description):
        """A service of the core."""
        return self.core.inventory.services[host, description]

    def messages(self):
        """The texts of the log, oldest first, without time."""
        return [entry.message[13:] for entry in self.core.log.entries]

    def result(self, host, state, output="text", service=None):
        """Give a passive result."""
        if service is None:
            line = f"PROCESS_HOST_CHECK_RESULT;{host};{state};{output}"
        else:
            line = f"PROCESS_SERVICE_CHECK_RESULT;{host};{service};{state};{output}"
        assert self.command(line) == ""


@pytest.fixture
def bench():
    """A core over the small site; nothing runs by itself until its clock is advanced."""
    return Bench()


@pytest.fixture
def make_bench():
    """Make a core over a site given as text."""
    return Bench
