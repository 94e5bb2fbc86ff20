"""What an answer holds is given back however it ends, and nobody waits for a collection of it."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.web.http_headers import Headers

from monrest.base.answer_file import AnswerFiles
from monrest.base.concurrency import Threads
from monrest.base.values import Column, Rows
from monrest.render.formats import RenderOptions
from monrest.web.respond import Responder
from tests.fakes.sites import outcome


class Client:
    """A request of somebody who leaves before anything of the answer is sent."""

    method, code, channel = b"GET", 200, None

    def __init__(self):
        self.requestHeaders, self.responseHeaders = Headers(), Headers()

    def answered(self):
        pass

    def registerProducer(self, producer, streaming):
        pass


class Busy:
    """Threads that have other things to do."""

    stoppable = Threads.stoppable

    def run(self, _function):
        return Deferred()


@pytest.mark.parametrize("format", ["json", "xls"])
def test_who_leaves_before_the_answer_begins(tmp_path, format):
    clock, gone = Clock(), []
    responder = Responder(clock, Busy(), AnswerFiles(tmp_path))
    data = [[number, "x" * 10] for number in range(11_000)]
    answer = Rows(columns=(Column("id"), Column("text")), rows=data, gone=lambda: gone.append(1))
    work = responder.answer(Client(), answer, RenderOptions(format=format))
    sending = Deferred.fromCoroutine(work)
    found = outcome(sending)
    assert found == gone == []
    sending.cancel()
    assert found[0].check(CancelledError)
    assert gone
