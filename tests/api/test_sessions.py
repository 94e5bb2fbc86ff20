"""/mon/sessions: what is shown, and to whom."""

import pytest

from monrest.base.errors import NotAuthenticated, NotFound, Unavailable

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


def whoami(house, headers):
    return house.send("GET", "/mon/whoami", headers).value["id"]


def over(house, headers):
    with pytest.raises(NotAuthenticated, match="session is not valid"):
        whoami(house, headers)


def changed(*houses, **passwords):
    """Give the password file of all these daemons another content; they look each second."""
    houses[0].write(**passwords)
    for house in houses:
        house.clock.advance(1)


def test_who_is_taken_out_of_the_password_file_has_no_session(house):
    """On no daemon; the sessions of others go on, and keys do, which belong to a name."""
    other = house.another()
    ann, _ = house.login("ann")
    bob, _ = house.login("bob")
    key = house.send("POST", "/mon/api_keys", house.as_user("ann")).value["private_key"]
    for one in (house, other):
        assert (whoami(one, ann), whoami(one, bob)) == ("ann", "bob")
    changed(house, other, bob="right", cid="right")
    for one in (house, other):
        over(one, ann)
        assert whoami(one, bob) == "bob"
        assert [row["username"] for row in rows(one, one.as_user("root"))] == ["bob"]
        assert whoami(one, {"x-mon-auth-key": key}) == "ann"
    changed(house, other, ann="another")
    over(house, ann)
    over(other, ann)


def test_another_password_ends_a_session(house):
    ann, _ = house.login("ann")
    changed(house, ann="right", bob="right", cid="right")
    assert whoami(house, ann) == "ann"
    changed(house, ann="new", bob="right")
    over(house, ann)
    again, _ = house.login("ann", "new")
    assert whoami(house, again) == "ann"
    over(house, ann)


def test_a_password_file_that_cannot_be_read_ends_no_session(house):
    ann, _ = house.login("ann")
    content = house.path.read_text()
    house.path.unlink()
    house.clock.advance(1)
    with pytest.raises(Unavailable, match="password file"):
        whoami(house, ann)
    house.path.write_text(content)
    house.clock.advance(1)
    assert whoami(house, ann) == "ann"


def test_without_a_password_file_there_are_no_sessions(house):
    ann, _ = house.login("ann")
    house.configure(htpasswd_file="")
    over(house, ann)
