"""Subcommands and answers that need no daemon: settings, texts, shell commands, tables for eyes."""

import json
import re

from monrest.cli.serve import command_line
from monrest.cli.terminal import TerminalStyle, cut_to, style, written
from tests.table import each

CONFIG = """\
[server]
workers = 3

[[sites]]
id = "a"
name = "A"
address = "https://h/mon"
auth_key = "hidden_1"
"""


def test_the_settings_in_force_and_their_origins(monrest, tmp_path, monkeypatch):
    path = tmp_path / "monrest.toml"
    path.write_text(CONFIG)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "x.toml").write_text('[auth.roles]\nadmin = ["ann"]\n')
    monkeypatch.setenv("MONREST__JOBS__QUEUE", "7")
    ran = monrest("config", "show", "--changed", str(path))
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        f"server.workers = 3  # {path}, line 2",
        'database.url = "sqlite:////var/lib/monrest/monrest.sqlite"  # default',
        'auth.secret_key_file = "/var/lib/monrest/secret.key"  # default',
        f'auth.roles.admin = ["ann"]  # {tmp_path}/conf.d/x.toml, line 2',
        "jobs.queue = 7  # environment, MONREST__JOBS__QUEUE",
        f'sites[0].id = "a"  # {path}, line 5',
        f'sites[0].name = "A"  # {path}, line 6',
        f'sites[0].address = "https://h/mon"  # {path}, line 7',
        f'sites[0].auth_key = "***"  # {path}, line 8',
    ]
    rows = json.loads(monrest("config", "show", "--json", str(path)).out)
    assert {"key": "server.memory_limit", "value": "512MB", "origin": "default"} in rows
    path.write_text("[server]\nworker = 3\n")
    ran = monrest("config", "show", str(path))
    assert (ran.status, ran.out) == (1, "")
    assert "did you mean server.workers? " in ran.err


def test_check_config_without_a_file_checks_the_one_of_serve(monrest, tmp_path, monkeypatch):
    path = tmp_path / "monrest.toml"
    path.write_text(CONFIG)
    monkeypatch.setattr("monrest.cli.config_commands.DEFAULT_CONFIG", str(path))
    assert monrest("check-config").out == f"{path} is good: 1 site\n"
    path.write_text("[server]\nworker = 3\n")
    ran = monrest("check-config")
    assert (ran.status, ran.err.splitlines()[0]) == (1, f"{path} cannot be used:")
    path.unlink()
    ran = monrest("check-config")
    assert (ran.status, ran.out) == (1, "")
    assert f"{path}: cannot be read: No such file or directory" in ran.err


DAEMONS = {
    (("config", "/x"),): ["--config=/x"],
    (): ["--config=/etc/monrest/monrest.toml"],
    (("demo", ""), ("port", "9"), ("json-log", "")): ["--demo", "--port=9", "--json-log"],
}


@each("options", DAEMONS)
def test_serve_starts_the_daemon_with_its_options(options):
    line = command_line(dict(options))
    assert line[3:5] == ["--nodaemon", "--pidfile="]
    assert line[5:] == ["monrest", *DAEMONS[options]]


def test_serve_refuses_what_does_not_go_together(monrest):
    assert "--port: goes with --demo" in monrest("serve", "--port", "9").err
    assert "not both" in monrest("serve", "--demo", "--config", "x").err
    assert monrest("serve", "x").status == 2


LOCAL = {
    ("--string", "5", "-w", "value:4", "-o", "{STATUS} {value}"): (1, "WARNING 5|'value'=5;4;;;\n"),
    ("--string", "up", "-o", "{value}"): (0, "up\n"),
    ("--string", '{"n": 3}', "-o", "{n}"): (0, "3|'n'=3;;;;\n"),
    ("--command", "echo '[{\"a\": 2}]'", "-o", "{0.a}"): (0, "2\n"),
    ("--command", "exit 4", "-o", "x"): (3, "exit 4: ended with status 4\n"),
    ("--string", "a b", "--command", "printf '<%s>' {1:value}", "-o", "{RAW2}"): (0, "<a b>\n"),
    ("--postprocess", "sed s/1/2/", '{"n": 1}', "-o", "{n}"): (0, "2|'n'=2;;;;\n"),
    ("--postprocess", "cat >/dev/null; echo boom >&2; exit 1", "{}", "-o", "{n}"): (
        3, "cat >/dev/null; echo boom >&2; exit 1: ended with status 1: boom\n"),
}  # fmt: skip


@each("words", LOCAL)
def test_texts_and_shell_commands_are_answers(monrest, words):
    ran = monrest("r", *words)
    assert (ran.status, ran.out, ran.err) == (*LOCAL[words], "")


def test_a_command_has_the_time_of_a_request(monrest):
    ran = monrest("r", "--timeout", "0.05", "--command", "sleep 5")
    assert (ran.status, ran.out) == (1, "")
    assert "sleep 5: did not end within 0.05 seconds" in ran.err


def test_a_url_from_an_answer_is_taken_whole(fake, monrest):
    fake.answers["/mon/r/a"] = (200, {"url": "/b/c", "name": "x/y z"})
    fake.answers["/mon/r/b/c"] = fake.answers["/mon/r/d/x%2Fy%20z"] = (200, {"n": 1})
    assert monrest("r", "/a", "{1:url}", "/d/{1:name}", "-o", "{2:n}{3:n}").out[:3] == "11|"
    ran = monrest("r", "/a", "/d/{1:nam}", "-o", "{n}")
    assert ran.status == 3
    assert "{error:nam does not exist}" in ran.out


WIDTHS = {
    ((5, 5), 0): [5, 5],
    ((5, 5), 40): [5, 5],
    ((50, 5), 40): [28, 5],
    ((50, 40, 5), 60): [22, 22, 5],
    ((50, 40, 9), 60): [20, 20, 9],
    ((30, 30, 30, 30), 40): [10, 10, 10],
    ((50,), 5): [8],
}


@each(("given", "wanted"), WIDTHS.items())
def test_columns_are_cut_where_they_are_widest(given, wanted):
    widths, width = given
    cut = cut_to(widths, width)
    assert cut == wanted
    if width > 11:
        assert sum(one + 3 for one in cut) + 1 <= width


def test_wide_characters_are_counted_in_cells():
    table = (
        "+------------+-------+\n| name       | state |\n+------------+-------+\n"
        "| 日本語日本 | 0     |\n| abc        | 1     |\n+------------+-------+\n"
        "failed sites: x\n"
    )
    shown = written(
        table.encode(), "text/plain; charset=utf-8", TerminalStyle(True, False, 20)
    ).decode()
    assert shown.splitlines()[3:] == [
        "| 日本語…  | 0     |", "| abc      | 1     |", "+----------+-------+", "failed sites: x",
    ]  # fmt: skip


def test_nothing_of_an_answer_steers_the_terminal():
    body = json.dumps({"a\x1b": ["\x1b[2J\u202e", None, True, 1.5]}, ensure_ascii=False).encode()
    shown = written(body, "application/json", TerminalStyle(True, True, 80)).decode()
    assert set(re.findall("\x1b.", shown)) == {"\x1b["}
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "\x1b" not in plain
    assert json.loads(plain) == json.loads(body)


@each(
    ("when", "environment", "pretty", "colour"),
    [
        ("", {}, False, False),
        ("never", {}, False, False),
        ("always", {"NO_COLOR": "1"}, True, True),
    ],
)
def test_a_pipe_gets_what_came(when, environment, pretty, colour):
    found = style(when, full=False, environment=environment)
    assert (found.pretty, found.colour) == (pretty, colour)


def test_sites_of_the_daemon_and_why_they_are_down(fake, monrest):
    up = {"status": 0, "last_error": "", "type": "livestatus"}
    fake.answers["/mon/r/sites"] = (200, [
        {"id": "a", "name": "A", "addr": "unix:/x", "federation_version": ["2.14.1-icinga2"], **up},
        {"id": "b", "name": "B", "addr": "https://h/mon", "federation_version": ["", "1.5.1-naemon"],
         **up, "type": "http"},
        {"id": "c", "name": "C", "addr": "unix:/y", "federation_version": [""], **up, "status": 1},
        {"id": "d", "name": "D", "addr": "unix:/z", "federation_version": [""], "type": "http",
         "status": 1, "last_error": "connection refused"},
        {"id": "e", "name": "E", "addr": "", "federation_version": ["", ""], **up, "status": 1},
    ])  # fmt: skip
    ran = monrest("sites")
    assert ran.status == 1
    cells = [line.split(None, 3) for line in ran.out.splitlines()[1:]]
    assert [[site, state, rest] for site, _, state, rest in cells] == [
        ["a", "up", "Icinga 2  2.14.1-icinga2  unix:/x"],
        ["b", "up", "Naemon    1.5.1-naemon    https://h/mon"],
        ["c", "pending", "unix:/y        not asked yet"],
        ["d", "down", "unix:/z        connection refused"],
        ["e", "down", "why is for users with the role system_information"],
    ]  # fmt: skip
    rows = {row["id"]: row for row in json.loads(monrest("sites", "--json").out)}
    assert rows["b"] == {
        "id": "b", "name": "B", "address": "https://h/mon", "core": "Naemon",
        "version": "1.5.1-naemon", "problem": "", "state": "up", "up": True,
    }  # fmt: skip
    assert (rows["c"]["state"], rows["c"]["up"]) == ("pending", False)
    fake.answers["/mon/r/sites"] = (200, fake.answers["/mon/r/sites"][1][:2])
    assert monrest("sites").status == 0
