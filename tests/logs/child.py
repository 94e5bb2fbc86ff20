"""A process that imports a log until it is killed: ``child.py URL LINES SEED [again]``.

It says ``slice`` before each question to its core, so that it can be killed anywhere.
"""

import os
import sys
from pathlib import Path
from random import Random

from twisted.internet import reactor, task

sys.path.insert(0, str(Path.cwd()))

from monrest.logs import importer as importing
from monrest.logs.importer import Again
from monrest.store.database import Database
from tests.logs.core import NOW, LoggingCore, importer


def filled(lines, seed):
    """A core with so many lines of some weeks; the same for the same numbers."""
    core, random = LoggingCore(), Random(seed)
    moments = sorted(NOW - int(random.random() ** 2 * 25 * 86400) for _ in range(lines))
    for at, moment in enumerate(moments):
        if at % 500 == 499:
            core.rotate(moment)
        core.write(moment, f"SERVICE ALERT: web;http;OK;HARD;1;{random.randint(0, 3)}")
    return core


class Now:
    """The reactor with its clock put to the time of the lines."""

    def seconds(self):
        return NOW + reactor.seconds() % 1

    def callLater(self, *arguments, **more):
        return reactor.callLater(*arguments, **more)


async def main(clock, url, lines, seed, again=""):
    database = Database(clock, url)
    database.startService()
    core = filled(int(lines), int(seed))
    core.before = lambda _: os.write(1, b"slice\n") and None
    # Small transactions, of which many can be hit.
    importing.AT_ONCE, importing.MANY = 50, 400
    one = importer(core, database, Now(), owner=str(os.getpid()))
    whole = Again(start=NOW - 30 * 86400, end=NOW + 1, exactly=True)
    await one.update(again=whole if again else None)
    os.write(1, b"done\n")
    await database.stopService()


if __name__ == "__main__":
    task.react(main, sys.argv[1:])
