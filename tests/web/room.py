"""A whole web room around a scripted dispatch: real site, channel, Klein and renderer."""

import tempfile
from collections import namedtuple
from pathlib import Path

from treq.testing import StubTreq
from twisted.internet.defer import Deferred

from monrest.accounts.authenticate import Authenticator, Proxies
from monrest.accounts.passwords import Passwords
from monrest.api.endpoint import Endpoint
from monrest.api.router import Match
from monrest.base.answer_file import AnswerFiles
from monrest.base.errors import NotFound
from monrest.base.names import Names
from monrest.base.values import Column, Document, Rows
from monrest.config import AuthConfig, ServerConfig
from monrest.web.api_site import ApiSite
from monrest.web.app import Api
from monrest.web.pages import Pages
from monrest.web.respond import Responder
from tests.fakes.clocks import Wall
from tests.fakes.context import KnownContacts
from tests.fakes.threads import NoThreads

KEY = "0123456789abcdef" * 4 + "_1"
SIGNED = {"X-Mon-Auth-Key": KEY, "X-Mon-Auth-User": "ann"}
USUAL = Endpoint(path="/hosts", description="hosts", handler=None)
Reply = namedtuple("Reply", "status headers body length")


class NoKeys:
    async def find(self, _):
        return None


class NobodyLocked:
    async def is_locked(self, _):
        return False


class Room:
    """The web room; ``answers`` maps a path to a value, an exception or a coroutine function."""

    def __init__(
        self,
        clock,
        *,
        server=None,
        names=None,
        threads=None,
        behind_proxy=False,
        route=lambda _: "",
        public_docs=True,
    ):
        self.public_docs, self.template = public_docs, route
        self.clock, self.seen, self.answers, self.endpoints = clock, [], {}, {}
        self._waiting, self.behind_proxy = [], behind_proxy
        self.server = server or ServerConfig()
        self.names = names or Names()
        self.threads, self.keys = threads or NoThreads(), NoKeys()
        self.site = ApiSite(self.resource(), self.server, self.names, clock, Wall(clock))

    def resource(self):
        return Api(
            server=self.server,
            names=self.names,
            authenticator=Authenticator(
                config=AuthConfig(),
                names=self.names,
                secret_key=KEY,
                keys=self.keys,
                sessions=None,
                users=NobodyLocked(),
                passwords=Passwords("", self.threads, self.clock),
                slowdown=None,
                contacts=KnownContacts(),
            ),
            proxies=Proxies.of(["127.0.0.1"] if self.behind_proxy else []),
            dispatch=self.dispatch,
            router=self,
            responder=Responder(
                self.clock,
                self.threads,
                AnswerFiles(Path(tempfile.gettempdir())),
                ascii_json=self.server.ascii_json,
            ),
            pages=Pages(
                names=self.names, version="1", threads=self.threads, public_docs=self.public_docs
            ),
        ).resource()

    async def dispatch(self, request):
        self.seen.append(request)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(request)
        answer = self.answers.get(request.path, Document(value={"path": request.path}))
        if isinstance(answer, Exception):
            raise answer
        return await answer(request) if callable(answer) else answer

    def arrival(self):
        """Fires with the next request that arrives."""
        self._waiting.append(Deferred())
        return self._waiting[-1]

    def public(self, method, segments):
        return (method, segments) == ("POST", ("open",))

    def find(self, method, path, segments):
        return Match(self.endpoints.get(path, USUAL), None, ())

    def allowed(self, path, segments):
        if segments == ("nope",):
            raise NotFound(f"unknown rest path: {path}")
        return ("GET", "HEAD", "POST", "OPTIONS")


def rows(count, text="x" * 100):
    columns = (Column("id"), Column("text"))
    return Rows(columns=columns, rows=[[number, text] for number in range(count)])


def asking(room):
    """See ``ask``; for rooms that a test makes itself."""
    stub = StubTreq(room.site.resource)
    stub._agent._serverFactory = room.site

    async def whole(method, path, headers, body):
        headers = {**SIGNED, **(headers or {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        response = await stub.request(method, f"http://localhost{path}", headers=headers, data=body)
        content = await stub.content(response)
        found = {
            name.decode().lower(): b", ".join(values).decode()
            for name, values in response.headers.getAllRawHeaders()
        }
        return Reply(response.code, found, content, response.length)

    def ask(path, method="GET", headers=None, body=None, flushes=3):
        waiting = Deferred.fromCoroutine(whole(method, path, headers, body))
        results = []

        def keep(result):
            results.append(result)
            return result

        waiting.addBoth(keep)
        for _ in range(flushes):
            stub.flush()
        if not results:
            return waiting
        if hasattr(results[0], "raiseException"):
            waiting.addErrback(lambda _: None)
            results[0].raiseException()
        # The connection stays open and idle; its timer is no business of the tests.
        for channel in tuple(room.site.channels):
            channel.setTimeout(None)
        return results[0]

    ask.flush = stub.flush
    return ask
