"""Both clients verify whom they ask over TLS, by the system's authorities or a file."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from certificates import Authority
from fake import Fake

from monrest.client import Client, ClientError, UnreachableError
from monrest.client.http_transport import error_text

ASYNC = """
import sys
from twisted.internet.task import react
from monrest.client import AsyncClient, ClientError, UnreachableError

async def main(reactor):
    url, ca_file, wrong_file = sys.argv[1:]
    for more in ({"ca_file": ca_file}, {"insecure": True}):
        async with AsyncClient(url, reactor=reactor, **more) as client:
            print(await client.get("/x"))
            # The server has closed that connection without saying so.
            print(await client.post("/x", {"a": 1}))
            print(await client.get("/x"))
    try:
        await AsyncClient(url, reactor=reactor, retries=0).get("/x")
    except UnreachableError as error:
        print("refused", error)
    for wrong in ({"ca_file": wrong_file}, {"cert_file": wrong_file}, {"ca_file": "/nonexistent"}):
        try:
            AsyncClient(url, reactor=reactor, **wrong)
        except ClientError as error:
            print(error)

react(main)
"""


@pytest.fixture
def encrypted(tmp_path):
    authority = Authority(tmp_path)
    fake = Fake()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("localhost"))
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True)
    fake.answers["/mon/r/x"] = (200, {"n": 1})
    fake.url = fake.url.replace("http://127.0.0.1", "https://localhost")
    # Bundles of authorities have comments, in any language.
    bundle = Path(authority.ca_file)
    bundle.write_text(f"# Főtanúsítvány\n{bundle.read_text()}", "utf-8")
    fake.ca_file = str(bundle)
    yield fake
    fake.close()


def test_waiting(encrypted):
    assert Client(encrypted.url, ca_file=encrypted.ca_file).get("/x") == {"n": 1}
    assert Client(encrypted.url, insecure=True).get("/x") == {"n": 1}
    with pytest.raises(UnreachableError, match="certificate is not trusted"):
        Client(encrypted.url, retries=0).get("/x")
    for wrong in ({"ca_file": __file__}, {"cert_file": __file__}, {"ca_file": "/nonexistent"}):
        with pytest.raises(ClientError, match="certificates: "):
            Client(encrypted.url, **wrong).get("/x")


def test_a_port_without_tls_is_told():
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    assert error_text(error) == "it does not speak TLS, is it http://?"


def test_with_twisted(encrypted):
    ran = subprocess.run(
        [sys.executable, "-c", ASYNC, encrypted.url, encrypted.ca_file, __file__],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[:6] == ["{'n': 1}"] * 6
    assert len([seen for seen in encrypted.seen if seen.method == "POST"]) == 2
    assert lines[6].startswith("refused cannot reach https://localhost:")
    assert [line.partition(": ")[0] for line in lines[7:]] == ["certificates"] * 3
