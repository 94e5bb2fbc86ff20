"""Creating, replacing, changing and deleting objects."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest, Conflict, Forbidden, NotFound
from monrest.objectconfig.model import load
from monrest.objectconfig.object_editor import Editor
from tests.examples import examples
from tests.fakes.objectfiles import changed, define, site, write
from tests.table import each

HOSTS = (
    "# one\n"
    + define("host", "host_name  h1 ; mine", "alias\tOne", "parents a, b")
    + "# two\n\n"
    + define("host", "host_name h2", "unknown x")
    + "# end\n"
)


def only(model, name):
    (found,) = model.find("host", name)
    return found


@each(
    ("kind", "file", "values", "error", "text"),
    [
        ("host", None, {"a": "1"}, BadRequest, ":FILE"),
        ("host", "r.cfg", {"a": "1"}, Forbidden, "cannot change readonly file"),
        ("host", "latin.cfg", {"alias": "Привет"}, BadRequest, "alias: .* UTF-8"),
        ("host", "icinga.cfg", {"host_name": "n"}, Conflict, "Icinga 2"),
        ("timeperiod", "x.cfg", {"december 25": "noon"}, BadRequest, "december 25"),
    ],
)
def test_create_that_is_refused(tmp_path, kind, file, values, error, text):
    write(tmp_path, {"r.cfg": "# mon: readonly\n"})
    (tmp_path / "latin.cfg").write_bytes(b"# caf\xe9\n")
    editor = Editor(site(tmp_path, HOSTS, icinga='object Host "a" {\n  address = "b"\n}\n'))
    with pytest.raises(error, match=text):
        editor.create(kind, file, values)
    assert changed(editor) == {}


def test_create_over_a_file_that_cannot_be_read(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    model = load(type(tool)(obj_dir=tool.obj_dir, obj_file=(str(tmp_path / "sub" / "no.cfg"),)))
    with pytest.raises(Conflict, match="cannot be read"):
        Editor(model).create("host", str(tmp_path / "sub" / "no.cfg"), {"host_name": "n"})


@each("empty", [None, "", [], "  "])
def test_patch_removes(tmp_path, empty):
    editor = Editor(site(tmp_path, HOSTS))
    assert "alias" not in editor.patch([only(editor.base, "h1")], {"alias": empty})[0].attributes


@each(
    "values",
    [
        {},
        {"alias": "One"},
        {"parents": ["a", "b"]},
        {"parents": "a,b"},
        {"notes": None},
        {":ID": "x"},
    ],
)
def test_patch_that_changes_nothing(tmp_path, values):
    editor = Editor(site(tmp_path, HOSTS))
    editor.patch([only(editor.base, "h1")], values)
    assert changed(editor) == {}
    assert editor.model is editor.base


def test_a_deleted_object_is_gone_and_its_id_is_not_given_again(tmp_path):
    editor = Editor(site(tmp_path, HOSTS))
    first = editor.create("host", "x.cfg", {"host_name": "n"})
    editor.delete([first])
    with pytest.raises(NotFound):
        editor.patch([first], {"alias": "x"})
    again = Editor(editor.model).create("host", "x.cfg", {"host_name": "n"})
    assert again.id != first.id


def test_an_object_that_is_given_twice_is_removed_once(tmp_path):
    editor = Editor(site(tmp_path, HOSTS))
    item = only(editor.base, "h1")
    assert editor.delete([item, item]) == 1


def test_other_attributes_of_other_types_are_their_own(tmp_path):
    text = define("host", "host_name h") + define("contact", "contact_name c")
    editor = Editor(site(tmp_path, text))
    changed = editor.patch(editor.base.objects, {"contact_groups": "g"})
    assert [item.attributes.keys() - {"host_name", "contact_name"} for item in changed] == [
        {"contact_groups"},
        {"contactgroups"},
    ]


NAMES = st.sampled_from([f"h{number}" for number in range(6)])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.text(max_size=6)),
    st.tuples(st.just("patch"), NAMES, st.text(max_size=6)),
    st.tuples(st.just("delete"), NAMES, st.just("")),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(STEPS, max_size=12))
def test_any_edits_are_what_is_read_afterwards(tmp_path_factory, steps):
    """Objects, ids and texts after any edits are those of the file that is written."""
    folder = tmp_path_factory.mktemp("site")
    editor = Editor(site(folder, HOSTS))
    expected = {"h1": "One", "h2": None}
    for step, name, alias in steps:
        try:
            if step == "create" and name not in expected:
                item = editor.create("host", "x.cfg", {"host_name": name, "alias": alias or None})
                expected[name] = item.attributes.get("alias")
            elif step == "patch" and name in expected:
                item = editor.patch([only(editor.model, name)], {"alias": alias})[0]
                expected[name] = item.attributes.get("alias")
            elif step == "delete" and name in expected:
                editor.delete([only(editor.model, name)])
                del expected[name]
        except BadRequest:
            continue
        editor = Editor(editor.model)
    model = editor.model
    path = str(folder / "x.cfg")
    (folder / "x.cfg").write_bytes(model.loaded[path].document.data())
    again = load(model.files.tool, model)
    found = {item.attributes["host_name"]: item.attributes.get("alias") for item in again.objects}
    assert found == expected
    assert [item.id for item in again.objects] == [item.id for item in model.objects]
    assert len({item.id for item in again.objects}) == len(expected)
    json.dumps(found)
