"""Events between the core, their row and their reader: kills, and a database that is away."""

import random
import signal
import sqlite3
import threading
from contextlib import closing

import pytest
from harness.daemon import site
from harness.stream import Stream
from harness.waiting import until

SAME_FOR_ALL_CORES = "what is stored does not depend on the core"
STATES = {"types": "state", "service_description": "http"}
KILLS = 4


@pytest.fixture
def core(lab):
    return lab.core()


def alert(core, number):
    state = (1, 2)[number % 2]
    core.command(f"PROCESS_SERVICE_CHECK_RESULT;web01;http;{state};alert {number}.")


def hook(daemon, receiver):
    record = {
        "name": "all", "url": receiver.url, "body": "plain",
        "filter": "types=state&service_description=http",
    }  # fmt: skip
    with daemon.client() as client:
        answer = client.post_json("/mon/webhooks", record)
        assert answer.status == 200, answer.text


def test_kills_between_the_core_and_the_reader_lose_nothing(made, core, receiver):
    """Whenever the daemon is killed; what a receiver gets twice has the same id."""
    chance = random.Random(23)
    webhooks = {"webhooks": {"allow": ["127.0.0.1"], "timeout": 2}}
    daemon = made([site("s1", core)], sections=webhooks).start()
    told, number = [], 0
    hook(daemon, receiver)
    stream = Stream(daemon.client(), STATES).begun()
    for _ in range(KILLS):
        last = number + chance.randrange(20, 60)
        sender = threading.Thread(
            target=lambda a=number, b=last: [alert(core, one) for one in range(a, b)]
        )
        sender.start()
        stream.next(plugin_output=f"alert {chance.randrange(number, last)}.")
        daemon.stop(signal.SIGKILL)
        sender.join()
        until(lambda ended=stream: ended.ended, "the stream ends")
        cursor = stream.id
        stream.close()
        told += stream.events
        number = last
        daemon.start()
        stream = Stream(daemon.client(), STATES, {"Last-Event-ID": cursor})
    alert(core, number)
    stream.next(plugin_output=f"alert {number}.")
    stream.close()
    told += stream.events
    wanted = [f"alert {one}." for one in range(number + 1)]
    assert [one["data"]["plugin_output"] for one in told] == wanted

    def arrived():
        text = b"\n".join(body for _, body in receiver.posts).decode()
        return all(one in text for one in wanted)

    until(arrived, "the receiver has all of them", seconds=120.0)
    bodies = {}
    for headers, body in receiver.posts:
        assert bodies.setdefault(headers["webhook-id"], body) == body
    assert len([1 for one in bodies.values() if b"alert " in one]) == number + 1


def refuses_changes(client):
    return client.post_json("/mon/broadcasts", {"text": "a text"}).status == 503


def waits_for(daemon, core, take_away, give_back):
    """What happens while the database is away is told when it is back, and once."""
    with Stream(daemon.client(), STATES).begun() as stream, daemon.client() as client:
        alert(core, 0)
        stream.next(plugin_output="alert 0.")
        take_away()
        alert(core, 1)
        until(lambda: refuses_changes(client), "the database takes nothing")
        alert(core, 2)
        give_back()
        alert(core, 3)
        stream.next(plugin_output="alert 3.")
        return [one["data"]["plugin_output"] for one in stream.events]


ALL = [f"alert {one}." for one in range(4)]


def test_while_the_file_of_the_database_is_locked_events_wait(made, core):
    daemon = made([site("s1", core)]).start()
    file = daemon.folder / "var" / "monrest.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as lock:
        told = waits_for(
            daemon,
            core,
            lambda: lock.execute("BEGIN EXCLUSIVE"),
            lambda: lock.execute("ROLLBACK"),
        )
    assert sorted(told) == ALL


def test_while_the_server_of_the_database_is_away_events_wait(made, core, line, line_url):
    daemon = made([site("s1", core)], sections={"database": {"url": line_url}}).start()
    assert waits_for(daemon, core, line.drop, line.mend) == ALL
