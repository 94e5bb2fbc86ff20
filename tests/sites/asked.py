"""What sites are asked and commanded."""

from twisted.internet.defer import Deferred

from monrest.livestatus.command import CoreCommand
from monrest.query.model import Pushed
from monrest.sites.fanout import fan_out
from tests.fakes.sites import outcome

HOSTS = Pushed(table="hosts", columns=("name", "state"))
LAYOUT = (("name", "string"), ("state", "int"))


def log(*numbers):
    """Commands whose lines a test tells apart by their numbers."""
    return tuple(CoreCommand("LOG", (f"n{number}",), "text") for number in numbers)


def ask(site, pushed=HOSTS, layout=LAYOUT):
    return outcome(Deferred.fromCoroutine(site.ask(pushed, layout)))


def gather(town, sites, plan=lambda *_: HOSTS, layout=LAYOUT, **more):
    return outcome(Deferred.fromCoroutine(fan_out(sites, plan, layout, town.clock, **more)))
