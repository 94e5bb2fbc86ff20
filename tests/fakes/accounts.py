"""Everything about accounts as it is in the daemon, without sockets and threads."""

import base64
import hashlib
import os

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.accounts.authenticate import Authenticator
from monrest.accounts.contacts import NO_CONTACT
from monrest.accounts.credentials import Credentials
from monrest.accounts.keys import Keys
from monrest.accounts.passwords import Passwords
from monrest.accounts.sessions import Sessions
from monrest.accounts.slowdown import Slowdown
from monrest.accounts.users import Users
from monrest.api import csrf
from monrest.base.names import Names
from monrest.base.values import ANONYMOUS, Caller, RestRequest
from monrest.config import AuthConfig, Config
from tests.fakes.clocks import Wall
from tests.fakes.context import make_context
from tests.fakes.keystore import Store, result, value_of
from tests.fakes.store import migrated_sqlite_url
from tests.fakes.threads import NoThreads

HERE = "192.0.2.7"
SECRET = "0123456789abcdef" * 4 + "_1"
KEY, USER = "x-mon-auth-key", "x-mon-auth-user"
HOSTS, SERVICES = "authorized_for_all_hosts", "authorized_for_all_services"


def sha(password):
    return "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


def basic(user, password):
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Directory:
    """What the cores say of users: contacts by name, and sites that did not answer."""

    def __init__(self):
        self.known, self.problems = {}, ()

    async def of(self, user):
        return self.known.get(user, NO_CONTACT)

    async def all_contacts(self, sites):
        return dict(self.known), self.problems


class House:
    """One daemon; ``another`` on the same database has caches of its own."""

    def __init__(self, folder, store=None, **auth):
        self.clock = store.clock if store else Clock()
        if store is None:
            self.clock.advance(1_700_000_000)
        self.wall = Wall(self.clock)
        self.folder, self.auth = folder, auth
        self.store = store or Store(migrated_sqlite_url(folder), self.clock)
        if store is None:
            self.store.startService()
        self.directory = Directory()
        self.path = folder / "htpasswd"
        self.configure(**auth)

    def configure(self, *, app="mon", **auth):
        auth = {
            "roles": {"admin": ("root",), "all_hosts": ("ann",)},
            "htpasswd_file": str(self.path),
            **auth,
        }
        config, names = AuthConfig(**auth), Names(app=app)
        credentials = Credentials(self.store, self.clock, self.wall, config, names)
        self.keys = Keys(credentials)
        self.sessions = Sessions(credentials)
        self.users = Users(credentials)
        self.passwords = Passwords(config.htpasswd_file, NoThreads(), self.clock)
        self.slowdown = Slowdown(self.clock)
        parts = {
            "keys": self.keys,
            "sessions": self.sessions,
            "users": self.users,
            "passwords": self.passwords,
            "slowdown": self.slowdown,
            "contacts": self.directory,
        }
        self.authenticator = Authenticator(
            config=config, names=names, secret_key=SECRET, own_uid=1000, **parts
        )
        self.context = make_context(
            self.clock, config=Config(auth=config, names=names), names=names, **parts
        )

    def another(self):
        made = House(self.folder, self.store, **self.auth)
        made.directory = self.directory
        made.configure(**self.auth)
        return made

    def write(self, **passwords):
        """Put these passwords into the file, as of some time ago."""
        self.path.write_text("".join(f"{one}:{sha(two)}\n" for one, two in passwords.items()))
        os.utime(self.path, (1_600_000_000, 1_600_000_000 + len(passwords)))

    def begin(self, method, path, /, headers=None, *, address=HERE, secure=False, **given):
        """A Deferred of the answer to a request with these parameters."""
        caller = Caller(
            method=method, headers=headers or {}, address=address, client=address, secure=secure
        )
        pairs = tuple(
            (name, one)
            for name, value in given.items()
            for one in (value if isinstance(value, list) else [value])
        )
        return Deferred.fromCoroutine(self._answer(caller, path, pairs))

    async def _answer(self, caller, path, pairs):
        names = self.context.names
        segments = tuple(path.strip("/").split("/"))
        if self.context.dispatch.router.public(caller.method, segments):
            identity = ANONYMOUS
        else:
            identity = await self.authenticator.authenticate(caller)
        pairs = csrf.check(identity, caller.method, pairs, caller.headers, names)
        request = RestRequest(
            method=caller.method,
            path=path,
            segments=segments,
            parameters=pairs,
            identity=identity,
            caller=caller,
        )
        return await self.context.dispatch(self.context, request)

    def send(self, *where, **given):
        """The answer to a request, whatever time it takes; raises what it raises."""
        return self.wait(self.begin(*where, **given))

    def ask(self, headers=None, *, address=HERE, uid=None):
        """The identity of a caller; ``uid`` comes over a Unix socket."""
        address, client = (address, address) if uid is None else ("", "unix")
        caller = Caller(headers=headers or {}, address=address, client=client, uid=uid)
        return self.wait(Deferred.fromCoroutine(self.authenticator.authenticate(caller)))

    def make(self, **given):
        """A new API key, as its owner gets it."""
        return result(self.keys.create(**given))[1]

    def wait(self, deferred):
        found = []
        deferred.addBoth(found.append)
        while not found:
            calls = self.clock.getDelayedCalls()
            assert calls, "never answered"
            self.clock.advance(max(0.0, calls[0].getTime() - self.clock.seconds()))
        return value_of(found)

    def login(self, user="ann", password="right", **more):
        """Log in; (cookie header, CSRF token)."""
        answer = self.send("POST", "/mon/login", login=user, password=password, **more)
        cookie = dict(answer.headers)["Set-Cookie"].partition(";")[0]
        return {"cookie": cookie}, answer.value["csrf_token"]

    def as_user(self, user):
        """The headers of the secret key for a user."""
        return {KEY: SECRET, USER: user}


@pytest.fixture
def house(tmp_path):
    """A daemon without sockets, whose password file knows ann, bob and root."""
    made = House(tmp_path)
    made.write(ann="right", bob="right", root="right")
    yield made
    made.store.down = made.store.held = False
    result(made.store.stopService())
