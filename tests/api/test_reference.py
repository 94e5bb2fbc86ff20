"""The reference pages say what the declarations say."""

from pathlib import Path

import pytest

from monrest.daemon.families import ENDPOINTS
from monrest.daemon.reference import reference
from tests.table import each

FOLDER = Path(__file__).parents[2] / "docs" / "api"


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
