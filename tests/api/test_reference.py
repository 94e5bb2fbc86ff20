"""The reference pages say what the declarations say."""

from pathlib import Path

import pytest

from monrest.api.endpoint import Endpoint, Parameter
from monrest.api.family import Family, Served
from monrest.daemon.families import ENDPOINTS
from monrest.daemon.reference import reference
from monrest.query.column_names import PEER_COLUMNS
from monrest.rows.columns import JOINED, SCHEMAS
from tests.table import each

FOLDER = Path(__file__).parents[2] / "docs" / "api"


def endpoint(**more):
    return Endpoint(**{"path": "/hosts/<x>/y", "description": "a <x> | b", "handler": None, **more})


def page_of(*endpoints):
    """The page of a family with these endpoints, and the index."""
    pages = reference({"greetings": Family(served=(Served(endpoints),))})
    return pages["greetings"], pages["index"]


def test_the_pages_are_up_to_date(pages):
    stored = {path.stem: path.read_text() for path in FOLDER.glob("*.md")}
    assert stored == pages, "run: make docs"


@pytest.fixture(scope="module")
def pages():
    return reference()


@pytest.fixture(scope="module")
def text(pages):
    return "\n".join(pages.values())


@each("one", ENDPOINTS, ids=[one.path for one in ENDPOINTS])
def test_every_endpoint_is_declared_whole(text, one):
    assert one.description
    assert "\n" not in one.description
    # A file, or what only ever is an error, has no columns: its text says what it is.
    assert one.schema or one.columns or one.text
    for column in one.columns:
        assert column.type
        assert column.description
    assert len({column.name for column in one.columns}) == len(one.columns)
    assert text.count(f"\n## {', '.join(one.methods)} `{one.path}`\n") == 1


@each("name", SCHEMAS)
def test_every_column_of_a_collection_is_there(pages, name):
    page = pages[name if name in pages else "sites"]
    start = page.index(f"## Columns of {name}\n")
    section = page[start : page.find("\n## ", start + 1)]
    prefixes = tuple(one.prefix for one in JOINED.get(name, ()))
    for column in SCHEMAS[name].columns.values():
        listed = column.default or not column.name.startswith(prefixes)
        assert (f"\n| `{column.name}` |" in section) == listed
    for peer in PEER_COLUMNS:
        assert f"\n| `{peer}` |" in section
    for prefix in prefixes:
        assert f"`{prefix}<column>`" in section


def test_parameters_roles_and_markup():
    page, index = page_of(
        endpoint(
            methods=("POST", "DELETE"),
            roles=("admin",),
            shape="object",
            parameters=(
                Parameter(name="cmd", description="what <to> do", required=True),
                Parameter(name="n", description="number", type="integer"),
            ),
        )
    )
    link = "[`/hosts/<x>/y`](greetings.md#post-delete-hostsxy)"
    assert f"| POST | {link} | a &lt;x> \\| b |\n| DELETE | {link} |" in index
    assert "- [greetings](greetings.md)\n" in index
    assert "## POST, DELETE `/hosts/<x>/y`\n\nA &lt;x> | b. Answers one object. " in page
    assert "Needs the role `admin`." in page
    assert "| `cmd` | string | required; what &lt;to> do |\n| `n` | integer | number |" in page


def test_columns_and_parameters_that_others_have_too_are_described_once():
    columns, parameters = ENDPOINTS[0].columns, (Parameter(name="n", description="number"),)
    more = {"columns": columns, "parameters": parameters}
    page, _ = page_of(endpoint(**more), endpoint(path="/hosts/<x>/z", **more))
    assert page.count(f"| `{columns[0].name}` | string |") == 1
    assert page.count("| `n` | string |") == 1
    assert "Columns as `/hosts/<x>/y`. Parameters as `GET /hosts/<x>/y`." in page
