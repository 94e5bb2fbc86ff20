"""Sites that lie, over real sockets: the request ends in time, the others' rows are there."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from monrest.base.errors import SitesFailed
from monrest.config.sections import SiteConfig
from monrest.query.model import Pushed
from monrest.sites.fanout import fan_out
from monrest.sites.registry import Registry
from tests.fakes.livestatus import (
    Script,
    answer_and_close,
    body,
    close_without_answer,
    hang,
    invalid_json,
    longer_than_it_says,
    refused,
    reset,
    rows,
    serve_unix,
    shorter_than_it_says,
    slow_drip,
    text_instead_of_header,
    truncated,
)
from tests.fakes.threads import threaded_memory

HOSTS = Pushed(table="hosts", columns=("name", "state"))
LAYOUT = (("name", "string"), ("state", "int"))
ROW = ["h1", 0]

MISDEEDS = {
    "announces too little": longer_than_it_says(ROW),
    "announces too much": shorter_than_it_says(ROW),
    "truncated": truncated(ROW),
    "invalid JSON": invalid_json,
    "slow drip": slow_drip(ROW, ROW, every=0.2),
    "hang": hang,
    "reset": reset,
    "closes": close_without_answer,
    "too few columns": rows(["h1"]),
    "too many columns": rows(["h1", 0, 1]),
    "no list": body(b'{"a":1}'),
    "text": text_instead_of_header,
    "400": refused(400, b"no\nstack"),
    "404": refused(404, b"no such table"),
}


@asynccontextmanager
async def world(tmp_path):
    honest = serve_unix(reactor, tmp_path / "honest", Script(default=rows(["good", 0])))
    liar = serve_unix(reactor, tmp_path / "liar", Script())
    registry = Registry(
        reactor,
        [
            SiteConfig(id="honest", name="Honest", address=honest.address),
            SiteConfig(id="liar", name="Liar", address=liar.address, timeout=0.5),
        ],
        memory=threaded_memory(reactor),
    )
    registry.startService()
    try:
        yield registry, honest, liar
    finally:
        await registry.stopService()
        await honest.when_empty()
        await liar.when_empty()
        await honest.stop()
        await liar.stop()


def ask(registry):
    return fan_out(registry.select(), lambda *_: HOSTS, LAYOUT, reactor)


@pytest.mark.parametrize("name", sorted(MISDEEDS))
async def test_a_lying_site_is_reported_beside_the_others_rows(name, tmp_path):
    async with world(tmp_path) as (registry, _, liar):
        assert len((await ask(registry)).answers) == 2
        # Lost on a kept connection is repeated once, so it has to lie twice.
        liar.script.plan.extend([MISDEEDS[name]] * 2)
        gathered = await ask(registry)
        assert [answer.rows for answer in gathered.answers] == [[["good", 0]]]
        assert gathered.seconds < 5
        (problem,) = gathered.problems
        assert problem.site == "liar"
        assert problem.reason
        assert str(tmp_path) not in problem.reason
        assert problem.timed_out is (name in ("announces too much", "slow drip", "hang"))
        # The connection is replaced, and the site is trusted again as soon as it is honest.
        liar.script.plan.clear()
        again = await ask(registry)
        while again.problems:
            await deferLater(reactor, 0.01, lambda: None)
            again = await ask(registry)
        assert [answer.rows for answer in again.answers] == [[["good", 0]], [ROW]]
        assert len(liar.connections) <= 2


async def test_closing_while_idle_is_never_seen(tmp_path):
    async with world(tmp_path) as (registry, _, liar):
        liar.script.default = answer_and_close(ROW)
        for _ in range(10):
            assert len((await ask(registry)).answers) == 2


async def test_lies_about_everything(tmp_path):
    async with world(tmp_path) as (registry, honest, liar):
        assert len((await ask(registry)).answers) == 2
        liar.script.probe = liar.script.default = invalid_json
        for _ in range(5):
            gathered = await ask(registry)
            assert [problem.site for problem in gathered.problems] == ["liar"]
        await honest.stop()
        with pytest.raises(SitesFailed) as caught:
            await ask(registry)
        assert [problem.site for problem in caught.value.problems] == ["honest", "liar"]


async def test_a_hundred_requests_at_once_and_nothing_left(tmp_path):
    async with world(tmp_path) as (registry, _, liar):
        liar.script.plan.extend([*MISDEEDS.values()] * 3)
        done = await gatherResults([Deferred.fromCoroutine(ask(registry)) for _ in range(100)])
        assert all(gathered.answers[0].rows == [["good", 0]] for gathered in done)
        await registry.stopService()
        await liar.when_empty()
        assert all(site.pool.quiet for site in registry.sites)
