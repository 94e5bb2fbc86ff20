"""Short messages go straight to the socket, and never past bytes that wait."""

from twisted.internet.abstract import FileDescriptor
from twisted.internet.error import ConnectionLost

from monrest.base.sockets import write_now


class LookingReactor:
    """A reactor that knows who waits for room to write, and how often it was asked to look."""

    def __init__(self):
        self.writers = []
        self.asked = 0

    def addWriter(self, writer):
        if writer not in self.writers:
            self.asked += 1
            self.writers.append(writer)

    def removeWriter(self, writer):
        if writer in self.writers:
            self.writers.remove(writer)

    def removeReader(self, _reader):
        pass

    def getWriters(self):
        return self.writers


class PlainTransport(FileDescriptor):
    """A transport whose system has room for so many bytes; None: the other side has closed."""

    connected = 1

    def __init__(self, room):
        super().__init__(LookingReactor())
        self.room = room
        self.taken = b""

    def writeSomeData(self, data):
        if self.room is None:
            return ConnectionLost()
        now = bytes(data[: self.room])
        self.room -= len(now)
        self.taken += now
        return len(now)

    def drain(self):
        self.room = 1000
        while self.reactor.writers:
            self.doWrite()


def test_what_the_system_takes_never_waits_for_the_reactor():
    transport = PlainTransport(room=100)
    assert write_now(transport, b"question")
    assert transport.taken == b"question"
    assert transport.reactor.asked == 0


def test_what_does_not_fit_follows_in_its_order():
    transport = PlainTransport(room=4)
    assert write_now(transport, b"first")
    assert transport.taken == b"firs"
    transport.room = 1
    assert write_now(transport, b"second")
    transport.drain()
    assert write_now(transport, b"third")
    assert transport.taken == b"firstsecondthird"


def test_it_tells_when_the_other_side_has_closed():
    transport = PlainTransport(room=None)
    assert not write_now(transport, b"question")
    assert transport.reactor.writers == [transport], "the reactor finds out and closes"


def test_an_encrypted_transport_is_not_passed_by():
    class Encrypted(PlainTransport):
        TLS = True

        def write(self, data):
            super().write(b"<%b>" % data)

    transport = Encrypted(room=100)
    assert write_now(transport, b"question")
    assert transport.taken == b"<question>"


def test_a_wrapper_of_a_plain_transport_is_not_passed_by():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def write(self, data):
            self.inner.write(b"<%b>" % data)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    transport = Wrapper(PlainTransport(room=100))
    assert write_now(transport, b"question")
    assert transport.inner.taken == b"<question>"


def test_a_connection_that_is_being_closed_is_left_to_the_reactor():
    transport = PlainTransport(room=0)
    write_now(transport, b"bye")
    transport.loseConnection()
    transport.room = 100
    assert write_now(transport, b"!")
    assert transport.taken == b""
    assert transport.reactor.writers == [transport]


def test_a_connection_that_is_closed_below_an_encryption_is_left_to_the_reactor():
    """The other side has said that it is the end, which only what is below is told at once."""

    class Encryption:
        disconnecting = False

        def __init__(self, below):
            self.transport = below

        def write(self, data):
            pass

        def __getattr__(self, name):
            return getattr(self.transport, name)

    below = PlainTransport(room=100)
    below.loseConnection()
    assert write_now(Encryption(below), b"event")
    assert below.reactor.writers == [below]
