"""Commands over real sockets: to a site that lives, one that falls silent and one that is gone."""

from __future__ import annotations

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from monrest.base.clock import MachineClock
from monrest.config.sections import SiteConfig
from monrest.sites.commands import send
from monrest.sites.registry import Registry
from tests.fakes.livestatus import Script, fall_silent, hang, serve_unix
from tests.fakes.threads import threaded_memory
from tests.sites.orders import log


async def test_real_sockets_and_a_daemon_that_stops(tmp_path):
    script, hanging = Script(), Script(orders=[hang])
    served = [
        serve_unix(reactor, tmp_path / "good", script),
        serve_unix(reactor, tmp_path / "hanging", hanging),
    ]
    names = ("good", "hanging", "gone")
    configs = [
        SiteConfig(id=name, name=name, address=f"unix:{tmp_path / name}", timeout=2)
        for name in names
    ]
    registry = Registry(reactor, configs, memory=threaded_memory(reactor))
    registry.startService()
    good, _, gone = registry.sites
    hanging.orders[0] = fall_silent
    sent = await send(
        [(site, log(*range(250))) for site in registry.sites], reactor, MachineClock()
    )
    assert [len(one.lines) for one in sent] == [250, 100, 0]
    assert [one.uncertain for one in sent] == [False, True, False]
    assert sent[0].problem is None
    assert sent[1].problem.timed_out
    assert sent[2].problem.reason == "no such socket"
    assert [text.partition("] ")[2] for text in script.commands] == [
        f"LOG;n{number}" for number in range(250)
    ]
    under_way = Deferred.fromCoroutine(send([(good, log("last"))], reactor, MachineClock()))
    stopped = registry.stopService()
    (sent,) = await under_way
    await stopped
    assert (len(sent.lines), sent.uncertain, sent.problem) == (1, False, None)
    assert good.quiet
    assert gone.quiet
    for site in served:
        await site.stop()
