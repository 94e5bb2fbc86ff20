"""``monrest key`` against a fake daemon."""

import json

import pytest

from monrest.cli.main import main

PATH = "/mon/r/mon/api_keys"
IDS = ("a" * 64, "ab" * 32, "c" * 64)
MADE = {"private_key": "plain_1", "hashed_key": IDS[0], "message": "ok", "file": "x"}
ROWS = [
    {"hashed_key": IDS[0], "user": "olga", "created": 1_700_000_000, "comment": "first\x1b[2J"},
    {"hashed_key": IDS[1], "superuser": 1, "force_user": "bot", "created": 1_800_000_000, "comment": "",
     "roles": ["authorized_for_read_only", "authorized_for_admin"], "last_used": 1_800_000_000, "last_from": "::1"},
    {"hashed_key": IDS[2], "superuser": 1, "created": 1_750_000_000, "roles": []},
]  # fmt: skip


def test_create(fake, monrest):
    fake.answers[PATH] = (200, MADE)
    ran = monrest(
        "key", "create", "--user", "olga", "--role", "read_only", "--role=all_hosts", "--comment", "ä",
    )  # fmt: skip
    assert (ran.status, ran.out) == (0, "plain_1\n")
    assert "plain_1" not in ran.err
    assert f"made API key {IDS[0][:16]}" in ran.err
    seen = fake.seen[0]
    assert (seen.method, seen.target) == ("POST", PATH)
    assert seen.json == {"username": "olga", "roles": ["read_only", "all_hosts"], "comment": "ä"}


def test_create_for_a_superuser(fake, monrest):
    fake.answers[PATH] = (200, MADE)
    ran = monrest("key", "create", "--superuser", "--force-user", "bot", "--json", "-q")
    assert (ran.status, json.loads(ran.out), ran.err) == (0, MADE, "")
    assert fake.seen[0].json == {"superuser": 1, "force_user": "bot"}


def test_the_administrator_of_the_socket_must_say_for_whom(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["key", "create", "--url", f"unix:{tmp_path}/none"]) == 2
    assert "expected --user NAME or --superuser" in capfd.readouterr().err


def test_an_answer_without_a_key(fake, monrest):
    fake.answers[PATH] = (200, b"[]")
    assert "did not tell the key" in monrest("key", "create").err
    fake.answers[PATH] = (200, {})
    assert monrest("key", "create").status == 1


@pytest.mark.parametrize("words", [("create",), ("list",), ("revoke", "abcdef")])
def test_refusals_are_told(fake, monrest, words):
    fake.answers[PATH] = (403, {"code": 403, "message": "no permission", "description": "why"})
    ran = monrest("key", *words)
    assert (ran.status, ran.out) == (1, "")
    assert "monrest: 403 no permission: why" in ran.err
    assert "without a key" in ran.err
    fake.answers[PATH] = (500, b"<html>")
    assert "monrest: 500" in monrest("key", *words).err


def test_list(fake, monrest, monkeypatch):
    fake.answers[PATH] = (200, ROWS)
    lines = monrest("key", "list").out.splitlines()
    assert lines[0].split() == [
        "ID",
        "OWNER",
        "ROLES",
        "CREATED",
        "LAST",
        "USED",
        "FROM",
        "COMMENT",
    ]
    assert [line.split()[0] for line in lines[1:]] == [IDS[1][:16], IDS[2][:16], IDS[0][:16]]
    assert "(superuser) as bot" in lines[1]
    assert "read_only,admin" in lines[1]
    assert " none " in lines[2]
    assert lines[3].endswith("first?[2J")
    assert " all " in lines[3]
    assert json.loads(monrest("key", "list", "--json").out) == ROWS
    fake.answers[PATH] = (200, {"no": "list"})
    assert "expected a list of keys" in monrest("key", "list").err


def test_revoke(fake, monrest):
    fake.answers[PATH] = (200, ROWS)
    for identifier in IDS:
        fake.answers[f"{PATH}/{identifier}"] = (200, {"message": "removed"})
    ran = monrest("key", "revoke", IDS[1][:8], IDS[2], IDS[2][:10])
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"revoked {IDS[1][:16]}\nrevoked {IDS[2][:16]}\n"
    assert [(seen.method, seen.target) for seen in fake.seen[1:]] == [
        ("DELETE", f"{PATH}/{IDS[1]}"),
        ("DELETE", f"{PATH}/{IDS[2]}"),
    ]
    assert json.loads(monrest("key", "revoke", "--json", IDS[0]).out) == {"message": "removed"}


@pytest.mark.parametrize(
    ("beginning", "told", "status"),
    [
        ("aa", "expected at least 6 characters", 2),
        ("ffffff", "no such api key", 1),
        ("", "expected at least", 2),
    ],
)
def test_revoke_nothing_unless_all_are_known(fake, monrest, beginning, told, status):
    fake.answers[PATH] = (200, ROWS)
    ran = monrest("key", "revoke", IDS[2], beginning)
    assert (ran.status, ran.out) == (status, "")
    assert told in ran.err
    assert [seen.method for seen in fake.seen] == ["GET"]


def test_revoke_what_is_ambiguous(fake, monrest):
    fake.answers[PATH] = (200, [{"hashed_key": "abcdef1"}, {"hashed_key": "abcdef2"}])
    assert "more than one such api key" in monrest("key", "revoke", "abcdef").err
