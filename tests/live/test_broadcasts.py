"""Broadcasts over the API: writing, reading, who sees them, what is shown before the login."""

import threading

import pytest
from harness.client import Client
from harness.daemon import site
from harness.expect import refused

PATH = "/mon/broadcasts"


@pytest.fixture(scope="module")
def server(embedded, shared):
    return shared.daemon(
        [site("s1", embedded)], sections={"auth.roles": {"admin": ["admin"], "broadcasts": ["ed"]}}
    ).start()


@pytest.fixture
def ed(server):
    with server.client("ed") as client:
        yield client
        for row in client.rows(PATH):
            assert client.request("DELETE", f"{PATH}/{row['file']}").status == 200


@pytest.fixture
def olga(server):
    """A contact in the group webteam."""
    with server.client("olga") as client:
        yield client


def create(client, **fields):
    response = client.post_json(PATH, {"text": "x", **fields})
    assert response.status == 200, response
    assert response.json["message"] == "successfully created broadcast."
    return response.json["file"]


def test_a_life(ed):
    text = "---\nteam: Ops\n---\nHello **{{team}}**, by {{contact}} <script>x</script>{{unknown}}"
    assert create(ed, file="first", name="One", text=text, expires="2030-01-01 00:00") == "first"
    row = ed.rows(f"{PATH}/first.json")
    assert row == ed.rows("/mon/broadcast/first")
    assert row["text"] == "Hello **Ops**, by ed <script>x</script>{{unknown}}"
    assert "<strong>Ops</strong>" in row["html"]
    assert "script" not in row["html"]
    assert row["raw_text"] == text
    assert row["frontmatter"] == {"team": "Ops"}
    assert (row["author"], row["authoremail"]) == ("ed", "none")
    assert (row["file"], row["active"], row["hide_before_ts"]) == ("first", 1, 0)
    assert row["expires_ts"] > 1_890_000_000
    assert ed.patch(f"{PATH}/first", {"name": "Two", "own": {"a": 1, "b": None}}).json == {
        "count": 1, "message": "successfully saved 1 broadcast.",
    }  # fmt: skip
    after = ed.rows(f"{PATH}/first")
    assert (after["name"], after["raw_text"], after["own"]) == ("Two", text, {"a": 1})
    assert ed.patch(f"{PATH}/first", after).status == 200
    assert ed.post_json(f"{PATH}/first", {"name": "Three", "text": "3"}).status == 200
    replaced = ed.rows(f"{PATH}/first")
    assert (replaced["name"], replaced["text"], replaced["expires_ts"]) == ("Three", "3", 0)
    assert "own" not in replaced
    assert ed.request("DELETE", f"{PATH}/first").json == {
        "count": 1, "message": "successfully removed 1 broadcast.",
    }  # fmt: skip
    refused(ed.get(f"{PATH}/first"), 404, "no such broadcast")
    refused(ed.request("DELETE", f"{PATH}/first"), 404, "no such broadcast")


def test_lists(ed):
    files = [create(ed, name=str(number)) for number in range(3)]
    assert files[1] == f"{files[0]}_1"
    create(ed, file="zz", name="late", hide_before="+1d", own=1)
    create(ed, file="old", name="over", expires="-1s")
    create(ed, file="a", name="pattern", template="1")
    assert ed.values(PATH, "file") == sorted(ed.values(PATH, "file"))
    assert set(ed.values(PATH, "name", active="1")) == {"0", "1", "2"}
    rows = {row["file"]: row for row in ed.rows(PATH)}
    assert rows["zz"]["own"] == 1
    assert "own" not in rows["old"]
    assert ed.values(PATH, "file", own="1") == ["zz"]
    refused(ed.get(f"{PATH}?nothing=1"), 400, "possible typo in filter")
    assert (
        ed.get(f"/csv{PATH}?columns=file,name&sort=-file&limit=1").text == "#file;name\nzz;late\n"
    )


def test_a_form(ed):
    assert (
        ed.post_form(
            PATH, [("file", "form"), ("name", "F"), ("contacts", "joe,!adm"), ("text", "x")]
        ).status
        == 200
    )
    row = ed.rows(f"{PATH}/form")
    assert (row["name"], row["contacts"]) == ("F", ["joe", "!adm"])


def test_the_token_of_sessions_is_no_field(ed):
    create(ed, file="mine", CSRFtoken="x", other="kept")
    row = ed.rows(f"{PATH}/mine")
    assert (row["other"], "CSRFtoken" in row) == ("kept", False)
    assert ed.post_form(f"{PATH}/mine", {"text": "y", "CSRFtoken": "x"}).status == 200
    assert "CSRFtoken" not in ed.rows(f"{PATH}/mine")


def test_who_sees_what(ed, olga, server):
    for name, fields in {
        "all": {}, "hers": {"contacts": "olga"}, "his": {"contacts": "joe"},
        "group": {"contactgroups": ["webteam"]}, "other": {"contactgroups": ["admins"]},
        "nother": {"contacts": "!olga"}, "notgroup": {"contactgroups": "!webteam"},
    }.items():  # fmt: skip
        create(ed, file=name, name=name, loginpage=1, **fields)
    create(ed, file="inside", name="inside")
    create(ed, file="past", name="past", loginpage=1, expires="-1s")
    assert set(olga.values(PATH, "file")) == {"all", "hers", "group", "inside", "past"}
    refused(olga.get(f"{PATH}/nother"), 404, "no such broadcast")
    assert len(ed.rows(PATH)) == 9
    with Client(server.port, None, None) as nobody:
        rows = nobody.rows("/mon/login")
        assert [row["file"] for row in rows] == ["nother", "notgroup", "all"]
        assert set(rows[0]) == {"annotation", "file", "html", "name", "text"}
        assert nobody.get(PATH).status == 401


def test_writing_needs_the_role(ed, olga):
    create(ed, file="one", name="one")
    for response in (
        olga.post_json(PATH, {"name": "x"}),
        olga.post_json(f"{PATH}/one", {"name": "x", "text": "x"}),
        olga.patch(f"{PATH}/one", {"name": "x"}),
        olga.request("DELETE", f"{PATH}/one"),
    ):
        refused(response, 403, "not authorized")
    assert ed.rows(f"{PATH}/one")["name"] == "one"


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"file": "../x"}, 400, "invalid file name"),
        ({"file": ".x"}, 400, "invalid file name"),
        ({"file": ["x"]}, 400, "invalid file name"),
        ({"expires": "whenever"}, 400, "expires: expected"),
        ({"annotation": "fatal"}, 400, "annotation: expected"),
        ({"contacts": {"a": 1}}, 400, "contacts: expected"),
        ({"loginpage": 5}, 400, "loginpage: expected"),
        ({"text": "x" * 10_001}, 400, "text: expected"),
        ({"text": ""}, 400, "text: expected"),
        ({"text": " \n"}, 400, "text: expected"),
        ({"text": None}, 400, "text: expected"),
        ({"file": "taken"}, 409, "the file exists"),
        ([], 400, "request body: expected"),
    ],
)
def test_bad_input(ed, fields, status, words):
    create(ed, file="taken", name="x")
    response = ed.post_json(PATH, {"text": "x", **fields} if fields else fields)
    assert response.status == status, response
    assert words in response.text


def test_a_patch_that_is_too_deep(ed):
    create(ed, file="deep", name="x", own=[])
    deep = {"a": 1}
    for _ in range(200):
        deep = {"a": deep}
    assert ed.patch(f"{PATH}/deep", {"own": deep}).status == 400
    assert ed.patch(f"{PATH}/deep", {"own": {"999999999": 1, "x": 2}}).status == 400


def test_many_at_once(ed, server):
    """Each gets a name of its own; of patches of one record none is lost unnoticed."""
    files, saved = [], []

    def work():
        with server.client("ed") as client:
            files.append(create(client, name="same"))
            saved.append(client.patch(f"{PATH}/{files[0]}", {f"n{len(files)}": 1}).status)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(files)) == 8
    assert set(saved) <= {200, 409}
