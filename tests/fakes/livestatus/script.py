"""What a scripted site answers, and everything that it may do wrong."""

from __future__ import annotations

import json
from collections import deque

from attrs import define, field

NAEMON_STATUS = ["1.5.2", "1.5.1-naemon", 1_700_000_000, 4711]
NAEMON_COLUMNS = [
    ["hosts", "name", "string"],
    ["hosts", "state", "int"],
    ["hosts", "custom_variables", "dict"],
    ["hosts", "plugin_output", "string"],
    ["services", "host_name", "string"],
    ["services", "description", "string"],
    ["services", "state", "int"],
    ["log", "time", "int"],
    ["log", "message", "string"],
    ["status", "program_start", "int"],
]


def framed(body, status=200, length=None):
    """A body with its fixed16 header, or with a wrong one."""
    return b"%3d %11d\n" % (status, len(body) if length is None else length) + body


def as_json(rows):
    """Rows as Naemon prints them."""
    return b"[" + b",\n".join(json.dumps(row).encode() for row in rows) + b"]\n"


def table_of(request):
    return request.split(b"\n", 1)[0].removeprefix(b"GET ").decode()


def columns_of(request):
    for line in request.split(b"\n"):
        if line.startswith(b"Columns: "):
            return line.removeprefix(b"Columns: ").decode().split()
    return []


# A misdeed gets the connection (``write``, ``close``, ``reset``, ``later``) and the request.


def rows(*wanted):
    """The honest answer."""
    return lambda talk, _request: talk.write(framed(as_json(wanted)))


def rows_in_pieces(*wanted, size=60_000):
    """The honest answer, as a large one comes over a socket."""
    data = framed(as_json(wanted))

    def answer(talk, _request):
        for start in range(0, len(data), size):
            talk.write(data[start : start + size])

    return answer


def raw(data):
    """Exactly these bytes."""
    return lambda talk, _request: talk.write(data)


def longer_than_it_says(*wanted):
    text = as_json(wanted)
    return raw(framed(text, length=len(text) - 4))


def shorter_than_it_says(*wanted):
    """Announces more than it sends and waits."""
    text = as_json(wanted)
    return raw(framed(text, length=len(text) + 100))


def truncated(*wanted, by=5):
    """Dies before the last bytes."""

    def lie(talk, _request):
        talk.write(framed(as_json(wanted))[:-by])
        talk.close()

    return lie


def invalid_json(talk, _request):
    talk.write(framed(b'[["h1",0],\n["h2",oops]]\n'))


def hang(_talk, _request):
    pass


def fall_silent(talk, _request):
    talk.mute = True


def reset(talk, _request):
    talk.reset()


def close_without_answer(talk, _request):
    talk.close()


def text_instead_of_header(talk, _request):
    talk.write(b"Invalid request method\n")
    talk.close()


def refused(status, text):
    return raw(framed(text, status))


def slow_drip(*wanted, every=0.05):
    """The honest answer, one byte at a time."""

    def lie(talk, _request):
        data = framed(as_json(wanted))

        def drip(at):
            talk.write(data[at : at + 1])
            if at + 1 < len(data):
                talk.later(every, lambda: drip(at + 1))

        drip(0)

    return lie


def answer_and_close(*wanted):
    """Answers, and closes the kept connection while it is idle."""

    def lie(talk, _request):
        talk.write(framed(as_json(wanted)))
        talk.close()

    return lie


@define(eq=False)
class Script:
    """What a site answers. ``plan`` is used up in turn, then ``default`` is repeated.

    ``probe`` replaces the honest answer to status and columns queries.
    """

    plan: deque = field(factory=deque, converter=deque)
    default: object = field(factory=lambda: rows(["h1", 0]))
    status: list = field(factory=lambda: list(NAEMON_STATUS))
    columns: list = field(factory=lambda: list(NAEMON_COLUMNS))
    probe: object = None
    requests: list = field(factory=list)
    orders: deque = field(factory=deque, converter=deque)
    """What is done about the next command lines instead of accepting them."""
    commands: list = field(factory=list)

    @property
    def queries(self):
        """The requests for anything but status and columns."""
        return [one for one in self.requests if table_of(one) not in ("status", "columns")]

    def obey(self, talk, request):
        self.commands.append(request.split(b"\n")[0].decode())
        if self.orders and (order := self.orders.popleft()) is not None:
            order(talk, request)
        elif b"wrapped_json" in request:
            talk.write(framed(b'{"failed": {}}\n'))
        elif b"fixed16" in request:
            talk.write(framed(b""))

    def answer(self, talk, request):
        if request.startswith(b"COMMAND "):
            self.obey(talk, request)
            return
        self.requests.append(request)
        table = table_of(request)
        if table == "status" and columns_of(request) == ["program_start"]:
            # The query behind a command; who does not answer the one does not answer the other.
            if not talk.mute:
                talk.write(framed(as_json([[self.status[2]]])))
            return
        if table in ("status", "columns"):
            if self.probe is not None:
                self.probe(talk, request)
            elif table == "status":
                talk.write(framed(as_json([self.status])))
            else:
                talk.write(framed(as_json(self.columns)))
        else:
            misdeed = self.plan.popleft() if self.plan else self.default
            misdeed(talk, request)
