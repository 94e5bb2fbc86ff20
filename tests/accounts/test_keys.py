"""API keys, how they are stored and used, while the database is away too; the secret key's file."""

import hashlib
import os
import re
import stat

import pytest
from sqlalchemy import select
from twisted.internet.defer import Deferred

from monrest.accounts.keys import Keys
from monrest.accounts.model import ApiKey, secret_hash
from monrest.accounts.secret_key import SecretKeyError, is_key, read_or_create
from monrest.base.errors import Unavailable
from monrest.base.values import Caller
from tests.fakes.keystore import NOW, result
from tests.table import each

HOME = Caller(address="192.0.2.7", client="192.0.2.7")


@pytest.fixture
def keys(credentials):
    return Keys(credentials())


def make(keys, **given):
    return result(keys.create(**{"user": "ann", **given}))


def find(keys, plain):
    return result(keys.find(plain))


@each(
    "given",
    [
        {"user": "ann"},
        {"user": "ann", "roles": ()},
        {"user": "ann", "roles": ("authorized_for_all_hosts",), "comment": "ü;'\"\\ 😀"},
        {"user": None, "superuser": True},
        {"user": None, "superuser": True, "force_user": "bob", "roles": ("authorized_for_admin",)},
    ],
)
def test_everything_comes_back_as_it_was_made(keys, credentials, given):
    key, plain = make(keys, **given)
    for name, value in given.items():
        assert getattr(key, name) == value
    assert re.fullmatch(r"[0-9a-f]{64}_1", plain)
    assert key.hashed_key == hashlib.sha256(plain.encode()).hexdigest()
    assert (key.digest, key.created) == ("SHA-256", NOW)
    assert key.file == f"api_keys/{key.hashed_key}.SHA-256"
    other = Keys(credentials())  # another daemon, which remembers nothing
    assert find(other, plain) == key
    assert result(other.several(hashed=key.hashed_key)) == [key]
    assert key in result(other.several())


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


def test_what_is_no_hash_is_no_key(keys, store):
    reads = store.reads
    for hashed in ("", "\0", "x", "\ud800", "F" * 64, "0" * 65, "0" * 64 + "\n", "%"):
        assert result(keys.several(hashed=hashed)) == []
    assert store.reads == reads


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


def test_what_is_no_key_finds_none(keys):
    _, plain = make(keys)
    assert find(keys, plain) is not None
    for wrong in (
        *(plain[:-2], plain.upper(), f"{plain[:-1]}2", f"{plain}_1", f" {plain}", f"{plain}\n"),
        *(f"{plain[:-1]}\u0661", secret_hash(plain), "", "a" * 100_000, "' OR 1=1 --", "%"),
    ):
        assert find(keys, wrong) is None


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


def test_without_a_grace_keys_work_as_long_as_they_are_fresh(credentials, store, clock):
    keys = Keys(credentials(grace=0.0))
    _, plain = make(keys)
    find(keys, plain)
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


def test_where_a_key_was_used(keys):
    key, _ = make(keys)
    for caller, shown in (
        (HOME, "192.0.2.7"),
        (Caller(address="127.0.0.1", client="192.0.2.7"), "127.0.0.1 (192.0.2.7)"),
        (Caller(address="", client="unix", uid=0), "unix"),
    ):
        keys.used(key, caller)
        assert result(keys.several())[0].last_from == shown


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


def test_an_older_use_does_not_replace_a_newer_one(keys, credentials, store, clock):
    key, _ = make(keys)
    peer = Keys(credentials())
    keys.used(key, HOME)
    clock.advance(5)
    peer.used(key, Caller(address="192.0.2.8", client="192.0.2.8"))
    result(peer.service.flush())
    result(keys.service.flush())
    assert used(store) == [(NOW + 5, "192.0.2.8")]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_file_of_the_secret_key_is_made_for_its_owner_only(tmp_path):
    path = tmp_path / "secret.key"
    old = os.umask(0)
    try:
        key = read_or_create(path)
    finally:
        os.umask(old)
    assert re.fullmatch(r"[0-9a-f]{64}_1", key)
    assert mode(path) == 0o600
    assert path.read_text() == f"{key}\n"
    assert read_or_create(path) == key
    assert read_or_create(tmp_path / "other.key") != key


@pytest.mark.parametrize("content", ["", "\n", "  \n"])
def test_an_empty_file_of_the_secret_key_is_filled(tmp_path, content):
    path = tmp_path / "secret.key"
    path.write_text(content)
    path.chmod(0o644)
    key = read_or_create(path)
    assert is_key(key)
    assert path.read_text().strip() == key
    assert mode(path) == 0o600


def test_a_secret_key_of_the_operator_is_taken(tmp_path):
    path = tmp_path / "secret.key"
    path.write_text("my_own_KEY_1\n")
    assert read_or_create(path) == "my_own_KEY_1"


@pytest.mark.parametrize("content", [b"two words", b"a-b", b"\xff\xfe", b"a\nb", "ü".encode()])
def test_what_is_no_secret_key_is_refused(tmp_path, content):
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    with pytest.raises(SecretKeyError, match="expected one line of letters, digits"):
        read_or_create(path)
    assert path.read_bytes() == content


def test_folders_that_cannot_hold_the_secret_key(tmp_path):
    with pytest.raises(SecretKeyError, match="No such file or directory"):
        read_or_create(tmp_path / "none" / "secret.key")
    with pytest.raises(SecretKeyError, match="Is a directory"):
        read_or_create(tmp_path)


def test_a_dangling_link_is_not_followed(tmp_path):
    link = tmp_path / "secret.key"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SecretKeyError):
        read_or_create(link)
    assert not (tmp_path / "elsewhere").exists()
