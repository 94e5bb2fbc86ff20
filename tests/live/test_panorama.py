"""Dashboards over the API: their life, numbers, who may do what, maintenance, scripted ones."""

import threading

import pytest
from harness.daemon import site
from harness.expect import refused

from tests.table import each

PATH = "/mon/panorama"
NONE = "no such dashboard"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def server(embedded, folder, shared):
    return shared.daemon(
        [site("s1", embedded)],
        sections={
            "auth.roles": {"admin": ["admin"], "read_only": ["guest"]},
            "panorama": {"folder": str(folder), "script_timeout": 20},
        },
    ).start()


@pytest.fixture
def admin(server, folder):
    with server.client() as client:
        yield client
        for path in folder.iterdir():
            path.unlink()
        for row in client.rows(PATH):
            assert client.request("DELETE", f"{PATH}/{row['nr']}").status == 200


@pytest.fixture
def olga(server):
    """A contact in the group webteam."""
    with server.client("olga") as client:
        yield client


def board(title="T", **settings):
    panel = {"xdata": {"cls": "TP.HostStatusIcon", "general": {"host": "web01"}}}
    return {"tab": {"xdata": {"title": title, **settings}}, "panlet_1": panel}


def create(client, record=None, **settings):
    response = client.post_json(PATH, board(**settings) if record is None else record)
    assert response.status == 200, response
    assert response.json["message"] == "successfully created dashboard."
    return response.json["nr"]


def test_sites_as_other_front_ends_store_them(admin):
    sites = [{"s1": "Site One"}, "s2", {"a": "A", "b": "B"}]
    nr = create(admin, backends=sites)
    assert admin.rows(f"{PATH}/{nr}")["tab"]["xdata"]["backends"] == ["s1", "s2", "a", "b"]
    admin.request("DELETE", f"{PATH}/{nr}")


def test_a_life(admin):
    nr = create(admin, title="One", refresh=30, backends=["s1"])
    assert nr == 1
    row = admin.rows(f"{PATH}/1")
    assert row == admin.rows(PATH)[0]
    assert (row["id"], row["nr"], row["file_version"], row["objects"]) == ("pantab_1", 1, 2, 1)
    assert (row["readonly"], row["scripted"], row["user"]) == (0, 0, "admin")
    settings = row["tab"]["xdata"]
    assert (settings["title"], settings["state_type"], settings["owner"]) == (
        "One",
        "soft",
        "admin",
    )
    assert row["file"] == settings["file"]
    assert "maintenance" not in row
    assert admin.patch(f"{PATH}/1", {
        "tab": {"xdata": {"title": "Two", "refresh": None}},
        "panlet_7": {"xdata": {"state": 2, "layout": {"x": 1}}},
    }).json == {"count": 1, "message": "successfully saved 1 dashboard."}  # fmt: skip
    after = admin.rows(f"{PATH}/1")
    assert (after["tab"]["xdata"]["title"], after["objects"]) == ("Two", 2)
    assert after["panlet_1"] == row["panlet_1"]
    assert after["panlet_7"]["xdata"] == {"state": 2, "layout": {"x": 1}}
    assert "refresh" not in after["tab"]["xdata"]
    # What was read can be sent.
    assert admin.post_json(f"{PATH}/1", after).status == 200
    again = admin.rows(f"{PATH}/1")
    assert {**again, "ts": 0} == {**after, "ts": 0}
    assert admin.patch(f"{PATH}/1", {"panlet_1": None}).status == 200
    assert admin.rows(f"{PATH}/1?columns=objects,nr") == {"nr": 1, "objects": 1}
    former = admin.rows(f"{PATH}/1/backups")
    assert [(one["title"], one["objects"]) for one in former] == [("One", 1)]
    assert admin.post_json(f"{PATH}/1", former[0]["dashboard"]).status == 200
    assert admin.rows(f"{PATH}/1")["tab"]["xdata"]["title"] == "One"
    assert admin.request("DELETE", f"{PATH}/1").json["count"] == 1
    refused(admin.get(f"{PATH}/1"), 404, NONE)
    refused(admin.request("DELETE", f"{PATH}/1"), 404, NONE)
    assert admin.rows(PATH) == []


def test_numbers_are_the_lowest_free_ones(admin, folder):
    script(folder, "2", "echo '{}'")
    assert [create(admin) for _ in range(3)] == [1, 3, 4]
    assert admin.request("DELETE", f"{PATH}/3").status == 200
    assert [create(admin) for _ in range(2)] == [3, 5]


def test_two_who_write_one_dashboard(admin, server):
    """The client that gets a 409 reads again; then no panel is lost."""
    nr, answers = create(admin), []

    def work(first):
        with server.client() as client:
            for number in range(first, first + 5):
                patch = {f"panlet_{number}": {"xdata": {"cls": "x"}}}
                while (answer := client.patch(f"{PATH}/{nr}", patch)).status == 409:
                    pass
                answers.append(answer.status)

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [200] * 10
    assert admin.rows(f"{PATH}/{nr}")["objects"] == 11


def test_lists(admin):
    for title in ("b", "a", "c"):
        create(admin, title=title)
    assert admin.values(PATH, "nr") == [2, 1, 3]
    assert admin.values(PATH, "nr", sort="-nr", limit="2") == [3, 2]
    assert admin.values(PATH, "nr", **{"nr[gte]": "2", "sort": "nr"}) == [2, 3]
    assert len(admin.rows(PATH, {"user": "admin"})) == 3
    refused(admin.get(f"{PATH}?nothing=1"), 400, "possible typo in filter")


def test_older_forms(admin):
    nr = create(admin, {
        "file_version": 1, "public": 1, "tab": {"xdata": {"title": "old"}},
        "pantab_3_panlet_2": {"xdata": {"label": {"offsetx": 1, "offsety": 2}}},
    })  # fmt: skip
    row = admin.rows(f"{PATH}/{nr}")
    assert row["file_version"] == 2
    assert row["panlet_2"]["xdata"]["label"] == {"offsetx": 2, "offsety": 1}
    assert row["tab"]["xdata"]["groups"] == [{"*": "read-only"}]


@pytest.mark.parametrize(
    ("settings", "seen", "writes", "owns"),
    [
        ({}, False, False, False),
        ({"groups": [{"*": "read-only"}]}, True, False, False),
        ({"groups": [{"webteam": "read-write"}, {"*": "read-only"}]}, True, True, False),
        ({"groups": [{"admins": "read-write"}]}, False, False, False),
        ({"users": [{"olga": "read-write"}]}, True, True, False),
        ({"groups": [{"*": "read-write"}], "users": [{"olga": "read-only"}]}, True, False, False),
        ({"users": [{"*": "read-write"}]}, False, False, False),
        (None, True, True, True),
    ],
)
def test_who_may_do_what(admin, olga, settings, seen, writes, owns):
    record = board(**(settings or {}))
    if settings is None:
        record["user"] = "olga"
    nr = create(admin, record)
    path = f"{PATH}/{nr}"
    assert [row["readonly"] for row in olga.rows(PATH)] == [int(not writes)] * seen
    if not seen:
        for answer in (
            olga.get(path),
            olga.patch(path, {"tab": {}}),
            olga.post_json(path, board()),
            olga.request("DELETE", path),
            olga.post_form(f"{path}/maintenance", {"text": "x"}),
            olga.request("DELETE", f"{path}/maintenance"),
            olga.get(f"{path}/backups"),
        ):
            refused(answer, 404, NONE)
        return
    assert olga.rows(path)["nr"] == nr

    def check(answer, allowed):
        if allowed:
            assert answer.status == 200, answer
        else:
            refused(answer, 403, "permission denied")

    check(olga.post_form(f"{path}/maintenance", {"text": "x"}), writes)
    check(olga.request("DELETE", f"{path}/maintenance"), writes)
    check(olga.patch(path, {"tab": {"xdata": {"title": "mine"}}}), writes)
    check(olga.get(f"{path}/backups"), writes)
    check(olga.patch(path, {"tab": {"xdata": {"users": [{"joe": "read-only"}]}}}), owns)
    check(olga.patch(path, {"user": "joe"}), False)
    check(olga.request("DELETE", path), owns)


def test_a_user_who_may_change_something_creates(admin, olga, server):
    nr = create(olga, {**board(), "user": "admin"})
    assert admin.rows(f"{PATH}/{nr}")["user"] == "olga"
    with server.client("guest") as guest:
        refused(
            guest.post_json(PATH, board()), 403, "authorized_for_read_only forbids every change"
        )


def test_panels_show_each_user_his_own(admin, olga, server):
    nr = create(admin, groups=[{"*": "read-write"}])
    for client, page in ((admin, 1), (olga, 2)):
        patch = {"panlet_1": {"xdata": {"currentPage": page, "stateHist": {"a": page}}}}
        assert client.patch(f"{PATH}/{nr}", patch).status == 200
    with server.client("joe") as joe:
        assert "currentPage" not in joe.rows(f"{PATH}/{nr}")["panlet_1"]["xdata"]
    assert admin.rows(f"{PATH}/{nr}")["panlet_1"]["xdata"]["currentPage"] == 1
    assert olga.rows(PATH)[0]["panlet_1"]["xdata"]["stateHist"] == {"a": 2}


def test_maintenance(admin):
    nr = create(admin, title="M")
    path = f"{PATH}/{nr}/maintenance"
    answer = admin.request("POST", path)
    refused(answer, 400, "missing argument: text")
    assert answer.json["description"] == "text is a required argument"
    for text in ("weekend", ""):
        answer = admin.post_form(path, {"text": text})
        assert answer.json == {"message": "dashboard M put into maintenance mode"}
        assert admin.rows(f"{PATH}/{nr}")["maintenance"] == text
    assert admin.rows(PATH)[0]["maintenance"] == ""
    for _ in range(2):
        assert admin.request("DELETE", path).json == {
            "message": "maintenance mode removed from dashboard M"
        }
        assert "maintenance" not in admin.rows(f"{PATH}/{nr}")
    untitled = create(admin, title="")
    answer = admin.post_json(f"{PATH}/{untitled}/maintenance", {"text": "x"})
    assert answer.json == {"message": "dashboard no name put into maintenance mode"}
    # It ends with the dashboard.
    admin.request("DELETE", f"{PATH}/{untitled}")
    assert create(admin) == untitled
    assert "maintenance" not in admin.rows(f"{PATH}/{untitled}")
    refused(admin.post_form(f"{PATH}/999/maintenance", {"text": "x"}), 404, NONE)


@each(
    ("fields", "words"),
    [
        ({"tab": 1}, "tab: expected"),
        ({"tab": {"xdata": []}}, "tab: expected"),
        ({"tab": {"xdata": {"title": {}}}}, "tab.xdata.title: expected"),
        ({"tab": {"xdata": {"refresh": "soon"}}}, "tab.xdata.refresh: expected"),
        ({"tab": {"xdata": {"state_type": "x"}}}, "tab.xdata.state_type: expected"),
        ({"tab": {"xdata": {"backends": "s1"}}}, "tab.xdata.backends: expected"),
        ({"tab": {"xdata": {"backends": [{}]}}}, "tab.xdata.backends: expected"),
        ({"tab": {"xdata": {"backends": [{"s1": 1}]}}}, "tab.xdata.backends: expected"),
        ({"tab": {"xdata": {"backends": [["s1"]]}}}, "tab.xdata.backends: expected"),
        ({"tab": {"xdata": {"groups": {"a": 1}}}}, "tab.xdata.groups: expected"),
        ({"tab": {"xdata": {"users": [{"a": "all"}]}}}, "tab.xdata.users: expected"),
        ({"panlet_1": "x"}, "panlet_1: expected"),
        ({"panlet_1": {"xdata": {"layout": 1}}}, "panlet_1.xdata.layout: expected"),
        ({"panlet_1": {}, "panlet_01": {}}, "panlet_1: expected only one"),
        ({"panlet_x": {}}, "'panlet_x': expected"),
        ({"file_version": 3}, "file_version: expected"),
        ({"user": ["x"]}, "user: expected"),
        ({"tab": {"xdata": {"title": "a\0b"}}}, "tab.xdata.title: expected"),
        ([], "request body: expected"),
    ],
)
def test_bad_input(admin, fields, words):
    response = admin.post_json(PATH, fields)
    assert response.status == 400, response
    assert words in response.text
    nr = create(admin)
    response = admin.post_json(f"{PATH}/{nr}", fields)
    assert response.status == 400, response


def test_strange_paths_and_bodies(admin):
    for nr in ("0", "-1", "1e3", "x", "%2F", "..%2f..", "9" * 400, "%00"):
        answer = admin.get(f"{PATH}/{nr}")
        assert answer.status in (400, 404), answer
    deep = {}
    for _ in range(300):
        deep = {"a": deep}
    assert admin.post_json(PATH, {"panlet_1": {"xdata": deep}}).status == 400
    for size, status in ((1_500_000, 400), (5_000_000, 413)):
        long = {"panlet_1": {"xdata": {"a": "x" * size}}}
        assert admin.post_json(PATH, long).status == status
    assert admin.rows(PATH) == []


def script(folder, name, body, *head, mode=0o755):
    path = folder / f"{name}.tab"
    path.write_text("#!/bin/sh\n" + "".join(f"# {line}\n" for line in head) + body + "\n")
    path.chmod(mode)
    return path


def test_scripted(admin, olga, folder, server):
    body = (
        "cat <<E\n# of $REMOTE_USER\n"
        '{"tab": {"xdata": {"title": "of $DASHBOARD for $REMOTE_USER"},}, "ts": 12.5,\n'
        '"panlet_1": {"xdata": {"cls": "$REMOTE_USER_GROUPS",},},}\nE'
    )
    path = script(folder, "auto", body, 'groups: [{"webteam": "read-write"}]')
    script(folder, "7", body, "title: fixed", "user: joe", 'groups: {"*": "read-only"}')
    script(folder, "secret", "touch $DASHBOARD_FILE.ran; echo '{}'", "user: joe")
    script(folder, "plain", body, mode=0o644)
    rows = {row["nr"]: row for row in olga.rows(PATH)}
    assert set(rows) == {7, "auto"}
    assert not (folder / "secret.tab.ran").exists()
    assert rows[7]["tab"]["xdata"]["title"] == "fixed"
    row = olga.rows(f"{PATH}/auto")
    assert row["tab"]["xdata"]["title"] == "of auto for olga"
    assert row["panlet_1"]["xdata"]["cls"] == "webteam"
    assert (row["scripted"], row["readonly"], row["ts"], row["file"]) == (1, 1, 12.5, str(path))
    assert (row["objects"], rows[7]["user"]) == (1, "joe")
    for answer in (
        olga.patch(f"{PATH}/auto", {"tab": {}}),
        admin.post_json(f"{PATH}/auto", board()),
        admin.request("DELETE", f"{PATH}/auto"),
    ):
        refused(answer, 403, "permission denied")
    assert olga.post_form(f"{PATH}/auto/maintenance", {"text": "x"}).status == 200
    assert olga.rows(f"{PATH}/auto")["maintenance"] == "x"
    refused(olga.post_form(f"{PATH}/7/maintenance", {"text": "x"}), 403, "permission denied")
    assert admin.request("DELETE", f"{PATH}/auto/maintenance").status == 200
    for found in folder.iterdir():
        found.unlink()


def test_scripts_that_fail_are_left_out(admin, folder, server):
    script(folder, "good", "echo '{}'")
    script(folder, "failing", "echo broken luck >&2; exit 3")
    script(folder, "broken", "echo '{\"tab\": '")
    script(folder, "list", "echo '[]'")
    script(folder, "wrong", "echo '{\"tab\": 5}'")
    script(folder, "much", "head -c 2000000 /dev/zero")
    script(folder, "header", "echo '{}'", "groups: nonsense")
    (folder / "nothing.tab").write_text("no interpreter")
    (folder / "nothing.tab").chmod(0o755)
    assert [row["nr"] for row in admin.rows(PATH)] == ["good"]
    refused(admin.get(f"{PATH}/failing"), 404, NONE)
    assert "broken luck" in server.log
    for found in folder.iterdir():
        found.unlink()
