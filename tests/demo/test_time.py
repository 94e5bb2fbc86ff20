"""Time in the embedded core: history, simulated checks, rotation, and the demo's own files."""

from datetime import UTC
from itertools import pairwise
from random import Random

import pytest
from twisted.internet.task import Clock

from monrest.demo.core import Core
from monrest.demo.history import generate
from monrest.demo.invented import invented_objects
from monrest.demo.inventory import make_inventory, read
from monrest.demo.objects import Host
from monrest.demo.service import demo_objects
from monrest.demo.simulation import Simulation, is_simulated
from tests.fakes.clocks import Wall

START = 1795000000


def make(inventory=None, seed=1, days=2):
    clock = Clock()
    clock.advance(START)
    core = Core(clock, Wall(clock), inventory or read(demo_objects()), Random(seed), UTC)
    simulation = Simulation(core)
    generate(core, days)
    return core, simulation, clock


@pytest.fixture(scope="module")
def demo():
    return make()[0]


def test_the_demo_site_has_its_size_and_its_odd_names(demo):
    hosts, services = demo.inventory.hosts, demo.inventory.services
    assert (len(hosts), len(services)) == (20, 100)
    assert {"Printer Lobby", "münchen-gw"} <= hosts.keys()
    assert ("db02", "Disk /var") in services
    assert ("san01", "Volume C:\\ used; 5%") in services
    assert ("backup01", "Größe Archiv ü/€") in services
    assert "$USER1$" in demo.inventory.commands["check_ping"].line
    assert services["db02", "Disk /var"].custom_variables == {"LEVEL": "gold"}


def test_the_demo_site_shows_every_kind_of_thing(demo):
    hosts, services = demo.inventory.hosts, demo.inventory.services.values()
    assert {host.state for host in hosts.values()} == {0, 1, 2}
    assert hosts["münchen-gw"].state == 2
    assert {service.state for service in services if service.has_been_checked} >= {0, 1, 2}
    assert [service.description for service in services if not service.has_been_checked] == [
        "Toner"
    ]
    targets = demo.inventory.targets()
    assert any(target.acknowledged for target in targets)
    assert any(target.scheduled_downtime_depth for target in targets)
    assert {comment.entry_type for comment in demo.comments.values()} >= {1, 2, 4}
    assert any(target.execution_dependencies for target in targets)
    assert any(target.notification_dependencies for target in targets)
    seen_by_olga = [host.name for host in hosts.values() if "olga" in host.authorized]
    assert 0 < len(seen_by_olga) < len(hosts)
    assert all(target.perf_data for target in targets if target.state == 0 and target.last_check)


def test_the_history_is_in_order_and_complete(demo):
    entries = [entry.read() for entry in demo.log.entries]
    assert all(a.time <= b.time for a, b in pairwise(entries))
    assert entries[0].time == START - 2 * 86400
    assert entries[-1].time <= START
    kinds = {entry.type for entry in entries}
    assert {"HOST ALERT", "SERVICE ALERT", "SERVICE NOTIFICATION", "CURRENT HOST STATE",
            "CURRENT SERVICE STATE", "LOG VERSION: 2.0"} <= kinds  # fmt: skip
    rotations = [entry for entry in entries if entry.type.startswith("LOG ROTATION")]
    assert [entry.lineno for entry in rotations] == [1] * len(rotations)
    assert len(rotations) == 3
    per_file = [entry for entry in entries if entry.type == "CURRENT SERVICE STATE"]
    assert len(per_file) == 3 * 100


def test_the_present_follows_from_the_history(demo):
    last = {}
    for entry in demo.log.entries:
        found = entry.read()
        if found.type in ("HOST ALERT", "SERVICE ALERT"):
            last[found.host_name, found.service_description] = found
    for target in demo.inventory.targets():
        host = isinstance(target, Host)
        found = last.get((target.host.name, target.description))
        if target.state:
            assert found is not None
            # The walk does not know who is unreachable; the present does.
            assert bool(found.state) is True
            if not host:
                assert found.state == target.state
        elif found is not None:
            assert found.state == 0


def test_a_new_file_repeats_what_was_said_last(demo):
    last = {}
    repeated = 0
    for entry in demo.log.entries:
        found = entry.read()
        key = found.host_name, found.service_description
        if found.type in ("HOST ALERT", "SERVICE ALERT"):
            last[key] = found
        elif found.type in ("CURRENT HOST STATE", "CURRENT SERVICE STATE") and key in last:
            said = last[key]
            assert (found.state, found.plugin_output) == (said.state, said.plugin_output)
            repeated += bool(found.state)
    assert repeated > 3


def test_the_same_seed_gives_the_same_past():
    one, other, third = (make(seed=seed)[0] for seed in (5, 5, 6))
    assert [e.message for e in one.log.entries] == [e.message for e in other.log.entries]
    assert [e.message for e in one.log.entries] != [e.message for e in third.log.entries]


def test_without_history_everything_is_pending():
    core, _, _ = make(days=0)
    assert not any(target.has_been_checked for target in core.inventory.targets())
    assert core.log.entries[0].message.endswith("starting... (PID=0)")


def test_time_goes_on():
    core, simulation, clock = make()
    before = {id(item): item.last_check for item in core.inventory.targets() if is_simulated(item)}
    simulation.start()
    clock.pump([1] * 700)
    now = core.now()
    for target in core.inventory.targets():
        if not is_simulated(target):
            assert target.last_check == 0
        elif core.holds(target.check_period, now - 700) and target.active_checks_enabled:
            assert target.last_check > before[id(target)]
            assert target.last_check > now - 400
            assert target.next_check > now - 2
            assert target.latency >= 0
            assert target.execution_time > 0
    assert core.counters["service_checks"] > 100
    assert core.rates["service_checks"] > 0
    assert core.inventory.services["web02", "HTTP"].percent_state_change > 10
    simulation.stop()
    assert not clock.getDelayedCalls()


@pytest.mark.parametrize("jump", [-7200, 7200])
def test_checks_go_on_when_the_clock_is_set(jump):
    core, simulation, clock = make()
    simulation.start()
    clock.pump([1] * 400)
    targets = [
        target
        for target in core.inventory.targets()
        if is_simulated(target) and target.active_checks_enabled
        if all(core.holds(target.check_period, core.now() + jump + later) for later in (0, 400))
    ]
    before = core.counters["service_checks"]
    core.wall.jump(jump)
    clock.pump([1] * 5)
    # What would be due by the date alone is not made at once.
    assert core.counters["service_checks"] - before < 20
    clock.pump([1] * 400)
    assert len(targets) > 100
    for target in targets:
        assert core.now() - 400 < target.last_check <= core.now()
        assert core.now() < target.next_check < core.now() + 400
    simulation.stop()


def test_lines_are_found_when_the_clock_was_put_back():
    core, _, _ = make(days=0)
    core.note("first")
    core.wall.jump(-100)
    core.note("second")
    core.wall.jump(50)
    core.note("third")

    def found(since, until=None):
        return [entry.message[13:] for entry in core.log.newest_first(since, until)]

    assert found(None, START - 1) == ["third", "second"]
    assert found(START - 60, START - 1) == ["third"]
    assert found(START)[0] == "first"
    assert not {"second", "third"} & set(found(START))


def test_switches_stop_the_checks():
    core, simulation, clock = make(days=0)
    core.switches.execute_host_checks = 0
    for target in core.inventory.services.values():
        target.active_checks_enabled = 0
    simulation.start()
    clock.pump([1] * 200)
    checked = {item.description for item in core.inventory.targets() if item.has_been_checked}
    assert checked <= {"Backup nightly", "Backup database"}
    simulation.stop()


def test_behaviours():
    core, simulation, clock = make(days=0)
    simulation.start()
    clock.pump([1] * 900)
    hosts = core.inventory.hosts
    assert hosts["router-core"].state == 0
    assert (hosts["web04"].state, hosts["web04"].state_type) == (1, 1)
    assert hosts["münchen-gw"].state == 2
    assert core.inventory.services["Printer Lobby", "Toner"].has_been_checked == 0
    assert core.inventory.services["web04", "Load"].state == 2
    passive = core.inventory.services["backup01", "Backup nightly"]
    assert (passive.has_been_checked, passive.check_type) == (1, 1)
    simulation.stop()


def test_midnight_and_time_periods():
    core, simulation, clock = make(days=0)
    simulation.start()
    midnight = (START // 86400 + 1) * 86400
    clock.advance(midnight - START - 30)
    clock.pump([1] * 5)
    core.log.entries.clear()
    clock.pump([1] * 60)
    texts = [entry.message[13:] for entry in core.log.entries]
    start = texts.index("LOG ROTATION: DAILY")
    assert texts[start + 1] == "LOG VERSION: 2.0"
    current = [text for text in texts if text.startswith("CURRENT ")]
    assert len(current) == 120
    assert core.last_log_rotation == midnight
    simulation.stop()


def test_a_clock_that_is_set_skips_no_midnight_and_repeats_none():
    core, simulation, clock = make(days=0)
    simulation.start()
    midnight = (START // 86400 + 1) * 86400

    def rotations():
        return [entry.time for entry in core.log.entries if "LOG ROTATION: DAILY" in entry.message]

    clock.advance(midnight - START - 1)
    clock.pump([1] * 5)
    assert rotations() == [midnight]
    core.wall.jump(-60)
    clock.pump([1] * 120)
    assert rotations() == [midnight]
    core.wall.jump(-86400)
    clock.pump([1] * 5)
    assert rotations() == [midnight]
    # A clock that was a month ahead for a while is no reason to leave out the days until then.
    core.wall.jump(31 * 86400)
    clock.pump([1] * 5)
    core.wall.jump(-30 * 86400)
    clock.pump([1] * 5)
    assert rotations()[0] == midnight
    assert len(rotations()) == 2
    clock.advance(midnight + 86400 - core.now() - 1)
    clock.pump([1] * 5)
    assert rotations()[1] == midnight + 86400
    assert len(rotations()) == 3
    simulation.stop()


def test_periods_that_begin_are_logged():
    core, simulation, clock = make(days=0)
    simulation.start()
    evening = (START // 86400) * 86400 + 18 * 3600
    clock.advance(evening - START - 70)
    clock.pump([1] * 150)
    texts = [entry.message[13:] for entry in core.log.entries]
    assert "TIMEPERIOD TRANSITION: workhours;1;0" in texts
    assert "TIMEPERIOD TRANSITION: nonworkhours;0;1" in texts
    assert texts.count("TIMEPERIOD TRANSITION: workhours;-1;1") == 1
    simulation.stop()


@pytest.mark.parametrize(("hosts", "services"), [(1, 0), (7, 45), (60, 120)])
def test_invented_sites(hosts, services):
    core, _, _ = make(make_inventory({"x": invented_objects(hosts, services)}), days=0.2)
    assert len(core.inventory.hosts) == hosts
    assert len(core.inventory.services) == services
    assert all(target.has_been_checked for target in core.inventory.targets())
    assert all(len(host.groups) == 1 for host in core.inventory.hosts.values())


def test_the_past_knows_when_time_periods_changed():
    core, _, _ = make(days=7)
    for name in core.inventory.timeperiods:
        lines = [
            (entry.time, entry.message.split(";")[1:])
            for entry in core.log.entries
            if f"TIMEPERIOD TRANSITION: {name};" in entry.message and entry.time < START
        ]
        assert lines[0][1][0] == "-1"
        for (_, earlier), (time, (before, after)) in pairwise(lines):
            assert before == earlier[1]
            assert after != before
            assert core.holds(name, time) == bool(int(after))
            assert core.holds(name, time - 1) == bool(int(before))
    work = [entry for entry in core.log.entries if "TRANSITION: workhours" in entry.message]
    assert len(work) > 4
