"""What is counted of sessions is what is listed of them, at every moment; on both kinds."""

import pytest

from monrest.accounts.credentials import Credentials
from monrest.accounts.sessions import Sessions
from monrest.base.values import Caller
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall
from tests.fakes.keystore import result

HOME = Caller(address="192.0.2.7", client="198.51.100.9")
CONFIG = AuthConfig(session_idle=1000.0, session_lifetime=1500.0)


@pytest.fixture
def sessions(store, clock):
    return Sessions(Credentials(store, clock, Wall(clock), CONFIG))


def counted(sessions):
    found = result(sessions.figures())
    names = "sessions_total", "sessions_uniq_user_total", "sessions_active_5min_total"
    return tuple(found[name] for name in (*names, "sessions_uniq_user_5min_total"))


def listed(sessions, clock):
    found = result(sessions.several())
    recent = [one for one in found if clock.seconds() - one.active <= 300]
    return (
        len(found), len({one.username for one in found}),
        len(recent), len({one.username for one in recent}),
    )  # fmt: skip


def test_nothing(sessions):
    assert counted(sessions) == (0, 0, 0, 0)


def test_a_life(sessions, clock):
    """Logins, use that is not stored yet, idle ends, the end of the lifetime, a logout."""
    seen = []

    def after(seconds):
        clock.advance(seconds)
        seen.append(counted(sessions))
        assert seen[-1] == listed(sessions, clock)

    cookies = [result(sessions.create(user, HOME, "$5$"))[1] for user in ("ann", "ann", "bob")]
    after(0)
    after(300)
    after(1)
    assert result(sessions.find(cookies[0])) is not None
    after(0)
    after(698)
    after(1)
    assert result(sessions.find(cookies[0])) is not None
    after(499)
    after(1)
    assert seen == [
        (3, 2, 3, 2), (3, 2, 3, 2), (3, 2, 0, 0), (3, 2, 1, 1), (3, 2, 0, 0), (1, 1, 0, 0),
        (1, 1, 0, 0), (0, 0, 0, 0),
    ]  # fmt: skip
    session, _ = result(sessions.create("ann", HOME, "$5$"))
    after(0)
    result(sessions.delete(session.hashed_id))
    after(0)
    assert seen[-2:] == [(1, 1, 1, 1), (0, 0, 0, 0)]
