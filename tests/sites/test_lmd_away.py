"""How soon it shows at the sites of an LMD that it has ended, and that it is there again."""

import pytest

from monrest.config.sections import LmdConfig
from monrest.sites.lmd.lmd_source import LmdSource
from tests.fakes.livestatus import MemoryCore, Script, as_json, columns_of, framed, table_of

STEP = 0.05
TOLD = {
    "sites": [{"key": one, "peer_key": one, "name": one.upper(), "status": 0} for one in "ab"],
    "status": [
        {"peer_key": one, "program_version": "1.5.2-naemon", "program_start": 5} for one in "ab"
    ],
    "columns": [{"table": "hosts", "name": one, "type": "string"} for one in ("name", "peer_key")],
}


class LmdScript(Script):
    def answer(self, talk, request):
        columns = columns_of(request)
        told = [[row.get(name, "") for name in columns] for row in TOLD[table_of(request)]]
        talk.write(framed(as_json(told)))


@pytest.fixture
def core(town):
    return MemoryCore(town.clock, LmdScript())


@pytest.fixture
def source(town, core):
    config = LmdConfig(address="unix:/run/lmd")
    made = LmdSource(reactor=town.clock, config=config, changed=lambda: None, memory=town.memory)
    made.endpoint = core
    made.startService()
    town.pass_time(3)
    yield made
    ended = []
    made.stopService().addBoth(ended.append)
    town.pass_time(1)
    assert ended == [None]


def up(source):
    return [site.id for site in source.sites if site.breaker.error is None]


@pytest.mark.parametrize("before", [step * STEP for step in range(0, 60, 7)])
@pytest.mark.parametrize("away", [1, 1.3, 20, 600])
def test_an_lmd_that_ends_is_down_within_a_second_and_back_within_two(
    town, core, source, before, away
):
    """Whenever in the time between two looks that is, and however long it was away."""
    assert up(source) == ["a", "b"]
    town.pass_time(before, STEP)
    core.up = False
    for talk in core.open:
        talk.close()
    town.pass_time(1, STEP)
    assert up(source) == []
    town.pass_time(away, STEP if away < 20 else 1)
    assert up(source) == []
    core.up = True
    town.pass_time(2, STEP)
    assert up(source) == ["a", "b"]
