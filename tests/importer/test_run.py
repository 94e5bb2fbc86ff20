"""An old installation becomes a configuration and a database (docs/spec/import.md)."""

import os
import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from monrest.cli.main import main
from monrest.config import load
from monrest.importer.import_lines import Outcome
from monrest.importer.run import ImportRequest, RefusedImportError, run_import
from tests.fakes.clocks import Wall
from tests.importer.old_installation import (
    ANNA,
    MAIL_PASSWORD,
    MOMENT,
    ROBOT,
    SECRET,
    SECRETS,
    OldInstallation,
    hashed,
)
from tests.table import each

NOW = 1_800_000_000.0
NOT_THERE = "not so in the configuration that is there"
WALL = Wall(Clock(), NOW)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """One old installation that no test changes."""
    return OldInstallation(tmp_path_factory.mktemp("old"))


class World:
    """Where an import writes to."""

    def __init__(self, folder):
        self.folder, self.config, self.state = folder, folder / "etc/m.toml", folder / "state"
        self.config.parent.mkdir(parents=True)

    def move(self, old, **more):
        request = {"folder": str(getattr(old, "folder", old)), "config": self.config,
                   "state": self.state, **more}  # fmt: skip
        return run_import(ImportRequest(**request), WALL)

    def content(self):
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def rows(self, query):
        with closing(sqlite3.connect(self.state / "monrest.sqlite")) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "new")


@pytest.fixture(scope="module")
def written(untouched, tmp_path_factory):
    """What a run with everything switched on has written, and said."""
    made = World(tmp_path_factory.mktemp("written") / "new")
    made.lines = made.move(untouched, apply=True, secret_key=True).lines
    return made


def said(lines, kind):
    return [(one.source.rpartition("/")[2], str(one.outcome), one.target) for one in lines
            if one.kind == kind]  # fmt: skip


@pytest.fixture(scope="module")
def document(written):
    return tomllib.loads(written.config.read_text())


@each(
    "path, expected",
    [
        ("names", {"app": "thruk", "dist": "omd", "cm": "ansible"}),
        ("auth.session_idle", 1209600),
        ("auth.session_lifetime", 1209600),
        ("auth.lock_after_failed_logins", 5),
        ("auth.user_replace", ["@example\\.org$", ""]),
        ("auth.htpasswd_file", "{var_dir}/htpasswd"),
        ("auth.roles.admin", ["boss", "anna"]),
        ("auth.roles.all_services", ["anna", "ops*"]),
        ("auth.roles.broadcasts", ["anna"]),
        ("auth.roles.read_only", None),
        ("auth.default_user", None),
        ("commands.lock_author_names", True),
        ("commands.disabled", ["14", "35-36"]),
        ("commands.downtime_duration", 3600),
        ("commands.downtime_max_duration", 172800),
        ("commands.sticky_ack", 2),
        ("commands.persistent_ack", 1),
        ("commands.send_notification", 1),
        ("display.timezone", "Europe/Berlin"),
        ("logcache", {"enabled": True}),
        ("bp.result_backend", "berlin"),
        ("bp.refresh_interval", 2),
        ("mail.host", "mail.example.org"),
        ("mail.sender", "watch@example.org"),
        ("mail.security", "starttls"),
        ("mail.password_file", "{var_dir}/mail.password"),
        ("sites", [{"id": "berlin", "name": "Berlin", "address": "unix:/run/none/live",
                    "section": "Europe/Germany"}]),
    ],
)  # fmt: skip
def test_settings(document, path, expected):
    found = document
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    assert found == expected


@each(
    "kind, expected",
    [
        ("site", [
            ("sites.conf:2", "new", "berlin 'Berlin' at unix:/run/none/live"),
            ("sites.conf:2", "changed", "berlin"),
            ("sites.conf:12", "to do", "{} 'Remote'"),
            ("sites.conf:20", "left out", "Gone"),
        ]),
        ("API key", [
            (hashed(ANNA)[:16], "changed", "key of anna"),
            (hashed(ROBOT)[:16], "new", "superuser as robot"),
            ("api_keys", "left out", "1 files"),
        ]),
        ("user", [("anna", "new", "anna"), ("jürgen k", "new", "jürgen k")]),
        ("business process", [("7.tbp", "new", "7 'Mail'"),
                              ("9.tbp.edit", "changed", "9 'Mail'")]),
        ("report", [("13.rpt", "left out", "13 'Nights'"),
                    ("12.rpt", "changed", "12 'Nights' of anna")]),
        ("recurring downtime", [("5.tsk", "refused", ""), ("4.tsk", "new", "4 host web01")]),
        ("broadcast", [("2026-01-02-boss.json", "new", "2026-01-02-boss 'Upgrade'")]),
        ("dashboard", [
            ("perl.tab", "left out", "perl"),
            ("script.tab", "to do", "script"),
            ("31.tab", "changed", "31 'Mail room' of boss"),
        ]),
        ("passwords", [("htpasswd", "new", "auth.htpasswd_file"), ("htpasswd:2", "to do", "")]),
        ("other data", [("obj_retention.berlin", "to do", "site berlin"),
                        ("teams", "left out", "ops.json")]),
    ],
)  # fmt: skip
def test_each_thing_is_told(written, kind, expected):
    found = said(written.lines, kind)
    if kind == "site":
        # The key of a site without an id comes out of its address and name.
        expected = [(one, two, three.replace("{}", found[2][2].split()[0]))
                    for one, two, three in expected]  # fmt: skip
        assert len(found[2][2].split()[0]) == 5
    if kind == "API key":
        expected = [*sorted(expected[:2]), expected[2]]
        found = [*sorted(found[-2:]), found[0]] if found[0][0] == "api_keys" else found
    assert found == expected


def test_records(written):
    (anna,) = written.rows(
        f"select user, superuser, roles, created, last_used, last_from from api_keys "
        f"where hashed_key = '{hashed(ANNA)}'"
    )
    assert anna == ("anna", 0, '["authorized_for_all_hosts"]', MOMENT, MOMENT, "::1")
    assert written.rows("select name, locked, failed, tz from users order by name") == [
        ("anna", 0, 0, "Europe/Rome"),
        ("jürgen k", 1, 2, None),
    ]
    assert written.rows("select nr, name, draft from bp_processes order by nr") == [
        (7, "Mail", 0),
        (9, "Mail 2", 1),
    ]
    # A draft is kept for a day after its last change.
    assert written.rows("select changed from bp_processes order by nr") == [(MOMENT,), (NOW,)]
    ((sites, next_at),) = written.rows("select sites, next_at from recurring_downtimes")
    assert sites == '{"berlin": "Berlin", "gone1": "gone1"}'
    assert NOW < next_at <= NOW + 86400
    ((when,),) = written.rows("select next_at from reports")
    assert NOW < when <= NOW + 7 * 86400
    assert written.rows("select nr, at from dashboard_backups") == [("31", MOMENT)]
    assert written.rows("select text from dashboard_maintenance") == [("painting",)]


def test_what_is_written_is_for_its_owner_alone(written):
    files = [path for path in written.folder.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == [
        "htpasswd", "m.toml", "mail.password", "monrest.sqlite", "secret.key",
    ]  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (written.state / "secret.key").read_text() == f"{SECRET}\n"
    assert (written.state / "mail.password").read_text() == f"{MAIL_PASSWORD}\n"
    load(written.config)


def test_a_run_without_apply_changes_nothing(untouched, world, written):
    assert world.move(untouched).counts[Outcome.NEW] > 20
    assert world.content() == {}
    assert not world.state.exists()
    shutil.copytree(written.state, world.state)
    before = world.content()
    lines = world.move(untouched)
    assert world.content() == before
    assert {str(one.outcome) for one in lines.lines if one.kind == "API key"} == {
        "is there", "left out",
    }  # fmt: skip


def test_a_second_run_finds_nothing_to_do(untouched, world):
    world.move(untouched, apply=True)
    before, rows = world.content(), world.rows("select * from api_keys")
    lines = world.move(untouched, apply=True)
    assert (lines.counts[Outcome.NEW], lines.counts[Outcome.CHANGED]) == (0, 0)
    assert [one for one in lines.lines if one.note == NOT_THERE] == []
    after = world.content()
    assert [name for name in before if before[name] != after[name]] == []
    assert world.rows("select * from api_keys") == rows


def test_what_is_there_stays(untouched, world):
    world.state.mkdir()
    (world.state / "htpasswd").write_text("other:{SHA}VBPuJHI7uixaa6LQGWx4s+5GKNE=\n")
    world.config.write_text(f'[server]\nvar_dir = "{world.state}"\n[display]\ntimezone = "UTC"\n')
    before = world.config.read_text()
    lines = world.move(untouched, apply=True)
    assert world.config.read_text() == before
    assert (world.state / "htpasswd").read_text().startswith("other:")
    assert [one.note for one in lines.lines if one.kind == "file"] == [
        "it stays as it is: it is another one",
        "it stays as it is: it is another one; what it lacks is left out, unless you move it away first",
    ]
    assert not (world.state / "mail.password").exists()
    ((next_at,),) = world.rows("select next_at from recurring_downtimes")
    assert next_at % 86400 == (2 * 60 + 30) * 60


def test_of_a_configuration_that_is_there_only_what_it_has_is_there(untouched, world):
    """As with the example of the package, and two things that somebody wrote into it."""
    text = (Path(__file__).parents[2] / "etc/monrest.toml").read_text()
    text = text.replace("sticky_ack = 1", "sticky_ack = 2").replace('app = "mon"', 'app = "thruk"')
    world.config.write_text(text)
    lines = world.move(untouched).lines
    known = [one for one in lines if one.kind in ("site", "configuration", "passwords")]
    assert [one.target for one in known if one.outcome is Outcome.SAME] == [
        "names.app = thruk", "commands.lock_author_names = true", "commands.sticky_ack = 2",
        "commands.send_notification = 1", "logcache.enabled = true",
    ]  # fmt: skip
    left = {one.target for one in known if one.outcome is Outcome.LEFT and one.note == NOT_THERE}
    assert {"berlin 'Berlin' at unix:/run/none/live", "auth.session_idle = 1209600",
            "auth.roles.admin = boss, anna", "mail.host = mail.example.org", "auth.htpasswd_file"} <= left  # fmt: skip
    assert {one.outcome for one in known} == {Outcome.SAME, Outcome.LEFT, Outcome.HINT}


def test_the_database_of_a_configuration_that_is_there(untouched, world, empty_database_url):
    world.config.write_text(
        f'[server]\nvar_dir = "{world.state}"\n[database]\nurl = "{empty_database_url}"\n'
    )
    first = world.move(untouched)
    assert first.counts == world.move(untouched, apply=True).counts
    assert first.counts[Outcome.NEW] >= 6
    assert world.move(untouched, apply=True).counts[Outcome.NEW] == 0


def test_files_of_root_are_of_the_owner_of_the_state(untouched, world):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    world.state.mkdir()
    os.chown(world.state, 65534, 65534)
    world.move(untouched, apply=True)
    found = [path for path in world.folder.rglob("*") if path.is_file()]
    assert len(found) == 4
    assert {(path.stat().st_uid, path.stat().st_gid) for path in found} == {(65534, 65534)}


def test_a_target_is_filled_on_request(untouched, world):
    lines = world.move(untouched, fill_targets=True)
    assert ("5.tsk", "changed", "5 hostgroup web") in said(lines.lines, "recurring downtime")


def test_ids_come_out_as_they_were(tmp_path, world):
    old = OldInstallation(tmp_path / "old")
    peers = "".join(
        f"<peer>\nname = {name}\ntype = livestatus\n{key}\n<options>\npeer = {address}\n"
        "</options>\n</peer>\n"
        for name, key, address in (
            ("Large Site", "", "/run/naemon-large/live"),
            ("A", "id = a-1", "10.0.0.1:6557"),
            ("B", "id = a1", "tls://10.0.0.2:6557"),
        )
    )
    old.write("etc/thruk/thruk_local.d/sites.conf",
              f"<Component Thruk::Backend>\n{peers}</Component>\n")  # fmt: skip
    world.move(old, apply=True)
    assert [(one.id, one.address) for one in load(world.config).sites] == [
        ("c3e8a", "unix:/run/naemon-large/live"),
        ("a1", "tcp:10.0.0.1:6557"),
        ("a10", "tls:10.0.0.2:6557"),
    ]


def test_a_site_of_omd(tmp_path, world):
    old = OldInstallation(tmp_path / "demo")
    (old.folder / "var/thruk").mkdir(parents=True)
    shutil.copytree(old.var / "api_keys", old.folder / "var/thruk/api_keys")
    shutil.move(old.etc / "htpasswd", old.folder / "etc/htpasswd")
    shutil.rmtree(old.folder / "var/lib")
    old.write("etc/thruk/thruk.conf", "var_path = /omd/sites/demo/var/thruk\n"
              "cgi.cfg = /omd/sites/demo/etc/thruk/cgi.cfg\n")  # fmt: skip
    old.write("etc/thruk/thruk_local.d/sites.conf",
              "<Component Thruk::Backend>\n<peer>\nname = x\ntype = livestatus\n<options>\n"
              "peer = tmp/run/live\n</options>\n</peer>\n</Component>\n")  # fmt: skip
    world.move(old, apply=True)
    config = load(world.config)
    assert config.sites[0].address == "unix:/omd/sites/demo/tmp/run/live"
    assert config.auth.roles["admin"] == ("boss", "anna")
    assert config.auth.htpasswd_file == str(world.state / "htpasswd")
    assert len(world.rows("select * from api_keys")) == 2


def hostile(old, outside):
    """Files that do harm to whoever trusts them, each with what is said of it."""
    old.write("etc/thruk/thruk_local.d/bad.conf", b"a = \xff\nalone\n<Peer x\n")
    old.write("etc/thruk/thruk_local.d/binary.conf", b"\0\1\2")
    old.write("etc/thruk/thruk_local.d/lower.conf", "<component Thruk::Backend>\n</component>\n")
    (old.etc / "thruk_local.d/loop").symlink_to(old.etc / "thruk_local.d")
    (old.etc / "thruk_local.d/out.conf").symlink_to(outside)
    os.mkfifo(old.var / "users/pipe")
    (old.var / "users/out").symlink_to(outside)
    (old.var / "users/self").symlink_to(old.var / "users/self")
    old.write("var/lib/thruk/users/perl", "$VAR1 = { x => system('touch /tmp/harm') };\n")
    old.data("users/*", {"roles": ["authorized_for_admin"]})
    old.write("var/lib/thruk/users/deep", "[" * 100_000)
    old.write("var/lib/thruk/users/list", "[]")
    old.data("users/(cli)", {"login": {"locked": 1}})
    os.close(os.open(os.fsencode(old.var / "users/") + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
    old.data("users/long", {"tz": "UTC", "login": {"failed": 1e300, "last_failed": {"time": "x"}}})
    with (old.var / "users/huge").open("wb") as file:
        file.truncate(1 << 30)
    old.data("reports/20.rpt", {"name": ["x"], "params": 7})
    old.data("reports/21.rpt", {"name": "x", "template": {"a": 1}})
    old.data("downtimes/20.tsk", {"target": "host", "host": ["a;b"], "schedule": []})
    old.data("downtimes/21.tsk", {"target": "host", "host": ["a"], "schedule": [1]})
    old.data("broadcast/x y.json", {"text": "x"})
    old.data("broadcast/none.json", {"name": "without a text"})
    old.data("panorama/x", {})
    old.write("etc/thruk/panorama/40.tab", '{"tab": 1}')
    old.write("etc/thruk/panorama/41.tab", '{"tab": {"xdata": {"groups": [{"x": "root"}]}}}')
    old.write("etc/thruk/bp/20.tbp", '{"name": "x", "nodes": [{"id": "a b"}]}')
    old.write("etc/thruk/bp/21.tbp", '{"name": "x"')
    old.data(f"api_keys/{'a' * 64}.SHA-256", {"comment": "of nobody"})
    old.data(f"api_keys/{'b' * 64}.SHA-256", {"user": "x\ny"})
    return {
        "bad.conf:1": "UTF-8", "bad.conf:2": "a key", "bad.conf:3": "<word>",
        "binary.conf": "binary", "lower.conf:1": "<Component>", "loop": "link",
        "out.conf": "outside", "pipe": "regular", "out": "outside", "self": "",
        "perl:1": "code", "deep:1": "JSON", "*": "without *", "list": "object", "(cli)": "",
        "huge": "8 MB", "20.rpt": "params", "21.rpt": "", "20.tsk": "host", "21.tsk": "",
        "x y.json": "letters", "none.json": "text", "40.tab": "tab", "41.tab": "groups",
        "20.tbp": "id", "21.tbp:1": "JSON", "a" * 16: "user", "b" * 16: "",
    }  # fmt: skip


def test_what_cannot_be_read_is_named_and_leaves_the_rest_alone(tmp_path, world):
    outside = tmp_path / "outside"
    outside.write_text("secret = other-secret\n")
    old = OldInstallation(tmp_path / "old")
    expected = hostile(old, outside)
    lines = world.move(old, apply=True)
    found = {one.source.rpartition("/")[2]: one.note for one in lines.lines
             if one.outcome is Outcome.REFUSED}  # fmt: skip
    assert [name for name, part in expected.items() if part not in found.get(name, "-")] == []
    assert set(found) - set(expected) - {"5.tsk"} - {name for name in found if "�" in name} == set()
    assert "other-secret" not in str(lines.lines)
    assert not Path("/tmp/harm").exists()
    assert len(world.rows("select * from api_keys")) == 2
    assert len(world.rows("select * from dashboards")) == 1
    assert [name for (name,) in world.rows("select name from users order by 1")] == [
        "anna", "jürgen k", "long",
    ]  # fmt: skip
    # A name that means everybody gets no rights.
    assert load(world.config).auth.roles["admin"] == ("boss", "anna")


def test_no_secret_is_printed(untouched, world, capsys):
    arguments = ["import", "--config", str(world.config), "--state", str(world.state)]
    assert main([*arguments, str(untouched.folder)]) == 1
    table = capsys.readouterr()
    assert main([*arguments, "--json", "--apply", str(untouched.folder)]) == 1
    document = capsys.readouterr()
    text = table.out + table.err + document.out + document.err + world.config.read_text()
    assert [one for one in SECRETS if one in text] == []
    assert "Nothing is written without --apply" in table.err
    assert table.out.splitlines()[0].split() == ["KIND", "FROM", "FATE", "BECOMES", "NOTE"]


@each(
    "given, text",
    [
        ({"folder": "/nowhere"}, "/nowhere: expected thruk.conf"),
        ({"var": "/nowhere"}, "/nowhere: expected a folder"),
    ],
)
def test_what_is_no_installation(untouched, tmp_path, given, text):
    with pytest.raises(RefusedImportError, match=text):
        run_import(ImportRequest(**{"folder": str(untouched.folder), "config": tmp_path / "c",
                            "state": tmp_path / "s", **given}), WALL)  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_that_cannot_be_used_ends_it(untouched, world):
    world.config.write_text("[server]\nvar_dirs = 1\n")
    with pytest.raises(RefusedImportError, match="cannot be used"):
        world.move(untouched, apply=True)
    assert not world.state.exists()
