"""The sample configurations of Debian's packages: read, written, changed; Icinga 2's refused."""

from pathlib import Path

import pytest

from monrest.demo.inventory import make_inventory
from monrest.objectconfig.document import ConfigFile
from tests.fakes.samples import samples
from tests.table import each

FOLDERS = (("nagios4", "objects"), ("plugins",), ("examples", "template-object"))


@pytest.fixture(params=FOLDERS, ids="/".join)
def files(request):
    """All object files of a folder, parsed."""
    paths = sorted(samples(*request.param).rglob("*.cfg"))
    assert len(paths) >= 5
    return [ConfigFile.parse(str(path), path.read_bytes()) for path in paths]


def test_they_are_read_without_a_problem_and_written_byte_by_byte(files):
    assert sum(len(file.blocks) for file in files) >= 20
    for file in files:
        assert file.data() == Path(file.path).read_bytes()
        assert file.problems == ()
        assert all(block.line and block.attributes for block in file.blocks)


def test_a_core_would_load_them():
    # What the package's own main file names: five files, and the commands of the plugins.
    names = ("commands", "contacts", "timeperiods", "templates", "localhost")
    paths = [samples("nagios4", "objects", f"{name}.cfg") for name in names]
    paths += sorted(samples("plugins").rglob("*.cfg"))
    found = make_inventory({str(path): path.read_text() for path in paths})
    assert list(found.hosts) == ["localhost"]
    assert ("localhost", "PING") in found.services
    assert len(found.commands) > 100


def test_the_language_of_icinga_2_is_refused_clearly():
    paths = sorted(samples("icinga2").rglob("*.conf"))
    assert len(paths) > 20
    refused = [ConfigFile.parse(str(path), path.read_bytes()) for path in paths]
    for path, file in zip(paths, refused, strict=True):
        assert file.data() == path.read_bytes()
        assert file.blocks == []
        if file.problems:
            (problem,) = file.problems
            assert problem.fatal
            assert "the configuration language of Icinga 2 is not supported" in problem.message
            assert file.foreign
            assert not file.empty
    assert sum(file.foreign for file in refused) > 20


@each(
    "line",
    [
        'object Host "h" {',
        "apply Service for (disk => config in host.vars.disks) {",
        'template Host "generic-host" {',
        'const PluginDir = "/usr/lib"',
        'include "features-enabled/*.conf"',
        "include_recursive <itl>",
        'library "methods"',
    ],
)
def test_lines_of_icinga_2(line):
    file = ConfigFile.parse("/x.cfg", f"/* comment */\n  {line}\n  address = 1\n}}\n".encode())
    (problem,) = file.problems
    assert problem.message == (
        f"syntax invalid: '{line}' (the configuration language of Icinga 2 is not supported) in "
        "x.cfg:2"
    )


def test_a_definition_of_ours_is_never_taken_for_that_language():
    foreign = 'object Host "h" {\n}\n'
    text = f"{foreign}define host {{\nhost_name h\n}}\n{foreign}"
    file = ConfigFile.parse("/x.cfg", text.encode())
    assert not file.foreign
    assert len(file.problems) == 4
