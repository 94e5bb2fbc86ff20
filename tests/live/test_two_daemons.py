"""Two daemons on one database: what one of them revokes is refused by the other in time.

The other one answers a stream of large requests meanwhile. None is answered that began five seconds
after the revocation, and none is cut short: each has all rows or is a refusal.
"""

import json
import threading
import time

import pytest
from harness.daemon import site
from harness.waiting import until

from tests.live.test_database_away import key_client, session_client, with_passwords

IN_FORCE = 5.0
"""Seconds after which everybody knows (docs/spec/accounts.md, "How long a revocation takes")."""

PATH = "/services"


@pytest.fixture
def daemons(lab, database_url, embedded):
    roles = {"auth.roles": {"admin": ["admin", "boss"]}}
    pair = lab.pair([site("s1", embedded)], database_url, **roles)
    return [with_passwords(daemon).start() for daemon in pair]


class Stream(threading.Thread):
    """Asks one daemon the same again and again, until it is told to stop."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.answers, self.error = client, [], None
        self.stopping = threading.Event()
        self.start()

    def run(self):
        try:
            with self.client:
                while not self.stopping.wait(0.05):
                    began = time.monotonic()
                    answer = self.client.get(PATH)
                    self.answers.append((began, answer.status, json.loads(answer.body)))
        except Exception as error:
            self.error = error

    def began_after(self, moment):
        """Whether a request is answered that began after that moment."""
        assert self.error is None, self.error
        return bool(self.answers) and self.answers[-1][0] > moment


def at(daemon, client):
    """The same credentials at another daemon."""
    other = daemon.client(None)
    other.key = client.key
    other.credentials = client.credentials
    return other


def test_what_one_revokes_the_other_refuses(daemons):
    one, other = daemons
    with one.client() as admin, key_client(one) as keyed, session_client(one) as logged_in:
        boss = admin.post_json("/mon/api_keys", {"username": "boss"}).json["private_key"]
        of_boss = other.client(None)
        of_boss.key = boss
        everything = admin.rows(PATH)
        streams = {
            "key": Stream(at(other, keyed)),
            "session": Stream(at(other, logged_in)),
            "lock": Stream(of_boss),
        }
        until(lambda: all(len(one.answers) > 3 for one in streams.values()), "all are answered")
        (key,) = (row["hashed_key"] for row in admin.rows("/mon/api_keys?user=admin"))
        revoked = {}
        for name, revoke in {
            "key": lambda: admin.request("DELETE", f"/mon/api_keys/{key}"),
            "session": lambda: logged_in.post_form("/mon/logout", []),
            "lock": lambda: admin.post_form("/mon/users/boss/cmd/lock", []),
        }.items():
            assert revoke().status == 200
            revoked[name] = time.monotonic()
        for name, stream in streams.items():
            until(
                lambda stream=stream, name=name: stream.began_after(revoked[name] + IN_FORCE + 1),
                "the stream goes on",
            )
            stream.stopping.set()
            stream.join(30)
    for name, stream in streams.items():
        refusal = 401 if name == "session" else 403
        seen = {status for _, status, _ in stream.answers}
        assert seen == {200, refusal}, name
        for began, status, body in stream.answers:
            if began > revoked[name] + IN_FORCE:
                assert status == refusal, name
            if status == 200:
                assert len(body) == len(everything), name
            else:
                assert body["code"] == refusal, name
        # Once refused, always refused.
        statuses = [status for _, status, _ in stream.answers]
        first = statuses.index(refusal)
        assert set(statuses[first:]) == {refusal}, name
