"""Nobody freezes the daemon with a small request.

What is asserted is never how long something took: another request that is sent while one works
is answered before it, what is too much work is refused with the limit that it met, and the time-out
and a client that leaves end what is left.
"""

import socket
import threading
from urllib.parse import urlencode

import pytest
from harness.daemon import site
from harness.waiting import until


@pytest.fixture(scope="module")
def daemon(shared):
    """A daemon in front of a core with 20 hosts and 100 services, with time for slow machines."""
    invented = ("--hosts", "20", "--services", "100", "--history", "0.1")
    core = shared.core(objects=None, arguments=invented)
    return shared.daemon([site("s1", core)], sections={"server": {"request_timeout": 120}}).start()


@pytest.fixture(scope="module")
def client(daemon):
    with daemon.client() as client:
        yield client


LONG = "a" * 60
GROWING = f's(s(s(host_name,".","{LONG}"),"(.)","{"b" * 13}"),"(.)","{"c" * 6}")'
DOUBLED = "plugin_output"
for _ in range(10):
    DOUBLED = f's({DOUBLED},".","xx")'
WIDE = ",".join(["fmt('%999s',state)"] * 9)

TOO_MUCH = "one answer: select fewer rows or make shorter texts"
TOO_LONG = "makes a text longer than 65536 characters"


def many(count, expression):
    """``count`` items of an expression, in which ``AT`` is the number of the item."""
    return ",".join(f"{expression.replace('AT', str(at))} as x{at}" for at in range(count))


REFUSED = [
    # a text that multiplies in every row, where it is looked at and counted (shown and sorted: SLOW)
    ({"columns": GROWING, GROWING: "x"}, TOO_MUCH),
    ({"columns": f"to_rows(host_groups) as g,max({GROWING})"}, TOO_MUCH),
    # nested concat, and others that make much of little
    ({"columns": f"upper(concat({','.join(['concat(' + WIDE + ')'] * 9)}))"}, TOO_LONG),
    ({"columns": many(60, "fmt('" + "%999s" * 60 + "',state)")}, TOO_MUCH),
    ({"columns": "fmt('" + "%999s" * 80 + "',state)"}, TOO_LONG),
    ({"columns": many(100, f"upper(lower(concat({','.join(['long_plugin_output'] * 9)})))")}, None),
    ({"columns": many(40, "date(last_check,'" + "%c" * 300 + "')")}, None),
    ({"columns": many(500, "perf_data_expanded")}, None),
    ({"columns": many(12, "+".join(["state"] * 400))}, None),
    # expressions that are large, patterns whose automaton is
    ({"columns": "upper(" * 4000 + "a" + ")" * 4000}, "at most 20 functions may be nested"),
    ({"columns": "(" * 8000 + "a" + ")" * 8000}, "at most 20 brackets"),
    ({"columns": many(400, r"s(name,'\pL\pL\pLAT','')")}, "too large together"),
    ({"plugin_output[~]": "(" * 400 + "a" + ")" * 400}, None),
    (
        {"q": " or ".join(rf"host_name ~ '\pL\pL\pL\pL{at}'" for at in range(900))},
        "too large together",
    ),
    ({"q": " or ".join(f"plugin_output ~~ 'a{at}b.*c'" for at in range(600))}, None),
    ({"q": " or ".join(f"host_name != 'a{at}'" for at in range(1001))}, "at most 1000 conditions"),
    ({"q": "(" * 21 + "state=0" + ")" * 21}, "at most 20 brackets"),
    ({"q": "()" * 4001}, "at most 4000 pairs"),
    # what becomes more than it was
    ({"state": ",".join(["critical", "warning"] * 2000)}, None),
    ([("state", ",".join(map(str, range(100))))] * 11, "at most 1000 states"),
    ([("last_check[gt]", "next monday 8:00" + " + 1h30m" * 9)] * 900, None),
    ([("backends", "s1")] * 9000, None),
    ({"columns": "(" * 20 + "state" + "+1)" * 20}, None),
    ({"columns": "(" * 30 + "state" + "+1)" * 30}, "at most 20 brackets may be nested"),
    ({"columns": "uniq(" + ",".join(f"x{at}" for at in range(400)) + ")"}, None),
    # numbers and options at their ends
    ({"columns": "9**9**9"}, None),
    ({"columns": "*".join(["99999999999999999"] * 400)}, None),
    ({"columns": "calc(state,*,1e308),age(calc(last_check,*,1e300)),utc(1e300)"}, None),
    ({"limit": "9" * 18, "offset": "9" * 18}, None),
    ({"limit": "9" * 5000}, "at most 18 digits"),
    ({"sort": ",".join(["host_name", "-description"] * 250)}, None),
    ({"sort": ",".join(["host_name"] * 501)}, "at most 500 keys"),
    ({"last_check[gt]": "now" + "+1d" * 1000}, "cannot parse time"),
    ({"columns": "a b " * 8000}, None),
]
"""Parameters, and what the refusal says; None where it is an answer."""


def test_what_is_too_much_is_refused_with_the_limit_that_it_met(client):
    wrong = []
    for parameters, expected in REFUSED:
        answer = client.post_form("/services", parameters)
        if expected is None:
            fine = answer.status == 200
        else:
            fine = answer.status == 400 and expected in answer.json["description"]
        if not fine:
            wrong.append((str(parameters)[:120], expected, answer.status, answer.body[:200]))
    assert not wrong, "\n".join(map(str, wrong))


def test_single_objects_and_records_of_the_front_end_have_the_same_limit(client):
    for path, name in (("/mon", "rest_version"), ("/sites", "name")):
        grown = GROWING.replace("host_name", f"s({name},'^.*$','ninechars')")
        searched = f"s({grown},'(.)','d')"
        answer = client.post_form(path, {"columns": many(150, searched)})
        assert (answer.status, TOO_MUCH in answer.text) == (400, True), (path, answer)


class Opened:
    """A request that was sent and whose answer is read in a thread; ``done`` when it is there."""

    def __init__(self, daemon, parameters):
        body = urlencode(parameters).encode()
        self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=300)
        self.socket.sendall(
            b"POST /mon/r/services HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            + f"X-Mon-Auth-Key: {daemon.key}\r\nX-Mon-Auth-User: admin\r\n".encode()
            + f"Content-Length: {len(body)}\r\nX-Request-Id: heavy\r\n\r\n".encode()
            + body
        )
        self.done = threading.Event()
        self.received = b""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while chunk := self.socket.recv(65536):
                self.received += chunk
        except OSError:
            pass
        self.done.set()

    def status(self):
        assert self.done.wait(300)
        return int(self.received.split(b" ", 2)[1])


HEAVY = {"columns": many(4, f's({DOUBLED},"((a{{1,10}}){{10}}){{10}}AT","y")')}
"""Most of it are searches in a text that grows in steps."""
SLOW = [HEAVY, {"columns": GROWING, "sort": GROWING}]


@pytest.mark.parametrize("parameters", SLOW)
def test_others_are_answered_meanwhile(daemon, client, parameters):
    heavy = Opened(daemon, parameters)
    before = 0
    while not heavy.done.wait(0.05):
        assert client.rows("/hosts/totals")["total"] == 20
        before += not heavy.done.is_set()
    assert heavy.status() == 400
    assert TOO_MUCH.encode() in heavy.received
    # Each of them was sent after the first had begun, and answered before it.
    assert before >= 3


def test_a_client_that_leaves_ends_its_work(daemon, client):
    heavy = Opened(daemon, HEAVY)
    client.rows("/hosts/totals")
    heavy.socket.shutdown(socket.SHUT_RDWR)
    heavy.socket.close()
    until(lambda: any("status=499" in line for line in lines(daemon, "heavy")), "it is noted")


def lines(daemon, request):
    return [line for line in daemon.log.splitlines() if f"request_id={request}" in line]
