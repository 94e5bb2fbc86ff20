"""HTTP with another instance over sockets: TLS, limits, time-outs, what is sent."""

from pathlib import Path

import pytest
from twisted.internet import reactor
from twisted.internet.ssl import PrivateCertificate
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from monrest.config.sections import SiteConfig
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    QueryTimeoutError,
)
from monrest.sites.federation.remote import OnBehalfOf, PartialBody, Remote
from tests.fakes.certificates import Authority


class Page(Resource):
    """Answers below ``/mon/r/v1`` what the path says; ``seen`` are headers and bodies."""

    isLeaf = True

    def __init__(self):
        super().__init__()
        self.seen = []
        self.waiting = []
        self.closes = []
        """Whether the next requests are answered; the connection is closed else."""

    def render(self, request):
        headers = {
            name.decode().lower(): values[0].decode()
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        self.seen.append((request.method.decode(), request.uri.decode(), headers))
        self.seen[-1] += (request.content.read(),)
        word = request.postpath[-1]
        if self.closes and not self.closes.pop(0):
            request.transport.abortConnection()
            return NOT_DONE_YET
        if word == b"partial":
            request.setHeader(b"x-mon-failed-sites", b"far")
        if word == b"hang":
            self.waiting.append(request)
            return NOT_DONE_YET
        return b"[]"


class World:
    def __init__(self, context=None):
        self.page = Page()
        root = Resource()
        place = root
        for name in (b"mon", b"r"):
            inner = Resource()
            place.putChild(name, inner)
            place = inner
        place.putChild(b"v1", self.page)
        site = Site(root)
        self.scheme = "http" if context is None else "https"
        if context is None:
            self.port = reactor.listenTCP(0, site, interface="127.0.0.1")
        else:
            self.port = reactor.listenSSL(0, site, context, interface="127.0.0.1")
        self.remotes = []

    def remote(self, **more):
        config = SiteConfig(
            id="f",
            name="F",
            address=f"{self.scheme}://127.0.0.1:{self.port.getHost().port}/mon/",
            auth_key="the-key",
            **{"connections": 2, **more},
        )
        one = Remote(reactor=reactor, config=config, instance=lambda: "me", largest=1000)
        self.remotes.append(one)
        return one

    async def close(self):
        for request in self.page.waiting:
            request.transport.abortConnection()
        for one in self.remotes:
            await one.close()
        await self.port.stopListening()


async def failure(deferred):
    with pytest.raises(Exception) as caught:
        await deferred
    return caught.value


async def test_one_that_hangs_holds_no_more_than_its_connections():
    world = World()
    remote = world.remote(connections=1)
    slow = remote.call("GET", "/hang", 0.2)
    waiting = remote.call("GET", "/sites", 0.1)
    assert isinstance(await failure(waiting), QueryTimeoutError)
    error = await failure(slow)
    assert isinstance(error, QueryTimeoutError)
    assert error.reason == "timed out after 0.2 s"
    assert await remote.call("GET", "/sites", 5) == b"[]"
    assert [path for _, path, *_ in world.page.seen] == ["/mon/r/v1/hang", "/mon/r/v1/sites"]
    await world.close()


async def test_what_is_lost_on_a_kept_connection_is_not_sent_again_here():
    world = World()
    remote = world.remote()
    world.page.closes = [True, False]
    assert await remote.call("GET", "/sites", 5) == b"[]"
    error = await failure(remote.call("GET", "/sites", 5))
    assert isinstance(error, BrokenConnectionError)
    assert error.kept
    assert len(world.page.seen) == 2
    await world.close()


async def test_a_probe_is_sent_again_and_waits_for_nobody():
    world = World()
    remote = world.remote(connections=1)
    world.page.closes = [True, False, True]
    assert await remote.call("GET", "/sites", 5) == b"[]"
    assert await remote.call("GET", "/sites", 5, urgent=True) == b"[]"
    slow = remote.call("GET", "/hang", 0.2)
    assert await remote.call("GET", "/sites", 5, urgent=True) == b"[]"
    await failure(slow)
    assert len(world.page.seen) == 5
    await world.close()


async def test_an_answer_in_part_is_known_as_one():
    world = World()
    remote = world.remote()
    assert type(await remote.call("GET", "/sites", 5)) is bytes
    assert type(await remote.call("GET", "/partial", 5)) is PartialBody
    await world.close()


async def test_too_many_hops_are_not_asked():
    world = World()
    far = OnBehalfOf("", ("1", "2", "3", "4", "5"))
    error = await failure(world.remote().call("GET", "/sites", 5, far))
    assert "more than 5 instances" in error.reason
    assert world.page.seen == []
    await world.close()


async def test_nobody_listens():
    world = World()
    remote = world.remote()
    await world.close()
    error = await failure(remote.call("GET", "/sites", 5))
    assert isinstance(error, ConnectError)
    assert error.reason == "connection refused"
    await remote.close()


async def test_the_certificate_is_looked_at(tmp_path):
    authority = Authority(tmp_path)
    pem = b"".join(Path(one).read_bytes() for one in authority.sign("127.0.0.1"))
    world = World(PrivateCertificate.loadPEM(pem).options())
    right = world.remote(tls_ca_file=authority.ca_file)
    assert await right.call("GET", "/sites", 5) == b"[]"
    for stranger in (
        world.remote(),
        world.remote(tls_ca_file=Authority(tmp_path, "other").ca_file),
    ):
        error = await failure(stranger.call("GET", "/sites", 5))
        assert isinstance(error, ConnectError)
        assert "certificate verify failed" in error.reason
    named = world.remote(tls_ca_file=authority.ca_file, tls_server_name="other.example")
    assert "TLS" in (await failure(named.call("GET", "/sites", 5))).reason
    assert len(world.page.seen) == 1  # the key went to nobody else
    open_ = world.remote(tls_verify=False)
    assert await open_.call("POST", "/x", 5, body=b"1", reads=False) == b"[]"
    await world.close()
