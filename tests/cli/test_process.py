"""The real executable in a process of its own: what it imports, streams, signals, locales, TLS."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import forks
from tests.cli.fake import MAIN, Raw, command, environment, free_address, says
from tests.fakes.certificates import Authority
from tests.fakes.terminal import on_terminal

HEAVY = (
    "twisted", "sqlalchemy", "klein", "attrs", "attr", "cattrs", "orjson", "re2", "shtab",
    "dataclasses", "alembic", "bcrypt", "psycopg", "tomllib", "pathlib", "tempfile", "subprocess", "asyncio",
)  # fmt: skip
COMMAND = (sys.executable, "-c", MAIN)
SHOW = "import sys; from monrest.cli.main import main; main(); print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"


def modules(*words, home, **more):
    """The modules of a process that has run these words."""
    ran = subprocess.run(
        [sys.executable, "-c", SHOW, *words],
        env=environment(home, **more),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert b"monrest.cli.main" in ran.stderr, ran.stderr
    return {line.split(".")[0] for line in ran.stderr.decode().splitlines()} | set(
        ran.stderr.decode().splitlines()
    )


def test_help_imports_nothing_heavy(tmp_path):
    loaded = modules("r", "--help", home=tmp_path)
    assert "argparse" in loaded
    assert not loaded & {*HEAVY, "http.client", "ssl", "socket"}


REQUESTS = {("r", "-o", "{n}", "-w", "n:5", "/x"): [{"n": 1}], ("key", "list"): []}


@pytest.mark.parametrize("words", REQUESTS)
def test_a_request_imports_nothing_heavy(fake, tmp_path, words):
    fake.answers["/mon/r/x"] = fake.answers["/mon/r/mon/api_keys"] = (200, REQUESTS[words])
    loaded = modules(*words, home=tmp_path, MONREST_URL=fake.url)
    assert "http.client" in loaded
    assert not loaded & {*HEAVY, "argparse"}


def test_an_address_without_a_listener(tmp_path):
    url = free_address()
    ran = command("r", "/x", home=tmp_path, MONREST_URL=url)
    told = ran.stderr.decode()
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert f"cannot reach {url}/mon/r: Connection refused" in told
    assert "(the URL comes from the environment (MONREST_URL))" in told
    for way in ("--url", "MONREST_URL", "client.toml"):
        assert way in told
    ran = command("r", "-o", "{x}", "/x", home=tmp_path, MONREST_URL=url)
    assert (ran.returncode, ran.stderr) == (3, b"")
    assert ran.stdout.startswith(b"cannot reach ")
    ran = command("r", "-c", "x:1", "/x", home=tmp_path, MONREST_URL=f"unix:{tmp_path}/none")
    assert b"No such file or directory" in ran.stdout
    ran = command("r", f"{url}/x", home=tmp_path)
    assert b"cannot reach" in ran.stderr


def test_no_answer_in_time(tmp_path):
    with Raw(says(b"", and_waits=True)) as silent:
        ran = command("r", "--timeout", "0.2", "/x", home=tmp_path, MONREST_URL=silent.url)
    assert ran.returncode == 1
    assert b"no answer in time" in ran.stderr


def test_https_is_verified(fake, monrest, monkeypatch, tmp_path):
    authority = Authority(tmp_path)
    fake.encrypt(authority)
    fake.answers["/mon/r/x"] = fake.answers["/x"] = (200, b"x")
    monkeypatch.setenv("MONREST_URL", fake.url)
    ran = monrest("r", "/x")
    assert ran.status == 1
    assert "certificate is not trusted" in ran.err
    assert "-k" in ran.err
    assert fake.seen == []
    for words in (("-k", "/x"), ("/x", "--insecure"), ("-k", f"{fake.url}/x")):
        assert monrest("r", *words).out == "x"
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca_file)
    assert monrest("r", "/x").out == "x"


def test_a_reader_that_leaves(fake, tmp_path):
    fake.answers["/mon/r/x"] = (200, b"x" * 5_000_000)
    process = subprocess.Popen(
        [*COMMAND, "r", "/x"], env=environment(tmp_path, MONREST_URL=fake.url),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.read(10) == b"x" * 10
    process.stdout.close()
    assert process.wait(300) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_large_answer_does_not_fill_the_memory(fake, tmp_path):
    fake.answers["/mon/r/x"] = (200, b"x" * 80_000_000)
    # VmHWM: the most memory that this process has had, in kB.
    code = (
        "import sys; from monrest.cli.main import main; main(); "
        "print(next(one for one in open('/proc/self/status') if 'VmHWM' in one), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "r", "/x"], env=environment(tmp_path, MONREST_URL=fake.url),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300, check=False,
    )  # fmt: skip
    assert int(ran.stderr.split()[1]) < 50_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("size", [10, 5_000_000])
def test_a_full_disk(fake, tmp_path, size):
    fake.answers["/mon/r/x"] = (200, b"x" * size)
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*COMMAND, "r", "/x"], env=environment(tmp_path, MONREST_URL=fake.url),
            stdout=full, stderr=subprocess.PIPE, timeout=300, check=False,
        )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == b"monrest: cannot write to standard output: No space left on device\n"


def test_an_interrupt(tmp_path):
    said = tmp_path / "said"
    with Raw(says(b"", and_waits=True)) as silent:
        with said.open("wb") as output:
            process = forks.start(
                [*COMMAND, "r", "-v", "/x"],
                output,
                env=environment(tmp_path, MONREST_URL=silent.url),
            )
        while b"\n" not in said.read_bytes():
            assert process.poll() is None
            time.sleep(0.01)
        assert said.read_bytes().startswith(b"> GET ")
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
        assert b"Traceback" not in said.read_bytes()


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_utf_8_in_every_locale(fake, tmp_path, locale):
    name = "/hosts/m\u00fcnchen"
    fake.answers["/mon/r/hosts/m%C3%BCnchen"] = (
        200,
        json.dumps({"größe": "€"}, ensure_ascii=False).encode(),
    )
    more = {"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = command(
        "r", "-d", "t=\u20ac", name, "-o", "{größe} ß", home=tmp_path, MONREST_URL=fake.url, **more
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.decode() == "€ ß\n"
    assert fake.seen[0].json == {"t": "€"}


def test_words_that_are_no_utf_8(fake, tmp_path):
    fake.answers["/mon/r/hosts/%FF"] = (200, b"x")
    assert (
        command("r", os.fsdecode(b"/hosts/\xff"), home=tmp_path, MONREST_URL=fake.url).stdout
        == b"x"
    )
    ran = command("r", "-d", os.fsdecode(b"a=\xff"), "/x", home=tmp_path, MONREST_URL=fake.url)
    assert ran.returncode == 2
    assert b"expected percent-encoded UTF-8" in ran.stderr


def test_standard_input(fake, tmp_path):
    fake.answers["/mon/r/cmd"] = (200, b"x")
    command("r", "-d", "@-", "/cmd", home=tmp_path, stdin=b'[{"cmd": "a"}]', MONREST_URL=fake.url)
    assert fake.seen[0].json == [{"cmd": "a"}]


def test_an_excel_file_is_nothing_for_a_terminal(fake, tmp_path):
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    fake.answers["/mon/r/xls/x"] = (200, b"PK", {"Content-Type": kind})
    status, shown = on_terminal(
        [*COMMAND, "r", "--xls", "/x"], environment(tmp_path, MONREST_URL=fake.url)
    )
    assert status == 1
    assert "redirect it, > FILE.xlsx" in shown
    assert "PK" not in shown
    assert command("r", "--xls", "/x", home=tmp_path, MONREST_URL=fake.url).stdout == b"PK"


def test_a_terminal_gets_an_end_of_line(fake, tmp_path):
    fake.answers["/mon/r/x"] = (200, b"[]")
    found = on_terminal([*COMMAND, "r", "/x"], environment(tmp_path, MONREST_URL=fake.url))
    assert found == (0, "[]\r\n")


def test_a_progress_bar_on_a_terminal(fake, tmp_path):
    running = {"is_running": 1, "percent": 50, "remaining": 75, "message": "half\x1b[2J"}
    steps = [(200, running), (200, [running]), (200, {"is_running": 0})]
    fake.answers["/mon/r/x"] = (200, {"job_id": 5})
    fake.answers["/mon/r/mon/jobs/5"] = lambda _seen: steps.pop(0)
    fake.answers["/mon/r/mon/jobs/5/output"] = (200, b"done\n")
    status, shown = on_terminal(
        [*COMMAND, "r", "--background", "/x"], environment(tmp_path, MONREST_URL=fake.url)
    )
    assert status == 0
    assert f"[{'#' * 12}{' ' * 12}]  50% 1:15 half?[2J" in shown
    assert shown.endswith("\r\x1b[Kdone\r\n")


def test_internal_errors_are_unknown_and_not_a_warning(monkeypatch, capsys):
    from monrest.cli.main import main

    def broken(*_words):
        raise RuntimeError("boom")

    monkeypatch.setattr("monrest.cli.rest_command.run", broken)
    assert main(["r", "/x"]) == 1
    assert main(["r", "-w", "x:1", "/x"]) == 3
    told = capsys.readouterr().err
    assert "internal error: RuntimeError('boom')" in told
    assert "Traceback" not in told
    assert main(["r", "-v", "/x"]) == 1
    assert "Traceback" in capsys.readouterr().err
