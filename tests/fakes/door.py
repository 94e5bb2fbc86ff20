"""An authenticator with real keys, and sessions, users, passwords and groups as the test says."""

from __future__ import annotations

from attrs import frozen
from twisted.internet.task import Clock

from monrest.accounts.authenticate import Authenticator
from monrest.accounts.credentials import Credentials
from monrest.accounts.keys import Keys
from monrest.base.errors import Unavailable
from monrest.base.names import Names
from monrest.base.values import Caller, Contact
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result
from tests.fakes.store import migrated_sqlite_url

SECRET = "0123456789abcdef" * 4 + "_1"
STRANGER = "192.0.2.7"
KEY, USER = "x-mon-auth-key", "x-mon-auth-user"
HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"


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


class Attempts:
    """No attempt has to wait; see the slow ones in the tests of the slowdown."""

    def attempt(self, _client, _user):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return False

    def succeeded(self):
        pass

    def refused(self, _most, *, in_all):
        return in_all


class Door:
    """An authenticator with everything around it; ``ask`` gives the identity of one caller."""

    def __init__(self, folder):
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.store = Store(migrated_sqlite_url(folder), self.clock)
        self.store.startService()
        self.keys = Keys(Credentials(self.store, self.clock, Wall(self.clock), AuthConfig()))
        self.sessions, self.users, self.passwords = Sessions(), Users(), Passwords()
        self.groups, self.slowdown = Groups(), Attempts()
        self.configure()

    def configure(self, names=None, **auth):
        auth = {"roles": {"admin": ("root",), "all_hosts": ("ann",)}, **auth}
        self.authenticator = Authenticator(
            config=AuthConfig(**auth),
            names=names or Names(),
            secret_key=SECRET,
            keys=self.keys,
            sessions=self.sessions,
            users=self.users,
            passwords=self.passwords,
            slowdown=self.slowdown,
            contacts=self.groups,
            own_uid=1000,
        )

    def ask(self, headers=None, *, address=STRANGER, uid=None):
        client = "unix" if uid is not None else address
        address = "" if uid is not None else address
        caller = Caller(headers=headers or {}, address=address, client=client, uid=uid)
        return result(self.authenticator.authenticate(caller))

    def make(self, **given):
        return result(self.keys.create(**given))[1]
