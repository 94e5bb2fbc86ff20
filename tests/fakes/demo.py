"""Handlers before the embedded core, over real sockets, while its clock stands still."""

from contextlib import contextmanager

from pytest_twisted import blockon
from twisted.internet import reactor

from monrest.config import SiteConfig
from monrest.demo.service import DemoCore
from monrest.sites.registry import Registry
from tests.fakes.clocks import Wall
from tests.fakes.context import make_context
from tests.fakes.standstill import Standstill
from tests.fakes.threads import threaded_memory


@contextmanager
def demo_context(folder, sites, core, **given):
    """What handlers get; the core has these arguments, and is all of the sites."""
    standstill, live = Standstill(), folder / "live"
    demo = DemoCore(standstill, Wall(standstill), str(live), seed=7, **core)
    configs = [SiteConfig(address=f"unix:{live}", **one) for one in sites]
    registry = Registry(reactor, configs, memory=threaded_memory(reactor))
    demo.startService()
    registry.startService()
    yield make_context(standstill, sites=registry, **given)
    blockon(registry.stopService())
    blockon(demo.stopService())
