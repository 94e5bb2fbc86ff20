"""What may be in a broadcast, who sees it and when it is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest
from monrest.broadcasts.model import Broadcast, broadcast_record, checked, file_name, usual_name
from tests.table import each

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp()


def made(**given):
    return Broadcast(
        file="f", record=checked({"text": "x", **given}, NOW, BERLIN), changed=int(NOW)
    )


def test_defaults():
    assert checked({"text": "x"}, NOW, BERLIN) == {
        "name": "", "text": "x", "annotation": "", "contacts": [], "contactgroups": [],
        "expires": "", "hide_before": "", "loginpage": 0, "panorama": 0, "template": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("contacts", "joe, !adm ,,joe", ["joe", "!adm"]),
        ("contacts", ["joe", "! adm", "a,b"], ["joe", "!adm", "a", "b"]),
        ("contacts", "!", []),
        ("contacts", None, []),
        ("expires", "2026-12-24 18:00", "2026-12-24 18:00:00"),
        ("expires", "2026-12-24 18:00:05", "2026-12-24 18:00:05"),
        ("expires", "2026-12-24", "2026-12-24 00:00:00"),
        ("expires", "+1d", "2026-11-22 11:00:00"),
        ("expires", "tomorrow", "2026-11-22 00:00:00"),
        ("expires", None, ""),
        ("hide_before", 1_700_000_000, "2023-11-14 23:13:20"),
        ("loginpage", "true", 1),
        ("loginpage", False, 0),
        ("template", "1", 1),
        ("name", 5, "5"),
        ("own", {"deep": [1]}, {"deep": [1]}),
    ],
)
def test_values(name, value, stored):
    assert checked({"text": "x", name: value}, NOW, BERLIN)[name] == stored


@each(
    ("name", "value"),
    [
        ("name", ["x"]), ("name", "x" * 1001), ("name", "a\0"), ("text", {}), ("text", "x" * 10_001),
        ("text", ""), ("text", " \n"), ("text", None), ("text", "---\nteam: Ops\n---\n"),
        ("text", True), ("annotation", "error"), ("contacts", {}), ("contacts", [1]),
        ("contacts", ["x"] * 1001), ("expires", "soon"), ("expires", "99999999999999"),
        ("expires", "-99999999999"), ("expires", []), ("expires", True), ("hide_before", "2026-02-30"),
        ("loginpage", 2), ("loginpage", "maybe"), ("panorama", []), ("template", 0.5), ("own", 2**70),
    ],
)  # fmt: skip
def test_wrong_values(name, value):
    with pytest.raises(BadRequest) as caught:
        checked({"text": "x", name: value}, NOW, BERLIN)
    assert name in caught.value.description or name == "own"


@pytest.mark.parametrize("text", ["a", "A-1_b", "a.json", "x" * 100])
def test_files(text):
    assert file_name(text) == text.removesuffix(".json")


@pytest.mark.parametrize(
    "text", ["", ".a", "/a", "a/b", "a.b", "ä", "a\n", "a.json.json", "x" * 101]
)
def test_wrong_files(text):
    with pytest.raises(BadRequest, match="invalid file name"):
        file_name(text)


def test_usual_names():
    assert usual_name("joe", NOW, BERLIN) == "2026-11-21-joe"
    assert usual_name("a/../ü@b", NOW, BERLIN) == "2026-11-21-a______b"
    assert usual_name("", NOW, BERLIN) == "2026-11-21-admin"


@pytest.mark.parametrize(
    ("contacts", "groups", "user", "member", "seen"),
    [
        ("", "", "joe", (), True),
        ("", "", "", (), True),
        ("joe", "", "joe", (), True),
        ("joe", "", "ann", (), False),
        ("joe", "", "", (), False),
        ("joe", "ops", "ann", ("ops",), True),
        ("", "ops", "ann", ("web",), False),
        ("!joe", "", "joe", (), False),
        ("!joe", "", "ann", (), True),
        ("joe,!joe", "", "joe", (), False),
        ("", "!ops", "joe", ("ops",), False),
        ("joe", "!ops", "joe", ("ops",), False),
        ("!joe", "ops", "joe", ("ops",), False),
        ("", "ops,!web", "ann", ("ops", "web"), False),
        ("!", "!", "ann", (), True),
    ],
)  # fmt: skip
def test_visible(contacts, groups, user, member, seen):
    assert made(contacts=contacts, contactgroups=groups).visible_to(user, member) is seen


@pytest.mark.parametrize(
    ("given", "active"),
    [
        ({}, True), ({"template": 1}, False),
        ({"expires": "-1s"}, False), ({"expires": "now"}, True), ({"expires": "+1s"}, True),
        ({"hide_before": "+1s"}, False), ({"hide_before": "now"}, True), ({"hide_before": "-1s"}, True),
        ({"hide_before": "-2d", "expires": "-1d"}, False),
    ],
)  # fmt: skip
def test_active(given, active):
    assert made(**given).active(NOW, BERLIN) is active


def test_what_is_shown():
    one = made(name="Title", text="---\nTitle: Mine\nx: y\n---\n{{title}} {{name}} {{x}} {{date}} {{no}}",
               expires="+1d", more=1)  # fmt: skip
    row = broadcast_record(one, NOW, BERLIN)
    assert row["text"] == "Mine Title y 11:00:00 {{no}}"
    assert row["raw_text"].startswith("---")
    assert row["frontmatter"] == {"Title": "Mine", "x": "y"}
    assert (row["author"], row["authoremail"], row["more"]) == ("none", "none", 1)
    assert (row["expires_ts"], row["hide_before_ts"], row["active"]) == (NOW + 86400, 0, 1)
    later = broadcast_record(evolve(one, changed=int(NOW)), NOW + 86400 * 2, BERLIN)
    assert later["macros"]["date"] == "2026-11-21 11:00:00"
    assert later["active"] == 0
