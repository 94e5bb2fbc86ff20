"""What a user of ``monrest`` sees: on a terminal, in a pipe and behind the tab key, before a demo."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from harness.command import MAIN, Command
from harness.waiting import until

from tests.fakes.terminal import on_terminal

SAME_FOR_ALL_CORES = "the command line before the demo"

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TABLE = (
    "r",
    "-t",
    "/services?limit=5&sort=host_name,description&columns=host_name,description,plugin_output,state",
)


@pytest.fixture(scope="module")
def piped(served, tmp_path_factory):
    """The command in a pipe, which shells find as ``monrest``."""
    home = tmp_path_factory.mktemp("home")
    (home / "bin").mkdir()
    (home / "bin" / "monrest").write_text(f"#!{sys.executable}\n{MAIN}\n")
    (home / "bin" / "monrest").chmod(0o755)
    return Command(
        home, HOME=str(home), TERM="xterm", PATH=f"{home}/bin:{os.environ['PATH']}",
        MONREST_URL=served.address, MONREST_KEY=served.key, MONREST_USER="admin",
    )  # fmt: skip


@pytest.fixture(scope="module")
def terminal(piped):
    """Run on a terminal; what appears on it, until it ends or shows ``until``."""

    def run(*words, status=0, program=None, more=(), **terminal):
        line = program or [*piped.line, *words]
        last = signal.SIGINT if program is None else signal.SIGKILL
        found, shown = on_terminal(line, {**piped.environment, **dict(more)}, last=last, **terminal)
        assert program or found == status, shown
        return shown.replace("\r\n", "\n")

    return run


def test_json_is_indented_and_coloured_on_a_terminal_and_as_it_came_in_a_pipe(piped, terminal):
    words = ("r", "/hosts/web01?columns=name,state,groups")
    plain = piped(*words)
    assert plain.rstrip("\n") == json.dumps(json.loads(plain), separators=(",", ":"))
    assert "\x1b" not in plain
    shown = terminal(*words)
    assert '\x1b[34;1m"name"\x1b[0m: \x1b[32m"web01"\x1b[0m' in shown
    assert json.loads(COLOURS.sub("", shown)) == json.loads(plain)
    assert len(COLOURS.sub("", shown).splitlines()) > 3
    without = terminal(*words, more={"NO_COLOR": "1"})
    assert without == COLOURS.sub("", shown)
    assert terminal(*words, "--color", "never") == without
    assert terminal(*words, more={"TERM": "dumb"}) == without
    assert piped(*words, "--color=always", COLUMNS="100") == shown


def test_tables_are_cut_to_the_width_of_the_terminal(piped, terminal):
    whole = piped(*TABLE)
    assert max(map(len, whole.splitlines())) > 70
    for columns in (60, 45):
        lines = COLOURS.sub("", terminal(*TABLE, columns=columns)).splitlines()
        assert max(map(len, lines)) <= columns
        assert lines[1].split()[:4:2] == ["|", "|"]
        assert any("…" in line for line in lines)
        assert len(lines) == len(whole.splitlines())
    # A check between the two makes them differ.
    until(
        lambda: COLOURS.sub("", terminal(*TABLE, "--full", columns=45)) == piped(*TABLE),
        "all of it is shown",
    )
    lines = COLOURS.sub("", terminal("r", "-t", "/hosts?limit=2", columns=80)).splitlines()
    assert max(map(len, lines)) <= 80
    assert re.fullmatch("[0-9]+ more columns: --full", lines[-1])
    # Without a choice the most important columns are shown. A choice keeps its order.
    assert lines[1].split()[1::2] == ["name", "state", "plugin_output", "alias", "address"]
    chosen = "latency,notes,has_been_checked,check_options,retry_interval,name,state"
    words = ("r", "-t", f"/hosts?columns={chosen}")
    lines = COLOURS.sub("", terminal(*words, columns=40)).splitlines()
    assert lines[1].split()[1] == "latency"


def test_a_table_in_a_pipe_has_the_columns_that_tell_most_and_all_with_full(piped):
    few = ["name", "state", "plugin_output", "alias", "address"]
    lines = piped("r", "-t", "/hosts?limit=2").splitlines()
    assert lines[1].split()[1::2] == few
    assert re.fullmatch("[0-9]+ more columns: --full", lines[-1])
    whole = piped("r", "-t", "--full", "/hosts?limit=2")
    assert len(whole.splitlines()[1].split("|")) - 2 == len(few) + int(lines[-1].split()[0])
    # A host may be checked between the two.
    assert any(
        piped("r", "-t", "--full", "/hosts?limit=2") == piped("r", "/text/hosts?limit=2")
        for _ in range(5)
    )
    # A choice stays whole also where it is in alphabetical order.
    for chosen in (("/hosts?columns=address,latency,name,state",),
                   ("-m", "GET", "-d", "columns=address,latency,name,state", "/hosts")):  # fmt: skip
        titles = piped("r", "-t", *chosen).splitlines()[1].split()[1::2]
        assert titles == ["address", "latency", "name", "state"]


def test_an_error_is_readable_on_a_terminal(terminal):
    shown = COLOURS.sub("", terminal("r", "/hosts?nonsense=1", status=1, columns=60))
    assert '\n  "code": 400,\n' in shown


def test_watching(terminal, piped):
    seen = terminal(
        *("r", "--watch", "0.1", "-t", "/hosts/totals"),
        until=lambda shown: COLOURS.sub("", shown).count("| total ") >= 2,
        status=130,
    )
    assert "every 0.1 s: /hosts/totals" in seen
    assert COLOURS.sub("", seen).count("| total ") >= 2


def test_sites(served, piped, tmp_path):
    lines = piped("sites").splitlines()
    assert lines[0].split() == ["SITE", "NAME", "STATE", "CORE", "VERSION", "ADDRESS", "PROBLEM"]
    assert lines[1].split()[:4] == ["demo", "Demo", "up", "Naemon"]
    key = piped("key", "create", "--superuser").strip()
    (live,) = served.scratch.glob("*/live")
    path = tmp_path / "monrest.toml"
    path.write_text(
        f'[[sites]]\nid = "a"\nname = "A"\naddress = "unix:{live}"\n'
        '[[sites]]\nid = "b"\nname = "B"\naddress = "unix:/nonexistent"\n'
        f'[[sites]]\nid = "c"\nname = "C"\naddress = "http://127.0.0.1:{served.port}/mon"\n'
        f'auth_key = "{key}"\n'
        '[[sites]]\nid = "d"\nname = "D"\n'
        f'address = "tcp:127.0.0.1:{served.port}"\n'
    )
    rows = {
        row["id"]: row
        for row in json.loads(piped("sites", "--json", "--config", str(path), status=1))
    }
    assert (rows["a"]["up"], rows["a"]["core"], rows["a"]["version"]) == (
        True,
        "Naemon",
        "1.5.2-demo",
    )
    assert (rows["b"]["up"], rows["b"]["problem"]) == (False, "No such file or directory")
    assert rows["c"]["core"] == "monrest"
    assert not rows["d"]["up"]
    told = piped("check-config", "--connect", str(path), status=1)
    assert "is good: 4 sites" in told
    assert "No such file or directory" in told


def test_a_key_that_sees_nothing_is_told(piped):
    blind = piped.run("key", "create", "--user", "grafana")
    assert "this key sees no host and no service: grafana is contact of none" in blind.stderr
    assert "[auth.roles]" in blind.stderr
    for words in (
        ("--user", "admin"),
        ("--user", "olga"),
        ("--superuser", "--role", "all_hosts", "--role", "all_services"),
    ):
        seeing = piped.run("key", "create", *words)
        assert seeing.returncode == 0
        assert "sees no" not in seeing.stderr
    shown = piped("r", "/hosts/totals", MONREST_KEY=seeing.stdout.strip(), MONREST_USER="")
    assert json.loads(shown)["total"] == 20


WANTED = {
    # what is typed: what stands there after the tab key, or is offered
    "monrest r /hosts/web0": ["/hosts/web01", "/hosts/web02"],
    "monrest r /services/web01/Disk": ["/services/web01/Disk%20%2F"],
    "monrest r /hosts/web01/cmd/schedule_host_d": ["/hosts/web01/cmd/schedule_host_downtime"],
    "monrest r --color a": ["always", "auto"],
    "monrest comp": ["completion"],
}


def program(shell):
    if shutil.which(shell) is None:
        if os.environ.get("MONREST_CI"):
            raise AssertionError(f"{shell} is not installed")
        pytest.skip(f"needs {shell}")
    return shell


def offered_by_bash(script, line):
    code = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        '_shtab_monrest; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return [program("bash"), "-c", code]


def offered_by_fish(script, line):
    return [program("fish"), "--no-config", "-c", f"source {script}; complete -C '{line}'"]


@pytest.mark.parametrize("offered", [offered_by_bash, offered_by_fish])
def test_shells_complete_names_and_commands(offered, piped, tmp_path):
    shell = offered.__name__.rpartition("_")[2]
    script = tmp_path / "script"
    script.write_text(piped("completion", shell))
    for line, wanted in WANTED.items():
        ran = subprocess.run(
            offered(script, line), env=piped.environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        found = [one.partition("\t")[0] for one in ran.stdout.splitlines()]
        assert set(wanted) <= set(found), (line, found, ran.stderr)


def test_zsh_completes_names(piped, terminal, tmp_path):
    program("zsh")
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "_monrest").write_text(piped("completion", "zsh"))
    start = f" fpath=({folder} $fpath); autoload -U compinit; compinit -u -d {tmp_path}/dump; echo rea''dy\n"
    # A prompt ends with the switch to bracketed paste; what is typed before is no completion.
    prompt = b"\x1b[?2004h"
    line = b"monrest r /hosts/web01/cmd/schedule_host_d\t"
    typed = [(prompt, start.encode()), (b"ready\r\n", b""), (prompt, line)]
    shown = terminal(
        program=["zsh", "-f", "-i"],
        keys=typed,
        until=lambda text: "schedule_host_downtime" in text,
    )
    assert "/hosts/web01/cmd/schedule_host_downtime" in shown
