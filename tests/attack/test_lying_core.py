"""A core that sends what takes long to read: it has failed, and nobody else waits for it."""

import pytest
from harness.daemon import site
from harness.lying import DEEDS, LyingSite, framed, send

from tests.attack.watching import MOST_HELD, Watched, measured

MANY = 1_000_000


def row(rows, value):
    return b"[[" + b",".join([value, *[b"1"] * (len(rows[0]) - 1)]) + b"]]"


def many(between, value):
    return b"[" + between.join([value] * MANY) + b"]"


BODIES = {
    "an integer of 5 million digits": (
        lambda rows: row(rows, b"1" * 5_000_000),
        "number is infinity",
    ),
    "an integer of 5,000 digits": (lambda rows: row(rows, b"1" * 5000), "a number of 5000 digits"),
    "empty rows": (lambda _: many(b",", b"[]"), f"{2 * MANY} values"),
    "empty rows in lines": (lambda _: many(b",\n", b"[]"), "0 columns"),
    "objects": (lambda _: many(b",\n", b"{}"), f"{2 * MANY} values"),
    "one wide row": (lambda _: b"[[" + b"1," * 5_000_000 + b"1]]", "5000002 values"),
    "a wide list": (lambda rows: row(rows, many(b",", b"[]")), "values"),
    "deep lists": (lambda _: b"[" * 5_000_000, "5000000 values"),
    "nan": (lambda _: b"[[" + b"nan," * 1_000_000 + b"1]]", "values"),
    "borders within a text": (
        lambda rows: row(rows, b'"' + b"\x01], [" * 100_000 + b'"'),
        "not valid JSON",
    ),
    "no text": (lambda rows: row(rows, b'"' + b"\xff" * 5_000_000 + b'"'), "not UTF-8"),
    "no end": (lambda _: b'[["' + b"a" * 10_000_000, "ends too early"),
}


@pytest.fixture(scope="module")
def liar(embedded, shared):
    return shared.keep(LyingSite(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def daemon(embedded, liar, shared):
    sites = [
        site("good", embedded),
        site("liar", liar, timeout=20.0),
    ]
    off = {"logcache": {"enabled": False}}
    yield shared.daemon(sites, sections=off, kind=Watched).start()
    liar.lie(None)


@pytest.mark.parametrize("name", BODIES)
def test_it_has_failed_with_a_reason(daemon, liar, monkeypatch, name):
    body, reason = BODIES[name]
    number = list(BODIES).index(name)
    monkeypatch.setitem(DEEDS, name, send(lambda rows: framed(body(rows)), close=False))
    liar.lie(name, "hosts")
    answers = []
    with daemon.client() as client:

        def ask():
            # Each case has a question of its own: equal ones that are under way are sent once.
            path = f"/wrapped_json/hosts?columns=name,state,address&alias[ne]={number}"
            # On a busy machine a probe may meet a liar that is still making its answer.
            for _ in range(5):
                answers.append(client.get(path))
                if "no sign of life" not in str(answers[-1].json["meta"]):
                    break
            return answers[-1].status

        status, _, held = measured(daemon, ask)
        liar.lie(None)
    assert status == 200
    assert {row["name"] for row in answers[-1].json["data"]}
    assert reason in str(answers[-1].json["meta"]), answers[-1].json["meta"]
    assert held <= MOST_HELD
    assert "Traceback" not in daemon.log
