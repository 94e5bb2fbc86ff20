"""A wall clock that a test sets."""


class Wall:
    """Shows the seconds of ``clock``, ``ahead`` of it by what ``jump`` adds up to."""

    def __init__(self, clock, ahead=0.0):
        self.clock = clock
        self.ahead = ahead

    def now(self):
        return self.clock.seconds() + self.ahead

    def jump(self, seconds):
        """Set it, forth or back, while ``clock`` goes on."""
        self.ahead += seconds
