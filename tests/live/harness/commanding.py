"""Commands over the API on cores that the module has for itself, because they change them."""

import pytest

from monrest.commands.effects import UNKNOWN_TO_ICINGA2

from .cores import ICINGA2_SITE, EmbeddedCore, Icinga2Core
from .daemon import site
from .recorder import problems

WAIT = {"wait": 10}


class NotifyingIcinga2(Icinga2Core):
    """The usual one sends no notifications."""

    def arguments(self):
        conf = self.folder / "site.conf"
        conf.write_text(f'{ICINGA2_SITE.read_text()}\nobject NotificationComponent "on" {{ }}\n')
        return [str(conf) if one == str(ICINGA2_SITE) else one for one in super().arguments()]


OWN = {"embedded": EmbeddedCore, "icinga2": NotifyingIcinga2}


@pytest.fixture(scope="module")
def tape(tape):
    """What reaches the core; at the end all of it must be expected lines."""
    yield tape
    assert not [(one, found) for one in tape.requests if (found := problems(one))]


@pytest.fixture(scope="module")
def server(own, tape, shared):
    """A daemon in front of it."""
    address = tape.address
    sites, sections = [site("s1", address, name="Site One")], {}
    if own.lmd_sites:
        others = [{"id": key, "hidden": True} for key in own.lmd_sites[1:]]
        sites, sections = [], {"lmd": {"address": address, "sites": others}}
    return shared.daemon(sites, sections=sections).start()


@pytest.fixture(scope="module")
def boss(server):
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def web(server):
    """olga, contact of web01 and of the service ping on db01."""
    with server.client("olga") as client:
        yield client


def skip_unknown(own, *names):
    if own.name == "icinga2" and (unknown := set(names) & UNKNOWN_TO_ICINGA2):
        pytest.skip(f"Icinga 2 does not know {', '.join(sorted(unknown))}")


def skip_what_another_core_gets(own, name):
    """What an Icinga 2 knows is sent to that alone: tests/commands sends all to the embedded core."""
    skip_unknown(own, name)
    if own.name == "embedded" and name not in UNKNOWN_TO_ICINGA2 and Icinga2Core.installed():
        pytest.skip("sent to Icinga 2")


def send(client, path, effect="seen", **parameters):
    """Send with ``wait`` and expect this effect."""
    response = client.post_form(path, {**WAIT, **parameters})
    assert response.status == 200, response
    document = response.json
    assert document["effect"] == effect, document
    assert document["message"] == "Command successfully submitted"
    return document


def value(client, path, column):
    rows = client.rows(path, {"columns": column})
    values = {row[column] for row in rows}
    assert len(values) == 1, rows
    return values.pop()
