"""Reloading a core in memory: what is sent, when it counts as back, what a failure says."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred, succeed

from monrest.objectconfig import site_commands as module
from monrest.objectconfig.site_commands import (
    TIMED_OUT,
    CommandResult,
    Reload,
    Reloaded,
)
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import Script, framed
from tests.fakes.sites import Town, outcome

RESTARTED = 2_000_000_000


@pytest.fixture
def town():
    town = Town()
    yield town
    town.stop()


class Ran(list):
    def __init__(self):
        super().__init__()
        self.answers = []

    def run(self, _reactor, command, environment, seconds, *, hint=""):
        self.append((command, environment, seconds))
        answer = self.answers.pop(0) if self.answers else CommandResult(status=0, output="")
        return answer if isinstance(answer, Deferred) else succeed(answer)


@pytest.fixture
def ran(monkeypatch):
    """Commands that were run, and what the next ones say."""

    ran = Ran()
    monkeypatch.setattr(module, "run", ran.run)
    return ran


def begin(town, site, command="", *, check="", seconds=39.0):
    work = Reload(
        site=site,
        clock=town.clock,
        wall=Wall(town.clock),
        seconds=seconds,
        check=check,
        command=command,
        environment={"A": "b"},
    )
    found = outcome(Deferred.fromCoroutine(work.run()))
    town.clock.advance(0)
    return found


def test_a_command_is_run_and_the_core_waited_for(town, ran):
    script = Script()
    ran.answers = [CommandResult(status=0, output="reloading\n")]
    site = town.site(script=script)
    found = begin(town, site, "systemctl reload core")
    assert ran == [("systemctl reload core", {"A": "b"}, 39.0)]
    assert script.commands == []
    town.pass_time(3)
    assert found == []
    script.status[2] = RESTARTED
    town.pass_time(0.5)
    assert found == [Reloaded(failed=False, output="reloading\n")]
    assert site.health.program_start == RESTARTED


def test_what_the_check_says_stands_before_what_the_reload_says(town, ran):
    script = Script()
    ran.answers = [
        CommandResult(status=0, output="Total Errors: 0"),
        CommandResult(status=0, output="reloading\n"),
    ]
    found = begin(town, town.site(script=script), "systemctl reload core", check="naemon -v")
    script.status[2] = RESTARTED
    town.pass_time(0.5)
    assert found == [Reloaded(failed=False, output="Total Errors: 0\nreloading\n")]


def test_a_core_that_does_not_come_back(town, ran):
    ran.answers = [CommandResult(status=0, output="done")]
    found = begin(town, town.site(), "true")
    town.pass_time(29)
    assert found == []
    town.pass_time(2)
    assert found == [Reloaded(failed=True, output=f"done\n{TIMED_OUT}")]


def test_all_of_it_ends_with_the_time_that_there_is(town, ran):
    found = begin(town, town.site(), "true", seconds=4.0)
    assert ran[0][2] == 4.0
    town.pass_time(5)
    assert found == [Reloaded(failed=True, output=TIMED_OUT)]


def test_a_core_that_is_away_meanwhile(town, ran):
    script = Script()
    site = town.site(script=script)
    core = town.cores["a"]
    found = begin(town, site, "true")
    core.up = False
    for connection in list(core.open):
        connection.close()
    town.pass_time(3)
    assert found == []
    script.status[2] = RESTARTED
    core.up = True
    town.pass_time(2)
    assert found == [Reloaded(failed=False, output="")]
    assert site.connected


def test_a_core_that_started_this_very_second_is_given_one_more(town, ran):
    script = Script()
    town.clock.advance(1_900_000_000.25)
    script.status[2] = 1_900_000_000
    found = begin(town, town.site(script=script), "true")
    assert ran == []
    town.pass_time(1.1)
    assert len(ran) == 1
    script.status[2] = 1_900_000_001
    town.pass_time(0.5)
    assert found == [Reloaded(failed=False, output="")]


def test_a_start_in_the_second_in_which_the_wait_began_counts_a_little_later(town, ran):
    """A core whose clock was ahead: its start looks the same before and after."""
    script = Script()
    town.clock.advance(1_900_000_000.8)
    script.status[2] = 1_900_000_001
    slow = Deferred()
    ran.answers.append(slow)
    found = begin(town, town.site(script=script), "true")
    town.pass_time(0.5)
    slow.callback(CommandResult(status=0, output=""))
    town.pass_time(2.5)
    assert found == []
    town.pass_time(1)
    assert found == [Reloaded(failed=False, output="")]


def test_a_core_that_refuses_the_order(town):
    script = Script()
    script.orders.append(lambda talk, _: talk.write(b"400: no restarts here\n"))
    found = begin(town, town.site(script=script))
    town.pass_time(1)
    (result,) = found
    assert result.failed
    assert "no restarts here" in result.output


def test_a_core_that_cuts_the_connection_is_restarting(town):
    script = Script()

    def cut(talk, _request):
        script.status[2] = RESTARTED
        talk.close()

    script.orders.append(cut)
    found = begin(town, town.site(script=script))
    town.pass_time(3)
    assert found == [Reloaded(failed=False, output="")]


def test_a_site_that_is_down_before_can_be_started(town, ran):
    script = Script()
    site = town.site(script=script, up=False)
    town.pass_time(1)
    assert not site.connected
    found = begin(town, site, "start")
    town.cores["a"].up = True
    town.pass_time(1)
    assert found == [Reloaded(failed=False, output="")]


def test_a_core_that_does_not_answer_its_probe(town, ran):
    script = Script()
    site = town.site(script=script)
    script.probe = lambda talk, request: None
    found = begin(town, site, "true", seconds=3.0)
    town.pass_time(4)
    (result,) = found
    assert result.failed
    script.probe = lambda talk, request: talk.write(framed(b"[]\n"))
    town.pass_time(10)
