"""Profiles: locks, failed logins, what is remembered, two daemons, profiles out of use; names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select
from twisted.internet.defer import Deferred

from monrest.accounts.model import Profile
from monrest.accounts.usernames import LONGEST_USER, UserNames
from monrest.accounts.users import Users
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.values import INTERNAL, Caller
from monrest.config import AuthConfig
from tests.fakes.keystore import NOW, result
from tests.table import each

HOME = Caller(address="192.0.2.7", client="192.0.2.7")
BEHIND = Caller(address="10.0.0.1", client="192.0.2.7")
LOCAL = Caller(client="unix", uid=1000)


@pytest.fixture
def another(credentials):
    """A function that makes the users of another daemon on the same database."""
    return lambda most=3: Users(credentials(lock_after_failed_logins=most))


@pytest.fixture
def users(another):
    return another()


def is_locked(users, name="ann"):
    return result(users.is_locked(name))


def fail(users, name="ann", caller=HOME, *, known=True):
    return result(users.failed(name, caller, known=known))


def get(users, name="ann"):
    return result(users.get(name))


def count(store):
    query = select(func.count()).select_from(Profile.table)
    return result(store.run(lambda connection: connection.execute(query).scalar_one()))


def test_locking_works_at_once_here_and_soon_elsewhere(users, another, clock):
    other = another()
    assert not is_locked(users)
    assert not is_locked(other)
    result(users.lock("ann"))
    assert is_locked(users)
    assert not is_locked(users, "bob")
    clock.advance(4)
    assert is_locked(other)
    result(other.unlock("ann"))
    assert not is_locked(other)
    clock.advance(4)
    assert not is_locked(users)


def test_locking_makes_a_profile_and_keeps_the_one_there_is(users):
    result(users.lock("ann"))
    assert get(users) == Profile(name="ann", locked=True, created=NOW)
    result(users.succeeded("bob", HOME))
    result(users.lock("bob"))
    assert get(users, "bob").last_success["time"] == NOW
    assert get(users, "bob").locked
    assert [profile.name for profile in result(users.list())] == ["ann", "bob"]


def test_unlocking_an_unknown_user(users, store):
    assert result(users.unlock("ann")) is False
    assert count(store) == 0


def test_internal_users_are_never_locked(users):
    for name in ("(api)", "(cli)", "(cron)"):
        for _ in range(5):
            fail(users, name)
        result(users.lock(name))
        assert not is_locked(users, name)


def test_a_lock_while_the_locked_ones_are_read(users, another, store):
    store.held = True
    reading = Deferred.fromCoroutine(users.is_locked("ann"))
    store.held, held, store.waiting = False, store.waiting, []
    result(users.lock("ann"))
    store.waiting = held
    store.release()
    assert result(reading) is True
    assert is_locked(users)


def test_a_lock_that_may_have_been_stored_is_looked_up(users, another, store):
    assert not is_locked(users)
    result(another().lock("ann"))
    store.down = True
    with pytest.raises(Unavailable):
        result(users.lock("ann"))
    store.down = False
    assert is_locked(users)


def is_guessed(users, name="ann"):
    return result(users.is_guessed(name))


def test_many_failures_from_everywhere_lock_passwords_out_and_not_the_user(
    users, another, clock, audited
):
    """Ten times as many as from one address; two daemons count together."""
    other = another()
    assert not is_guessed(users)
    for number in range(29):
        fail(users if number % 2 else other)
        assert not is_guessed(users)
    fail(other)
    assert [line["action"] for line in audited] == ["password lock"]
    assert audited[0]["target"] == "ann"
    clock.advance(4)
    for one in (users, other):
        assert is_guessed(one)
        assert not is_guessed(one, "bob")
        assert not is_locked(one)
    assert get(users).failed == 30
    assert not get(users).locked
    result(users.passed("ann"))
    assert not is_guessed(users)
    clock.advance(4)
    assert not is_guessed(other)


def test_failures_are_told_with_their_origin(users):
    fail(users)
    assert get(users).last_failed == {"time": NOW, "ip": "192.0.2.7"}
    fail(users, caller=BEHIND)
    assert get(users).last_failed == {
        "time": NOW,
        "ip": "10.0.0.1",
        "forwarded_for": "192.0.2.7",
    }
    result(users.succeeded("ann", LOCAL))
    assert get(users).last_success == {"time": NOW, "ip": "unix"}


def test_unlocking_forgets_failures(users):
    for _ in range(30):
        fail(users)
    assert is_guessed(users)
    assert result(users.unlock("ann")) is True
    assert not is_guessed(users)
    assert get(users).failed == 0
    fail(users)
    assert not is_guessed(users)


def test_a_login_forgets_failures(users, clock):
    fail(users)
    fail(users)
    clock.advance(5)
    result(users.succeeded("ann", HOME))
    profile = get(users)
    assert (profile.failed, profile.last_success["time"]) == (0, NOW + 5)
    assert profile.last_failed["time"] == NOW


def test_a_right_password_with_a_request_forgets_failures(users, another, store, clock):
    other = another()
    fail(users)
    fail(users)
    assert not is_locked(other)
    result(other.passed("ann"))
    assert get(users).failed == 0
    changes = store.changes
    for _ in range(10):
        result(other.passed("ann"))
        result(other.passed("bob"))
    assert store.changes == changes
    fail(other)
    result(other.passed("ann"))
    assert get(users).failed == 0


def test_a_right_password_does_not_unlock(users):
    is_locked(users)
    fail(users)
    result(users.lock("ann"))
    result(users.passed("ann"))
    assert is_locked(users)
    assert get(users).failed == 1


def test_how_many_is_configured(another):
    for most in (0, 1):
        users = another(most)
        for _ in range(12):
            fail(users)
        assert is_guessed(users) == bool(most)


def test_a_flood_of_names_is_not_stored(users, store):
    for number in range(200):
        fail(users, f"user{number}", known=False)
    assert count(store) == 0
    fail(users, "ann")
    fail(users, "ann", known=False)
    assert get(users).failed == 2


def test_counting_is_exact_when_two_daemons_count(another):
    users, other = another(0), another(0)
    for _ in range(10):
        fail(users)
        fail(other)
    assert get(users).failed == 20


def test_what_is_known_stays_in_force(users, store, clock):
    result(users.lock("ann"))
    assert is_locked(users)
    store.down = True
    for _ in range(3):
        clock.advance(10)
        assert is_locked(users)
        assert not is_locked(users, "bob")
    reads = store.reads
    for _ in range(10):
        is_locked(users)
    assert store.reads == reads  # not asked with every request
    store.down = False
    clock.advance(1)
    is_locked(users)
    assert store.reads == reads + 1


def test_no_user_comes_in_while_locks_are_not_known(users, store):
    store.down = True
    with pytest.raises(Unavailable):
        is_locked(users)
    store.down = False
    assert not is_locked(users)


def test_changes_fail_and_counting_does_not(users, store):
    fail(users)
    store.down = True
    fail(users)
    result(users.passed("ann"))
    for change in (users.lock("ann"), users.unlock("ann"), users.succeeded("ann", HOME)):
        with pytest.raises(Unavailable):
            result(change)


DAY = 86400
YEAR = 365 * DAY


@each(
    ("given", "days", "outlived"),
    [
        ({}, 1, False),
        ({}, 1.1, True),
        ({"failed": 3, "last_failed": {"time": NOW + DAY}}, 2, False),
        ({"failed": 3, "last_failed": {"time": NOW + DAY}}, 2.1, True),
        ({"locked": True}, 1000, False),
        ({"tz": "Asia/Tokyo"}, 365, False),
        ({"tz": "Asia/Tokyo"}, 365.1, True),
        ({"last_success": {"time": NOW + DAY}}, 366, False),
        ({"last_success": {"time": NOW + DAY}}, 366.1, True),
        ({"last_success": {"time": NOW}, "last_failed": {"time": NOW + DAY}}, 366, False),
    ],
)
def test_outlived(given, days, outlived):
    assert Profile(name="ann", created=NOW, **given).outlived(NOW + days * DAY) is outlived


@pytest.fixture
def cleaned(users, clock):
    """Users whose service runs, of whom one failed once, one came in and one is locked."""
    users.service.startService()
    result(users.failed("once", HOME, known=True))
    result(users.succeeded("often", HOME))
    result(users.lock("bad"))
    yield users
    result(users.service.stopService())
    assert not clock.getDelayedCalls()


def names(users):
    return [one.name for one in result(users.list())]


def test_profiles_are_forgotten_each_in_its_time(cleaned, clock):
    clock.advance(DAY - 100)
    assert names(cleaned) == ["bad", "often", "once"]
    clock.advance(2000)
    assert names(cleaned) == ["bad", "often"]
    clock.advance(YEAR)
    assert names(cleaned) == ["bad"]
    assert is_locked(cleaned, "bad")


def test_no_profile_is_forgotten_while_the_database_is_away(cleaned, store, clock):
    store.down = True
    clock.advance(DAY + 2000)
    store.down = False
    assert names(cleaned) == ["bad", "often", "once"]
    clock.advance(2000)
    assert names(cleaned) == ["bad", "often"]


NAMES = UserNames(AuthConfig())


@each(
    "text",
    [
        *("", "..", "../x", "a..b", "/", "a/b", "/etc/passwd", "a\nb", "a\r", "a\0", "\x7f"),
        *("a\x1b[31m", "a\u2028b", "a\u202eb", "a" * 256, "(api)", "(cli)", "(cron)", "\ud800"),
    ],
)
def test_what_is_no_name_of_a_user(text):
    with pytest.raises(BadRequest, match="invalid user name: X-Mon-Auth-User: expected") as refused:
        NAMES.read(text, "X-Mon-Auth-User")
    assert refused.value.description.isprintable()


@each(
    "text", ["ann", "a" * 255, "Ü. Müller", "ann@example.com", "a.b", "DOM\\ann", "(x)", "a;b", "*"]
)
def test_what_is_a_name_of_a_user(text):
    assert NAMES.read(text, "x").name == NAMES.read(text, "x").original == text


@each(
    ("config", "text", "name"),
    [
        ({"lowercase_user": True}, "Ann@Example", "ann@example"),
        ({"uppercase_user": True}, "Ann", "ANN"),
        ({"user_replace": ("@example\\.com$", "")}, "ann@example.com", "ann"),
        ({"user_replace": ("@example\\.com$", "")}, "ann@exampleXcom", "ann@exampleXcom"),
        ({"user_replace": ("^.*\\\\", "")}, "DOM\\ann", "ann"),
        ({"user_replace": ("^(\\w+)@(\\w+)$", "\\2-\\1")}, "ann@home", "home-ann"),
        ({"user_replace": ("n", "m")}, "ann", "amm"),
        ({"lowercase_user": True, "user_replace": ("@x$", "")}, "ANN@X", "ann"),
    ],
)
def test_changes_of_names(config, text, name):
    read = UserNames(AuthConfig(**config)).read(text, "x")
    assert (read.name, read.original) == (name, text)


@each(
    ("replace", "text"),
    [
        (("^.*$", ""), "ann"),
        (("x", "/"), "axb"),
        (("^x$", "(cli)"), "x"),
        (("x", "."), "axxb"),
        (("x", "xx"), "x" * 200),
    ],
)
def test_a_change_cannot_make_what_is_no_name(replace, text):
    with pytest.raises(BadRequest, match="invalid user name"):
        UserNames(AuthConfig(user_replace=replace)).read(text, "x")


@given(st.text(max_size=300), st.booleans())
def test_what_is_read_is_a_name(text, lower):
    try:
        read = UserNames(AuthConfig(lowercase_user=lower)).read(text, "x")
    except BadRequest:
        return
    assert read.original == text
    assert 0 < len(read.name) <= LONGEST_USER
    assert read.name.isprintable()
    assert "/" not in read.name
    assert ".." not in read.name
    assert read.name not in INTERNAL
