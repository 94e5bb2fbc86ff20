"""The service: numbers, versions, duties, exports, waiting for sites; on both databases."""

from __future__ import annotations

from functools import partial

import orjson
import pytest
from attrs import evolve
from twisted.internet.defer import Deferred

from monrest.bp import store as statements
from monrest.bp.core_rows import SERVICE_COLUMNS
from monrest.bp.model import Calculated
from monrest.bp.node_state import NodeState, ProcessResult, stored
from monrest.bp.runner import Batch
from monrest.bp.service import DUTY, BusinessProcesses
from monrest.config import BpConfig
from monrest.livestatus.inbox import FREE
from monrest.sites.registry import SiteList
from monrest.store.duties import Duties
from monrest.store.tables import duties as table
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import Script, rows_in_pieces
from tests.fakes.store import BOTH

FIXED = {"name": "P", "nodes": [{"label": "root", "function": "fixed(2, 'bad')"}]}


class NoExport:
    """Takes every process and writes none."""

    async def check(self, _config):
        return lambda _definition: None

    async def export(self, *_):
        pass


class Setting:
    def __init__(self, clock, database, threads, folder, sites=()):
        self.clock, self.database, self.folder = clock, database, folder / "bp"
        self.wall = Wall(clock)
        self.duties = [Duties(database, clock, name, timer=clock.seconds) for name in "ab"]
        self.made = [self.processes(threads, sites, duties) for duties in self.duties]
        self.service = self.made[0]
        self.duties[0].want(DUTY)
        self.wait(self.duties[0].look())

    def processes(self, threads, sites, duties):
        return BusinessProcesses(
            database=self.database,
            duties=duties,
            clock=self.clock,
            wall=self.wall,
            sites=SiteList(tuple(sites)),
            threads=threads,
            config=BpConfig(),
            app="mon",
            exporter=NoExport(),
            folder=self.folder,
            choose=lambda: 1,
        )

    def wait(self, work):
        """The result of a coroutine that needs nothing but turns of the clock."""
        found = []
        Deferred.fromCoroutine(work).addBoth(found.append)
        for _ in range(1000):
            if found:
                break
            self.clock.advance(0)
        assert found
        if isinstance(found[0], Exception) or hasattr(found[0], "raiseException"):
            found[0].raiseException()
        return found[0]

    def alive(self, document):
        made = self.wait(self.service.create(document))
        return self.wait(self.service.patch(made.nr, {}))


@pytest.fixture
def setting(clock, database, threads, tmp_path):
    return Setting(clock, database, threads, tmp_path)


@BOTH
def test_a_draft_is_for_a_day(setting, clock):
    wait, service = setting.wait, setting.service
    assert wait(service.create({})).nr == 1
    live = setting.alive({"name": "kept"})
    clock.advance(86_401)
    assert wait(service.create({})).nr == 1
    assert [one.nr for one in wait(service.several())] == [1, live.nr]


@pytest.mark.parametrize("refused", [None, RuntimeError("away")])
def test_nothing_that_follows_a_calculation_waits_for_its_room(
    town, database, threads, tmp_path, monkeypatch, refused
):
    """Who delivers asks the cores about services, whose rows need room as well."""
    row = [{"string": "", "dict": {}}.get(kind, 0) for _, kind in SERVICE_COLUMNS]
    more_than_is_read_in_one_go = rows_in_pieces(*[row] * (2 * FREE // len(row)))
    site = town.site("a", Script(default=more_than_is_read_in_one_go))
    setting = Setting(town.clock, database, threads, tmp_path, [site])
    room, held = town.memory.room, []

    def calculate(_batch, _process, _calculation):
        held.append(room.held > 0)
        if refused:
            raise refused

    async def deliver(*_):
        held.append(room.held)

    monkeypatch.setattr(Batch, "calculate", calculate)
    monkeypatch.setattr(BusinessProcesses, "_deliver", deliver)
    live = setting.alive({**FIXED, "nodes": [{"label": "root", "function": "status('h', 's')"}]})
    for work in (setting.service.regularly, partial(setting.service.refresh, live)):
        held.clear()
        if refused:
            with pytest.raises(RuntimeError):
                setting.wait(work())
            assert held == [True]
        else:
            setting.wait(work())
            assert held == [True, 0]
        assert room.held == 0


@BOTH
def test_a_duty_that_was_lost_meanwhile_changes_nothing(setting, database, caught):
    """The holder was paused for so long that another one took over, and does not know it."""
    setting.alive(FIXED)
    token = setting.duties[0].held(DUTY)

    def taken(connection):
        connection.execute(table.update().values(number=token.number + 1))

    setting.wait(_change(database, taken))
    assert setting.duties[0].held(DUTY) == token
    setting.wait(setting.service.regularly())
    assert setting.wait(setting.service.get(1)).result.last_check == 0
    assert "business_process_last_update" not in setting.wait(setting.service.statistics())
    (told,) = [event for event in caught if "not calculated" in event["log_format"]]
    assert "log_failure" not in told


def test_a_duty_that_comes_is_done_at_once(setting, clock):
    """Two daemons: the second one goes on where the first one left."""
    setting.alive(FIXED)
    for duties, service in zip(setting.duties, setting.made, strict=True):
        service.startService()
        duties.startService()

    def checked():
        return setting.wait(setting.service.get(1)).result.last_check

    clock.advance(1)
    before = checked()
    assert before > 0
    for _ in range(30):
        clock.advance(1)
    assert checked() == before
    setting.wait(_stopped(setting.service))
    setting.wait(_stopped(setting.duties[0]))
    for _ in range(5):
        clock.advance(1)
    assert before + 30 < checked() <= before + 36
    setting.wait(_stopped(setting.made[1]))
    setting.wait(_stopped(setting.duties[1]))
    assert not clock.getDelayedCalls()


def test_it_runs_every_interval_until_it_is_stopped(setting, clock):
    service = setting.service
    setting.alive(FIXED)
    service.startService()
    times = []
    for _ in range(3):
        times.append(setting.wait(service.get(1)).result.last_check)
        for _ in range(60):
            setting.wait(setting.duties[0].look())
            clock.advance(1)
    assert times[1] == times[0] + 60
    assert times[2] == times[1] + 60
    setting.wait(service.configure(BpConfig(refresh_interval=0), "mon", service.zone))
    before = setting.wait(service.get(1)).result.last_check
    clock.advance(3600)
    assert setting.wait(service.get(1)).result.last_check == before
    setting.wait(_stopped(service))
    assert not clock.getDelayedCalls()


async def _stopped(service):
    await service.stopService()


@BOTH
def test_a_result_for_what_was_changed_meanwhile_is_dropped(setting, database):
    wait, service = setting.wait, setting.service
    old = setting.alive(FIXED)
    changed = wait(service.patch(1, {"name": "Q"}))
    late = Calculated(1, old.version, stored(ProcessResult(status=1)))
    wait(_change(database, statements.store([late], 5)))
    assert wait(service.get(1)).result.status == 4
    mine = evolve(late, version=changed.version)
    wait(_change(database, statements.store([mine], 6)))
    assert wait(service.get(1)).result.status == 1
    assert wait(service.delete(1))
    wait(_change(database, statements.store([mine], 7)))
    assert wait(service.get(1)) is None


async def _change(database, work):
    return await database.change(work)


@BOTH
def test_two_daemons_see_each_others_changes(setting):
    wait, (first, second) = setting.wait, setting.made
    setting.alive(FIXED)
    assert wait(second.get(1)).definition.name == "P"
    wait(second.patch(1, {"nodes": [{"function": "fixed(1, 'half')"}]}))
    wait(first.regularly())
    assert wait(second.get(1)).result.status_text == "half"
    wait(second.delete(1))
    assert wait(first.several()) == []
    assert wait(first.create({"name": "new"})).definition.name == "new"
    assert wait(second.get(1)).result.last_check == 0


def test_the_version_before_the_last_change_is_kept_beside(setting):
    """As files, until the process is removed; of a draft nothing is."""
    wait, service, folder = setting.wait, setting.service, setting.folder

    def files():
        return {one.name: orjson.loads(one.read_bytes())["rankDir"] for one in folder.iterdir()}

    wait(service.create(FIXED))
    assert not folder.exists()
    wait(service.patch(1, {}))
    assert files() == {"1.tbp": "TB"}
    wait(service.patch(1, {"rankDir": "LR"}))
    assert files() == {"1.tbp": "LR", "1.tbp.bak": "TB"}
    wait(service.delete(1))
    assert files() == {}


def test_what_was_stored_under_other_rules_is_shown_and_can_be_replaced(setting, database):
    wait, service = setting.wait, setting.service
    setting.alive(FIXED)

    def spoil(connection):
        table = statements.bp_processes
        broken = {"name": "P", "nodes": [{"id": "x", "label": "x"}]}
        connection.execute(table.update().values(definition=broken, version=1))

    wait(_change(database, spoil))
    found = wait(service.get(1))
    assert (found.result.status, found.definition.name) == (3, "P")
    assert "node1" in found.result.status_text
    wait(service.regularly())
    assert wait(service.replace(1, FIXED)).broken == ""
    assert wait(service.refresh(wait(service.get(1))))[0].result.status == 2


def test_without_any_site_nothing_is_found(setting):
    """By searches too, which look at columns that no other node needs."""
    text = {"type": "host", "op": "~", "value": "web"}
    search = {"text_filter": [text], "hostprops": 1, "serviceprops": 4, "hoststatustypes": 2}
    nodes = [
        {"label": "r", "function": "worst()", "depends": ["a", "b"]},
        {"id": "a", "label": "a", "function": "status('h', 's')"},
        {"id": "b", "label": "b", "function": ["statusfilter", "worst", "both", [search]]},
    ]
    live = setting.alive({"name": "P", "nodes": nodes})
    result = setting.wait(setting.service.refresh(live))[0].result
    assert (result.status, result.nodes["a"].status_text) == (3, "no such service")
    assert result.nodes["b"].status_text.startswith("OK - 0/0 hosts up, 0/0 services up")
    assert setting.wait(setting.service.runner.objects(live)) == set()


def test_a_process_waits_for_its_site_but_not_for_ever(town, clock, database, threads, tmp_path):
    site = town.site("a", up=False)
    town.pass_time(30, 1)
    setting = Setting(clock, database, threads, tmp_path, [site])
    wait, service = setting.wait, setting.service
    nodes = [{"label": "r", "function": "status('h', 's')"}]
    live = setting.alive({"name": "P", "nodes": nodes})
    before = ProcessResult(
        status=1,
        last_check=int(clock.seconds()),
        affected_peers=("a",),
        nodes={"node1": NodeState(status=1)},
    )
    calculated = Calculated(1, live.version, stored(before))
    wait(_change(database, statements.store([calculated], 1)))
    clock.advance(100)
    wait(setting.duties[0].look())
    wait(service.regularly())
    assert wait(service.get(1)).result == before
    _, problems = wait(service.refresh(wait(service.get(1))))
    assert [one.site for one in problems] == ["a"]
    setting.wall.jump(3600)
    wait(service.regularly())
    assert wait(service.get(1)).result == before
    for _ in range(2):
        clock.advance(100)
        wait(setting.duties[0].look())
    wait(service.regularly())
    after = wait(service.get(1)).result
    assert (after.status, after.status_text) == (3, "no such service")
    assert after.affected_peers == ()
    town.stop()
