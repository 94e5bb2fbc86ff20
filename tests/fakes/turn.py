"""One turn of a reactor: what is due now, and not what that makes due."""


def turn(clock):
    """Run what is due on a ``Clock``."""
    due = [call for call in clock.getDelayedCalls() if call.getTime() <= clock.seconds()]
    for call in due:
        if call.active():
            clock.calls.remove(call)
            call.called = 1
            call.func(*call.args, **call.kw)
