"""What is generated from the table of options: help, man page, completion; and the table itself."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from monrest.api.endpoint import Endpoint
from monrest.cli.completion import beginnings, candidates, script
from monrest.cli.manpage import manpage
from monrest.cli.options import MONREST, SECTIONS, Subcommand
from monrest.cli.parsers import help_text
from monrest.daemon.client_rows import module
from monrest.daemon.paths import listing
from tests.table import each

REPOSITORY = Path(__file__).parents[2]


def leaves(command: Subcommand = MONREST, path=()):
    for inner in command.commands:
        yield (*path, inner.name), inner
        yield from leaves(inner, (*path, inner.name))


COMMANDS = [((), MONREST), *leaves()]


def flat(text):
    return " ".join(text.split())


def test_the_man_page_is_current():
    assert (REPOSITORY / "docs" / "monrest.1").read_text() == manpage(), "run: make docs"


def test_the_paths_are_current():
    known = (REPOSITORY / "monrest" / "cli" / "paths.txt").read_text()
    assert known == listing(), "run: make docs"
    assert {"/hosts/totals", "/hosts/"} <= set(beginnings())


def test_the_types_of_rows_are_current():
    known = (REPOSITORY / "monrest" / "client" / "rows.py").read_text()
    assert known == module(), "run: make pages"
    assert 'class HostRow(CheckedRow, total=False):\n    """A row of ``/hosts``."""' in known


def test_paths_have_their_variables():
    async def handler(*_arguments):
        return None

    def endpoint(path):
        return Endpoint(path=path, description="x", handler=handler)

    some = [endpoint(path) for path in ("/", "/b", "/a/<x>/c", "/a/<x>", "/a")]
    assert listing(some) == "/a\n/a/<x>\n/a/<x>/c\n/b\n"


@pytest.mark.parametrize(
    ("columns", "width"), [("70", 70), ("79", 79), ("500", 100), ("x", 100), ("", 100)]
)
def test_help_fits_the_terminal(columns, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = help_text("r").splitlines()
    prose = lines[: lines.index("examples:")]
    assert max(map(len, prose)) <= width


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_the_man_page_reads_without_warnings():
    ran = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", str(REPOSITORY / "docs" / "monrest.1")],
        capture_output=True, env={"MANWIDTH": "120", "MANROFFOPT": "", "PATH": "/usr/bin:/bin"}, timeout=300, check=False,
    )  # fmt: skip
    # Bold and underlined letters come as letter, backspace, letter.
    shown = flat(re.sub(".\b", "", ran.stdout.decode())).replace("\u2010 ", "")
    assert (ran.returncode, ran.stderr) == (0, b"")
    for section in ("NAME", "SYNOPSIS", *(section.title for section in SECTIONS)):
        assert section in shown
    assert "{KEY%.2f}" in shown
    assert "\\n is a new line" in shown
    assert "'{STATUS}: {critical} of {total} critical'" in shown
    assert "~/.config/monrest/client.toml" in shown


def completed(line, tmp_path):
    """What bash offers at the end of ``line``."""
    (tmp_path / "monrest.bash").write_text(script("bash"))
    words = line.split(" ")
    code = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_monrest; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        ["bash", "-c", code, "bash", str(tmp_path / "monrest.bash"), *words],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert ran.returncode == 0
    return [word for word in ran.stdout.split("\n") if word]


OFFERED = {
    "monrest ": {"r", "key", "check-config", "completion", "serve", "sites", "config"},
    "monrest k": {"key"},
    "monrest r --crit": {"--critical"},
    "monrest r --perf": {"--perfunit", "--perffilter"},
    "monrest r -m D": {"DELETE"},
    "monrest r /hosts/t": {"/hosts/totals"},
    "monrest r --csv /services/s": {"/services/stats"},
    "monrest r -w up:1 /hosts/to": {"/hosts/totals"},
    "monrest rest /processinfo/": {"/processinfo/stats"},
    "monrest key c": {"create"},
    "monrest key create --fo": {"--force-user"},
    "monrest completion ": {"bash", "fish", "zsh", "tcsh"},
    "monrest config s": {"show"},
    "monrest r --color n": {"never"},
    "monrest check-config mon": {"monrest.bash"},  # a file that is there
}


@each("line", OFFERED)
def test_bash_completes(line, tmp_path):
    found = set(completed(line, tmp_path))
    assert OFFERED[line] <= found if line.endswith(" ") else OFFERED[line] == found


def answers(fake, **found):
    for path, rows in found.items():
        fake.answers["/mon/r/" + path.replace("_", "/")] = (200, rows)


WORDS = {
    "/host": ["/hostgroups", "/hostgroups/", "/hosts", "/hosts/"],
    "hosts/w": ["/hosts/w%201", "/hosts/w%201/"],
    "/hosts/W%20": ["/hosts/w%201", "/hosts/w%201/"],
    "/hosts/w 1/c": ["/hosts/w 1/cmd/", "/hosts/w 1/commandline", "/hosts/w 1/config"],
    "/hosts/x/cmd/ac": ["/hosts/x/cmd/acknowledge_host_problem"],
    "/csv/sites/a,b/services/x/": [
        "/csv/sites/a,b/services/x/D%20%2F",
        "/csv/sites/a,b/services/x/D%20%2F/",
    ],
    "/mon/jobs/1": ["/mon/jobs/17", "/mon/jobs/17/"],
    "/nothing/": [],
}


def test_names_are_those_of_the_daemon(fake, monrest):
    answers(
        fake, hosts=[{"name": "w 1"}], services=[{"description": "D /"}],
        cmd=[{"name": "acknowledge_host_problem"}], mon_jobs=[{"id": "17"}, {"id": "2"}],
    )  # fmt: skip
    assert {word: candidates(word) for word in WORDS} == WORDS
    targets = [seen.target for seen in fake.seen]
    assert "/mon/r/hosts?columns=name&sort=name&name[~]=%5Ew&limit=200" in targets
    assert any(target.startswith("/mon/r/cmd?kind=hosts&") for target in targets)
    fake.answers["/mon/r/hosts"] = (403, {"code": 403})
    assert "/hosts/totals" in monrest("completion", "--word", "/hosts/").out.split()


def test_names_without_a_daemon(monkeypatch, tmp_path):
    monkeypatch.setenv("MONREST_URL", f"unix:{tmp_path}/none")
    assert candidates("/hosts/tot") == ["/hosts/totals"]


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh", "tcsh"])
def test_the_shell_reads_its_script(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "script"
    path.write_text(script(shell))
    ran = subprocess.run([shell, "-n", str(path)], capture_output=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
