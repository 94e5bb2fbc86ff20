"""The core as a service and as a program of its own, over a real socket."""

import json
import socket
import sys

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from monrest.base.clock import MachineClock
from monrest.demo.inventory import ObjectConfigError
from monrest.demo.service import DemoCore
from tests.forks import DEMO, ran

REQUEST = b"GET hosts\nResponseHeader: fixed16\nOutputFormat: json\nStats: state >= 0\n\n"


class Reader(Protocol):
    def __init__(self):
        self.done = Deferred()
        self.received = b""

    def dataReceived(self, data):
        self.received += data

    def connectionLost(self, reason):
        self.done.callback(self.received)


async def ask(path):
    reader = await connectProtocol(UNIXClientEndpoint(reactor, str(path)), Reader())
    reader.transport.write(REQUEST)
    return await reader.done


async def test_a_left_over_socket_is_replaced(tmp_path):
    path = tmp_path / "live"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    service = DemoCore(reactor, MachineClock(), str(path), history_days=0, hosts=3, services=4)
    service.startService()
    try:
        assert json.loads((await ask(path))[16:]) == [[3]]
    finally:
        await service.stopService()


def test_wrong_files_are_refused_with_their_place(tmp_path):
    (tmp_path / "bad.cfg").write_text("define host {\nhost_name h\nuse nothing\n}\n")
    with pytest.raises(ObjectConfigError, match=r"template 'nothing' does not exist in bad\.cfg:1"):
        DemoCore(
            reactor, MachineClock(), str(tmp_path / "live"), objects_dir=tmp_path
        ).startService()


def test_the_program_says_why_it_cannot_start(tmp_path):
    (tmp_path / "bad.cfg").write_text("define nonsense {\n}\n")
    command = [sys.executable, "-m", "monrest.demo", "--socket", str(tmp_path / "live"),
               "--objects", str(tmp_path)]  # fmt: skip
    status, output = ran(command, program=DEMO)
    assert status == 1
    assert "unknown object type 'nonsense' in bad.cfg:1" in output
    assert "Traceback" not in output
