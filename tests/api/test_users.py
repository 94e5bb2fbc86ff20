"""/mon/whoami, /mon/users, lock and unlock."""

import pytest

from monrest.accounts.user_endpoints import COLUMNS
from monrest.base.errors import BadRequest, Forbidden, NotFound, Unavailable
from monrest.base.values import ADMIN, Contact, SiteProblem
from tests.fakes.keystore import result

ANN = Contact(groups=frozenset({"b", "a"}), alias="Ann", email="ann@example.org")
HOSTS = "authorized_for_all_hosts"


def whoami(house, user="ann", **given):
    return house.send("GET", "/mon/whoami", house.as_user(user), **given).value


def rows(house, user="root", **given):
    answer = house.send("GET", "/mon/users", house.as_user(user), **given)
    names = [one.name for one in answer.columns]
    return [
        dict(zip(names, row, strict=False)) | dict(answer.expand(row) if answer.expand else {})
        for row in answer.rows
    ]


def get(house, name, user="root"):
    return house.send("GET", f"/mon/users/{name}", house.as_user(user)).value


def order(house, name, word, user="root"):
    return house.send("POST", f"/mon/users/{name}/cmd/{word}", house.as_user(user))


def patch(house, name, user="ann", **given):
    return house.send("PATCH", f"/mon/users/{name}", house.as_user(user), **given).value


def test_users_choose_their_zone(house):
    assert patch(house, "ann", tz="Asia/Tokyo") == {
        "code": 200,
        "message": "ok - user has been changed",
    }
    assert (whoami(house)["tz"], get(house, "ann")["tz"]) == ("Asia/Tokyo", "Asia/Tokyo")
    patch(house, "ann")
    assert whoami(house)["tz"] == "Asia/Tokyo"
    patch(house, "ann", user="root", tz="")
    assert whoami(house)["tz"] is None


NO_ZONES = [
    *("Server Setting", "Local Browser", "Europe", "Europe/Atlantis", "../etc/passwd", "a\0b"),
    *("/usr/share/zoneinfo/UTC", "UTC;", "zone.tab", "x" * 5000, "\ud800", "Europe.Berlin"),
]


def test_what_is_no_zone_is_refused(house):
    for text in NO_ZONES:
        with pytest.raises(BadRequest, match="tz: expected a time zone"):
            patch(house, "ann", tz=text)
    with pytest.raises(BadRequest, match="'alias': expected only tz"):
        patch(house, "ann", alias="x")
    with pytest.raises(BadRequest):
        patch(house, "ann", tz=["UTC", "UTC"])
    assert whoami(house)["tz"] is None


def test_a_stored_zone_that_is_none_is_that_of_the_server(house):
    """As other programs store it."""
    for text in ("Server Setting", "Local Browser", "Europe"):
        result(house.users.set_zone("ann", text))
        assert whoami(house)["tz"] is None
        assert result(house.users.get("ann")).zone is None


def test_who_changes_whom(house):
    house.directory.known["bob"] = Contact(alias="Bob", can_submit_commands=True)
    with pytest.raises(NotFound, match="no such user"):
        patch(house, "bob", tz="UTC")
    with pytest.raises(NotFound, match="no such user"):
        patch(house, "made up", user="root", tz="UTC")
    patch(house, "bob", user="root", tz="UTC")
    assert get(house, "bob")["tz"] == "UTC"
    house.directory.known["ann"] = Contact(can_submit_commands=False)
    with pytest.raises(Forbidden, match="read_only forbids every change"):
        patch(house, "ann", tz="UTC")


def test_whoami_tells_the_name_before_it_was_changed(house):
    house.configure(lowercase_user=True)
    who = whoami(house, "ANN")
    assert (who["id"], who["original_username"]) == ("ann", "ANN")


def test_users_of_all_sources(house):
    house.configure(
        roles={
            "admin": ("root",),
            "reports": ("rep1, rep2", "team-*", "*"),
            "all_hosts": ("ann",),
        }
    )
    house.directory.known = {"ann": ANN, "con": Contact(alias="C", email=""), "x*y": ANN}
    order(house, "locked", "lock")
    found = {row["id"]: row for row in rows(house)}
    assert list(found) == sorted(["ann", "bob", "con", "locked", "rep1", "rep2", "root"])
    for row in found.values():
        assert set(row) - {"last_login"} == {one.name for one in COLUMNS} - {"last_login"}
    assert found["ann"]["groups"] == ["a", "b"]
    assert HOSTS in found["ann"]["roles"]
    assert ADMIN in found["root"]["roles"]
    assert found["locked"]["locked"] is True
    assert found["bob"]["locked"] is False
    for name in ("ann", "con", "locked", "rep1", "root"):
        assert get(house, name)["roles"] == found[name]["roles"]


def test_roles_of_contact_groups(house):
    house.configure(roles={"admin": ("root",)}, contactgroup_roles={"all_hosts": ("a",)})
    house.directory.known["ann"] = ANN
    assert get(house, "ann")["roles"] == [HOSTS]
    assert {row["id"]: row["roles"] for row in rows(house)}["ann"] == [HOSTS]


@pytest.mark.parametrize(
    "name", ["nobody", "*", "a*", "%00", "%0A", "(cli)", "%ED%A0%80", "..%2Fx"]
)
def test_unknown_users(house, name):
    for method, path in (
        ("GET", f"/mon/users/{name}"),
        ("POST", f"/mon/users/{name}/cmd/unlock"),
    ):
        with pytest.raises(NotFound, match="no such user"):
            house.send(method, path, house.as_user("root"))


def test_sites_that_fail_are_told(house):
    problem = SiteProblem("a", "A", "gone")
    house.directory.problems = (problem,)
    answer = house.send("GET", "/mon/users", house.as_user("root"))
    assert answer.failed_sites == (problem,)
    assert len(answer.rows) == 3


def test_users_while_the_password_file_is_gone(house):
    house.path.unlink()
    assert [row["id"] for row in rows(house)] == ["ann", "root"]


def test_users_that_only_keys_know_can_be_locked(house):
    order(house, "from-a-proxy", "lock")
    with pytest.raises(Forbidden, match="locked"):
        whoami(house, "from-a-proxy")


@pytest.mark.parametrize("name", ["(cli)", "%0Ax", "a%2Fb", "x" * 300])
def test_names_that_cannot_be_locked(house, name, audited):
    with pytest.raises(BadRequest, match="invalid user name"):
        order(house, name, "lock")
    assert audited[-1]["result"] == "invalid user name"
    assert result(house.users.list()) == []


def test_locking_takes_no_parameters(house):
    with pytest.raises(BadRequest, match="'until'"):
        house.send("POST", "/mon/users/ann/cmd/lock", house.as_user("root"), until="tomorrow")


def test_locking_while_the_database_is_away(house, audited):
    whoami(house, "root")
    house.store.down = True
    with pytest.raises(Unavailable):
        order(house, "ann", "lock")
    assert audited[-1]["action"] == "user lock"
    assert audited[-1]["result"] != "ok"
