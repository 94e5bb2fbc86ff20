"""Failed logins are slowed down, per address and per user, by all workers together.

So many wrong passwords of a user from one address in a row lock out that user's passwords from
there, for a quarter of an hour after the last one.

An answer "wrong" comes after a delay that grows with the failures before it, and for that time
it keeps one of the few places that its address and its user have; who finds none free waits in
line. So guessing in parallel is no faster than one after the other. The delay counts from the
start of the attempt: how long the work behind it takes cannot be seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from types import TracebackType

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.concurrency import pause
from monrest.base.errors import TooManyRequests
from monrest.base.workers import Workers

FIRST_DELAY = 0.5
"""Seconds after the first failure; doubled with each further one."""

LONGEST_DELAY = 10.0

_PLACES = 4
_MOST_IN_LINE = 50
_MOST_WAITING = 1000
_FORGOTTEN_AFTER = 900.0
_REMEMBERED = 4096
_PREFIX_OF_ONE = 64


@define(eq=False)
class _Track:
    """What is known of one address or one user."""

    failures: int = 0
    last: float = 0.0
    inside: int = 0
    line: deque[Deferred[None]] = field(factory=deque)

    @property
    def idle(self) -> bool:
        """Whether no attempt is inside or waiting."""
        return not self.inside and not self.line


@define(eq=False)
class Slowdown:
    """Remembers failures for a quarter of an hour, of a bounded number of addresses and users."""

    clock: IReactorTime
    workers: Workers = field(factory=Workers)
    _tracks: dict[tuple[str, str], _Track] = field(factory=dict, init=False)
    _good: dict[tuple[str, str], None] = field(factory=dict, init=False)
    _waiting: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.workers.hear("login failed", self._failed)
        self.workers.hear("login succeeded", self._succeeded)
        self.workers.hear("logins forgiven", self._forgive)

    def attempt(self, address: str, user: str) -> Attempt:
        """Begin an attempt to log in, an asynchronous context manager.

        Inside of it the password is looked at; leaving it without ``succeeded()`` is a failure,
        unless by an error of the service. Entering raises TooManyRequests when too many wait.
        """
        return Attempt(self, _grouped(address), user)

    def trusts(self, address: str, user: str) -> bool:
        """Whether the last attempt of this user from there succeeded; such a pair never waits.

        Else strangers who guess could keep a user from working by occupying the places.
        """
        return (address, user) in self._good

    def track(self, kind: str, name: str) -> _Track:
        """Give what is known of one, and make room for it."""
        key = (kind, name)
        now = self.clock.seconds()
        track = self._tracks.pop(key, None)
        if track is None or (track.idle and now - track.last > _FORGOTTEN_AFTER):
            track = _Track()
            self._make_room()
        self._tracks[key] = track  # the one that was used last is the last one
        return track

    def _make_room(self) -> None:
        if len(self._tracks) < _REMEMBERED:
            return
        # Tracks in use cannot go; there are never more of them than attempts at the same time.
        oldest = next((key for key, track in self._tracks.items() if track.idle), None)
        if oldest is not None:
            del self._tracks[oldest]

    def is_locked_out(self, address: str, user: str, most: int) -> bool:
        """Whether ``most`` passwords of the user from there were wrong in a row; 0: never."""
        track = self._tracks.get(("pair", f"{address} {user}"))
        recent = track is not None and self.clock.seconds() - track.last <= _FORGOTTEN_AFTER
        return track is not None and recent and 0 < most <= track.failures

    async def enter(self, track: _Track) -> None:
        """Take a place, in the order of arrival."""
        if track.inside < self.workers.share(_PLACES) and not track.line:
            track.inside += 1
            return
        share = self.workers.share
        if len(track.line) >= share(_MOST_IN_LINE) or self._waiting >= share(_MOST_WAITING):
            raise TooManyRequests(
                "too many failed logins",
                "wait before you try again",
                _delay(track.failures),
            )
        turn: Deferred[None] = Deferred(track.line.remove)
        track.line.append(turn)
        self._waiting += 1
        try:
            await turn
        finally:
            self._waiting -= 1

    def leave(self, track: _Track) -> None:
        """Give the place to the next one in line."""
        if track.line:
            track.line.popleft().callback(None)
        else:
            track.inside -= 1

    def leave_all(self, tracks: Iterable[_Track]) -> None:
        """Give several places away."""
        for track in tracks:
            self.leave(track)

    def succeeded(self, address: str, user: str) -> None:
        """Note that the user was there; only those of the address stay."""
        self.workers.tell("login succeeded", address, user)
        self._succeeded(address, user)

    def _succeeded(self, address: str, user: str) -> None:
        for key in (("user", user), ("pair", f"{address} {user}")):
            track = self._tracks.get(key)
            if track is not None:
                track.failures = 0
        self._good.pop((address, user), None)
        while len(self._good) >= _REMEMBERED:
            del self._good[next(iter(self._good))]
        self._good[address, user] = None

    def forgive(self, user: str) -> None:
        """Forget the wrong passwords of a user from all addresses."""
        self.workers.tell("logins forgiven", user)
        self._forgive(user)

    def _forgive(self, user: str) -> None:
        for (kind, name), track in self._tracks.items():
            if (kind, name) == ("user", user) or (kind, name.partition(" ")[2]) == ("pair", user):
                track.failures = 0

    def failed(self, address: str, user: str) -> float:
        """Count a failure, for all workers; how long its answer takes, in seconds."""
        self.workers.tell("login failed", address, user)
        return self._failed(address, user)

    def _failed(self, address: str, user: str) -> float:
        self._good.pop((address, user), None)
        now, delay = self.clock.seconds(), 0.0
        pair = f"{address} {user}"
        for kind, name in (("address", address), ("user", user), ("pair", pair)):
            track = self.track(kind, name)
            if now - track.last > _FORGOTTEN_AFTER:
                track.failures = 0
            delay = max(delay, _delay(track.failures))
            track.failures += 1
            track.last = now
        return delay


@define(eq=False)
class Attempt:
    """One attempt; see ``Slowdown.attempt``."""

    slowdown: Slowdown
    address: str
    user: str
    _held: list[_Track] = field(factory=list, init=False)
    _begun: float = field(default=0.0, init=False)
    _right: bool = field(default=False, init=False)
    _counts: bool = field(default=True, init=False)

    def succeeded(self) -> None:
        """Say that the password was right."""
        self._right = True
        self.slowdown.succeeded(self.address, self.user)

    def refused(self, most: int, *, in_all: bool) -> bool:
        """Whether a right password does not count, because too many before it were wrong.

        ``in_all``: from all addresses together, which does not matter where the user has been. It
        is answered as a wrong one, and is none more.
        """
        slowdown = self.slowdown
        self._counts = not (
            slowdown.is_locked_out(self.address, self.user, most)
            or (in_all and not slowdown.trusts(self.address, self.user))
        )
        return not self._counts

    async def __aenter__(self) -> Attempt:
        slowdown = self.slowdown
        if not slowdown.trusts(self.address, self.user):
            try:
                # The address first: who waits for their own address must not block a user's place.
                for kind, name in (("address", self.address), ("user", self.user)):
                    track = slowdown.track(kind, name)
                    await slowdown.enter(track)
                    self._held.append(track)
            except BaseException:
                self._leave()
                raise
        self._begun = slowdown.clock.seconds()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        gone = isinstance(error, CancelledError)
        if self._right or (error is not None and not gone):
            self._leave()
            return
        clock = self.slowdown.clock
        failed = self.slowdown.failed
        delay = failed(self.address, self.user) if self._counts else LONGEST_DELAY
        left = max(0.0, self._begun + delay - clock.seconds())
        # The place stays taken also when the client does not wait for the answer.
        held, self._held = self._held, []
        clock.callLater(left, self.slowdown.leave_all, held)
        if not gone:
            await pause(clock, left)

    def _leave(self) -> None:
        held, self._held = self._held, []
        self.slowdown.leave_all(held)


def _delay(failures: int) -> float:
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures, 16))


def _grouped(address: str) -> str:
    """Give one name to all addresses that one client of IPv6 has."""
    try:
        read = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(read, IPv6Address):
        return str(ip_network((read, _PREFIX_OF_ONE), strict=False))
    return address
