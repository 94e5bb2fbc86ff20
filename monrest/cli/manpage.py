"""The man page ``docs/monrest.1``, from the same text as ``--help``.

``python -m monrest.cli.manpage > docs/monrest.1``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from monrest import __release_date__, __version__
from monrest.cli.options import HELP, MONREST, SECTIONS, VERSION, Option, Subcommand


def manpage() -> str:
    """The whole page in the language of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Generated from monrest/cli/options.py: change that, then run `make docs`.'
    yield f'.TH MONREST 1 "{__release_date__}" "monrest {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"monrest \\- {_escaped(MONREST.summary)}"
    yield ".SH SYNOPSIS"
    leaves = list(_leaves(MONREST, "monrest"))
    for number, (name, command) in enumerate(leaves):
        if number:
            yield ".br"
        yield f".B {_escaped(name)}"
        yield _escaped(command.usage)
    yield ".SH DESCRIPTION"
    yield _escaped(" ".join(MONREST.text))
    yield ".SH OPTIONS"
    yield "These may stand before and behind the subcommand."
    yield from _options((HELP, VERSION))
    for group in MONREST.groups:
        yield from _options(group.options)
    for name, command in leaves:
        yield from _command(name, command)
    for section in SECTIONS:
        yield f".SH {section.title}"
        for term, text in section.entries:
            yield ".TP" if term else ".PP"
            if term:
                yield f".B {_escaped(term)}"
            yield _escaped(text)


def _leaves(command: Subcommand, name: str) -> Iterator[tuple[str, Subcommand]]:
    for inner in command.commands:
        full = f"{name} {inner.name}"
        if inner.commands:
            yield from _leaves(inner, full)
        else:
            yield full, inner


def _command(name: str, command: Subcommand) -> Iterator[str]:
    yield f".SH {_escaped(name.upper())}"
    yield f"{_escaped(command.summary[0].upper() + command.summary[1:])}."
    if command.aliases:
        yield f"Also {_escaped(', '.join(command.aliases))}."
    if name.startswith("monrest key "):
        yield from _paragraphs(
            next(command for command in MONREST.commands if command.name == "key").text
        )
    yield from _paragraphs(command.text)
    if command.argument is not None:
        yield ".TP"
        yield f".I {_escaped(command.argument.name)}"
        yield _escaped(command.argument.help)
    for group in command.groups:
        if group.title == "connection":
            continue  # it is under OPTIONS
        yield f".SS {_escaped(group.title)}"
        yield from _options(group.options)
    if command.examples:
        yield ".SS examples"
        for line, text in command.examples:
            yield from (".PP", f"{_escaped(text)}:", ".PP", ".RS 4", ".nf", _escaped(line), ".fi")
            yield ".RE"


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    for option in options:
        yield ".TP"
        names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in option.names)
        yield names + (f" \\fI{_escaped(option.metavar)}\\fR" if option.metavar else "")
        yield _escaped(option.help)


def _paragraphs(texts: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        yield ".PP"
        yield _escaped(text)


def _escaped(text: str) -> str:
    """``text`` with nothing that roff would take for its own."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = text.replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    sys.stdout.write(manpage())
