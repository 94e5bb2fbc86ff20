"""Sessions, users, passwords and groups as a test says."""

from __future__ import annotations

from attrs import frozen

from monrest.base.errors import Unavailable
from monrest.base.values import Contact
from monrest.config import AuthConfig

SECRET = "0123456789abcdef" * 4 + "_1"


@frozen(kw_only=True)
class Session:
    hashed_id: str = "5e55"
    username: str = "ann"
    csrf_token: str = "t0ken"
    roles: tuple[str, ...] | None = None
    confirmed: bool = True
    password: str | None = None

    def began_with(self, _value, password):
        return self.password in (None, password)


class Sessions:
    def __init__(self):
        self.known = {}

    async def find(self, cookie):
        return self.known.get(cookie)


class Users:
    def __init__(self):
        self.locked, self.failures, self.passes = set(), [], []
        self.away = False
        self.config = AuthConfig()

    async def is_guessed(self, user):
        return False

    async def is_locked(self, user):
        if self.away:
            raise Unavailable("cannot read", "no connection to the database")
        return user in self.locked

    async def failed(self, user, caller, *, known):
        self.failures.append((user, caller.client, known))

    async def passed(self, user):
        self.passes.append(user)


class Passwords:
    def __init__(self):
        self.known, self.asked = None, []

    @property
    def configured(self):
        return self.known is not None

    async def knows(self, user):
        return user in self.known

    async def hash_of(self, user):
        return "a hash" if self.known is None else self.known.get(user)

    async def check(self, user, password):
        self.asked.append(user)
        return self.known.get(user) == password


class Groups:
    def __init__(self):
        self.groups, self.asked = frozenset(), []

    async def of(self, user):
        self.asked.append(user)
        return Contact(groups=frozenset(self.groups))
