"""Bodies of requests while they are received: from whom, and how much of all together.

The rules and numbers are those of docs/spec/http.md, "What a client may send".
"""

from __future__ import annotations

from attrs import define

from monrest.base.errors import Unavailable

UNKNOWN = 65536
"""Bytes of a body that anybody may send; for more a client has to be known."""
RETRY_AFTER = 5
"""Seconds after which a client may try again for whose body there was no room."""
HEAD_SECONDS = 30.0
"""From the first byte of a request to the end of its head."""
LEAST, WINDOW = 15_000, 30.0
"""Bytes of a body that have to come in so many seconds, unless it ends before."""


def no_room() -> Unavailable:
    """Make the error for a body that does not fit in beside all others."""
    return Unavailable(
        "too many request bodies at once", "please try again in a moment", seconds=RETRY_AFTER
    )


@define(eq=False)
class Intake:
    """The room of ``most`` bytes for the bodies of all requests of the daemon, and their values.

    Each counts until its request is answered.
    """

    most: int
    held: int = 0

    def take(self, count: int) -> bool:
        """Take room for ``count`` bytes; False if there is not enough."""
        if self.held + count > self.most:
            return False
        self.held += count
        return True

    def give_back(self, count: int) -> None:
        self.held -= count
