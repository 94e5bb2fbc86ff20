"""The reference page says what the declarations say."""

from pathlib import Path

import pytest

from monrest.api.endpoint import Endpoint, Parameter
from monrest.daemon.families import ENDPOINTS
from monrest.daemon.reference import reference
from monrest.query.column_names import PEER_COLUMNS
from monrest.rows.columns import JOINED, SCHEMAS
from tests.table import each

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def endpoint(**more):
    return Endpoint(**{"path": "/hosts/<x>/y", "description": "a <x> | b", "handler": None, **more})


def test_the_page_is_up_to_date(page):
    assert PAGE.read_text() == page, "run: make docs"


@pytest.fixture(scope="module")
def page():
    return reference()


@each("one", ENDPOINTS, ids=[one.path for one in ENDPOINTS])
def test_every_endpoint_is_declared_whole(page, one):
    assert one.description
    assert "\n" not in one.description
    # A file, or what only ever is an error, has no columns: its text says what it is.
    assert one.schema or one.columns or one.text
    for column in one.columns:
        assert column.type
        assert column.description
    assert len({column.name for column in one.columns}) == len(one.columns)
    assert f"### {', '.join(one.methods)} `{one.path}`" in page


@each("name", SCHEMAS)
def test_every_column_of_a_collection_is_there(page, name):
    start = page.index(f"### Columns of {name}\n")
    section = page[start : page.find("\n### ", start + 1)]
    prefixes = tuple(one.prefix for one in JOINED.get(name, ()))
    for column in SCHEMAS[name].columns.values():
        listed = column.default or not column.name.startswith(prefixes)
        assert (f"\n| `{column.name}` |" in section) == listed
    for peer in PEER_COLUMNS:
        assert f"\n| `{peer}` |" in section
    for prefix in prefixes:
        assert f"`{prefix}<column>`" in section


def test_parameters_roles_and_markup():
    page = reference(
        [
            endpoint(
                methods=("POST", "DELETE"),
                roles=("admin",),
                shape="object",
                parameters=(
                    Parameter(name="cmd", description="what <to> do", required=True),
                    Parameter(name="n", description="number", type="integer"),
                ),
            )
        ]
    )
    assert "| POST | [`/hosts/<x>/y`](#post-delete-hostsxy) | a &lt;x> \\| b |\n" in page
    assert "| DELETE | [`/hosts/<x>/y`](#post-delete-hostsxy) |" in page
    assert "### POST, DELETE `/hosts/<x>/y`\n\nA &lt;x> | b. Answers one object. " in page
    assert "Needs the role `admin`." in page
    assert "| `cmd` | string | required; what &lt;to> do |\n| `n` | integer | number |" in page


def test_columns_that_others_have_too_are_described_once():
    columns = ENDPOINTS[0].columns
    page = reference([endpoint(columns=columns), endpoint(path="/hosts/<x>/z", columns=columns)])
    assert page.count(f"| `{columns[0].name}` | string |") == 1
    assert "Columns as `/hosts/<x>/y`." in page


def test_an_endpoint_without_a_heading_is_noticed():
    with pytest.raises(ValueError, match="no heading for /nowhere"):
        reference([endpoint(path="/nowhere")])
