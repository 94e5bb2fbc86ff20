"""The parts of accounts."""

from __future__ import annotations

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred

from monrest.accounts.contacts import Contacts
from monrest.accounts.credentials import Credentials
from monrest.accounts.key_endpoints import KeyRecords
from monrest.accounts.keys import Keys
from monrest.accounts.passwords import Passwords
from monrest.accounts.session_endpoints import SessionRecords
from monrest.accounts.sessions import Sessions
from monrest.accounts.slowdown import Slowdown
from monrest.accounts.user_endpoints import UserRecords, figures
from monrest.accounts.users import Users
from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.base.errors import Unavailable


@define(eq=False)
class Accounts(Service):
    """Users with their keys, sessions and passwords, and what the cores say of them."""

    common: Common
    credentials: Credentials = field(init=False)
    keys: Keys = field(init=False)
    sessions: Sessions = field(init=False)
    users: Users = field(init=False)
    passwords: Passwords = field(init=False)
    slowdown: Slowdown = field(init=False)
    contacts: Contacts = field(init=False)

    def __attrs_post_init__(self) -> None:
        common, clock, workers = self.common, self.common.reactor, self.common.workers
        auth, names = common.config.auth, common.config.names
        self.credentials = Credentials(common.database, clock, common.wall, auth, names, workers)
        self.keys = Keys(self.credentials)
        self.sessions = Sessions(self.credentials)
        self.users = Users(self.credentials)
        self.passwords = Passwords(auth.htpasswd_file, common.threads, clock)
        self.slowdown = Slowdown(clock, workers)
        self.contacts = Contacts(common.registry, clock, workers=workers)
        common.figures.offer(self.sessions.figures)
        common.figures.offer(self._figures)

    async def _figures(self) -> dict[str, float]:
        """Figures of the users that are known under the configuration in force."""
        sites, auth = self.common.registry.sites, self.common.config.auth
        caches = self.users, self.contacts, self.passwords
        return await figures(*caches, sites, auth)

    def configure(self) -> None:
        auth = self.common.config.auth
        self.credentials.configure(auth, self.common.config.names)
        self.passwords = Passwords(auth.htpasswd_file, self.common.threads, self.common.reactor)

    def startService(self) -> None:
        """Do what is done from time to time."""
        super().startService()
        # Known before the first request, it is known as well when the database goes away.
        Deferred.fromCoroutine(self.users.is_locked("")).addErrback(
            lambda failure: failure.trap(Unavailable)
        )
        self.credentials.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when what is left is stored; before the database stops."""
        super().stopService()
        return self.credentials.stopService()


FAMILY = Family(
    life=Life(Accounts, configure=lambda _, accounts: accounts.configure()),
    served=(
        Served(
            (*UserRecords.endpoints(), *declared(UserRecords)),
            lambda common: UserRecords(
                database=common.database,
                users=common.the(Accounts).users,
                contacts=common.the(Accounts).contacts,
                passwords=common.the(Accounts).passwords,
                slowdown=common.the(Accounts).slowdown,
            ),
        ),
        Served(
            (*SessionRecords.endpoints(), *declared(SessionRecords)),
            lambda common: SessionRecords(
                database=common.database,
                sessions=common.the(Accounts).sessions,
                passwords=common.the(Accounts).passwords,
                users=common.the(Accounts).users,
                slowdown=common.the(Accounts).slowdown,
            ),
        ),
        Served(
            (*KeyRecords.endpoints(), *declared(KeyRecords)),
            lambda common: KeyRecords(database=common.database, keys=common.the(Accounts).keys),
        ),
    ),
)
