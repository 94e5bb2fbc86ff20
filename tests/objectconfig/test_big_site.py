"""A generated site of 200 hosts and 4,000 services: one edit is one definition, and all are one edit."""

import pytest

from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.precheck import precheck
from tests.fakes.objectfiles import changed, define, site

SERVICES = 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    base = (
        define("command", "command_name c", "command_line /bin/true")
        + define("host", "name gh", "register 0", "max_check_attempts 3")
        + define("service", "name gs", "register 0", "max_check_attempts 3", "check_command c")
        + define("servicegroup", "servicegroup_name sg", "members h7,s3,h8,s3")
    )
    hosts = "".join(define("host", f"host_name h{number}", "use gh") for number in range(200))
    services = "".join(
        define("service", f"host_name h{host}", f"service_description s{number}", "use gs")
        for host in range(200)
        for number in range(SERVICES)
    )
    return site(tmp_path_factory.mktemp("big"), base, hosts=hosts, services=services)


def test_every_object_has_its_own_id(model):
    assert len(model.objects) == 4_204
    assert len(model.by_id) == len(model.objects)


def test_nothing_is_wrong(model):
    assert precheck(model) == []


def test_one_edit_copies_one_definition(model):
    editor = Editor(model)
    (item,) = model.service_definitions("h150", "s7")
    editor.patch([item], {"notes": "x"})
    editor.create("host", "services.cfg", {"host_name": "n"})
    (path,) = changed(editor)
    before, after = model.loaded[path], editor.model.loaded[path]
    pairs = zip(before.objects, after.objects, strict=False)
    assert [old.id for old, new in pairs if old is not new] == [item.id]
    assert len(after.objects) == len(before.objects) + 1
    assert "notes" not in item.attributes


def test_a_rename_of_200_services(model):
    editor = Editor(model)
    found = [o for o in model.objects if o.attributes.get("service_description") == "s3"]
    editor.patch(found, {"service_description": "renamed"})
    assert precheck(editor.model) == []
    (group,) = editor.model.find("servicegroup", "sg")
    assert group.attributes["members"] == "h7,renamed,h8,renamed"


def test_everything_is_removed_at_once(model):
    editor = Editor(model)
    assert editor.delete(model.objects) == len(model.objects)
    assert all(file.document.empty for file in changed(editor).values())
    assert editor.model.objects == []
