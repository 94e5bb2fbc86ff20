"""Pools over real sockets: Unix, TCP and TLS with a certificate authority of our own."""

import os
import select
import socket
import threading
from functools import partial
from pathlib import Path

import pytest
from twisted.internet import reactor
from twisted.internet.ssl import Certificate, PrivateCertificate

from monrest.config.sections import SiteConfig
from monrest.livestatus.core_errors import BrokenConnectionError, ConnectError, LivestatusError
from monrest.livestatus.endpoints import endpoint_for, uses_tls
from monrest.livestatus.pool import CoreRequest, Pool
from tests.fakes.certificates import Authority
from tests.fakes.livestatus import (
    Script,
    answer_and_close,
    framed,
    reset,
    rows,
    serve_tcp,
    serve_unix,
    truncated,
)

ASK = b"GET hosts\n\n"
HOSTS = CoreRequest(ASK)


def pool_for(address, **options):
    limits = {
        key: options.pop(key) for key in ("connect_timeout", "limit", "local") if key in options
    }
    config = SiteConfig(id="s", name="S", address=address, **options)
    endpoint = partial(endpoint_for, reactor, config)
    return Pool(reactor, endpoint, tls=uses_tls(config), **limits)


async def reason(pool, timeout=5):
    with pytest.raises(LivestatusError) as caught:
        await pool.query(HOSTS, timeout)
    return caught.value.reason


async def test_unix_socket(tmp_path):
    site = serve_unix(reactor, tmp_path / "live", Script())
    pool = pool_for(site.address)
    for _ in range(3):
        assert await pool.query(HOSTS, 5) == [["h1", 0]]
    assert site.accepted == 1
    await pool.stop()
    await site.stop()


async def test_big_answers_arrive_whole(tmp_path):
    many = [[f"host {n}", n, "x" * 300] for n in range(5000)]
    site = serve_unix(reactor, tmp_path / "live", Script(default=rows(*many)))
    pool = pool_for(site.address)
    assert await pool.query(CoreRequest(ASK, width=3), 30) == many
    assert await pool.query(CoreRequest(ASK, width=3), 30) == many
    await pool.stop()
    await site.stop()


async def test_closed_while_idle(tmp_path):
    script = Script([answer_and_close(["h1", 0]), rows(["h2", 0])])
    site = serve_unix(reactor, tmp_path / "live", script)
    pool = pool_for(site.address)
    assert await pool.query(HOSTS, 5) == [["h1", 0]]
    assert await pool.query(HOSTS, 5) == [["h2", 0]]
    await pool.stop()
    await site.stop()


class Reluctant(threading.Thread):
    """A Unix server that does what ``deeds`` say with one connection after the other."""

    def __init__(self, path, *deeds):
        super().__init__(daemon=True)
        self.deeds = deeds
        self.requests = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.start()

    def run(self):
        with self.listener:
            for deed in self.deeds:
                connection, _ = self.listener.accept()
                with connection:
                    getattr(self, deed)(connection)

    def read(self, connection):
        self.requests.append(connection.recv(1000))

    def unread(self, connection):
        select.select([connection], [], [])

    def serve_once(self, connection):
        self.read(connection)
        connection.sendall(framed(b"[[1]]"))
        self.unread(connection)

    def serve(self, connection):
        self.read(connection)
        connection.sendall(framed(b"[[1]]"))
        self.read(connection)


@pytest.mark.parametrize(
    ("deeds", "kinds", "read"),
    [
        (("unread",), [ConnectError], 0),
        (("read",), [BrokenConnectionError], 1),
        (("serve_once", "serve"), [list, list], 2),
        (("serve_once", "unread"), [list, ConnectError], 1),
        (("serve",), [list, BrokenConnectionError], 2),
    ],
)
async def test_the_system_tells_what_was_not_read(tmp_path, deeds, kinds, read):
    server = Reluctant(tmp_path / "live", *deeds)
    pool = pool_for(f"unix:{tmp_path}/live", local=True)
    found = []
    for _ in kinds:
        try:
            found.append(await pool.query(HOSTS, 5))
        except LivestatusError as error:
            found.append(error)
    assert [type(one) for one in found] == kinds
    assert server.requests.count(ASK) == read
    await pool.stop()
    server.join(10)


async def test_reasons_hold_no_paths(tmp_path):
    pool = pool_for(f"unix:{tmp_path}/nothing")
    assert await reason(pool) == "no such socket"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(f"{tmp_path}/dead")
    dead.close()
    assert await reason(pool_for(f"unix:{tmp_path}/dead")) == "connection refused"
    (tmp_path / "plain").write_text("")
    assert await reason(pool_for(f"unix:{tmp_path}/plain")) == "connection refused"
    long = f"{tmp_path}/{'x' * 200}"
    assert await reason(pool_for(f"unix:{long}")) == "socket path too long"


async def test_tcp():
    script = Script([rows(["h1", 0]), reset, rows(["h2", 0]), truncated(["h3", 0])])
    site = serve_tcp(reactor, script)
    pool = pool_for(site.address)
    assert await pool.query(HOSTS, 5) == [["h1", 0]]
    with pytest.raises(BrokenConnectionError) as caught:
        await pool.query(HOSTS, 5)
    assert caught.value.kept  # the core may have read it before the reset
    assert await pool.query(HOSTS, 5) == [["h2", 0]]
    with pytest.raises(BrokenConnectionError) as caught:
        await pool.query(HOSTS, 5)
    assert caught.value.begun
    await pool.stop()
    await site.stop()
    assert await reason(pool_for(site.address)) == "connection refused"


async def test_tcp_name_that_does_not_exist():
    assert await reason(pool_for("tcp:nowhere.invalid:6557")) == "host name not found"


async def test_unusable_addresses():
    assert await reason(pool_for("nonsense")) == "the address is not understood"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def own_certificate(files):
    certificate, key = files
    return PrivateCertificate.loadPEM(Path(certificate).read_bytes() + Path(key).read_bytes())


def serve_tls(authority, name, client_ca=None):
    certificate = own_certificate(authority.sign(name))
    if client_ca is None:
        context = certificate.options()
    else:
        context = certificate.options(Certificate.loadPEM(Path(client_ca).read_bytes()))
    return serve_tcp(reactor, Script(), context)


async def test_tls_with_our_authority(authority):
    site = serve_tls(authority, "127.0.0.1")
    pool = pool_for(site.address, tls_ca_file=authority.ca_file)
    for _ in range(3):
        assert await pool.query(HOSTS, 5) == [["h1", 0]]
    assert site.accepted == 1
    await pool.stop()
    await site.stop()


async def test_tls_server_name(authority):
    site = serve_tls(authority, "core.example")
    wrong = pool_for(site.address, tls_ca_file=authority.ca_file)
    assert "TLS" in await reason(wrong)
    right = pool_for(site.address, tls_ca_file=authority.ca_file, tls_server_name="core.example")
    assert await right.query(HOSTS, 5) == [["h1", 0]]
    await right.stop()
    await wrong.stop()
    await site.stop()


async def test_tls_of_a_stranger_is_refused_unless_told_otherwise(authority, tmp_path):
    site = serve_tls(authority, "127.0.0.1")
    for options in ({}, {"tls_ca_file": Authority(tmp_path, "other CA").ca_file}):
        pool = pool_for(site.address, **options)
        assert "certificate verify failed" in await reason(pool)
        assert not site.script.requests
        await pool.stop()
    pool = pool_for(site.address, tls_verify=False)
    assert await pool.query(HOSTS, 5) == [["h1", 0]]
    await pool.stop()
    await site.stop()


@pytest.mark.parametrize("verify", [True, False])
async def test_tls_client_certificate(authority, verify):
    site = serve_tls(authority, "127.0.0.1", client_ca=authority.ca_file)
    options = {"tls_ca_file": authority.ca_file} if verify else {"tls_verify": False}
    without = pool_for(site.address, **options)
    assert await reason(without)
    assert not site.script.requests
    certificate, key = authority.sign("monrest")
    pool = pool_for(site.address, tls_cert_file=certificate, tls_key_file=key, **options)
    assert await pool.query(HOSTS, 5) == [["h1", 0]]
    await pool.stop()
    await without.stop()
    await site.stop()


async def test_tls_to_a_server_that_speaks_plainly():
    site = serve_tcp(reactor, Script())
    pool = pool_for(site.address.replace("tcp:", "tls:"), tls_verify=False, connect_timeout=0.2)
    assert await reason(pool) == "timed out connecting after 0.2 s"
    await site.when_empty()
    await pool.stop()
    await site.stop()


@pytest.mark.parametrize("content", [None, "no certificate", "-----BEGIN CERTIFICATE-----\nx\n"])
async def test_unreadable_certificates_are_a_failure_of_that_site(tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    pool = pool_for("tls:127.0.0.1:1", tls_ca_file=str(file))
    with pytest.raises(ConnectError) as caught:
        await pool.query(HOSTS, 5)
    assert "certificate" in caught.value.reason
    assert str(tmp_path) not in caught.value.reason


async def test_renewed_certificates_are_read_again(authority, tmp_path):
    site = serve_tls(authority, "127.0.0.1")
    mine = tmp_path / "mine.pem"
    mine.write_bytes(Path(Authority(tmp_path, "old CA").ca_file).read_bytes())
    pool = pool_for(site.address, tls_ca_file=str(mine))
    assert "certificate verify failed" in await reason(pool)
    mine.write_bytes(Path(authority.ca_file).read_bytes())
    os.utime(mine, (1, 1))
    assert await pool.query(HOSTS, 5) == [["h1", 0]]
    await pool.stop()
    await site.stop()
