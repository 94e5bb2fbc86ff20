"""The examples of the pages of the book: where they stand, and a shell that runs them before a demo."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import evolve, field, frozen
from markdown_it import MarkdownIt

from .client import Client
from .documented import differences

REPOSITORY = Path(__file__).parents[3]
DOCS = REPOSITORY / "docs"
PAGES = [
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("howto/*.md")),
    *(DOCS / "tutorial.md", DOCS / "client.md", REPOSITORY / "README.md"),
]
MARKDOWN = MarkdownIt("commonmark").enable("table")
END = "\x1e"


@frozen
class Block:
    """One example with its page, line and language; an indented one has no language.

    ``output`` is what a block of text right below a command shows of its output.
    """

    page: str
    line: int
    language: str
    text: str = field(repr=False)
    output: str = field(default="", repr=False)

    def __str__(self):
        return f"{self.page}:{self.line} {self.language}"


def blocks():
    """Every block of code of every page."""
    found = []
    for path in PAGES:
        page = str(path.relative_to(DOCS if path.is_relative_to(DOCS) else REPOSITORY))
        above, end = "", 0
        for token in MARKDOWN.parse(path.read_text()):
            if token.type not in ("fence", "code_block"):
                continue
            block = Block(page, token.map[0] + 1, token.info.strip(), token.content)
            if block.language == "text" and above == "sh" and block.line - end == 2:
                found[-1] = evolve(found[-1], output=block.text)
            else:
                found.append(block)
            above, end = block.language, token.map[1]
    return found


def inline():
    """Every piece of code within a sentence or a table."""
    for path in PAGES:
        page = str(path.relative_to(DOCS if path.is_relative_to(DOCS) else REPOSITORY))
        for token in MARKDOWN.parse(path.read_text()):
            for child in token.children or ():
                if child.type == "code_inline":
                    yield page, child.content


def commands(block):
    """The command lines of a block, each with the output that is shown below it."""
    if block.text.startswith("#!"):
        return [(block.text, "")]
    found = []
    complete = True
    for line in block.text.splitlines():
        if not complete:
            found[-1][0] += "\n" + line
        elif block.language == "console" and not line.startswith("$ "):
            found[-1][1] += line + "\n"
            continue
        elif line.strip():
            found.append([line.removeprefix("$ "), ""])
        complete = not found or is_complete(found[-1][0])
    assert complete, f"{block}: {found[-1][0]}"
    if block.output:
        found[-1][1] = block.output
    return found


def is_complete(command):
    """Whether a shell would run this, or would wait for another line."""
    document = re.search(r"<<'(\w+)'\n", command + "\n")
    if document:
        return command.endswith("\n" + document[1])
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


class Shell:
    """Runs command lines as a reader of the pages does, who has the demo in place of the examples' hosts."""

    def __init__(self, folder, demo):
        self.folder = folder
        address, self.port, secret = demo.found()
        self.url = address.rstrip("/")
        with Client(self.port, secret) as client:
            self.key = client.post_json("/mon/api_keys", {"comment": "reader"}).json["private_key"]
        with Client(self.port, self.key) as client:
            job = client.rows("/csv/services?background=1")["job_id"]
        base = self.url.removesuffix("/mon/r")
        socket = next(
            word.partition("unix:")[2]
            for line in demo.lines()
            for word in line.split()
            if word.startswith("MONREST_URL=unix:")
        )
        self.replaced = {
            "http://127.0.0.1:8080": base,
            "http://localhost:8080": base,
            "https://HOST": base,
            "https://monitor.example.org": base,
            "/run/monrest/monrest.sock": socket,
            "/tmp/monrest.sock": socket,
            "Auth-Key: KEY": f"Auth-Key: {self.key}",
            "3c1f…_1": secret,
            "1790000000000123": job,
            'auth_key = "…"': f'auth_key = "{self.key}"',
            "/etc/": f"{folder}/etc/",
            # Streams end.
            "/events?": "/events?limit=1&since=-1d&",
            "events --snapshot": "events --limit 1 --snapshot",
            "events 'host": "events --limit 1 --since -1d 'host",
        }
        self.environment = {
            **os.environ,
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "MONREST_URL": self.url,
            "MONREST_KEY": secret,
            "MONREST_USER": "admin",
            "KEY": self.key,
        }
        programs = {
            "curl": f'exec {shutil.which("curl")} -sS --fail-with-body --max-time 30 "$@"',
            "monrest": f'exec {Path(sys.executable).with_name("monrest")} "$@"',
            "notify-send": 'printf "%s\\n" "$1"',
        }
        (folder / "bin").mkdir()
        for name, text in programs.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / "bin" / name).chmod(0o755)

    def local(self, text):
        """The text of an example with what it stands for here."""
        for example, here in self.replaced.items():
            text = text.replace(example, here)
        return text

    def run(self, lines, **environment):
        """Run command lines in one shell; for each its exit status, output and standard error."""
        script = "".join(
            f"{self.local(line)}\nprintf '{END}%s{END}' $?; printf '{END}' >&2\n" for line in lines
        )
        ran = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            env={**self.environment, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        outputs = ran.stdout.split(END)
        statuses = map(int, outputs[1::2])
        return list(zip(statuses, outputs[0::2], ran.stderr.split(END), strict=False))


def syntax(line):
    """What a shell says of a command line without running it."""
    return subprocess.run(
        ["sh", "-n"], input=line, capture_output=True, text=True, check=False
    ).stderr


def unlike(shown, output):
    """How the output of a command differs from what a page shows of it: names and kinds, messages, result_url."""
    if not shown.startswith(("{", "[")):
        return [] if pattern(shown).fullmatch(output.strip()) else [f"{output!r} is not {shown!r}"]
    # An object with an ellipsis in place of some of its keys.
    whole = json.loads(re.sub(r"([{,])…(?=[,}])", r'\1"…":1', shown))
    now = json.loads(output)
    found = list(differences(whole, now))
    for name in ("message", "result_url"):
        if isinstance(whole, dict) and "…" not in whole.get(name, "…"):
            same = pattern(whole[name]).fullmatch(now[name])
            found += [] if same else [f"{now[name]!r}"]
    return found


def pattern(shown):
    """Text as it is shown, with any numbers and with anything for an ellipsis."""
    text = re.escape(shown.strip()).replace("…", ".*")
    return re.compile(re.sub(r"\d+", r"\\d+", text))
