"""Who may do what: every endpoint and method against every kind of caller.

The endpoints come from the declarations, what is expected from ``harness.matrix``: an endpoint
without a line there, and a line without its endpoint, fails.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from hashlib import sha1

import pytest
from harness.configured import Files
from harness.daemon import site
from harness.expect import refused
from harness.matrix import NO_CHANGE, OWN_SESSION, READERS, TABLE

from monrest.base.values import ROLES
from monrest.daemon.families import ENDPOINTS
from monrest.instance.endpoints import spelled
from tests.examples import some
from tests.table import each

CALLERS = (
    *("nobody", "contact", "read-only contact"),
    *(role.removeprefix("authorized_for_") for role in ROLES),
    *("key of an administrator for all_hosts", "superuser key for the contact", "superuser key"),
)
"""In the order of the marks: three, one for each role in the order of ROLES, three."""


def test_every_endpoint_has_a_line() -> None:
    declared = {
        f"{method} {spelled(endpoint.path, 'mon')}"
        for endpoint in ENDPOINTS
        for method in endpoint.methods
    }
    assert sorted(declared) == sorted(TABLE)


@each("line", TABLE)
def test_every_line_has_a_mark_for_every_caller(line: str) -> None:
    marks, asked, words = TABLE[line]
    assert len(marks.replace(" ", "")) == len(CALLERS)
    assert set(marks) <= set("-afoxnbc ")
    assert bool(words) == ("x" in marks)
    assert asked.startswith("/")


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    folder = shared.folder()
    # The only format that the standard library can write; never use it for real passwords.
    secret = b64encode(sha1(b"sesame").digest()).decode()
    passwords = folder / "htpasswd"
    passwords.write_text(f"olga:{{SHA}}{secret}\n")
    users = {role.removeprefix("authorized_for_"): [f"with_{role}"] for role in ROLES}
    users["admin"] = [*users["admin"], "admin", "boss"]
    users["reports"] = [*users["reports"], "victim"]
    daemon = shared.daemon(
        [
            site(
                "s1",
                embedded,
                configtool=Files(folder / "core").tool(
                    obj_check_cmd="true", obj_reload_cmd="false"
                ),
            )
        ],
        sections={
            "auth.roles": users,
            "auth": {"max_api_keys_per_user": 1000, "htpasswd_file": str(passwords)},
        },
    )
    return daemon.start()


@pytest.fixture(scope="module")
def admin(daemon):
    with daemon.client() as client:
        yield client


@pytest.fixture(scope="module")
def known(daemon, admin) -> Mapping[str, str]:
    """Ids that are only known at run time."""
    with daemon.client("olga") as olga:
        key = olga.post_json("/mon/api_keys", {"comment": "hers"}).json
        job = olga.get("/hosts?background=1").json
        login = olga.post_form("/mon/login", [("login", "olga"), ("password", "sesame")])
        assert login.status == 200, login
    admin.post_form("/mon/broadcasts", [("file", "all"), ("text", "for everybody")])
    recurring = admin.post_form("/mon/recurring_downtimes", [("host", "web01")])
    admin.post_form("/mon/recurring_downtimes", [("host", "web02")])
    shared = {"tab": {"xdata": {"groups": [{"*": "read-only"}]}}, "user": "admin"}
    report = admin.post_form("/mon/reports", [("template", "problems.tt"), ("is_public", "1")])
    hook = admin.post_json("/mon/webhooks", {"name": "known", "url": "http://192.0.2.10/"})
    return {
        "webhook": hook.json["id"],
        "report": report.json["id"],
        "broadcast": "all",
        "dashboard": admin.post_json("/mon/panorama", shared).json["nr"],
        "recurring": recurring.json["file"],
        "comment": admin.rows("/comments?columns=id&host_name=web02")[0]["id"],
        "downtime": admin.rows("/downtimes?columns=id")[0]["id"],
        "job": job["job_id"],
        "key": key["hashed_key"],
        "process": admin.post_json("/mon/bp", {"name": "known"}).json["data"]["id"],
        "session": admin.rows("/mon/sessions?columns=hashed_key")[0]["hashed_key"],
    }


@pytest.fixture(scope="module")
def callers(daemon):
    """A client for each caller, over a connection that is kept."""

    def keyed(owner, user, **restricted):
        with daemon.client(owner) as client:
            made = client.post_json("/mon/api_keys", restricted)
        client = daemon.client(user)
        client.key = made.json["private_key"]
        return client

    clients = [daemon.client(None), daemon.client("olga")]
    clients[0].key = None
    clients.append(keyed("olga", None, roles=["authorized_for_read_only"]))
    clients += [daemon.client(f"with_{role}") for role in ROLES]
    clients.append(keyed("boss", None, roles=["authorized_for_all_hosts"]))
    clients.append(keyed("admin", "olga", superuser=1))
    clients.append(keyed("admin", None, superuser=1))
    yield dict(zip(CALLERS, clients, strict=True))
    for client in clients:
        client.close()


def send(client, line, known):
    method = line.partition(" ")[0]
    path, _, body = TABLE[line][1].format(**known).partition(" ")
    if method == "GET":
        return client.get(path)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    return client.request(method, path, body=body or None, headers=headers)


def amount(document) -> float:
    """How much somebody sees: rows of a list, numbers of a statistic."""
    if isinstance(document, list):
        return len(document)
    # Of checks only how many there are: when they ran and how long they took changes meanwhile.
    counts = {
        f"{kind}_{how}_sum" for kind in ("hosts", "services") for how in ("active", "passive")
    }
    counted = {name: one for name, one in document.items() if name in counts} or document
    return sum(abs(one) for one in counted.values() if isinstance(one, (int, float)))


def asking(line: str) -> dict[str, str]:
    """The callers that ask at a line, with their marks: of those with the most usual one, some."""
    marks = dict(zip(CALLERS, TABLE[line][0].replace(" ", ""), strict=True))
    special = {"nobody", "contact", "admin", *(READERS if not line.startswith("GET ") else ())}
    ((most, _),) = Counter(marks.values()).most_common(1)
    usual = [one for one, mark in marks.items() if mark == most and one not in special]
    left = {*usual} - {*some(usual, seed=line)}
    return {one: mark for one, mark in marks.items() if one not in left}


@each("line", TABLE)
def test_who_may_do_what(admin, callers, known, line: str) -> None:
    marks, _, words = TABLE[line]
    everything = amount(send(admin, line, known).json) if set(marks) & set("af") else 0
    found = {}
    for caller, mark in asking(line).items():
        response = send(callers[caller], line, known)
        if caller in READERS and not line.startswith("GET ") and line not in OWN_SESSION:
            assert response.status == 403, response
            assert NO_CHANGE in response.text or (words and words in response.text), response
            continue
        found[caller] = (mark, outcome(response, mark, everything, words))
    assert {caller: seen for caller, (_, seen) in found.items()} == {
        caller: mark for caller, (mark, _) in found.items()
    }


def outcome(response, mark: str, everything: float, words: str) -> str:
    """The mark that this answer deserves."""
    if response.status == 401:
        refused(response, 401, "login required")
        return "-"
    if response.status == 403:
        assert words
        assert words in json.dumps(response.json), response
        return "x"
    if response.status == 501:
        refused(response, 501, "cluster disabled")
        return "c"
    if response.status in (400, 404):
        return "n" if response.status == 404 else "b"
    assert response.status == 200, response
    if mark not in "af":
        return "o"
    seen = amount(response.json)
    assert seen <= everything, response
    return "a" if seen == everything else "f"
