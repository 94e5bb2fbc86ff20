"""The guard that every test has knows of an error for as long as nobody has handled it."""

from twisted.internet import defer


def test_an_error_is_known_until_it_is_handled():
    circle = defer.Deferred()
    circle.itself = circle
    circle.errback(ZeroDivisionError())
    assert [one.failResult.type for one in defer.DebugInfo.alive if one.failResult] == [
        ZeroDivisionError
    ]
    circle.addErrback(lambda failure: None)
    assert [one for one in defer.DebugInfo.alive if one.failResult] == []
