"""Tables of a program that is no core, asked through Livestatus."""

import json
from operator import attrgetter
from types import SimpleNamespace

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from monrest.lql.protocol import LivestatusFactory
from monrest.lql.tables import Column, Part, Table
from tests.fakes.clocks import Wall

AUTHORS = [
    SimpleNamespace(name="Ann", born=1900, friends=["Ben"]),
    SimpleNamespace(name="Ben", born=1950, friends=[]),
]
BOOKS = [
    SimpleNamespace(title="One", author=AUTHORS[0], pages=100, lent=0),
    SimpleNamespace(title="Two", author=AUTHORS[1], pages=300, lent=1),
    SimpleNamespace(title="Three", author=None, pages=200, lent=0),
]


def column(name, type):
    return Column(name, type, f"the {name}", attrgetter(name))


AUTHOR = (column("name", "string"), column("born", "int"), column("friends", "list"))
BOOK = (column("title", "string"), column("pages", "int"), column("lent", "int"))


@pytest.fixture
def library():
    """The factory over two tables; commands are refused with their own text."""
    clock = Clock()
    by_title = {book.title: book for book in BOOKS}
    tables = [
        Table("authors", (Part("", AUTHOR),), lambda: AUTHORS, own_prefix="author_"),
        Table(
            "books",
            (Part("", BOOK), Part("author_", AUTHOR, attrgetter("author"), optional=True)),
            lambda: BOOKS,
            visible=lambda user: lambda book: user == "librarian" or not book.lent,
            wait_object=by_title.get,
        ),
    ]
    return LivestatusFactory(
        {table.name: table for table in tables}, clock, Wall(clock), str.lower, print
    )


def send(library, *lines):
    protocol, transport = library.buildProtocol(None), StringTransport()
    protocol.makeConnection(transport)
    protocol.dataReceived(("\n".join(lines) + "\n\n").encode())
    return transport


def ask(library, *lines):
    return json.loads(send(library, *lines, "OutputFormat: json").value())


def test_columns_of_a_row_and_of_what_it_leads_to(library):
    rows = ask(library, "GET books", "Columns: title author_name author_born author_friends nope")
    assert rows == [
        ["One", "Ann", 1900, ["Ben"], ""],
        ["Two", "Ben", 1950, [], ""],
        ["Three", "", 0, [], ""],
    ]
    assert ask(library, "GET authors", "Columns: author_name", "Limit: 1") == [["Ann"]]


def test_filters_sorting_and_statistics(library):
    assert ask(library, "GET books", "Columns: title", "Filter: author_born > 1900") == [["Two"]]
    assert ask(library, "GET books", "Columns: title", "Sort: pages desc", "Limit: 2") == [
        ["Two"],
        ["Three"],
    ]
    assert ask(library, "GET books", "Stats: sum pages", "Stats: lent = 1") == [[600, 1]]


def test_a_user_sees_what_is_visible(library):
    def titles(user):
        return ask(library, "GET books", "Columns: title", f"AuthUser: {user}")

    assert titles("librarian") == [["One"], ["Two"], ["Three"]]
    assert titles("ann") == [["One"], ["Three"]]


def test_a_request_waits_for_what_the_program_tells(library):
    lines = ("GET books", "Columns: lent", "WaitObject: One", "WaitCondition: lent = 1")
    waiting = send(library, *lines, "Filter: title = One", "WaitTrigger: check")
    BOOKS[0].lent = 1
    try:
        library.happened("state")
        library.clock.advance(1)
        assert waiting.value() == b""
        library.happened("check")
        library.clock.advance(0)
        assert waiting.value() == b"1\n"
    finally:
        BOOKS[0].lent = 0


def test_commands_are_the_program_s(library):
    assert send(library, "COMMAND LEND One").value() == b"400: lend one\n"
    assert library.counters == {"connections": 1, "requests": 0}
