"""Families live in the order of the registry, and end in the opposite one."""

from types import SimpleNamespace

import pytest
from twisted.application.service import Service
from twisted.internet import reactor

from monrest.api.family import Family, Life
from monrest.base.clock import MachineClock
from monrest.config import loads
from monrest.daemon.parts import Parts

STEPS = ("made", "opened", "started", "configured")
ENDS = ("leaves", "stopped")


class Told(list):
    """What families were told, each by its name."""

    def family(self, name, *, after=None, opened=lambda: None):
        class Recorded(Service):
            def startService(self):
                told.append((name, "started"))

            def stopService(self):
                told.append((name, "stopped"))

        def made(common):
            if after is not None:
                assert common.the(after)
            told.append((name, "made"))
            return Recorded()

        def open_(common, service):
            opened()
            told.append((name, "opened"))
            assert common.the(Recorded) is service
            assert (common.key, common.node) == ("secret", common.process)

        async def configure(common, _service):
            assert (common.key, common.config.server.request_timeout) == ("another", 7.0)
            told.append((name, "configured"))

        async def leave(_service, seconds):
            told.append((name, "leaves"))
            if seconds < 0:
                raise ValueError("it cannot")

        told = self
        return Recorded, Family((), Life(made, open=open_, configure=configure, leave=leave))


@pytest.fixture
def config(tmp_path):
    text = '[server]\nvar_dir = "{}"\nrequest_timeout = {}\n'
    return lambda seconds: loads(text.format(tmp_path, seconds))


def made_of(config, *families):
    site = SimpleNamespace(channels=())
    return Parts(
        reactor=reactor, machine=MachineClock(), config=config, path="", who=None, as_user=None,
        site=lambda: site, families=families,
    )  # fmt: skip


async def test_the_order_of_life(config):
    told = Told()
    first, first_family = told.family("first")
    _, second_family = told.family("second", after=first)
    parts = made_of(config(5), first_family, second_family)
    parts.open("secret")
    parts.begin()
    parts.garbage.startService()
    await parts.configure(config(7), "another")
    await parts.leave(1.0)
    await parts.stop()
    await parts.threads.stopService()
    parts.process.close()
    assert told == [
        *((name, step) for step in STEPS for name in ("first", "second")),
        *((name, step) for step in ENDS for name in ("second", "first")),
    ]


async def test_what_cannot_be_opened_is_in_the_way_of_the_start(config):
    told = Told()

    def fails():
        raise OSError("it cannot be read")

    _, broken = told.family("broken", opened=fails)
    parts = made_of(config(5), broken)
    with pytest.raises(OSError, match="it cannot be read"):
        parts.open("secret")
    await parts.stop()
    await parts.threads.stopService()
    parts.process.close()
    assert told == [("broken", "made"), ("broken", "stopped")]


async def test_one_that_fails_to_leave_does_not_hold_up_the_others(config, stray_failures):
    told = Told()
    families = [told.family(name)[1] for name in ("first", "second")]
    stray_failures.append(ValueError)
    parts = made_of(config(5), *families)
    await parts.leave(-1.0)
    assert told[2:] == [("second", "leaves"), ("first", "leaves")]
