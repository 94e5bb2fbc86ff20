"""The Python client before a demo, waiting and with coroutines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monrest.client import Client, InvalidRequestError, column, where

SAME_FOR_ALL_CORES = "the client before the demo"
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment(served):
    return {
        **os.environ, "MONREST_URL": served.address, "MONREST_KEY": served.key,
        "MONREST_USER": "admin",
    }  # fmt: skip


@pytest.fixture
def client(served):
    with Client(served.address, key=served.key, user="admin") as client:
        yield client


def test_rows_by_every_way_are_the_same(client):
    web = client.hosts(column("name").matches("^web")).columns("name").sort("name")
    rows = web.all()
    assert [row["name"] for row in rows] == ["web01", "web02", "web03", "web04"]
    assert list(web) == rows
    assert [row for page in web.pages(3) for row in page] == rows
    assert web.count() == 4
    assert web.first() == rows[0]
    assert client.hosts(where(name="web02")).columns("name").one() == {"name": "web02"}
    assert client.hosts(~column("name").matches("^web")).count() == client.hosts().count() - 4
    linux = column("groups").has("linux")
    assert client.hosts(linux).count() + client.hosts(~linux).count() == client.hosts().count()


def test_events_are_followed(client):
    events = client.events(types=["state"], since="-1d", sites=["demo"])
    kept = [next(events) for _ in range(3)]
    events.close()
    assert [event["source"] for event in kept] == ["/sites/demo"] * 3
    behind = client.events(types=["state"], since=kept[0]["cursor"])
    assert [next(behind), next(behind)] == kept[1:]
    behind.close()
    problems = client.events(snapshot=True, columns=["host_name", "state"], types=["state"])
    first = next(problems)
    problems.close()
    assert set(first["data"]) == {"host_name", "state"}
    assert first["data"]["state"] > 0
    with pytest.raises(InvalidRequestError, match="types"):
        next(client.events(types=["nosuch"]))


ASYNC = """
from twisted.internet.task import react
from monrest.client import AsyncClient, NotAuthorizedError, UnreachableError, column

async def first(events, count):
    try:
        async for event in events:
            yield event
            count -= 1
            if not count:
                break
    finally:
        await events.aclose()

async def main(reactor):
    async with AsyncClient(URL, key=KEY, user="admin", reactor=reactor, retries=0) as client:
        web = client.hosts(column("name").matches("^web")).columns("name").sort("name")
        rows = await web.all()
        assert [row["name"] for row in rows] == ["web01", "web02", "web03", "web04"]
        assert [row async for row in web] == rows
        assert [row async for page in web.pages(3) for row in page] == rows
        assert (await web.count(), await web.first()) == (4, rows[0])
        assert (await client.host("web01"))["name"] == "web01"
        async for row in client.services():
            break
        kept = [event async for event in first(client.events(types=["state"], since="-1d"), 3)]
        assert [event["type"] for event in kept] == ["state"] * 3
        behind = client.events(types=["state"], since=kept[0]["cursor"])
        assert [event async for event in first(behind, 2)] == kept[1:]
        job = await client.background("/hosts/totals")
        told = []
        assert (await job.result(told.append))["total"] == 20
        assert told
    async with AsyncClient(SOCKET, reactor=reactor) as client:
        assert (await client.get("/hosts/totals"))["total"] == 20
    for arguments, problem in (
        ((URL,), NotAuthorizedError), (("unix:/nonexistent",), UnreachableError),
    ):
        try:
            await AsyncClient(*arguments, key="wrong", retries=0, reactor=reactor).get("/hosts")
        except problem as error:
            print(type(error).__name__, error)
        else:
            raise AssertionError(problem)

react(main)
"""


ON_ASYNCIO = (
    ("from twisted.internet.task import react", "import asyncio"),
    ("import AsyncClient,", "import AsyncioClient as AsyncClient,"),
    (", reactor=reactor", ""),
    ("main(reactor)", "main()"),
    ("react(main)", "asyncio.run(main())\nimport sys\nassert 'twisted' not in sys.modules"),
)


@pytest.mark.parametrize("replaced", [(), ON_ASYNCIO], ids=["twisted", "asyncio"])
def test_coroutines(environment, served, replaced):
    (socket,) = served.scratch.glob("*/monrest.sock")
    program = ASYNC
    for old, new in replaced:
        assert old in program
        program = program.replace(old, new)
    before = f"URL, KEY, SOCKET = {served.address!r}, {served.key!r}, 'unix:{socket}'\n"
    ran = subprocess.run(
        [sys.executable, "-c", before + program], cwd=REPOSITORY, env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("NotAuthorizedError 403")
    assert "cannot reach unix:/nonexistent: " in lines[1]
