"""Which files belong to a site, and where new ones may go."""

import errno
import os

import pytest

from monrest.base.errors import BadRequest, Forbidden
from monrest.config import ConfigTool
from monrest.objectconfig.site_files import FoundFile, discover, has_readonly_comment, setting
from tests.table import each


@pytest.fixture
def etc(tmp_path):
    """A main file with a folder, a named file beside it and things that are no object files."""
    (tmp_path / "conf.d" / "deep").mkdir(parents=True)
    for name in ("b.cfg", "a.cfg", "deep/c.cfg", ".hidden.cfg", "notes.txt"):
        (tmp_path / "conf.d" / name).write_text("")
    (tmp_path / "conf.d" / ".git").mkdir()
    (tmp_path / "conf.d" / ".git" / "x.cfg").write_text("")
    (tmp_path / "extra.cfg").write_text("")
    (tmp_path / "core.cfg").write_text(
        "# the core\n; too\n\ncfg_dir = conf.d\ncfg_dir=missing\ncfg_file=conf.d/../extra.cfg\n"
        "cfg_file=conf.d//a.cfg\nresource_file=resource.cfg\n"
    )
    return tmp_path


def core(etc, **keys):
    return ConfigTool(core_conf=str(etc / "core.cfg"), **keys)


def names(found, folder):
    return [os.path.relpath(file.path, folder) for file in found.files]


def test_files_of_the_main_file(etc):
    found = discover(core(etc))
    assert names(found, etc) == ["conf.d/a.cfg", "conf.d/b.cfg", "conf.d/deep/c.cfg", "extra.cfg"]
    assert found.root == str(etc)
    assert found.folders == (str(etc / "conf.d"), str(etc / "missing"))
    assert found.resource_files == (str(etc / "resource.cfg"),)
    assert found.problems == (f"cannot read folder: {etc}/missing: No such file or directory",)
    assert found.core_type == "naemon"


def test_the_main_file_replaces_the_other_settings(etc):
    found = discover(core(etc, obj_dir=(str(etc / "conf.d" / "deep"),), obj_file=("/x.cfg",)))
    assert len(found.files) == 4


def test_excluded_files_are_those_of_folders_in_the_settings(etc):
    found = discover(core(etc, obj_exclude=("conf.d",)))
    assert len(found.files) == 4
    assert found.place("conf.d/new.cfg") == str(etc / "conf.d" / "new.cfg")


def test_more_main_files(etc):
    (etc / "more").mkdir()
    (etc / "more" / "one.cfg").write_text("cfg_file=/one.cfg\ninclude_file=../core.cfg\n")
    (etc / "rel").mkdir()
    (etc / "rel" / "x.cfg").write_text("")
    with (etc / "core.cfg").open("a") as stream:
        stream.write("include_dir=more\ninclude_file=second.cfg\n")
    (etc / "second.cfg").write_text(f"config_rel_path={etc}/rel\ncfg_file=x.cfg\n")
    found = discover(core(etc))
    paths = [file.path for file in found.files]
    assert "/one.cfg" in paths
    assert str(etc / "rel" / "x.cfg") in paths


@each(
    ("line", "kind"),
    [
        ("icinga_user=x", "icinga"),
        ("naemon_user=x", "naemon"),
        ("command_file=/var/lib/nagios4/rw/nagios.cmd", "naemon"),
        ("nagios_user=x", "naemon"),
    ],
)
def test_core_type(etc, line, kind):
    (etc / "core.cfg").write_text(line)
    assert discover(core(etc)).core_type == kind
    assert discover(core(etc, core_type="nagios")).core_type == "nagios"


def test_settings_without_a_main_file(etc):
    tool = ConfigTool(
        obj_dir=(f"{etc}/conf.d//",),
        obj_exclude=("/deep/", "a.cfg$"),
        obj_file=(str(etc / "conf.d" / "a.cfg"), str(etc / "extra.cfg")),
        obj_resource_file=("/r.cfg",),
        obj_readonly=("extra",),
    )
    found = discover(tool)
    assert names(found, etc) == ["conf.d/a.cfg", "conf.d/b.cfg", "extra.cfg"]
    assert [file.readonly for file in found.files] == [None, None, True]
    assert found.resource_files == ("/r.cfg",)
    with pytest.raises(BadRequest, match="obj_exclude"):
        found.place("conf.d/deep/new.cfg")


def test_nothing_configured_is_a_problem():
    found = discover(ConfigTool())
    assert found.files == ()
    assert "must be configured" in found.problems[0]


def test_a_main_file_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        discover(ConfigTool(core_conf=str(tmp_path / "no.cfg")))
    assert setting(str(tmp_path / "no.cfg"), "x") is None


def test_folders_that_are_not_there_are_problems(etc):
    found = discover(ConfigTool(obj_dir=(str(etc / "none"), str(etc / "conf.d" / "a.cfg"))))
    assert found.problems == (
        f"cannot read folder: {etc}/none: No such file or directory",
        f"cannot read folder: {etc}/conf.d/a.cfg: Not a directory",
    )


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_a_folder_that_cannot_be_read_is_no_empty_one(etc, monkeypatch, error):
    def scandir(path, real=os.scandir):
        if str(path).endswith("deep"):
            raise OSError(error, os.strerror(error), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(OSError, match="deep"):
        discover(core(etc))


def test_lines_that_make_a_main_file_one_of_icinga_2(tmp_path):
    path = tmp_path / "nagios.cfg"
    expected = {
        "object foo": True,
        'apply service "ping" {': True,
        "template x": True,
        "const Name": True,
        "library <x>": True,
        'include_recursive "conf.d"': True,
        'object Host "a=b" {': True,
        "object=foo": False,
        "const = a b": False,
        "objects foo": False,
        "include conf.d": False,
        "# object foo": False,
    }
    found = {}
    for line in expected:
        path.write_text(f"{line}\n")
        found[line] = bool(discover(ConfigTool(core_conf=str(path))).foreign)
    assert found == expected


def test_links(etc, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.cfg").write_text("")
    (etc / "conf.d" / "link.cfg").symlink_to(outside / "x.cfg")
    (etc / "conf.d" / "folder").symlink_to(outside)
    (etc / "conf.d" / "loop").symlink_to(etc / "conf.d")
    (etc / "conf.d" / "aaa").symlink_to(etc / "conf.d" / "deep")
    (etc / "conf.d" / "zzz").symlink_to(etc / "conf.d" / "deep")
    (etc / "conf.d" / "broken.cfg").symlink_to(outside / "none")
    os.mkfifo(etc / "conf.d" / "pipe.cfg")
    found = discover(core(etc))
    readonly = {os.path.relpath(file.path, etc): file.readonly for file in found.files}
    assert readonly == {
        "conf.d/a.cfg": None,
        "conf.d/b.cfg": None,
        "conf.d/deep/c.cfg": None,
        "conf.d/folder/x.cfg": True,
        "conf.d/link.cfg": True,
        "extra.cfg": None,
    }
    for name in ("link.cfg", "folder/new.cfg", "folder/deeper/new.cfg", "broken.cfg"):
        with pytest.raises(Forbidden, match="readonly"):
            found.place(f"conf.d/{name}")


def test_a_folder_that_is_configured_as_a_link_may_be_written(etc):
    (etc / "alias").symlink_to(etc / "conf.d")
    found = discover(ConfigTool(obj_dir=(str(etc / "alias"),)))
    assert FoundFile(str(etc / "alias" / "a.cfg")) in found.files
    assert found.place("new.cfg") == str(etc / "alias" / "new.cfg")


def test_places_of_new_and_known_files(etc):
    found = discover(core(etc))
    place = found.place
    assert place("conf.d/new/one.cfg") == str(etc / "conf.d" / "new" / "one.cfg")
    assert place("conf.d/new/one.cfg:0") == str(etc / "conf.d" / "new" / "one.cfg")
    assert place(f"{etc}/conf.d/a.cfg:12") == str(etc / "conf.d" / "a.cfg")
    assert place("extra.cfg") == str(etc / "extra.cfg")
    # Below the root, yet where the core does not look: the first folder is meant.
    assert place("new.cfg") == str(etc / "conf.d" / "new.cfg")


@each(
    "name",
    [
        "",
        ".cfg",
        "a.txt",
        "conf.d/../../x.cfg",
        "../x.cfg",
        "/etc/passwd",
        "/etc/cron.d/x.cfg",
        "conf.d/.hidden.cfg",
        "conf.d/.git/x.cfg",
        "conf.d/a\n.cfg",
        "conf.d/a\0.cfg",
        "conf.d/\udcff.cfg",
        "conf.d/a.cfg/",
        "conf.d/a.cfg/new.cfg",
        f"conf.d/{'x' * 300}.cfg",
        f"conf.d/{'x/' * 1500}y.cfg",
    ],
)
def test_places_that_are_refused(etc, name):
    with pytest.raises(BadRequest, match=":FILE"):
        discover(core(etc)).place(name)


def test_read_only_places(etc):
    found = discover(core(etc, obj_readonly=("generated", "a.cfg$")))
    for name in ("conf.d/generated/x.cfg", "conf.d/a.cfg"):
        with pytest.raises(Forbidden) as caught:
            found.place(name)
        assert caught.value.message == f"cannot change readonly file {etc / name}."
        assert caught.value.description == "attempt to change readonly file."


@each(
    ("data", "readonly"),
    [
        (b"# mon: readonly\n", True),
        (b"\n" * 8 + b"  #mon:readonly  \r\n", True),
        (b"\n" * 9 + b"# mon: readonly\n", False),
        (b"# mon: readonly now\n", False),
        (b"mon: readonly\n", False),
        (b"\xef\xbb\xbf# mon: readonly", True),
        (b"", False),
    ],
)
def test_read_only_comment(data, readonly):
    assert has_readonly_comment(data) is readonly


def test_files_that_others_include(etc, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "o.cfg"
    outside.write_text("")
    found = discover(core(etc)).with_files([str(outside), str(etc / "conf.d" / "a.cfg")])
    assert len(found.files) == 5
    assert FoundFile(str(outside), readonly=True) in found.files
