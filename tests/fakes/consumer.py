"""The client's side of a body that is sent: it takes pieces, and asks for pauses."""


class Consumer:
    """Stands for a request and its channel; asks for a pause after every ``room`` pieces.

    ``once``: only after the first ones. ``acknowledged``: bytes that the client has taken.
    """

    def __init__(self, room=1000, *, once=False):
        self.room, self.once = room, once
        self.written, self.producer, self.aborted = [], None, False
        self.channel = self
        self.acknowledged = 0

    def registerProducer(self, producer, streaming):
        assert streaming
        self.producer = producer

    def unregisterProducer(self):
        assert self.producer is not None
        self.producer = None

    def write(self, data):
        self.written.append(data)
        pieces = len(self.written)
        if pieces == self.room or (pieces % self.room == 0 and not self.once):
            self.producer.pauseProducing()

    def taken(self):
        return self.acknowledged

    def forceAbortClient(self):
        self.aborted = True
