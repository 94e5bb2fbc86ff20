"""Lists that the front end makes itself take the reactor a little at a time."""

from twisted.internet.defer import Deferred, succeed

from monrest.api import lists as local
from monrest.base.values import ANONYMOUS, Column, RestRequest
from tests.fakes.context import NoThreads
from tests.fakes.sites import outcome

COLUMNS = (Column("name", "string", "", ""), Column("size", "number", "", ""))
REQUEST = RestRequest(method="GET", path="/x", segments=("x",), identity=ANONYMOUS)


class Context:
    """As much of the real one as a list needs."""

    clock = None
    threads = NoThreads()

    def moment(self):
        return None


def test_the_reactor_turns_while_records_are_made(monkeypatch):
    turns, made = [], []

    def sliced(work, _clock, **_more):
        while True:
            try:
                next(work)
            except StopIteration as stop:
                return succeed(stop.value)
            turns.append(len(made))

    def record(number):
        made.append(number)
        return {"name": str(number), "size": None if number % 2 else number}

    monkeypatch.setattr(local, "sliced", sliced)
    schema = local.local_schema("x", COLUMNS, ())
    (answer,) = outcome(
        Deferred.fromCoroutine(local.select(Context(), REQUEST, schema, map(record, range(1000))))
    )
    assert len(answer.rows) == 1000
    # Never more than a hundred records in a row.
    assert [turn for turn in turns if turn < 1000] == list(range(100, 1000, 100))

    turns.clear()
    (answer,) = outcome(
        Deferred.fromCoroutine(local.sparse(Context(), REQUEST, answer, frozenset({"size"})))
    )
    assert len(turns) == 10
    assert answer.expand(answer.rows[0]) == {"size": 0}
    assert answer.expand(answer.rows[1]) == {}
