"""What the tests of the store write and look for, and processes that write."""

import sys
from pathlib import Path

from sqlalchemy import func, insert, select, update

from monrest.accounts.model import ApiKey, Profile, Session
from tests import forks

api_keys, sessions, users = ApiKey.table, Session.table, Profile.table


def add(name, **values):
    """Work that adds one user."""
    row = {"name": name, "locked": False, "failed": 0, "created": 1, **values}
    return lambda connection: connection.execute(insert(users).values(row)).rowcount


def add_everywhere(name):
    """Work that adds one row to each table: all of them or none."""

    def work(connection):
        key = {"hashed_key": name, "digest": "d", "superuser": False, "comment": "", "created": 1}
        session = {"hashed_id": name, "username": name, "address": "", "csrf_token": "t"}
        connection.execute(insert(api_keys).values(key))
        connection.execute(insert(sessions).values({**session, "created": 1, "active": 1}))
        add(name)(connection)

    return work


def increment(name):
    """Work that reads, counts and writes: two at a time must not both read the same number."""

    def work(connection):
        failed = connection.execute(select(users.c.failed).where(users.c.name == name)).scalar_one()
        connection.execute(update(users).where(users.c.name == name).values(failed=failed + 1))

    return work


def add_numbered(token):
    """Work that adds the next numbered row, with the token of who added it."""

    def work(connection):
        add(f"{count(connection):09}", failed=token)(connection)

    return work


def numbered(connection):
    """Work: the tokens of the numbered rows in their order."""
    return list(connection.execute(select(users.c.failed).order_by(users.c.name)).scalars())


def names(connection):
    """Work: the names of all users."""
    return set(connection.execute(select(users.c.name)).scalars())


def names_everywhere(connection):
    """Work: the set of names in each of the tables."""
    columns = (users.c.name, sessions.c.hashed_id, api_keys.c.hashed_key)
    return [set(connection.execute(select(column)).scalars()) for column in columns]


def count(connection):
    """Work: how many users there are."""
    return connection.execute(select(func.count()).select_from(users)).scalar_one()


class Child:
    """``child.py`` as a process; its standard output is what it acknowledges, a word a line."""

    def __init__(self, *arguments):
        script = Path(__file__).with_name("child.py")
        self.process = forks.start([sys.executable, script, *arguments], program=forks.SCRIPT)

    def line(self):
        """The next line; empty when the process has ended."""
        return self.process.stdout.readline().rstrip("\n")

    def go(self):
        """Answer a child that waits for a line."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def rest(self):
        """All lines until it ends; a last one that was cut off counts for nothing."""
        text = self.process.stdout.read()
        self.process.wait()
        return text[: text.rfind("\n") + 1].split()

    def kill(self):
        """End it at once, as a power cut would."""
        self.process.kill()

    def end(self):
        """Make sure that it is gone."""
        self.process.end()
