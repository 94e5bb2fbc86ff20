"""The composed daemon in this process: other configurations while it runs."""

import pytest

from monrest.accounts.family import Accounts
from monrest.config import loads
from monrest.config.sections import fixed_while_running
from tests.service.running import turn


async def test_reload_takes_sites_in_and_out(running, audited):
    running.start("a", "b")
    kept = running.daemon.parts.registry.sites[1]
    running.write("b", "c")
    await running.reload()
    assert running.site_ids() == ["b", "c"]
    assert running.daemon.parts.registry.sites[0] is kept
    assert [m for m in running.told.messages if not m.startswith("STATUS")] == [
        "READY=1", "RELOADING=1", "READY=1",
    ]  # fmt: skip
    status, rows = await running.get("/sites")
    assert (status, [row["id"] for row in rows]) == (200, ["b", "c"])
    (line,) = audited
    assert (line["action"], line["target"]) == ("configuration reload", str(running.path))
    assert line["result"] == "ok"


async def test_reload_puts_everything_in_force(running):
    running.start()
    running.write(more='request_timeout = 5\n[names]\napp = "abc"')
    await running.reload()
    assert running.daemon.site.limits.request_timeout == 5.0
    assert (await running.get("/", root="/mon/r"))[0] == 404
    assert running.daemon.parts.the(Accounts).sessions.cookie_name == "abc_auth"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[server\n", "not valid TOML"),
        ("[server]\nbogus = 1\n", "server.bogus: unknown key"),
        ('[server]\nvar_dir = "/srv"\nlisten = ["tcp:0:interface=127.0.0.1"]\n', "server.var_dir"),
    ],
)
async def test_a_bad_reload_changes_nothing(running, problems, text, problem, audited):
    running.start("a")
    before = running.daemon.config, running.daemon.site.resource
    running.path.write_text(text)
    await running.reload()
    assert problem in problems[0]
    assert (running.daemon.config, running.daemon.site.resource) == before
    assert running.site_ids() == ["a"]
    assert [line["result"] for line in audited] == ["refused"]
    assert running.told.messages[-1] == "READY=1"


async def test_a_reload_during_a_reload_is_remembered(running):
    running.start("a")
    running.write("b")
    running.daemon.reload()
    running.write("c")
    running.daemon.reload()
    running.daemon.reload()
    while running.daemon._reloading is not None:
        await turn()
    assert running.site_ids() == ["c"]
    assert running.told.messages.count("RELOADING=1") == 2


async def test_stopping_waits_for_a_reload(running):
    running.start("a")
    running.daemon.reload()
    await running.daemon.stopService()
    assert running.daemon._reloading is None
    running.daemon.reload()
    assert running.daemon._reloading is None


def test_what_is_fixed_is_named():
    old = loads("")
    new = loads('[server]\nlisten = ["tcp:1"]\nvar_dir = "/srv"\n')
    assert [line.split(":")[0] for line in fixed_while_running(old, new)] == [
        "server.listen",
        "server.var_dir",
        "database.url",
    ]
    assert fixed_while_running(old, loads("[server]\nrequest_timeout = 1\n")) == []
