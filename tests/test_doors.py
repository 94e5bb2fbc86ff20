"""Threads touch nothing but what they were given: the doors that are watched in live daemons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from monrest.base.room import RowRoom
from tests.fakes.threads import Reactor
from tests.forks.doors import STRAY, watched

WATCHING = """
import threading
from tests.forks import doors
doors.watch()
from monrest.base.room import RowRoom
room = RowRoom(None)
room.share()
other = threading.Thread(target=room.share)
other.start()
other.join()
"""


def test_every_door_is_there_and_is_watched():
    found = subprocess.run(
        [sys.executable, "-c", WATCHING],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{STRAY}RowRoom.share" in found.stderr


def test_the_reactors_thread_goes_through():
    assert watched(RowRoom.share, "share")(RowRoom(Reactor())).size == 0


def test_another_one_does_not(capfd):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, pytest.raises(AssertionError, match=STRAY):
        pool.submit(watched(RowRoom.share, "share"), RowRoom(Reactor())).result()
