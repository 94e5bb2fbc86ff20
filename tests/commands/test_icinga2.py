"""Which commands a real Icinga 2 knows, asked from itself."""

import os
import socket
import time

import pytest

from monrest.commands.effects import UNKNOWN_TO_ICINGA2
from monrest.livestatus.catalogue import ALL
from tests.live.harness.cores import CoreMissing, Icinga2Core

pytestmark = pytest.mark.icinga2

DEADLY = {"RESTART_PROCESS", "SHUTDOWN_PROCESS"}


@pytest.fixture(scope="module")
def icinga2(tmp_path_factory):
    core = Icinga2Core(tmp_path_factory.mktemp("icinga2"))
    try:
        core.start()
    except CoreMissing as missing:
        if os.environ.get("MONREST_CI"):
            raise
        pytest.skip(str(missing))
    yield core
    core.stop()


def answer(path, name):
    """Status and text for a command on an object that is none."""
    text = f"COMMAND [{int(time.time())}] {name};no such object\nResponseHeader: fixed16\n\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(text.encode())
        with connection.makefile("rb") as stream:
            head = stream.read(16)
            return head[:3].decode(), stream.read(int(head[4:15])).decode(errors="replace")


def test_the_list_of_unknown_commands_is_what_it_says(icinga2):
    unknown = set()
    for name in {one.core_name for one in ALL} - DEADLY:
        status, text = answer(icinga2.socket, name)
        if text.startswith(f"Error: The external command '{name}' does not exist."):
            assert status == "452"
            unknown.add(name)
    assert unknown == UNKNOWN_TO_ICINGA2
