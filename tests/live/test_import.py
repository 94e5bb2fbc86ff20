"""A daemon that is started with what an import wrote goes on where the older front end was.

Old clients ask with their own words, paths and keys (docs/howto/moving.md).
"""

import signal

import pytest
from harness.client import Client
from harness.daemon import WORKERS, Daemon
from harness.expect import refused
from harness.waiting import until

from monrest.cli.main import main
from tests.importer.old_installation import (
    ANNA,
    MOMENT,
    OLD,
    ROBOT,
    SECRET,
    OldInstallation,
    hashed,
)

SAME_FOR_ALL_CORES = "what an import wrote is about no core"


class OldClient(Client):
    """A client that was written for the older front end."""

    def __init__(self, port, key, user=None):
        super().__init__(port, key, user, root="/thruk/r")

    def credentials(self):
        names = {"X-Thruk-Auth-Key": self.key, "X-Thruk-Auth-User": self.user}
        return {name: value for name, value in names.items() if value is not None}


class MovedDaemon(Daemon):
    """A daemon whose configuration an import wrote."""

    def move(self, old):
        """Import, as an operator does; gives the exit status."""
        return main(["import", "--apply", "--secret-key", "--config", str(self.config),
                     "--state", str(self.folder / "var"), str(old.folder)])  # fmt: skip

    def client(self, user="boss", **_):
        """The administrator, by the secret key that was taken over."""
        return OldClient(self.port, SECRET, user)

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"exit status {self.process.returncode}\n{self.log}")
        try:
            with self.client() as client:
                return client.get("/thruk").status == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def moved(tmp_path_factory, embedded):
    """The daemon with the old installation's core, and a second run while it works."""
    folder = tmp_path_factory.mktemp("moved")
    old = OldInstallation(folder / "old", embedded.socket)
    daemon = MovedDaemon(folder, [])
    daemon.config.unlink()
    assert daemon.move(old) == 1  # one downtime is refused
    daemon.old = old
    daemon.sections = {}
    daemon.start(
        connected=(),
        MONREST__SERVER__LISTEN=f"tcp:{daemon.port}:interface=127.0.0.1",
        MONREST__SERVER__WORKERS=str(WORKERS),
    )
    yield daemon
    daemon.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def boss(moved):
    with moved.client() as client:
        yield client


def test_the_keys_of_the_old_installation_authenticate(moved):
    with OldClient(moved.port, ROBOT) as robot, OldClient(moved.port, ANNA) as anna:
        assert robot.rows("/thruk/whoami")["id"] == "robot"
        who = anna.rows("/thruk/whoami")
        assert (who["id"], who["auth_src"], who["roles"]) == (
            "anna", "api_key", ["authorized_for_all_hosts"],
        )  # fmt: skip
    with OldClient(moved.port, OLD) as dead:
        refused(dead.get("/thruk"), 403, "wrong authentication key")


def test_the_site_answers_under_its_old_key(boss):
    until(lambda: boss.rows("/sites")[0]["connected"] == 1, "the core is connected")
    (site,) = boss.rows("/sites")
    assert (site["id"], site["name"], site["section"]) == ("berlin", "Berlin", "Europe/Germany")
    assert boss.rows("/hosts?columns=peer_key&limit=1") == [{"peer_key": "berlin"}]


def test_roles_users_and_keys(boss):
    keys = {row["hashed_key"]: row for row in boss.rows("/thruk/api_keys")}
    assert keys[hashed(ANNA)]["created"] == MOMENT
    users = {row["id"]: row for row in boss.rows("/thruk/users?columns=id,locked,tz")}
    assert (users["jürgen k"]["locked"], users["anna"]["tz"]) == (1, "Europe/Rome")


def test_what_was_imported_is_answered(boss):
    process = boss.rows("/thruk/bp/7")
    process = process[0] if isinstance(process, list) else process
    assert (process["name"], len(process["nodes"])) == ("Mail", 2)
    (report,) = boss.rows("/thruk/reports")
    assert (report["nr"], report["name"], report["user"], report["backends"]) == (
        12, "Nights", "anna", ["berlin"],
    )  # fmt: skip
    assert report["params"]["max_outages_pages"] == "-1"
    assert [one["week_day"] for one in report["send_types"]] == ["1"]
    (downtime,) = boss.rows(
        "/thruk/recurring_downtimes?columns=file,host,duration,fixed,comment,backends"
    )
    assert downtime["host"] == ["web01"]
    assert (downtime["duration"], downtime["fixed"], downtime["comment"]) == (45, 1, "backup")
    assert downtime["backends"] == ["berlin", "gone1"]
    (broadcast,) = boss.rows("/thruk/broadcasts")
    assert (broadcast["file"], broadcast["author"], broadcast["expires"]) == (
        "2026-01-02-boss", "boss", "2031-05-01 00:00:00",
    )  # fmt: skip
    (dashboard,) = boss.rows("/thruk/panorama")
    assert (dashboard["nr"], dashboard["user"], dashboard["maintenance"]) == (
        31,
        "boss",
        "painting",
    )
    assert dashboard["tab"]["xdata"]["backends"] == ["berlin"]
    (backup,) = boss.rows("/thruk/panorama/31/backups")
    assert (backup["ts"], backup["dashboard"]["user"]) == (MOMENT, "anna")


def test_a_process_is_calculated(boss):
    def known():
        found = boss.rows("/thruk/bp/7")
        found = found[0] if isinstance(found, list) else found
        return found["status"] == 0

    until(known, "the process has a result")


def test_an_import_beside_a_daemon_that_works(moved, boss, capsys):
    """A new key and a new broadcast come in, and nothing else changes."""
    before = boss.rows("/thruk/reports"), boss.rows("/thruk/panorama")
    moved.old.key("late0key0of0the0old0one_1", {"superuser": 1})
    moved.old.data("broadcast/late.json", {"text": "late", "author": "boss"})
    config = moved.config.read_bytes()
    assert moved.move(moved.old) == 1
    assert " 2 new" in capsys.readouterr().err
    with OldClient(moved.port, "late0key0of0the0old0one_1", "anna") as late:
        assert late.rows("/thruk/whoami")["id"] == "anna"
    assert {row["file"] for row in boss.rows("/thruk/broadcasts")} == {"2026-01-02-boss", "late"}
    assert (boss.rows("/thruk/reports"), boss.rows("/thruk/panorama")) == before
    assert moved.config.read_bytes() == config
