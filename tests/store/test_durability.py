"""An acknowledged change is there after a kill at any instant, and none is there by half."""

import random

import pytest

from tests.store.rows import add, names, names_everywhere


async def test_what_was_acknowledged_survives_kills(opened, database_url, children):
    acknowledged = set()
    chance = random.Random(7)
    for run in range(4):
        child = children("write", database_url, f"run{run}")
        for _ in range(chance.randrange(1, 120)):
            acknowledged.add(child.line())
        child.kill()
        acknowledged.update(child.rest())

    users, sessions, keys = await opened(database_url).run(names_everywhere)

    assert acknowledged <= users
    assert users == sessions == keys


async def test_two_processes_and_a_kill_of_one_harm_nobody(opened, database_url, children):
    victim, other = (children("write", database_url, name) for name in ("victim", "other"))
    acknowledged = {process.line() for process in (victim, other) for _ in range(20)}
    victim.kill()
    acknowledged.update(victim.rest())
    acknowledged.update(other.line() for _ in range(20))
    other.kill()
    acknowledged.update(other.rest())

    users, sessions, keys = await opened(database_url).run(names_everywhere)

    assert acknowledged <= users
    assert users == sessions == keys


async def test_a_server_that_crashes_keeps_what_was_acknowledged(opened, own_server):
    database = opened(own_server.url(own_server.create()))
    for number in range(20):
        await database.change(add(f"n{number}"))
    own_server.stop("immediate")
    own_server.start()
    assert await database.run(names) == {f"n{number}" for number in range(20)}


@pytest.mark.parametrize("role", ["writing", "migrating"])
def test_no_engine_gives_up_durability_on_postgresql(postgres_url, role):
    from monrest.store import engines

    url = engines.parse(postgres_url)
    engine = engines.writing(url, 1, 1) if role == "writing" else engines.migrating(url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    engine.dispose()
