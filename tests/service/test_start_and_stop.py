"""The composed daemon in this process: start and stop."""

import gc
import socket
import stat

import pytest
from twisted.internet.defer import Deferred

from monrest.accounts.family import Accounts
from monrest.daemon.listeners import StartError, prepare_var_dir
from tests.service.running import turn


async def test_start_and_stop(running):
    running.start()
    assert running.told.messages[0] == "READY=1"
    status, document = await running.get("/mon/whoami")
    assert (status, document["id"]) == (200, "admin")
    assert stat.S_IMODE((running.folder / "var").stat().st_mode) == 0o700
    number = running.daemon.listeners.ports[0].getHost().port
    assert running.stops == 0
    await running.daemon.stopService()
    assert running.told.messages[-1] == "STOPPING=1"
    assert running.stops == 1
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", number)) != 0


async def test_a_database_that_hangs_holds_up_the_stop_once(running):
    running.start()
    daemon, hanging = running.daemon, Deferred()
    waiting = []

    async def flush():
        waiting.append(hanging)
        await hanging

    daemon.parts.the(Accounts).credentials.flush = flush
    stopping = daemon.stopService()
    while not waiting:
        await turn()
    assert not stopping.called
    hanging.callback(None)
    await stopping
    assert running.stops == 1


async def test_the_collector_is_told_to_rest(running):
    running.start()
    assert not gc.isenabled()
    assert gc.get_freeze_count() > 1000
    await running.daemon.stopService()
    assert gc.isenabled()


async def test_a_site_that_is_away_is_no_obstacle(running):
    running.start("a")
    status, document = await running.get("/hosts")
    assert status == 502
    assert document["description"].startswith("a: ")
    assert str(running.folder) not in document["description"]


async def refused_start(running):
    with pytest.raises(SystemExit) as ended:
        running.start()
    assert running.stops == 1
    daemon, running.daemon = running.daemon, None
    await daemon.parts.registry.stopService()
    await daemon.parts.threads.stopService()
    for port in daemon.listeners.ports:
        await port.stopListening()
    return str(ended.value)


async def test_a_port_in_use(running):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        running.listen = f"tcp:{number}:interface=127.0.0.1"
        message = await refused_start(running)
    assert f"127.0.0.1:{number}: Address already in use" in message


async def test_a_socket_that_systemd_did_not_pass(running):
    running.listen = "systemd:domain=INET:index=7"
    assert "no such socket was passed by systemd" in await refused_start(running)


async def test_a_key_file_that_is_none(running, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing")
    running.listen = f"ssl:0:privateKey={bad}"
    assert "expected a private key and its certificate" in await refused_start(running)


async def test_a_secret_key_that_is_none(running):
    (running.folder / "var").mkdir()
    (running.folder / "var" / "secret.key").write_text("not a key\n")
    assert "secret.key: expected one line" in await refused_start(running)


async def test_many_who_connect_at_once_wait_in_a_queue(running):
    running.start()
    port = running.daemon.listeners.ports[0].getHost().port
    # The reactor does not turn meanwhile. Who finds the queue full is not answered at all.
    waiting = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(600)]
    for one in waiting:
        one.close()
    status, _ = await running.get("/mon/whoami")
    assert status == 200


def test_a_folder_that_cannot_be_made(running):
    (running.folder / "file").write_text("")
    with pytest.raises(StartError, match=r"server\.var_dir"):
        prepare_var_dir(running.folder / "file" / "var")


def test_the_folder_is_made_private(tmp_path):
    prepare_var_dir(tmp_path / "a" / "b")
    prepare_var_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
