"""The database without threads, which other rooms' tests use."""

from sqlalchemy import insert, select
from twisted.internet.task import Clock

from monrest.accounts.model import Profile
from tests.fakes.store import inline_database

users = Profile.table


def test_what_is_asked_is_done_at_once(database_url):
    database = inline_database(Clock(), database_url)
    row = {"name": "ann", "locked": True, "failed": 2, "created": 5, "last_failed": {"ip": "::1"}}
    database.change(lambda connection: connection.execute(insert(users).values(row)).rowcount)
    found = []
    database.run(lambda connection: connection.execute(select(users)).mappings().one()).addCallback(
        found.append
    )
    assert dict(found[0]) == {**row, "last_success": None, "tz": None}
    assert database.stopService().called
