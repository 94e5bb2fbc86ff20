"""Events between the core, their row and their reader: kills, and a database that is away."""

import random
import signal
import sqlite3
import threading
from collections import Counter

import pytest
from harness.daemon import Daemon, site
from harness.proxy import Line
from harness.stream import Stream
from harness.waiting import until

SAME_FOR_ALL_CORES = "what is stored does not depend on the core"
STATES = {"types": "state", "service_description": "http"}
KILLS = 6


@pytest.fixture
def core(lab):
    return lab.core()


def started(tmp_path, core, **sections):
    (tmp_path / "d").mkdir()
    sections = {"webhooks": {"allow": ["127.0.0.1"], "timeout": 2}, **sections}
    return Daemon(tmp_path / "d", [site("s1", core)], sections=sections)


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


def test_kills_between_the_core_and_the_reader_lose_nothing(tmp_path, core, receiver):
    """Whenever the daemon is killed; what a receiver gets twice has the same id."""
    chance = random.Random(23)
    daemon = started(tmp_path, core).start()
    told, number = [], 0
    try:
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
    finally:
        daemon.stop(signal.SIGKILL)


def refuses_changes(client):
    return client.post_json("/mon/broadcasts", {"text": "a text"}).status == 503


def test_while_the_file_of_the_database_is_locked_events_wait(tmp_path, core):
    daemon = started(tmp_path, core).start()
    try:
        with Stream(daemon.client(), STATES).begun() as stream, daemon.client() as client:
            alert(core, 0)
            stream.next(plugin_output="alert 0.")
            lock = sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
            alert(core, 1)
            until(lambda: refuses_changes(client), "the database takes nothing")
            alert(core, 2)
            lock.execute("ROLLBACK")
            lock.close()
            alert(core, 3)
            stream.next(plugin_output="alert 3.")
            assert Counter(one["data"]["plugin_output"] for one in stream.events) == {
                f"alert {one}.": 1 for one in range(4)
            }
    finally:
        daemon.stop()


def test_while_the_server_of_the_database_is_away_events_wait(tmp_path, core, postgres_server):
    (tmp_path / "pg").mkdir(mode=0o755)
    line = Line(postgres_server.folder / ".s.PGSQL.5432", tmp_path / "pg" / ".s.PGSQL.5432")
    name = postgres_server.create()
    url = f"postgresql+psycopg://postgres@/{name}?host={tmp_path / 'pg'}"
    daemon = started(tmp_path, core, database={"url": url}).start()
    try:
        with Stream(daemon.client(), STATES).begun() as stream, daemon.client() as client:
            alert(core, 0)
            stream.next(plugin_output="alert 0.")
            line.drop()
            alert(core, 1)
            until(lambda: refuses_changes(client), "the database is away")
            alert(core, 2)
            line.mend()
            alert(core, 3)
            stream.next(plugin_output="alert 3.")
            assert [one["data"]["plugin_output"] for one in stream.events] == [
                f"alert {one}." for one in range(4)
            ]
    finally:
        daemon.stop(signal.SIGKILL)
        line.close()
