"""The running daemon: reload without a dropped request, drain, limits, the access log."""

import signal
import socket
import threading

from harness.client import InFlight
from harness.daemon import site
from harness.waiting import until


def test_reload_adds_changes_and_removes_sites(made, embedded):
    first = site("one", embedded)
    daemon = made([first]).start()
    with daemon.client() as client:
        daemon.sites = [first, site("two", embedded, section="Later")]
        daemon.reload()
        daemon.wait_connected({"one", "two"})
        assert client.values("/sites", "id") == ["one", "two"]
        assert len(client.rows("/hosts?columns=name")) == 12

        daemon.sites[1] = site("two", embedded, name="New name", hidden=True)
        daemon.reload()
        until(lambda: "New name" in client.values("/sites", "name"), "the change is in force")
        assert len(client.rows("/hosts?columns=name")) == 6
        assert len(client.rows("/sites/two/hosts?columns=name")) == 6

        daemon.sites = [daemon.sites[1]]
        daemon.reload()
        until(lambda: client.values("/sites", "id") == ["two"], "the first site is gone")
        assert client.get("/sites/one/hosts").status == 400


def test_reload_drops_no_request(made, embedded, slow):
    keep = site("keep", embedded)
    # Each worker has its part of them, and its own questions are held as well.
    daemon = made([keep, site("slow", slow, connections=8)]).start()
    slow.lie(None, "services")
    slow.hold()
    held = InFlight(daemon, "/services?columns=peer_key")
    assert slow.waiting.wait(300)

    wrong, stop = [], threading.Event()

    def traffic():
        with daemon.client() as client:
            while not stop.is_set():
                response = client.get("/hosts?columns=name,peer_key")
                if response.status != 200 or "x-mon-failed-sites" in response.headers:
                    wrong.append(response)

    threads = [threading.Thread(target=traffic) for _ in range(3)]
    for thread in threads:
        thread.start()
    with daemon.client() as client:
        for number in range(6):
            daemon.sites = [keep] if number % 2 == 0 else [keep, site("new", keep["address"])]
            daemon.reload()
            expected = [entry["id"] for entry in daemon.sites]
            until(lambda ids=expected: client.values("/sites", "id") == ids, "the reload is done")
        stop.set()
        for thread in threads:
            thread.join(30)
        slow.release()
        rows = held.result().json
    assert wrong == []
    assert sorted({row["peer_key"] for row in rows}) == ["keep", "slow"]
    assert len(rows) == 22


def test_many_hang_ups_and_bad_configurations_change_nothing_and_the_end_is_quick(made, embedded):
    daemon = made([site("one", embedded)]).start()
    for _time in range(20):
        daemon.hang_up()
    with daemon.client() as client:
        for _time in range(20):
            assert len(client.rows("/hosts?columns=name")) == 6
    good = daemon.config.read_text()
    for text in ("[server\n", good + "\n[[sites]]\nid = 5\n", good + "\nbogus = 1\n"):
        before = daemon.log.count("stays in force")
        daemon.config.write_text(text)
        daemon.hang_up()
        until(lambda n=before: daemon.log.count("stays in force") > n, "the refusal is logged")
        with daemon.client() as client:
            assert client.values("/sites", "id") == ["one"]
            assert len(client.rows("/hosts?columns=name")) == 6
    assert "sites" in daemon.log
    assert "bogus" in daemon.log
    assert "Traceback" not in daemon.log
    with daemon.client() as client:
        assert client.get("/hosts").status == 200
        assert daemon.stop(seconds=15) in (0, -signal.SIGTERM)


def test_sigterm_lets_a_running_request_finish(made, slow):
    daemon = made([site("slow", slow)]).start()
    slow.lie(None, "services")
    slow.hold()
    held = InFlight(daemon, "/services")
    assert slow.waiting.wait(300)
    daemon.process.send_signal(signal.SIGTERM)

    def closed():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", daemon.port)) != 0

    until(closed, "no new connection is taken")
    assert daemon.process.poll() is None
    slow.release()
    response = held.result()
    assert response.status == 200
    assert len(response.json) == 11
    assert response.headers.get("connection", "").lower() == "close"
    assert daemon.process.wait(300) in (0, -signal.SIGTERM)
    assert "Traceback" not in daemon.log


def test_the_drain_has_a_limit(made, slow):
    daemon = made([site("slow", slow)], sections={"server": {"drain_timeout": 1}}).start()
    slow.lie(None, "services")
    slow.hold()
    InFlight(daemon, "/services")
    assert slow.waiting.wait(300)
    assert daemon.stop(seconds=20) in (0, -signal.SIGTERM)


def test_a_request_that_takes_too_long(made, slow):
    daemon = made(
        [site("slow", slow, timeout=30.0)],
        sections={"server": {"request_timeout": 1}},
    ).start()
    slow.lie(None, "services")
    slow.hold()
    response = InFlight(daemon, "/services").result()
    assert response.status == 504
    assert set(response.json) == {"code", "failed", "message", "description"}
    assert "background" in response.json["description"]
