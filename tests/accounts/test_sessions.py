"""Sessions: what is stored, lifetimes, limits, figures, cookies, a database that is away."""

import re

import pytest
from sqlalchemy import select

from monrest.accounts import sessions as module
from monrest.accounts.credentials import Credentials
from monrest.accounts.model import Session, secret_hash
from monrest.accounts.sessions import Sessions, cookie_of
from monrest.base.errors import Unavailable
from monrest.base.names import Names
from monrest.base.values import Caller
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall
from tests.fakes.keystore import NOW, result

IDLE, LIFETIME = 1000.0, 5000.0
HOME = Caller(address="192.0.2.7", client="198.51.100.9")


@pytest.fixture
def another(credentials):
    """A function that makes the sessions of another daemon on the same database."""
    return lambda **more: Sessions(
        credentials(**{"session_idle": IDLE, "session_lifetime": LIFETIME, **more})
    )


@pytest.fixture
def sessions(another):
    return another()


def login(sessions, user="ann", **given):
    return result(sessions.create(user, HOME, "$5$", **given))


def find(sessions, value):
    return result(sessions.find(value))


def stored(store):
    rows = result(store.run(lambda connection: connection.execute(select(Session.table)).all()))
    return {row.hashed_id: row for row in rows}


def test_a_session(sessions, another):
    session, value = login(sessions)
    assert re.fullmatch(r"[0-9a-f]{64}_1", value)
    assert re.fullmatch(r"[0-9a-f]{64}_1", session.csrf_token)
    assert session.hashed_id == secret_hash(value)
    assert (session.username, session.roles) == ("ann", None)
    assert session.address == "192.0.2.7"  # that of the neighbour, and not of a client behind it
    assert (session.created, session.active) == (NOW, NOW)
    assert session.file == f"sessions/{session.hashed_id}.SHA-256"
    for one in (sessions, another()):
        assert find(one, value) == session
        assert result(one.several(hashed=session.hashed_id)) == [session]
        assert result(one.several()) == [session]
    assert session.csrf_token not in repr(session)


def test_roles_come_back(sessions, another):
    for roles in ((), ("authorized_for_all_hosts",)):
        _, value = login(sessions, roles=roles)
        assert find(another(), value).roles == roles


def test_the_value_is_nowhere(sessions, store):
    session, value = login(sessions)
    find(sessions, value)
    assert session.hashed_id in stored(store)
    for text in (
        repr(stored(store)),
        repr(session),
        repr(sessions.service._kept),
        repr(sessions.service.uses),
    ):
        assert value.removesuffix("_1") not in text


def test_every_login_is_a_session_of_its_own(sessions):
    made = [login(sessions) for _ in range(20)]
    assert len({value for _, value in made}) == 20
    assert len({session.csrf_token for session, _ in made}) == 20
    assert not {value for _, value in made} & {session.csrf_token for session, _ in made}


def test_what_is_no_session_is_not_looked_up(sessions, store):
    reads = store.reads
    a = "a" * 64
    for value in ("", "x", a, a.upper() + "_1", a + "_2", a + "_1\n", "ü" * 64 + "_1", "\0"):
        assert find(sessions, value) is None
    assert store.reads == reads


def test_a_planted_value_is_no_session(sessions):
    assert find(sessions, "a" * 64 + "_1") is None
    session, _ = login(sessions)
    assert find(sessions, session.hashed_id + "_1") is None
    assert find(sessions, session.csrf_token) is None


def test_idle_sessions_end(sessions, another, clock):
    session, value = login(sessions)
    clock.advance(IDLE - 1)
    assert find(sessions, value)
    clock.advance(IDLE - 1)
    assert find(sessions, value).active == NOW + IDLE - 1
    clock.advance(IDLE)
    for one in (sessions, another()):
        assert find(one, value) is None
        assert result(one.several(hashed=session.hashed_id)) == []
        assert result(one.several()) == []


def test_used_sessions_end_too(sessions, another, clock):
    _, value = login(sessions)
    for _ in range(int(LIFETIME / 500) - 1):
        clock.advance(500)
        assert find(sessions, value)
    clock.advance(499)
    assert find(sessions, value)
    clock.advance(1)
    for one in (sessions, another()):
        assert find(one, value) is None
        assert result(one.several()) == []


def test_what_is_remembered_ends_in_time(sessions, clock, store):
    _, value = login(sessions)
    find(sessions, value)
    clock.advance(IDLE - 1)
    reads = store.reads
    find(sessions, value)
    clock.advance(1)
    assert find(sessions, value)
    assert store.reads == reads + 1  # the second one came from memory
    sessions.service.config = AuthConfig(session_idle=0.5, session_lifetime=0.5)
    assert find(sessions, value) is None


def test_use_on_one_daemon_counts_on_the_other(sessions, another, clock):
    other = another()
    _, value = login(sessions)
    for _ in range(3):
        clock.advance(IDLE - 1)
        assert find(sessions, value)
        result(sessions.service.flush())
    assert find(other, value).active == NOW + 3 * (IDLE - 1)


def test_what_the_other_daemon_remembers_is_looked_up_before_it_ends(sessions, another, clock):
    other = another()
    _, value = login(sessions)
    clock.advance(IDLE - 2)
    assert find(other, value)
    result(other.service.flush())
    clock.advance(1)
    assert find(sessions, value)
    other.service.uses.clear()
    clock.advance(IDLE - 2)
    assert find(other, value)


def test_uses_are_stored_together(sessions, store, clock):
    values = [login(sessions)[1] for _ in range(5)]
    clock.advance(100)
    changes = store.changes
    for _ in range(10):
        for value in values:
            find(sessions, value)
    assert store.changes == changes
    result(sessions.service.flush())
    assert store.changes == changes + 1
    assert {row.active for row in stored(store).values()} == {NOW + 100}
    result(sessions.service.flush())
    assert store.changes == changes + 1


def test_an_old_use_does_not_overtake_a_newer_one(sessions, another, store, clock):
    other = another()
    session, value = login(sessions)
    clock.advance(10)
    find(other, value)
    clock.advance(10)
    find(sessions, value)
    result(sessions.service.flush())
    result(other.service.flush())
    assert stored(store)[session.hashed_id].active == NOW + 20


def test_a_cookie_after_its_logout(sessions, another, clock):
    other = another()
    session, value = login(sessions)
    assert find(other, value)
    assert find(sessions, value)
    assert result(sessions.delete(session.hashed_id)) is True
    assert find(sessions, value) is None
    clock.advance(4)
    assert find(other, value) is None
    assert result(sessions.delete(session.hashed_id)) is False
    result(sessions.service.flush())
    result(other.service.flush())
    assert find(another(), value) is None


def test_old_sessions_are_removed(sessions, store, clock):
    login(sessions)
    old, value = login(sessions)
    for _ in range(5):
        clock.advance(900)
        find(sessions, value)
    assert result(sessions.clean()) == 1
    assert set(stored(store)) == {old.hashed_id}
    fresh, _ = login(sessions)
    clock.advance(500)
    assert result(sessions.clean()) == 1
    assert set(stored(store)) == {fresh.hashed_id}
    clock.advance(IDLE - 500)
    assert result(sessions.clean()) == 0  # another daemon may know that it is in use
    clock.advance(60)
    assert result(sessions.clean()) == 1


def test_no_more_than_so_many_of_one_user(sessions, store, clock, monkeypatch):
    monkeypatch.setattr(module, "MOST_OF_A_USER", 5)
    first, used = login(sessions)
    other, _ = login(sessions, "bob")
    made = []
    for _ in range(6):
        clock.advance(10)
        assert find(sessions, used)
        made.append(login(sessions))
    assert len(stored(store)) == 6
    assert first.hashed_id in stored(store)  # the one that is in use stays
    assert other.hashed_id in stored(store)
    assert [bool(find(sessions, value)) for _, value in made] == [False] * 2 + [True] * 4


def test_while_the_database_is_away(sessions, store, clock):
    _, value = login(sessions)
    find(sessions, value)
    store.down = True
    assert find(sessions, value).confirmed
    clock.advance(4)
    assert not find(sessions, value).confirmed
    clock.advance(56)
    with pytest.raises(Unavailable):
        find(sessions, value)
    with pytest.raises(Unavailable):
        login(sessions)
    result(sessions.service.flush())
    assert result(sessions.clean()) == 0
    store.down = False
    clock.advance(1)
    assert find(sessions, value)
    result(sessions.service.flush())
    assert {row.active for row in stored(store).values()} == {NOW + 61}


def test_the_service_stores_and_cleans(sessions, store, clock):
    sessions.service.startService()
    session, value = login(sessions)
    clock.advance(5)
    find(sessions, value)
    clock.advance(5)
    assert stored(store)[session.hashed_id].active == NOW + 5
    for _ in range(200):
        clock.advance(10)
    assert stored(store) == {}
    session, value = login(sessions)
    clock.advance(3)
    find(sessions, value)
    result(sessions.service.stopService())
    assert stored(store)[session.hashed_id].active == session.created + 3
    assert not clock.getDelayedCalls()


def figures_of(sessions, clock):
    """What is counted, which is what is listed: sessions and users, and those of five minutes."""
    found = result(sessions.figures())
    names = "sessions_total", "sessions_uniq_user_total", "sessions_active_5min_total"
    counted = tuple(found[name] for name in (*names, "sessions_uniq_user_5min_total"))
    listed = result(sessions.several())
    recent = [one for one in listed if clock.seconds() - one.active <= 300]
    for many, users, those in ((*counted[:2], listed), (*counted[2:], recent)):
        assert (many, users) == (len(those), len({one.username for one in those}))
    return counted


def test_figures(another, clock):
    """Logins, use that is not stored yet, idle ends, the end of the lifetime, a logout."""
    sessions = another(session_lifetime=1500.0)
    assert figures_of(sessions, clock) == (0, 0, 0, 0)
    values = [login(sessions, user)[1] for user in ("ann", "ann", "bob")]
    for seconds, used, figures in (
        (0, False, (3, 2, 3, 2)),
        (300, False, (3, 2, 3, 2)),
        (1, False, (3, 2, 0, 0)),
        (0, True, (3, 2, 1, 1)),
        (698, False, (3, 2, 0, 0)),
        (1, False, (1, 1, 0, 0)),
        (0, True, (1, 1, 1, 1)),
        (499, False, (1, 1, 0, 0)),
        (1, False, (0, 0, 0, 0)),
    ):
        clock.advance(seconds)
        if used:
            assert find(sessions, values[0]) is not None
        assert figures_of(sessions, clock) == figures
    session, _ = login(sessions)
    assert figures_of(sessions, clock) == (1, 1, 1, 1)
    result(sessions.delete(session.hashed_id))
    assert figures_of(sessions, clock) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("config", "caller", "expected"),
    [
        ({}, Caller(), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax"),
        ({}, Caller(secure=True), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax; Secure"),
        ({"cookie_secure": True}, Caller(), "mon_auth=v; Path=/mon; HttpOnly; SameSite=Lax; Secure"),
        (
            {"cookie_domain": "example.org"},
            Caller(),
            "mon_auth=v; Path=/mon; Domain=example.org; HttpOnly; SameSite=Lax",
        ),
    ],
)  # fmt: skip
def test_the_cookie(clock, config, caller, expected):
    sessions = Sessions(Credentials(None, clock, Wall(clock), AuthConfig(**config)))
    assert sessions.cookie("v", caller) == ("Set-Cookie", expected)
    name, gone = sessions.expired_cookie(caller)
    assert name == "Set-Cookie"
    assert gone.startswith("mon_auth=; Path=/mon; ")
    assert "Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax" in gone
    # A browser takes away only what it finds under the same path and domain.
    assert ("Domain=example.org" in gone) == ("cookie_domain" in config)


def test_the_cookie_has_the_word_of_the_site(clock):
    credentials = Credentials(None, clock, Wall(clock), AuthConfig(), Names(app="abc"))
    sessions = Sessions(credentials)
    assert sessions.cookie("v", Caller())[1].startswith("abc_auth=v; Path=/abc; ")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mon_auth=v", "v"),
        ("a=b; mon_auth=v; c=d", "v"),
        (' mon_auth="v"', "v"),
        ("xmon_auth=w;mon_auth=v", "v"),
        ("mon_auth=a=b", "a=b"),
        ("mon_auth", ""),
        ("", ""),
        (";;=;", ""),
    ],
)
def test_finding_the_cookie(header, value):
    assert cookie_of({"cookie": header}, "mon_auth") == value
    assert cookie_of({}, "mon_auth") == ""
