"""Mails of reports whose daemon is killed; one that is killed before is in test_cluster_families."""

import signal

import pytest
from harness.daemon import site
from harness.lying import LyingSite
from harness.waiting import until

from tests.fakes.smtp import MailServer

PATH = "/mon/reports"


@pytest.fixture
def mails(lab):
    return lab.keep(MailServer())


@pytest.fixture
def liar(embedded, lab):
    return lab.keep(LyingSite(lab.folder() / "live", embedded.socket))


@pytest.fixture
def daemon(liar, mails, lab):
    return lab.daemon(
        [site("s1", liar)], sections={"mail": {"host": "127.0.0.1", "port": mails.port, "tries": 3}}
    ).start()


def create(client, **fields):
    record = {"template": "problems.tt", "to": "a@example.org", **fields}
    response = client.post_json(PATH, record)
    assert response.status == 200, response
    return response.json["id"]


def ask_for_a_mail(client, number):
    answer = client.post_json(f"{PATH}/{number}/generate", {"mail": 1})
    assert answer.json == {"message": "report queued"}


def error_of(client, number):
    return client.rows(f"{PATH}/{number}").get("error")


def settled(daemon, number, mails, count):
    """Wait until nothing is left to be done for a report; what its error is then."""
    with daemon.client() as client:
        until(lambda: len(mails.mails) >= count, "the mail is there")
        # Another report that is mailed afterwards: what was to be sent again had its turn.
        later = create(client, to="later@example.org")
        ask_for_a_mail(client, later)
        until(
            lambda: any(one.recipients == ["later@example.org"] for one in mails.mails),
            "a later one is sent",
        )
        return error_of(client, number)


def of_first(mails):
    return [one for one in mails.mails if one.recipients == ["a@example.org"]]


def test_killed_while_the_server_takes_it(daemon, mails):
    """The server has the mail and its answer was lost: it is not sent again, and the report says so."""
    mails.hold = "."
    with daemon.client() as client:
        number = create(client)
        ask_for_a_mail(client, number)
    assert mails.held.wait(300)
    daemon.stop(signal.SIGKILL)
    mails.release()
    daemon.start()
    error = settled(daemon, number, mails, 1)
    assert error.startswith("it is unknown whether the mail arrived at a@example.org")
    assert len(of_first(mails)) == 1


def test_killed_while_it_is_made(daemon, mails, liar):
    """It is made by the next process, and mailed once."""
    with daemon.client() as client:
        number = create(client)
        liar.lie(None, "hosts")
        liar.hold()
        ask_for_a_mail(client, number)
    assert liar.waiting.wait(300)
    daemon.stop(signal.SIGKILL)
    liar.release()
    assert mails.mails == []
    daemon.start()
    assert settled(daemon, number, mails, 1) is None
    assert len(of_first(mails)) == 1


def test_a_path_is_read_again_while_a_site_is_missing(daemon, liar):
    """Its job says why it waits, and has the answer when the site is back."""
    params = {"url": "/mon/r/hosts?columns=name", "retries": 10, "delay": 1}
    with daemon.client() as client:
        number = create(client, template="report_from_url.tt", params=params)
        liar.lie("closed at once", "hosts")
        job = client.post_json(f"{PATH}/{number}/generate", {}).json["job"]
        until(
            lambda: "tried again in 1 s" in client.rows(f"/mon/jobs/{job}")["message"], "it waits"
        )
        liar.lie(None)
        until(lambda: client.rows(f"/mon/jobs/{job}")["rc"] == 0, "it is made")
        assert {"name": "web01"} in client.get(f"{PATH}/{number}/report").json
        assert client.rows(f"{PATH}/{number}")["failed"] == 0
