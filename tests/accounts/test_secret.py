"""The secret key's file."""

import os
import re
import stat

import pytest

from monrest.accounts.secret_key import SecretKeyError, is_key, read_or_create


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_file_is_made_for_its_owner_only(tmp_path):
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
def test_an_empty_file_is_filled(tmp_path, content):
    path = tmp_path / "secret.key"
    path.write_text(content)
    path.chmod(0o644)
    key = read_or_create(path)
    assert is_key(key)
    assert path.read_text().strip() == key
    assert mode(path) == 0o600


def test_a_key_of_the_operator_is_taken(tmp_path):
    path = tmp_path / "secret.key"
    path.write_text("my_own_KEY_1\n")
    assert read_or_create(path) == "my_own_KEY_1"


@pytest.mark.parametrize("content", [b"two words", b"a-b", b"\xff\xfe", b"a\nb", "ü".encode()])
def test_what_is_no_key_is_refused(tmp_path, content):
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    with pytest.raises(SecretKeyError, match="expected one line of letters, digits"):
        read_or_create(path)
    assert path.read_bytes() == content


def test_folders_that_cannot_hold_it(tmp_path):
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
