"""Reading the object files again: what is new, what stays, what becomes of wrong files."""

import sys
from contextlib import asynccontextmanager

import pytest
from twisted.internet import reactor
from twisted.internet.task import deferLater

from monrest.base.clock import MachineClock
from monrest.demo.inventory import make_inventory
from monrest.demo.service import DemoCore, demo_objects, restart
from tests.demo.conftest import SITE
from tests.fakes.objectfiles import define
from tests.forks import DEMO, ran


def host(name):
    return define(
        "host", f"host_name {name}", "check_command ping", "max_check_attempts 3", "contacts ann"
    )


@pytest.fixture
def again(bench):
    """A function that restarts the bench with a changed site."""

    def run(change=lambda text: text):
        restart(bench.core, bench.simulation, make_inventory({"site.cfg": change(SITE)}))

    return run


def test_states_comments_and_downtimes_stay(bench, again):
    bench.result("alpha", 2, "slow | rta=5", service="load")
    bench.command("ADD_SVC_COMMENT;alpha;load;1;ann;looking at it")
    bench.command("SCHEDULE_HOST_DOWNTIME;alpha;1795000000;1795009999;1;0;0;ann;work")
    bench.clock.advance(5)
    columns = (
        "Columns: state plugin_output perf_data last_check comments_with_info host_downtimes"
        " current_attempt"
    )
    query = ("GET services", columns, "Filter: description = load")
    before = bench.ask(*query)
    assert before[0][0] == 2
    assert before[0][4]
    again()
    assert bench.ask(*query) == before
    assert len(bench.ask("GET comments", "Columns: id host_name")) == 2
    bench.command(f"DEL_HOST_DOWNTIME;{next(iter(bench.core.downtimes))}")
    assert bench.ask("GET downtimes", "Columns: id") == []
    assert bench.host("alpha").downtimes == {}


def test_what_commands_have_changed_stays_and_the_rest_is_from_the_files(bench, again):
    bench.command("DISABLE_HOST_NOTIFICATIONS;alpha")
    bench.command("DISABLE_CONTACT_HOST_NOTIFICATIONS;ann")
    again(lambda text: text.replace("check_interval 5", "check_interval 7"))
    rows = bench.ask(
        "GET hosts", "Columns: notifications_enabled check_interval", "Filter: name = alpha"
    )
    assert rows == [[0, 7]]
    rows = bench.ask(
        "GET contacts", "Columns: name host_notifications_enabled", "Filter: name = ann"
    )
    assert rows == [["ann", 0]]


def test_objects_that_are_gone_take_everything_with_them(bench, again):
    again(lambda text: text + host("short"))
    bench.command("ADD_HOST_COMMENT;short;1;ann;x")
    bench.command("SCHEDULE_HOST_DOWNTIME;short;1795000000;1795009999;1;0;0;ann;work")
    assert len(bench.core.comments) == 2
    again()
    assert "short" not in bench.column("GET hosts", "Columns: name")
    assert bench.ask("GET comments", "Columns: id") == []
    assert bench.ask("GET downtimes", "Columns: id") == []
    bench.clock.advance(20)


def test_checks_go_on_with_the_new_objects_only(bench, again):
    bench.simulation.start()
    old = bench.service("alpha", "load")
    again(lambda text: text + host("new1"))
    checked = old.last_check
    for _ in range(400):
        bench.clock.advance(1)
    assert old.last_check == checked
    assert bench.service("alpha", "load").has_been_checked == 1
    assert bench.host("new1").has_been_checked == 1
    bench.simulation.stop()


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "objects"
    folder.mkdir()
    for path in demo_objects().glob("*.cfg"):
        (folder / path.name).write_bytes(path.read_bytes())
    main = tmp_path / "naemon.cfg"
    main.write_text("cfg_dir=objects\n")
    return main


@asynccontextmanager
async def running(files):
    core = DemoCore(
        reactor, MachineClock(), str(files.parent / "live"), objects_dir=files, history_days=0
    )
    core.startService()
    try:
        yield core
    finally:
        await core.stopService()


async def settled(core):
    while core._reading is not None:
        await deferLater(reactor, 0.01)


async def test_wrong_files_end_the_core(files):
    async with running(files) as core:
        ends = []
        core.on_end = lambda: ends.append(core.ended)
        (files.parent / "objects" / "more.cfg").write_text("define host {\nuse nothing\n}\n")
        core.core.restart()
        core.core.restart()
        await settled(core)
        await deferLater(reactor, 0)
        assert ends == ["the object files do not load"]
        assert any("template 'nothing'" in entry.message for entry in core.core.log.entries)
        assert not (files.parent / "live").exists()


async def test_a_stop_waits_for_the_reading(files, tmp_path):
    core = DemoCore(
        reactor, MachineClock(), str(tmp_path / "live"), objects_dir=files, history_days=0
    )
    core.startService()
    core.core.restart()
    await core.stopService()
    assert core._reading is None


def program(*arguments):
    return ran([sys.executable, "-m", "monrest.demo", *arguments], program=DEMO)


def test_the_program_does_not_start_with_wrong_files_and_says_why(tmp_path):
    (tmp_path / "bad.cfg").write_text("define nonsense {\n}\n")
    status, output = program("--socket", str(tmp_path / "live"), "--objects", str(tmp_path))
    assert status == 1
    assert "unknown object type 'nonsense' in bad.cfg:1" in output
    assert "Traceback" not in output


def test_the_program_does_not_restart_with_wrong_files_and_says_when_it_cannot(files, tmp_path):
    status, output = program("--check-config", str(files), "--restart", str(tmp_path / "nothing"))
    assert status == 1
    assert "cannot restart the core: No such file" in output
    (files.parent / "objects" / "bad.cfg").write_text("define host {\nuse nothing\n}\n")
    status, output = program("--check-config", str(files), "--restart", str(tmp_path / "nothing"))
    assert status == 1
    assert "cannot restart" not in output
    assert "Total Errors: 2" in output
