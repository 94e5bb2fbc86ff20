"""Control characters in every place a client can fill: refused, and never a line in LQL."""

from urllib.parse import quote

import pytest
from harness.client import raw
from harness.expect import refused

from tests.table import each

PAYLOADS = {
    "a filter line": "web01\nFilter: name = web02",
    "a limit line": "web01\nLimit: 0",
    "the end of the request": "web01\n\nCOMMAND [1] DISABLE_NOTIFICATIONS\n\n",
    "one newline and a command": "web01\nCOMMAND [1] DISABLE_NOTIFICATIONS",
    "carriage return": "web01\r\nAuthUser: olga",
    "NUL": "web01\0",
    "escape": "web01\x1b[0m",
    "delete": "web01\x7f",
    "tab": "web01\t",
    "only a newline": "\n",
}
PARAMETERS = {
    "name": "/hosts?name={}",
    "name[ne]": "/hosts?name[ne]={}",
    "name[regex]": "/hosts?name[regex]={}",
    "groups[gte]": "/hosts?groups[gte]={}",
    "_WORKER": "/hosts?_WORKER={}",
    "pl[gt]": "/hosts?pl[gt]={}",
    "state": "/hosts?state={}",
    "last_check[gt]": "/hosts?last_check[gt]={}",
    "peer_key": "/hosts?peer_key={}",
    "columns": "/hosts?columns={}",
    "sort": "/hosts?sort={}",
    "limit": "/hosts?limit={}",
    "offset": "/hosts?offset={}",
    "backends": "/hosts?backends={}",
    "backend": "/hosts?backend={}",
    "host_name": "/services?host_name={}",
    "time[gt]": "/logs?time[gt]={}",
    "type": "/logs?type={}",
    "q": "/hosts?q=name%20=%20%22{}%22",
}
SEGMENTS = [
    "/hosts/{}",
    "/hosts/{}/services",
    "/hosts/{}/alerts",
    "/hosts/{}/notifications",
    "/hosts/{}/commandline",
    "/services/{}/ping",
    "/services/web01/{}",
    "/services/web01/{}/commandline",
    "/services/*{}/*",
    "/hostgroups/{}",
    "/hostgroups/{}/stats",
    "/servicegroups/{}/stats",
    "/contacts/{}",
    "/commands/{}",
    "/comments/{}",
    "/downtimes/{}",
    "/sites/{}/hosts",
    "/{}/hosts",
    "/{}",
]


@each("payload", PAYLOADS.values(), ids=PAYLOADS)
@each(("name", "path"), PARAMETERS.items(), ids=PARAMETERS)
def test_control_characters_in_parameters(client, clean, name, path, payload):
    refused(client.get(path.format(quote(payload, safe=""))), 400, name.partition("[")[0])


@each("payload", PAYLOADS.values(), ids=PAYLOADS)
@each("path", SEGMENTS)
def test_control_characters_in_path_segments(client, clean, path, payload):
    response = client.get(path.format(quote(payload, safe="")))
    assert response.status in (400, 404), response
    refused(response, response.status)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_control_characters_in_names(client, clean, payload):
    refused(client.get(f"/hosts?{quote(payload, safe='')}=x"))
    refused(client.get(f"/hosts?name[{quote(payload, safe='')}]=x"))
    refused(client.get(f"/hosts?_X{quote(payload, safe='')}=x"))


@each("payload", PAYLOADS.values(), ids=PAYLOADS)
@each("name", ["name", "columns", "sort", "q", "backends", "groups[gte]"])
def test_control_characters_in_bodies(client, clean, name, payload):
    value = f'name = "{payload}"' if name == "q" else payload
    word = name.partition("[")[0]
    refused(client.post_json("/hosts", {name: value}), 400, word)
    refused(client.post_form("/hosts", {name: value}), 400, word)


@pytest.mark.parametrize("user", ["olga\x01", "olga\x7f", "\x0b", "a" * 5000])
def test_control_characters_in_the_user(daemon, clean, user):
    with daemon.client(user) as client:
        response = client.get("/hosts")
        assert response.status in (200, 400, 401, 403), response
        if response.status == 200:
            assert response.json == []


def test_bare_line_ends_in_headers_do_not_get_through(daemon, recorder, clean):
    request = (
        b"GET /mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Mon-Auth-Key: "
        + daemon.key.encode()
        + b"\r\nX-Mon-Auth-User: olga\nLimit: 0\r\n AuthUser: admin\r\n\r\n"
    )
    raw(daemon.port, request)
    raw(daemon.port, request.replace(b"olga\n", b"olga\r"))
