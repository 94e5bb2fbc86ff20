"""The reference page, written from the declarations: ``docs/api.md``.

``python -m monrest.daemon.reference > docs/api.md``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson

from monrest.api.endpoint import (
    BACKGROUND,
    LIST_PARAMETERS,
    OBJECT_PARAMETERS,
    PRETTY,
    SITE_PARAMETERS,
    STATISTICS_PARAMETERS,
    DeclaredParameter,
    Endpoint,
)
from monrest.base.values import Column
from monrest.commands.describe import INTRODUCTION, arguments_text, marked
from monrest.commands.endpoints import COMMAND_PARAMETERS
from monrest.commands.permissions import needed
from monrest.daemon.families import ENDPOINTS
from monrest.explorer.chapters import (
    CHAPTERS,
    COMMAND_CHAPTER,
    chapter_of,
    columns_of,
    further_columns,
    root_of,
)
from monrest.explorer.examples import Example, examples
from monrest.livestatus.catalogue import COMMANDS, Command
from monrest.query.column_names import TableSchema
from monrest.query.separators import MOST_VALUES
from monrest.query.target import MOST_PARAMETERS
from monrest.rows.columns import SCHEMAS
from monrest.web.body import MOST_RELAXED

_INTRODUCTION = f"""\
# API reference

Generated from the declarations of the endpoints: change those, then run `make docs`.
`docs/guide/requests.md` explains filters, columns, functions, sites and output formats.

Paths follow the root `/mon/r`. A POST to a path that has only GET is the GET with its parameters
from the body, PUT is POST, HEAD is GET without a body. A name in a path is percent-encoded, a
slash in it as `%2F`. A failure is an object with `code`, `message`, `description` and
`"failed": true`.

A body has up to `server.max_body` bytes (2 MB by default) where an endpoint names no other limit,
up to {MOST_PARAMETERS:,} parameters, and up to {MOST_VALUES:,} commas and opening brackets
together, also those within texts. JSON of up to {MOST_RELAXED:,} bytes may have comments (`#`)
and commas after the last item.

Types: `time` is Unix time in seconds; flags are the numbers 0 and 1, also where the type says
`boolean`. `array_of_strings` is any list; what its elements are, the description says. A column
that a core does not have is empty."""

_OK = 200
_LONGEST_LINE = 150
"""Characters of a line of an example."""

_COMMANDS = """\
A command answers `message` and `commands`, the lines that the cores got. Success means that the
cores accepted it; with `wait` the answer comes when its effect shows. If a core refuses it, the
answer is a 400 with what the core said in `error`, also when other sites took it. A site that
failed is in `failed_sites` and in the header `X-Mon-Failed-Sites`; if all did, the status is 502
or 504, and `message` says whether the command may have been executed. Nothing is ever sent twice.

Names are exact, without wildcards."""

_COMMON = {
    "Parameters of core lists": (*LIST_PARAMETERS, *SITE_PARAMETERS),
    "Parameters of other lists": LIST_PARAMETERS,
    "Parameters of statistics": STATISTICS_PARAMETERS,
    "Parameters of objects": OBJECT_PARAMETERS,
    "Parameters of commands": COMMAND_PARAMETERS,
}


def reference(endpoints: Sequence[Endpoint] = ENDPOINTS) -> str:
    """The whole page as Markdown. Raises ValueError if an endpoint fits under no heading."""
    return "\n\n".join(_blocks(endpoints)) + "\n"


def _blocks(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Endpoints"
    yield _table(
        ("Method", "Path", "Purpose"),
        (
            (method, f"[`{one.path}`](#{_anchor(_heading(one))})", one.description)
            for one in sorted(endpoints, key=lambda one: one.path)
            for method in one.methods
        ),
    )
    yield "## Common parameters"
    yield (
        "Every path takes these in its query string, whatever its method. Exceptions: `pretty` has "
        "no effect on files, and public paths, logins and new keys cannot be jobs."
    )
    yield _parameters((PRETTY, BACKGROUND))
    for title, parameters in _COMMON.items():
        yield f"### {title}"
        yield _parameters(parameters)
    chapters = {one: chapter_of(one) for one in endpoints}
    shown: dict[tuple[Column, ...], str] = {}
    kept = examples()
    for title, roots in CHAPTERS:
        if title == COMMAND_CHAPTER:
            continue
        yield f"## {title}"
        found = [one for one in endpoints if chapters[one] == title]
        for one in sorted(found, key=lambda one: (roots.index(root_of(one)), one.path)):
            yield from _endpoint(one, shown, kept)
    yield f"## {COMMAND_CHAPTER}"
    yield _COMMANDS
    yield INTRODUCTION
    commands = [one for one in endpoints if chapters[one] == COMMAND_CHAPTER]
    for one in sorted(commands, key=lambda one: one.path == "/cmd"):
        yield from _endpoint(one, shown, kept)
    for kind in COMMANDS:
        yield f"### Commands of {kind}"
        yield _table(
            ("Command", "Arguments", "Meaning", "Needs"),
            (_command(one) for _, one in sorted(COMMANDS[kind].items())),
        )
    yield "## Columns of the collections"
    yield (
        "Columns marked *more* are not part of an answer without `columns`, but can be selected, "
        "filtered and sorted by, as can further columns of the core's own table."
    )
    for schema in SCHEMAS.values():
        yield from _collection(schema)


def _endpoint(
    one: Endpoint, shown: dict[tuple[Column, ...], str], kept: Mapping[str, Example]
) -> Iterator[str]:
    """One endpoint; ``shown`` has the paths where columns were described that others have too."""
    yield f"### {_heading(one)}"
    sentences = [f"{one.description[:1].upper()}{one.description[1:].replace('<', '&lt;')}."]
    if one.text:
        sentences.append(one.text)
    sentences.append("Answers one object." if one.shape == "object" else "Answers a list.")
    if one.roles:
        sentences.append(f"Needs the role {', '.join(f'`{role}`' for role in one.roles)}.")
    if one.body_limit:
        sentences.append(f"Takes a body of up to {one.body_limit:,} bytes.")
    if one.schema:
        name = one.schema.name
        sentences.append(f"Columns: [{name}](#columns-of-{name}).")
    elif one.columns in shown:
        sentences.append(f"Columns as `{shown[one.columns]}`.")
    common = next((title for title, each in _COMMON.items() if each == one.parameters), "")
    if common:
        anchor = common.lower().replace(" ", "-")
        sentences.append(f"Takes [{common[0].lower()}{common[1:]}](#{anchor}).")
    yield " ".join(sentences)
    if one.parameters and not common:
        yield _parameters(one.parameters)
    if one.columns and one.columns not in shown:
        shown[one.columns] = one.path
        yield _table(
            ("Column", "Type", "Unit", "Meaning"),
            (_column(each) for each in sorted(one.columns, key=lambda each: each.name)),
        )

    for method in one.methods:
        if example := kept.get(f"{method} {one.path}"):
            yield _example(example)


def _heading(one: Endpoint) -> str:
    return f"{', '.join(one.methods)} `{one.path}`"


def _anchor(heading: str) -> str:
    """The name of a heading in links, as GitHub and MyST make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _example(one: Example) -> str:
    """Request and answer, each row of a list in a line."""
    lines = [f"{one.method} {one.path}"]
    if one.body is not None:
        lines += [_line(one.body), ""]
    if one.status != _OK:
        lines.append(str(one.status))
    if isinstance(one.answer, list):
        lines += [_line(row) for row in one.answer] or ["[]"]
    elif one.answer is not None:
        lines.append(_line(one.answer))
    return "\n".join(["```", *lines, "```"])


def _line(document: object) -> str:
    text = orjson.dumps(document).decode()
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"


def _collection(schema: TableSchema) -> Iterator[str]:
    yield f"### Columns of {schema.name}"
    yield _table(
        ("Column", "Type", "Unit", "Meaning", ""),
        ((*_column(one), "" if default else "*more*") for one, default in columns_of(schema)),
    )
    further = further_columns(schema)
    if further:
        yield "\n".join(["Further columns:", "", *(f"- {text}" for text in further)])


def _command(one: Command) -> tuple[str, ...]:
    kind = one.kind.removesuffix("s")
    return marked(one), arguments_text(one), one.description, needed(one.permission, kind)


def _parameters(parameters: Sequence[DeclaredParameter]) -> str:
    limits = any(one.limit for one in parameters)
    return _table(
        ("Parameter", "Type", *(("Limit",) if limits else ()), "Meaning"),
        (
            (
                f"`{one.name}`",
                one.type,
                *((one.limit,) if limits else ()),
                f"required; {one.description}" if one.required else one.description,
            )
            for one in parameters
        ),
    )


def _column(one: Column) -> tuple[str, ...]:
    return f"`{one.name}`", one.type, one.unit, one.description


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    """A vertical bar would end the cell, and an angle bracket outside code start a tag."""
    text = text.replace("|", "\\|")
    return text if "`" in text else text.replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(reference())
