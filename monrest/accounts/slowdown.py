"""Attempts with a name and a password, by a login or by basic authentication.

Failed ones are slowed down, per address and per user, by all workers together
(docs/spec/accounts.md, "Passwords"). So many wrong passwords of a user from one address in a row
lock out that user's passwords from there, for a quarter of an hour after the last one.

An answer "wrong" comes after a delay that grows with the failures before it, and for that time
it keeps one of the few places that its address and its user have; an attempt that finds none free
waits in line. So guessing in parallel is no faster than one after the other. The delay counts
from the start of the attempt: how long the work behind it takes cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from types import TracebackType

from attrs import define, field
from twisted.internet.defer import CancelledError, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime

from monrest.accounts.passwords import Passwords
from monrest.accounts.users import Users
from monrest.base.audit import audit
from monrest.base.concurrency import pause
from monrest.base.errors import NotAuthenticated, TooManyRequests
from monrest.base.names import Names
from monrest.base.values import Caller
from monrest.base.workers import Workers

WRONG = "no or invalid credentials used."
"""The answer to every wrong attempt, whether there is such a user or not."""

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
    """The failures of one address or one user."""

    places: DeferredSemaphore
    failures: int = 0
    last: float = 0.0

    @property
    def idle(self) -> bool:
        """Whether no attempt is inside or waiting."""
        return self.places.tokens == self.places.limit


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
        """Return what is known of one, and make room for it."""
        key = (kind, name)
        now = self.clock.seconds()
        track = self._tracks.pop(key, None)
        if track is None or (track.idle and now - track.last > _FORGOTTEN_AFTER):
            track = _Track(DeferredSemaphore(self.workers.share(_PLACES)))
            if len(self._tracks) >= _REMEMBERED:
                # Those in use cannot go; they are never more than attempts at the same time.
                oldest = next((key for key, track in self._tracks.items() if track.idle), None)
                if oldest is not None:
                    del self._tracks[oldest]
        self._tracks[key] = track  # the one that was used last is the last one
        return track

    def is_locked_out(self, address: str, user: str, most: int) -> bool:
        """Whether ``most`` passwords of the user from there were wrong in a row; 0: never."""
        track = self._tracks.get(("pair", f"{address} {user}"))
        recent = track is not None and self.clock.seconds() - track.last <= _FORGOTTEN_AFTER
        return track is not None and recent and 0 < most <= track.failures

    async def enter(self, track: _Track) -> None:
        """Take a place, in the order of arrival; TooManyRequests where too many wait."""
        share, places = self.workers.share, track.places
        if not places.tokens and (
            len(places.waiting) >= share(_MOST_IN_LINE) or self._waiting >= share(_MOST_WAITING)
        ):
            raise TooManyRequests(
                "too many failed logins", "wait before you try again", _delay(track.failures)
            )
        self._waiting += 1
        try:
            await places.acquire()
        finally:
            self._waiting -= 1

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
        """Note that the password was right."""
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
                # The address first: an attempt that waits for it must not block a user's place.
                for kind, name in (("address", self.address), ("user", self.user)):
                    track = slowdown.track(kind, name)
                    await slowdown.enter(track)
                    self._held.append(track)
            except BaseException:
                _leave(self._held)
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
            _leave(self._held)
            return
        slowdown, clock = self.slowdown, self.slowdown.clock
        delay = slowdown.failed(self.address, self.user) if self._counts else LONGEST_DELAY
        left = max(0.0, self._begun + delay - clock.seconds())
        # The place stays taken also when the client does not wait for the answer.
        clock.callLater(left, _leave, self._held)
        if not gone:
            await pause(clock, left)


def _leave(tracks: Iterable[_Track]) -> None:
    for track in tracks:
        track.places.release()


def _delay(failures: int) -> float:
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures, 16))


def _grouped(address: str) -> str:
    """The network of an IPv6 address, because one client has all of its addresses."""
    try:
        read = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(read, IPv6Address):
        return str(ip_network((read, _PREFIX_OF_ONE), strict=False))
    return address


async def is_right(
    user: str,
    password: str,
    caller: Caller,
    *,
    passwords: Passwords,
    slowdown: Slowdown,
    users: Users,
) -> bool:
    """Whether ``password`` is that of ``user``; a wrong one is counted, noted and slowed down.

    After too many wrong ones the right one is answered like them. Whether an administrator has
    locked the user is another question, answered only after the right password. Raises
    TooManyRequests and Unavailable.
    """
    async with slowdown.attempt(caller.client, user) as attempt:
        right = await passwords.check(user, password)
        most = users.config.lock_after_failed_logins
        if right and attempt.refused(most, in_all=await users.is_guessed(user)):
            audit(user, caller, "login failed", result="too many wrong passwords before")
            right = False
        elif right:
            attempt.succeeded()
            await users.passed(user)
        else:
            # In here, so that the time it takes is hidden in the delay.
            audit(user, caller, "login failed", result=WRONG)
            await users.failed(user, caller, known=await passwords.knows(user))
    return right


def not_authenticated(
    message: str, description: str, caller: Caller, names: Names, *, passwords: bool
) -> NotAuthenticated:
    """Make the error for a caller of whom nothing is known; it says how to come in.

    By key always; by password where there are ``passwords``, but not to a script of a page: its
    browser would ask the person in front of it for a password that the script cannot use.
    """
    challenges = [f'Bearer realm="{names.app}"']
    # As far as browsers and libraries for scripts tell.
    mode = caller.headers.get("sec-fetch-mode", "navigate").strip().lower()
    by = caller.headers.get("x-requested-with", "").strip().lower()
    if passwords and mode == "navigate" and by != "xmlhttprequest":
        challenges.append(f'Basic realm="{names.app}", charset="UTF-8"')
    return NotAuthenticated(message, description, challenges)
