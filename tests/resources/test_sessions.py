"""/mon/sessions: what is shown, and to whom."""

import pytest

from monrest.errors import NotFound

PATH = "/mon/sessions"


def rows(house, headers, **given):
    answer = house.send("GET", PATH, headers, **given)
    names = [one.name for one in answer.columns]
    return [dict(zip(names, row, strict=False)) for row in answer.rows]


def test_everybody_sees_his_own(house):
    ann, token = house.login("ann")
    house.clock.advance(1)
    bob, _ = house.login("bob")
    assert [row["username"] for row in rows(house, house.as_user("root"))] == ["ann", "bob"]
    (row,) = rows(house, bob)
    assert set(row) == {
        *("active", "address", "digest", "fake", "file", "hashed_key", "oauth_groups"),
        *("roles", "username"),
    }
    assert row["address"] == "192.0.2.7"
    assert row["digest"] == "SHA-256"
    assert row["roles"] == []
    assert row["file"] == f"sessions/{row['hashed_key']}.SHA-256"
    everything = str(rows(house, house.as_user("root")))
    for secret in (token, ann["cookie"].partition("=")[2], bob["cookie"].partition("=")[2]):
        assert secret not in everything
    assert rows(house, house.as_user("eve")) == []


def test_one_session(house):
    ann, _ = house.login("ann")
    (row,) = rows(house, ann)
    path = f"{PATH}/{row['hashed_key']}"
    assert house.send("GET", path, ann).value == row
    assert house.send("GET", path, house.as_user("root")).value == row
    assert house.send("GET", path, ann, columns="username:u").value == {"u": "ann"}
    for headers, other in (
        (house.as_user("bob"), path),
        (ann, f"{PATH}/{'0' * 64}"),
        (house.as_user("root"), f"{PATH}/%00"),
        (house.as_user("root"), f"{PATH}/{ann['cookie'].partition('=')[2]}"),
    ):
        with pytest.raises(NotFound, match="no such session"):
            house.send("GET", other, headers)


def test_filters_and_columns(house):
    house.login("ann")
    house.login("bob")
    root = house.as_user("root")
    assert rows(house, root, username="BOB", columns="username") == [{"username": "bob"}]
    assert rows(house, root, sort="-username", columns="username", limit="1") == [
        {"username": "bob"}
    ]


def test_sessions_that_are_over_are_not_shown(house):
    house.configure(session_idle=100.0)
    ann, _ = house.login("ann")
    (row,) = rows(house, ann)
    house.clock.advance(100)
    assert rows(house, house.as_user("root")) == []
    with pytest.raises(NotFound):
        house.send("GET", f"{PATH}/{row['hashed_key']}", house.as_user("root"))
