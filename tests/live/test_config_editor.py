"""The file editor's sections and files over a real socket."""

import pytest
from harness.daemon import site


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    for name in ("d1/a.conf", "d1/sub/b.conf", "d1/c.txt", "d2/x.cfg", "other/y.conf"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "d1" / "loop").symlink_to(folder / "d1")
    (folder / "d1" / "linked").symlink_to(folder / "other")
    (folder / "d1" / "broken.conf").symlink_to(folder / "nothing")
    return folder


@pytest.fixture(scope="module")
def daemon(embedded, folder, shared):
    editor = [
        {
            "name": "Web",
            "groups": ["webteam"],
            "files": [
                {"folder": [f"{folder}/d1/"], "filter": ["[.]conf$"], "syntax": "ini"},
                {
                    "folder": [f"{folder}/d1/a.conf"],
                    "action": "Check",
                    "post_save_cmd": "true",
                },
            ],
        },
        {
            "name": "All",
            "files": [
                {
                    "folder": [f"{folder}/d2", f"{folder}/none"],
                    "pre_save_cmd": "true",
                    "show_summary_prompt": False,
                }
            ],
        },
    ]
    return shared.daemon([site("s1", embedded)], sections={"": {"editor": editor}}).start()


def test_sections_as_configured(daemon, folder):
    with daemon.client() as admin:
        assert admin.rows("/mon/editor") == [
            {
                "name": "Web",
                "groups": ["webteam"],
                "files": [
                    {"folder": [f"{folder}/d1"], "filter": ["[.]conf$"], "syntax": "ini"},
                    {
                        "folder": [f"{folder}/d1/a.conf"],
                        "filter": [],
                        "action": "Check",
                        "post_save_cmd": "true",
                    },
                ],
            },
            {
                "name": "All",
                "groups": [],
                "files": [
                    {
                        "folder": [f"{folder}/d2", f"{folder}/none"],
                        "filter": [],
                        "pre_save_cmd": "true",
                        "show_summary_prompt": 0,
                    }
                ],
            },
        ]


def test_files_of_the_sections(daemon, folder):
    with daemon.client() as admin:
        rows = admin.rows("/mon/editor/files")
        assert rows == admin.rows("/mon/editor/file")
    web = [row for row in rows if row["section"] == "Web"]
    names = [row["file"].removeprefix(f"{folder}/") for row in web]
    assert names == ["d1/a.conf", "d1/linked/y.conf", "d1/sub/b.conf"]
    assert web[0] == {
        "file": f"{folder}/d1/a.conf",
        "path": f"{folder}/d1/a.conf",
        "section": "Web",
        "syntax": None,
        "action": ["Check"],
        "has_save_prompt": 1,
    }
    assert (web[1]["path"], web[1]["syntax"], web[1]["action"]) == (f"{folder}/d1", "ini", [])
    assert [row for row in rows if row["section"] == "All"] == [
        {
            "file": f"{folder}/d2/x.cfg",
            "path": f"{folder}/d2",
            "section": "All",
            "syntax": None,
            "action": [],
            "has_save_prompt": 0,
        }
    ]


def test_sections_are_for_contact_groups_or_for_all_users(daemon):
    for user, names in (("olga", ["Web", "All"]), ("stranger", ["All"])):
        with daemon.client(user) as client:
            assert [row["name"] for row in client.rows("/mon/editor")] == names
            sections = {row["section"] for row in client.rows("/mon/editor/files")}
            assert sections == set(names)
