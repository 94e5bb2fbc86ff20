"""Objects of a site, their ids and rows, and what is read again."""

import hashlib
import os

from monrest.objectconfig.model import Claim, Marks, Overlay, assign, load, new_id
from monrest.objectconfig.object_editor import Editor
from tests.fakes.objectfiles import changed, define, site, write

HOSTS = define("host", "host_name h1", "use t") + define("host", "host_name h2", "parents h1")


def digits(path, line, number=5):
    return hashlib.sha256(f"{path}:{line}".encode()).hexdigest()[:number]


def ids(model):
    return {item.attributes.get("host_name"): item.id for item in model.objects}


def test_ids_come_from_path_and_line(tmp_path):
    model = site(tmp_path, HOSTS)
    path = tmp_path / "x.cfg"
    assert [item.id for item in model.objects] == [digits(path, 1), digits(path, 6)]
    assert model.by_id[digits(path, 6)].attributes["parents"] == "h1"


def test_a_taken_id_gets_longer():
    taken = {new_id("/x", 1, ())}
    assert new_id("/x", 1, taken) == digits("/x", 1, 6)
    found = assign({"/x": [Claim(0), Claim(0), Claim(0)]})
    assert list(map(len, found["/x"])) == [5, 6, 7]


def test_many_new_objects_of_one_file_have_different_ids():
    found = assign({"/x": [Claim(0)] * 300})
    assert len(set(found["/x"])) == 300


def test_an_id_that_two_objects_claim_is_kept_by_neither():
    found = assign({"/x": [Claim(0, "abcde")], "/y": [Claim(0, "abcde"), Claim(1, "12345")]})
    assert found["/y"][1] == "12345"
    assert "abcde" not in (found["/x"][0], found["/y"][0])


def test_a_retired_id_is_not_given_again():
    gone = digits("/x", 1)
    assert assign({"/x": [Claim(1)]}, [gone]) == {"/x": [digits("/x", 1, 6)]}
    assert assign({"/x": [Claim(1, gone)]}, [gone]) == {"/x": [digits("/x", 1, 6)]}


def test_nothing_changed_is_the_same_model(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    model = load(tool)
    assert load(tool, model) is model


def test_only_changed_files_are_read_again(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS, "y.cfg": define("host", "host_name h3")})
    model = load(tool)
    (tmp_path / "y.cfg").write_text("\n" + define("host", "host_name h3"))
    again = load(tool, model)
    x, y = str(tmp_path / "x.cfg"), str(tmp_path / "y.cfg")
    assert again.loaded[x].objects is model.loaded[x].objects
    assert ids(again)["h3"] == digits(y, 2)


def test_a_touched_file_is_not_parsed_again(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    model = load(tool)
    path = str(tmp_path / "x.cfg")
    os.utime(path, (1, 1))
    again = load(tool, model)
    assert again.loaded[path].stamp.mtime_ns == 10**9
    assert again.loaded[path].document is model.loaded[path].document


def test_a_change_with_the_same_size_and_time_is_seen(tmp_path):
    tool = write(tmp_path, {"x.cfg": define("host", "host_name h1")})
    path = tmp_path / "x.cfg"
    os.utime(path, (1, 1))
    model = load(tool)
    path.write_text(define("host", "host_name h2"))
    os.utime(path, (1, 1))
    assert "h2" in ids(load(tool, model))


def test_new_and_deleted_files_are_noticed(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    model = load(tool)
    (tmp_path / "x.cfg").rename(tmp_path / "new.cfg")
    again = load(tool, model)
    assert list(again.loaded) == [str(tmp_path / "new.cfg")]
    assert ids(again)["h1"] == digits(tmp_path / "new.cfg", 1)


def test_ids_do_not_depend_on_what_was_read_before(tmp_path):
    files = {f"{name}.cfg": HOSTS * 40 for name in "abc"}
    tool = write(tmp_path, files)
    model = load(tool)
    (tmp_path / "a.cfg").write_text("\n" + HOSTS)
    changed = load(tool, model)
    fresh = load(tool)
    assert [item.id for item in changed.objects] == [item.id for item in fresh.objects]


def test_unreadable_files(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS, "y.cfg": ""})
    with_extra = type(tool)(obj_dir=tool.obj_dir, obj_file=(str(tmp_path / "no.cfg"),))
    model = load(with_extra)
    assert model.problems == (f"cannot read file: {tmp_path}/no.cfg: No such file or directory",)
    assert model.unreadable == {str(tmp_path / "no.cfg")}
    assert len(model.objects) == 2


def test_includes_in_object_files(tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    write(
        outside, {"o.cfg": define("host", "host_name o"), "d/e.cfg": define("host", "host_name e")}
    )
    text = f"include_file={outside}/o.cfg\ninclude_dir={outside}/d\ninclude_file=x.cfg\n" + HOSTS
    model = site(tmp_path, text)
    assert ids(model).keys() == {"o", "e", "h1", "h2"}
    assert model.problems == ()
    assert {item.attributes["host_name"] for item in model.objects if item.readonly} == {"o", "e"}


def test_changed_settings_count_at_once(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    model = load(tool)
    strict = type(tool)(obj_dir=tool.obj_dir, obj_readonly=("x.cfg",))
    again = load(strict, model)
    assert all(item.readonly for item in again.objects)
    assert not any(item.readonly for item in load(tool, again).objects)


def test_names(tmp_path):
    text = (
        define("host", "name t", "host_name ht", "register 0")
        + define("host", "name both", "host_name both")
        + define("host", "host_name plain", "register 0")
        + define("host", "use t", "address 1")
        + "#define host {\n#  host_name off\n#}\n"
        + define("host", r"host_name semi\;colon")
    )
    model = site(tmp_path, text)
    lines = {name: [item.line for item in model.find("host", name)] for name in
             ("t", "ht", "both", "plain", "off", "semi;colon", "HT", "*")}  # fmt: skip
    assert lines == {
        "t": [1], "ht": [17], "both": [7], "plain": [12], "off": [], "semi;colon": [25],
        "HT": [], "*": [],
    }  # fmt: skip
    assert len(model.objects) == 6


def test_overlay(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS, "y.cfg": define("host", "host_name h3")})
    disk = load(tool)
    x, y, z = (str(tmp_path / f"{name}.cfg") for name in "xyz")
    editor = Editor(disk)
    editor.patch([disk.find("host", "h2")[0]], {"alias": "A"})
    editor.delete([disk.find("host", "h1")[0]])
    editor.create("host", "z.cfg", {"host_name": "n"})
    edited = editor.model
    marks = {path: file.marks() for path, file in changed(editor).items()}
    assert set(marks) == {x, z}
    texts = {path: Overlay(f.document.data(), marks[path]) for path, f in changed(editor).items()}
    view = load(tool).overlay({**texts, y: None})
    assert ids(view) == {"h2": ids(disk)["h2"], "n": digits(z, 0)}
    assert {item.id: item.line for item in view.objects} == {ids(disk)["h2"]: 6, digits(z, 0): 0}
    assert ids(edited) == {**ids(view), "h3": ids(disk)["h3"]}
    assert len(disk.objects) == 3


def test_an_overlay_without_fitting_marks_finds_objects_again(tmp_path):
    tool = write(tmp_path, {"x.cfg": HOSTS})
    disk = load(tool)
    path = str(tmp_path / "x.cfg")
    mine = "\n" + HOSTS.replace("use t", "use s") + define("host", "host_name mine")
    marks = Marks((ids(disk)["h1"], ids(disk)["h2"], "11111"), (1, 6, 0), ("22222",))
    merged = "# others\n" + define("host", "host_name theirs") + mine
    view = disk.overlay({path: Overlay(merged.encode(), marks, mine.encode())})
    assert ids(view) == {**ids(disk), "mine": "11111", "theirs": digits(path, 2)}
    assert view.loaded[path].retired == ("22222",)
