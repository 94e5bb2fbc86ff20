"""The test beds themselves: both cores hold the same primed site."""

import signal
import socket
from contextlib import suppress

import pytest
from harness.cores import HOST_RESULTS, SERVICE_RESULTS, EmbeddedCore
from harness.expect import HOSTS, SERVICES
from harness.lab import started
from harness.waiting import until

from monrest.demo.__main__ import ENDED


def test_hosts_are_primed(core):
    rows = core.ask("GET hosts\nColumns: name state has_been_checked address alias")
    assert sorted(row[0] for row in rows) == list(HOSTS)
    checked = {row[0]: row[1] for row in rows if row[2]}
    assert checked == {host: state for host, (state, _output) in HOST_RESULTS.items()}
    assert {row[0]: row[4] for row in rows}["web01"] == "Web 01 · ü"


def test_services_are_primed(core):
    rows = core.ask("GET services\nColumns: host_name description state has_been_checked")
    assert sorted((row[0], row[1]) for row in rows) == [service[:2] for service in SERVICES]
    checked = {(row[0], row[1]): row[2] for row in rows if row[3]}
    assert checked == {service: state for service, (state, _output) in SERVICE_RESULTS.items()}


def test_groups_contacts_and_parents_agree(core):
    groups = {
        name: sorted(members) for name, members in core.ask("GET hostgroups\nColumns: name members")
    }
    assert groups == {
        "linux": ["db01", "web01", "web02"],
        "web": ["web01", "web02"],
        "idle": ["pend01"],
    }
    groups = {
        name: sorted(host for host, _service in members)
        for name, members in core.ask("GET servicegroups\nColumns: name members")
    }
    assert groups == {
        "pings": ["db01", "pend01", "router1", "web01", "web02"],
        "http": ["web01", "web02"],
    }
    contacts = {row[0]: sorted(row[1]) for row in core.ask("GET hosts\nColumns: name contacts")}
    assert contacts.pop("web01") == ["admin", "olga"]
    assert set(map(tuple, contacts.values())) == {("admin",)}
    seen_by_olga = core.ask(
        "GET services\nColumns: host_name description\nFilter: contacts >= olga"
    )
    assert ["db01", "ping"] in seen_by_olga
    assert core.ask("GET hosts\nColumns: parents\nFilter: name = leaf01") == [[["router1"]]]
    assert core.ask("GET hosts\nColumns: childs\nFilter: name = router1") == [[["leaf01"]]]


def test_active_checks_are_off(core):
    for table in ("hosts", "services"):
        assert core.ask(f"GET {table}\nStats: active_checks_enabled = 1") == [[0]]


def test_the_embedded_core_is_a_program_of_its_own(lab):
    """A line that ends a real core ends it; the suite has an object that makes this one harmful."""
    core = EmbeddedCore(lab.folder())
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(core.socket))
    lab.ends.callback(core.stop)
    started(core)
    question = "GET log\nColumns: message\nFilter: time > 0\nFilter: message ~ starting"
    before = core.ask(question)
    core.process.send_signal(signal.SIGHUP)

    def read_again():
        with suppress(OSError, ValueError):  # it listens anew meanwhile
            return core.ask(question) != before

    until(read_again, "the object files are read again")
    assert EmbeddedCore.deaths() == []
    with pytest.raises(ValueError):  # there is no answer at all
        core.ask("GET hosts\nFilter: custom_variable_values >= x")
    assert core.process.wait(300) == 1
    assert not core.socket.exists()
    assert EmbeddedCore.deaths() == [f"{ENDED}GET hosts, filter custom_variable_values >= x"]
    assert EmbeddedCore.deaths() == []
