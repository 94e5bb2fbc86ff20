"""docs/architecture.md is true, and modules know each other as it says."""

import ast
import importlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import orjson
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

import monrest
from monrest.base.errors import NotFound
from monrest.base.values import Identity, RestRequest
from monrest.daemon import families
from monrest.daemon.families import ENDPOINTS
from monrest.panorama.endpoints import FAMILY
from monrest.render.formats import RenderOptions, render
from monrest.store.migrate import HEAD
from tests.fakes.context import make_context

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASES = REPOSITORY / "tests/store/databases"
PAGE = (REPOSITORY / "docs/architecture.md").read_text()
CODE, COLUMN, MIGRATION, FIELD = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_all_files_are_there():
    named = set(re.findall(r"`((?:monrest|docs)/[\w/.-]+)`", PAGE)) - {"monrest/greetings/"}
    assert len(named) > 40
    assert sorted(one for one in named if not (REPOSITORY / one).exists()) == []


@pytest.fixture
def context(tmp_path, monkeypatch):
    """Of a tree that has one folder and one line of the registry more, with its import."""
    folder = tmp_path / "greetings"
    folder.mkdir()
    (folder / "endpoints.py").write_text(CODE)
    monkeypatch.setattr(monrest, "__path__", [*monrest.__path__, str(tmp_path)])
    line = "FAMILIES = (\n"
    registry = Path(families.__file__).read_text().replace(line, f"{line}    greetings.FAMILY,\n")
    namespace = {"greetings": importlib.import_module("monrest.greetings.endpoints")}
    exec(compile(registry, "families.py", "exec"), namespace)
    yield make_context(Clock(), families=namespace["FAMILIES"])
    for name in ("monrest.greetings.endpoints", "monrest.greetings"):
        del sys.modules[name]
    del monrest.greetings


def request(path, *parameters):
    return RestRequest(
        method="GET", path=path, segments=tuple(path.strip("/").split("/")), parameters=parameters,
        identity=Identity(user="ann"),
    )  # fmt: skip


def ask(context, path, *parameters):
    done = Deferred.fromCoroutine(context.dispatch(context, request(path, *parameters)))
    context.clock.pump([0] * 20)
    return orjson.loads(b"".join(render(done.result, RenderOptions(), lambda: False).pieces))


def test_the_new_endpoint_answers_filters_and_is_listed(context):
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 20
    assert ask(context, "/mon/greetings") == [{"name": "ann"}]
    assert ask(context, "/mon/greetings", ("name[ne]", "ann")) == []
    assert ask(context, "/mon/greetings", ("columns", "upper(name) as who")) == [{"who": "ANN"}]
    listed = ask(context, "/index", ("url", "/mon/greetings"))
    assert [one["description"] for one in listed] == ["lists greetings"]


def test_a_family_without_its_line_in_the_registry_is_gone():
    left = [one for one in families.FAMILIES if one is not FAMILY]
    context = make_context(Clock(), families=left)
    left = [one for one in ENDPOINTS if not one.path.startswith("/mon/panorama")]
    assert 0 < len(left) == len(ENDPOINTS) - len(FAMILY.served[0].endpoints)
    router = context.dispatch.router
    assert router.endpoints == left
    for endpoint in left:
        path = re.sub(r"<[^>]*>", "1", endpoint.path)
        segments = tuple(path.strip("/").split("/")) if path != "/" else ()
        for method in endpoint.methods:
            assert method in router.allowed(path, segments)
    listed = {one["url"] for one in ask(context, "/index")}
    assert "/mon/broadcasts" in listed
    assert not any(url.startswith("/mon/panorama") for url in listed)
    for path in ("/mon/panorama", "/mon/panorama/1", "/mon/panorama/1/backups"):
        done = Deferred.fromCoroutine(context.dispatch(context, request(path)))
        assert done.result.type is NotFound
        done.addErrback(lambda _: None)


def test_a_field_more_is_one_line_and_a_migration_of_one_line(tmp_path):
    """In a copy of the package, which opens a database of version 0.2."""
    package = tmp_path / "monrest"
    shutil.copytree(REPOSITORY / "monrest", package)
    model = package / "webhooks/model.py"
    text = model.read_text()
    for before, line in (
        ("    version: int = 0\n", f"    {COLUMN}"),
        ("FIELDS = Fields(\n    (\n", f"        {FIELD.rstrip()},\n"),
    ):
        assert (text.count(before), line.count("\n")) == (1, 1)
        text = text.replace(before, before + line)
    model.write_text(text)
    assert MIGRATION.count("\n") == 1
    (package / "store/migrations/versions/r9999.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f'revision, down_revision = "9999", "{HEAD}"\ndef upgrade():\n    {MIGRATION}'
    )
    database = tmp_path / "monrest.sqlite"
    with closing(sqlite3.connect(database)) as old:
        for version in ("0.1", "0.2"):
            old.executescript((DATABASES / f"{version}.sqlite.sql").read_text())
    ran = subprocess.run(
        [sys.executable, "-c", FIELD_IS_THERE, f"sqlite:///{database}"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stderr == ""
    old, new, columns = json.loads(ran.stdout)
    assert (old.get("note"), old.get("team")) == ("", None)
    assert (new["note"], new["team"]) == ("ring Ann", "web")
    assert columns["note"] == "what to do when the receiver is away"
    assert columns["team"] == "who looks after the receiver"


FIELD_IS_THERE = """
import json, sys
from monrest.store import engines, migrate
from monrest.webhooks import endpoints, model, store

url = engines.parse(sys.argv[1])
migrate.upgrade(url)
record = model.checked({"name": "n", "url": "http://192.0.2.1/", "team": "web"})
values = {"record": {**record, "owner": "ann"}, "secrets": [], "token": "t", "note": "ring Ann"}
with engines.migrating(url).begin() as connection:
    number = store.add(1, "ann", values, 10)(connection)
    old, new = map(model.webhook_record, store.several()(connection))
    assert new["id"] == number == 2
print(json.dumps([old, new, {one.name: one.description for one in endpoints.COLUMNS}]))
"""


def test_there_is_no_circle_of_imports():
    graph = grimp.build_graph("monrest", exclude_type_checking_imports=True, cache_dir=None)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imported) > 100
    # It raises CycleError, which names the modules of a circle.
    TopologicalSorter(imported).prepare()


def test_endpoints_are_declared_without_knowing_a_family_even_for_types():
    graph = grimp.build_graph("monrest", exclude_type_checking_imports=False, cache_dir=None)
    api = {one for one in graph.modules if one.startswith("monrest.api.")}
    known = {
        name.split(".")[1] for one in api for name in graph.find_modules_directly_imported_by(one)
    }
    assert known == {"api", "base", "config", "livestatus", "query", "sites", "store"}


def set_from_outside(tree):
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) != "self":
                    yield ast.unparse(one)


def test_parts_get_what_they_need_when_they_are_made():
    found = {
        (path.name, name)
        for path in sorted((REPOSITORY / "monrest/daemon").glob("*.py"))
        for name in set_from_outside(ast.parse(path.read_text()))
    }
    # The site of Twisted is made before anybody knows who writes its access lines.
    assert found == {("service.py", "self.site.access_line")}
