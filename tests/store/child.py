"""A process that uses a database: ``child.py WHAT URL [NAME] [COUNT]``.

``write`` adds rows for ever and ``count`` increments; both acknowledge on standard output when
a change is done. ``start`` waits for a line and opens the database. ``fill`` writes until
nothing more fits into the file size that the process is allowed, then gets more. ``duty`` adds
rows with its token for as long as it has the duty, and says when that changes.
"""

import os
import resource
import sys
from pathlib import Path

from twisted.internet import reactor, task
from twisted.internet.defer import Deferred, gatherResults

sys.path.insert(0, str(Path.cwd()))

from monrest.base.errors import Unavailable
from monrest.store.database import Database
from monrest.store.duties import Duties, DutyLostError
from tests.store.rows import add, add_everywhere, add_numbered, count, increment


def say(text):
    os.write(1, f"{text}\n".encode())


async def write(database, name):
    async def writer(number):
        done = 0
        while True:
            row = f"{name}.{number}.{done}"
            await database.change(add_everywhere(row))
            say(row)
            done += 1

    await gatherResults([Deferred.fromCoroutine(writer(number)) for number in range(5)])


async def add_up(database, name, times):
    say("ready")
    sys.stdin.readline()
    await gatherResults([database.change(increment(name)) for _ in range(int(times))])
    say("done")


async def fill(database):
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 * 1024, hard))
    done = 0
    try:
        while True:
            await database.change(add(f"n{done}", tz="x" * 20_000))
            done += 1
    except Unavailable as error:
        say(error)
    say(done)
    say(await database.run(count))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await database.change(add("after"))
    say(await database.run(count))


async def duty(database, owner, seconds):
    duties = Duties(database, reactor, owner, float(seconds))
    duties.want("count")
    duties.startService()
    token = told = None
    while True:
        token = duties.held("count") or token  # as one that is paused after it looked
        if token is not None:
            try:
                await duties.change(token, add_numbered(token.number))
                if token != told:
                    say(f"held {token.number}")
                    told = token
            except Unavailable:
                pass  # the server gave up the connection of a process that was frozen
            except DutyLostError:
                say(f"refused {token.number}")
                token = None
        await task.deferLater(reactor, 0.01)


async def main(clock, what, url, *arguments):
    if what == "start":
        say("ready")
        sys.stdin.readline()
    database = Database(reactor, url)
    database.startService()
    works = {"write": write, "count": add_up, "fill": fill, "duty": duty}
    try:
        if what in works:
            await works[what](database, *arguments)
    finally:
        await database.stopService()  # its threads would keep a failed process alive
    if what == "start":
        say("done")


task.react(lambda clock, *arguments: Deferred.fromCoroutine(main(clock, *arguments)), sys.argv[1:])
