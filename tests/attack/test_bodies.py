"""No body that a key without any right sends takes much memory or holds the reactor.

The figures: 32 MB above an idle daemon, and 50 milliseconds of processor time between two turns of
the reactor. What holds it does so each time, so that the least of several tries counts.
"""

import contextlib
import gzip
import http.client
import random
from functools import partial
from itertools import product

import pytest
from harness.daemon import site

from tests.attack.watching import MOST_HELD, MOST_MEMORY, Watched, measured
from tests.examples import examples, some

CHANGED = 30

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=B"
PART = b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
SIZES = {"/r/hosts": 2_097_152, "/r/cmd": 4_194_304, "/r/mon/panorama": 2_097_152}
"""Paths and the bytes that they take."""


@pytest.fixture(scope="module")
def daemon(shared):
    core = shared.core(objects=None, arguments=("--hosts", "5"))
    return shared.daemon([site("s1", core)], kind=Watched).start()


@pytest.fixture(scope="module")
def key(daemon):
    """A key that has no right at all."""
    with daemon.client() as admin:
        made = admin.post_json("/mon/api_keys", {"username": "nobody", "roles": []})
    return made.json["private_key"]


def send(daemon, key, path, kind, body, method="POST", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=300)
    given = {"X-Mon-Auth-Key": key, **headers} | ({"Content-Type": kind} if kind else {})
    try:
        # What is too long is answered while it is still sent.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, f"/mon{path}", body, given)
        return connection.getresponse().status
    finally:
        connection.close()


def filled(size, head, unit, tail=b""):
    """A text of at most so many bytes with one part again and again."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def numbered(count, unit, between=b","):
    return between.join([unit % number for number in range(count)])


# Of each kind: content type, and what is sent in up to so many bytes.
WHOLE = 99_000
KINDS = {
    "deep": lambda size: [
        (JSON, filled(size, b"", b"[")),
        (JSON, filled(size, b'{"a":', b'{"a":')),
        (JSON, b"[" * 900 + b"]" * 900),
        (JSON, b'{"a":' + b"[" * (size // 2 - 9) + b"]" * (size // 2 - 9) + b"}"),
        (FORM, filled(size, b"nodes=", b"[")),
        (FORM, filled(size, b"q=", b"(")),
    ],
    "wide": lambda size: [
        (JSON, filled(size, b'{"a":[', b"[],", b"1]}")),
        (JSON, b'{"a":[' + numbered(WHOLE // 2, b"[%d]") + b"]}"),
        (JSON, b"[" + numbered(WHOLE, b"%d") + b"]"),
        (JSON, b"[" + numbered(WHOLE // 2, b'{"k%d":1}') + b"]"),
        (JSON, b"[{" + numbered(WHOLE, b'"k%d":1') + b"}]"),
        (JSON, b"{" + numbered(WHOLE, b'"k%d":1') + b"}"),
        (JSON, b"{" + numbered(19_999, b'"k%d":"x"') + b"}"),
        (JSON, b"[" + numbered(9_999, b'{"cmd":"x","host":"h%d"}') + b"]"),
    ],
    "long": lambda size: [
        (JSON, filled(size, b'{"a":"', b"a", b'"}')),
        (JSON, filled(size, b'{"a":"\xf0\x9f\x98\x80', b"a", b'"}')),
        (JSON, filled(size, b'{"tab":{"a":"\xf0\x9f\x98\x80', b"a", b'"}}')),
        (JSON, filled(size, b'{"a":', b"1", b"}")),
        (JSON, filled(size, b'{"a":0.', b"1", b"}")),
        (JSON, filled(size, b"{", b" ", b",}")),
        (FORM, filled(size, b"q=", b"a")),
        (FORM, filled(size, b"a=\xf0\x9f\x98\x80", b"a")),
        (FORM, filled(size, b"", b"\xf0\x9f\x98\x80")),
    ],
    "separators": lambda size: [
        (FORM, filled(size, b"", b"&")),
        (FORM, filled(size, b"limit=1", b"&")),
        (FORM, filled(size, b"", b"a&")),
        (FORM, filled(size, b"", b"a=1&")),
        (FORM, filled(size, b"", b"&q=")),
        (FORM, filled(size, b"q=***", b"=&")),
        (FORM, b"&q=xxx" * 200 + filled(size - 1200, b"", b"xx")),
        (FORM, numbered(19_999, b"c%d=1", b"&")),
        (FORM, filled(size, b"columns=", b",")),
        (FORM, filled(size, b"a=", b"=")),
    ],
    "escapes": lambda size: [
        (FORM, filled(size, b"a=", b"%c3%a4")),
        (FORM, filled(size, b"a=", b"%41\xc3\xa4")),
        (FORM, filled(size, b"a=\xf0\x9f\x98\x80", b"%41+")),
        (FORM, filled(size, b"a=", b"%")),
        (FORM, filled(size, b"a=", b"%%4")),
        (FORM, filled(size, b"a=", b"+")),
        (JSON, filled(size, b'{"a":"', b"\\n", b'"}')),
        (JSON, filled(size, b'{"a":"', b"\\u00e4", b'"}')),
        (JSON, filled(size, b'{"tab":{"b":"', b"\\ud83d\\ude00", b'"}}')),
    ],
    "comments": lambda size: [
        (JSON, filled(size, b"{", b'#{"\n', b"}")),
        (JSON, filled(262_144, b"{", b'#"\n', b"}")),
        (JSON, filled(262_144, b"[", b'""', b"}")),
        (JSON, filled(262_144, b'["', b'\\"', b"}")),
        (JSON, filled(262_144, b"[", b'"" ', b"]")),
        (JSON, filled(262_144, b'{"a":1#', b"#", b"\n,}")),
        (JSON, filled(size, b'{"a":1#', b"#", b"\n,}")),
    ],
    "multipart": lambda size: [
        (PARTS, PART + filled(size - 100, b"", b"a") + b"\r\n--B--\r\n"),
        (PARTS, filled(size, PART, b"\r\n--C")),
        (PARTS, filled(size, b"", PART + b"x\r\n", b"--B--\r\n")),
        (PARTS, PART + b"\xf0\x9f\x98\x80" + b"a" * (size - 100) + b"\r\n--B--\r\n"),
        (PARTS, filled(size, b"--B\r\n", b"A: b\r\n")),
        (PARTS, filled(size, b"", b"--B\r\n")),
        ("multipart/form-data; " + 'a="";' * 9000 + "boundary=B", PART),
    ],
    "gzip": lambda size: [
        (kind, gzip.compress(filled(30_000_000, b"", unit), 6))
        for kind, unit in ((JSON, b"[],"), (FORM, b"a&"), (FORM, b"\0"), ("application/gzip", b"a"))
    ],
}


def mutated(kind):
    """Bodies of a kind, each for a path: those above, then some with a part of their bytes changed.

    Of the pairs of a path and a body a run has half, with MONREST_EXAMPLES=1 all.
    """
    chance = random.Random(kind)
    whole = [(path, *one) for path, size in SIZES.items() for one in KINDS[kind](size)]
    whole = some(whole, 0.5, kind)
    changed = []
    for at in range(examples(CHANGED, 4)):
        path, given, body = whole[at % len(whole)]
        changing = bytearray(body)
        for _ in range(chance.choice((1, 20, 2000))):
            at = chance.randrange(len(changing) + 1)
            changing[at : at + 3] = chance.choice((b"", b'"', b"[],", b"&", b"%41", b"\\", b"#"))
        if chance.random() < 0.2:
            del changing[chance.randrange(len(changing)) :]
        changed.append((path, given, bytes(changing[: SIZES[path]])))
    return whole + changed


@pytest.mark.parametrize("kind", KINDS)
def test_no_body_takes_much_memory_or_holds_the_reactor(daemon, key, kind):
    wrong = []
    for path, given, body in mutated(kind):
        status, memory, held = measured(daemon, partial(send, daemon, key, path, given, body))
        if not (status < 500 and memory <= MOST_MEMORY and held <= MOST_HELD):
            wrong.append((path, given[:30], body[:30], len(body), status, memory, held))
    assert not wrong, "\n".join(map(str, wrong))


LINE = 131_000
QUERIES = [
    *(unit * (LINE // len(unit)) for unit in ("&", "a&", "a=1&", "%41", "%c3%a4", "+", ",", "[")),
    *("q=" + unit * (LINE // len(unit) - 9) for unit in ("***", "(", "x&q=", "%25")),
    "&".join(f"c{number}=1" for number in range(15_000)),
    "columns=" + "%2c" * (LINE // 3 - 9),
]


def test_no_query_string_does_either(daemon, key):
    wrong = []
    paths = ("/r/hosts?", "/r/mon/panorama?", "/r/hosts/")
    for path, query in some(product(paths, QUERIES), 0.5):
        status, memory, held = measured(
            daemon, partial(send, daemon, key, path + query, "", None, "GET")
        )
        if not (status < 500 and memory <= MOST_MEMORY and held <= MOST_HELD):
            wrong.append((path, query[:30], status, memory, held))
    assert not wrong, "\n".join(map(str, wrong))
