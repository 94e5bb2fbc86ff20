"""The command channel over real sockets."""

from functools import partial
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.ssl import PrivateCertificate

from monrest.config.sections import SiteConfig
from monrest.livestatus.command_channel import CommandChannel
from monrest.livestatus.core_errors import ConnectError
from monrest.livestatus.endpoints import endpoint_for, uses_tls
from monrest.livestatus.verdicts import ACCEPTED
from tests.fakes.certificates import Authority
from tests.fakes.livestatus import Script, serve_tcp, serve_unix
from tests.livestatus.channel.bench import THREE, lines


def channel_for(address, **options):
    config = SiteConfig(id="s", name="S", address=address, **options)
    endpoint = partial(endpoint_for, reactor, config)
    return CommandChannel(reactor, endpoint, tls=uses_tls(config))


async def test_unix_socket(tmp_path):
    script = Script()
    site = serve_unix(reactor, tmp_path / "live", script)
    channel = channel_for(site.address)
    texts = lines(100)
    for _ in range(3):
        done = await channel.transmit(texts, "naemon", 20)
        assert done.verdicts == (ACCEPTED,) * 100
    assert script.commands == list(texts * 3)
    assert site.accepted == 1
    await channel.stop()
    await site.stop()


async def test_no_socket(tmp_path):
    channel = channel_for(f"unix:{tmp_path / 'nowhere'}")
    done = await channel.transmit(THREE, "naemon", 20)
    assert (done.written, done.error.reason) == (0, "no such socket")
    await channel.stop()


async def test_tls(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("127.0.0.1")
    script = Script()
    pem = Path(cert).read_bytes() + Path(key).read_bytes()
    site = serve_tcp(reactor, script, PrivateCertificate.loadPEM(pem).options())
    channel = channel_for(site.address, tls_ca_file=authority.ca_file)
    done = await channel.transmit(THREE, "icinga2", 20)
    assert done.verdicts == (ACCEPTED,) * 3
    await channel.stop()
    stranger = channel_for(site.address)
    done = await stranger.transmit(THREE, "icinga2", 20)
    assert (done.written, type(done.error)) == (0, ConnectError)
    assert done.error.reason.startswith("TLS: ")
    assert script.commands == list(THREE)
    await stranger.stop()
    await site.stop()
