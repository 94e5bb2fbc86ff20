"""API keys: what is stored, how long a look-up is good, revocation, use, a database that is away."""

import hashlib
import re

import pytest
from sqlalchemy import select
from twisted.internet.defer import Deferred

from monrest.accounts.credentials import Credentials
from monrest.accounts.keys import Keys
from monrest.accounts.model import ApiKey, secret_hash
from monrest.base.errors import Forbidden, Unavailable
from monrest.base.values import Caller
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall
from tests.fakes.keystore import NOW, result

HOME = Caller(address="192.0.2.7", client="192.0.2.7")


@pytest.fixture
def keys(store, clock):
    return Keys(Credentials(store, clock, Wall(clock), AuthConfig()))


def make(keys, **given):
    return result(keys.create(**{"user": "ann", **given}))


def find(keys, plain):
    return result(keys.find(plain))


def test_form_of_a_key_and_of_its_hash(keys):
    key, plain = make(keys)
    assert re.fullmatch(r"[0-9a-f]{64}_1", plain)
    assert key.hashed_key == hashlib.sha256(plain.encode()).hexdigest()
    assert (key.digest, key.created) == ("SHA-256", NOW)
    assert key.file == f"api_keys/{key.hashed_key}.SHA-256"
    assert make(keys)[1] != plain


def test_the_key_itself_is_nowhere_in_the_database(keys, store):
    _, plain = make(keys, comment="for the cron job")
    rows = result(store.run(lambda connection: connection.execute(select(ApiKey.table)).all()))
    assert secret_hash(plain) in repr(rows)
    assert plain.removesuffix("_1") not in repr(rows)


@pytest.mark.parametrize(
    "given",
    [
        {"user": "ann"},
        {"user": "ann", "roles": ()},
        {"user": "ann", "roles": ("authorized_for_all_hosts",), "comment": "ü;'\"\\ 😀"},
        {"user": None, "superuser": True},
        {"user": None, "superuser": True, "force_user": "bob", "roles": ("authorized_for_admin",)},
    ],
)
def test_everything_comes_back_as_it_was_made(keys, store, clock, given):
    key, plain = make(keys, **given)
    for name, value in given.items():
        assert getattr(key, name) == value
    other = Keys(
        Credentials(store, clock, Wall(clock), AuthConfig())
    )  # another daemon, which remembers nothing
    assert find(other, plain) == key
    assert result(other.several(hashed=key.hashed_key)) == [key]
    assert result(other.several()) == [key]


def test_owner_and_forced_user_exclude_each_other(keys):
    assert make(keys, user="ann", superuser=True)[0].user is None
    assert make(keys, user="ann", force_user="bob")[0].force_user is None


def test_lists_are_by_owner_and_in_the_order_of_creation(keys, clock):
    made = []
    for user in ("ann", "bob", "ann"):
        made.append(make(keys, user=user)[0])
        clock.advance(1)
    made.append(make(keys, user=None, superuser=True)[0])
    assert result(keys.several()) == made
    assert result(keys.several("ann")) == [made[0], made[2]]
    assert result(keys.several("nobody")) == []
    assert result(keys.several("")) == []
    assert result(keys.owned("ann")) == 2
    assert result(keys.several(hashed="0" * 64)) == []


@pytest.mark.parametrize(
    "hashed", ["", "\0", "x", "\ud800", "F" * 64, "0" * 65, "0" * 64 + "\n", "%"]
)
def test_what_is_no_hash_is_no_key(keys, store, hashed):
    reads = store.reads
    assert result(keys.several(hashed=hashed)) == []
    assert store.reads == reads


def test_no_more_keys_than_allowed(keys):
    for _ in range(3):
        make(keys, creator="ann", most=3)
    with pytest.raises(Forbidden, match=r"maximum number of api keys \(3\) reached, cannot create"):
        make(keys, creator="ann", most=3)
    assert result(keys.owned("ann")) == 3
    # It is the maker's own keys that count, not those of whom he makes one for.
    make(keys, user="ann", creator="admin", most=3)
    assert result(keys.owned("ann")) == 4


def test_the_limit_is_checked_in_the_transaction_that_stores(keys, store):
    """Two requests at the same moment have both counted before either has stored."""
    store.held = True
    waiting = [
        Deferred.fromCoroutine(keys.create(user="ann", creator="ann", most=1)) for _ in range(2)
    ]
    outcomes = []
    for one in waiting:
        one.addBoth(outcomes.append)
    store.release()
    assert len([one for one in outcomes if isinstance(one, tuple)]) == 1
    assert result(keys.owned("ann")) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain[:-2],
        lambda plain: plain.upper(),
        lambda plain: plain[:-1] + "2",
        lambda plain: plain + "_1",
        lambda plain: " " + plain,
        lambda plain: plain + "\n",
        lambda plain: plain[:-1] + "\u0661",
        secret_hash,
        lambda plain: "",
        lambda plain: "a" * 100_000,
        lambda plain: "' OR 1=1 --",
        lambda plain: "%",
    ],
)
def test_what_is_no_key_finds_none(keys, spoil):
    _, plain = make(keys)
    assert find(keys, plain) is not None
    assert find(keys, spoil(plain)) is None


def test_a_deleted_key_is_refused_at_once(keys):
    key, plain = make(keys)
    find(keys, plain)
    assert result(keys.delete(key.hashed_key)) is True
    assert find(keys, plain) is None
    assert result(keys.delete(key.hashed_key)) is False


def test_a_deletion_that_failed_leaves_nothing_remembered(keys, store):
    key, plain = make(keys)
    find(keys, plain)
    store.down = True
    with pytest.raises(Unavailable):
        result(keys.delete(key.hashed_key))
    # It may have been stored before the connection was lost.
    with pytest.raises(Unavailable):
        find(keys, plain)
    store.down = False
    assert find(keys, plain) == key


def test_without_a_grace_keys_work_as_long_as_they_are_fresh(keys, store, clock):
    _, plain = make(keys)
    find(keys, plain)
    keys.service.config = AuthConfig(grace=0.0)
    store.down = True
    clock.advance(3)
    assert find(keys, plain).confirmed
    clock.advance(1)
    with pytest.raises(Unavailable):
        find(keys, plain)


def used(store):
    query = select(ApiKey.table.c.last_used, ApiKey.table.c.last_from)
    return [tuple(row) for row in result(store.run(lambda c: c.execute(query).all()))]


def test_uses_are_stored_together_every_ten_seconds(keys, store, clock):
    key, _ = make(keys)
    keys.service.startService()
    for _ in range(1000):
        keys.used(key, HOME)
    changes = store.changes
    clock.advance(9.9)
    assert (store.changes, used(store)) == (changes, [(None, None)])
    # Who looks sees the last use at once.
    assert result(keys.several())[0].last_used == NOW
    assert result(keys.several())[0].last_from == "192.0.2.7"
    clock.advance(0.1)
    assert (store.changes, used(store)) == (changes + 1, [(NOW, "192.0.2.7")])
    clock.advance(20)
    assert store.changes == changes + 1
    result(keys.service.stopService())


@pytest.mark.parametrize(
    ("caller", "shown"),
    [
        (Caller(address="192.0.2.7", client="192.0.2.7"), "192.0.2.7"),
        (Caller(address="127.0.0.1", client="192.0.2.7"), "127.0.0.1 (192.0.2.7)"),
        (Caller(address="", client="unix", uid=0), "unix"),
    ],
)
def test_where_a_key_was_used(keys, caller, shown):
    key, _ = make(keys)
    keys.used(key, caller)
    assert result(keys.several())[0].last_from == shown


def test_the_last_uses_are_stored_when_the_daemon_stops(keys, store, clock):
    key, _ = make(keys)
    keys.service.startService()
    clock.advance(3)
    keys.used(key, HOME)
    result(keys.service.stopService())
    assert used(store) == [(NOW + 3, "192.0.2.7")]
    assert not clock.getDelayedCalls()


def test_uses_wait_for_a_database_that_is_away(keys, store, clock):
    key, _ = make(keys)
    other, _ = make(keys)
    keys.service.startService()
    keys.used(key, HOME)
    keys.used(other, HOME)
    store.down = True
    clock.advance(10)
    keys.used(key, Caller(address="192.0.2.8", client="192.0.2.8"))
    store.down = False
    clock.advance(10)
    assert sorted(used(store)) == [(NOW, "192.0.2.7"), (NOW + 10, "192.0.2.8")]
    result(keys.service.stopService())


def test_an_older_use_does_not_replace_a_newer_one(keys, store, clock):
    key, _ = make(keys)
    peer = Keys(Credentials(store, clock, Wall(clock), AuthConfig()))
    keys.used(key, HOME)
    clock.advance(5)
    peer.used(key, Caller(address="192.0.2.8", client="192.0.2.8"))
    result(peer.service.flush())
    result(keys.service.flush())
    assert used(store) == [(NOW + 5, "192.0.2.8")]


def test_the_use_of_a_deleted_key_is_forgotten(keys, store):
    key, _ = make(keys)
    keys.used(key, HOME)
    result(keys.delete(key.hashed_key))
    result(keys.service.flush())
    assert used(store) == []
