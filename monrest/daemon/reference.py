"""The pages of the reference, written from the declarations: an index and a page for each family.

``python -m monrest.daemon.reference docs/api`` writes them into that folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

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
from monrest.api.family import Family
from monrest.base.values import Column
from monrest.commands.describe import INTRODUCTION, arguments_text, marked
from monrest.commands.endpoints import COMMAND_PARAMETERS
from monrest.commands.permissions import needed
from monrest.daemon import families
from monrest.explorer.chapters import columns_of, further_columns, root_of
from monrest.explorer.examples import Example, examples
from monrest.livestatus.catalogue import COMMANDS, Command
from monrest.query.column_names import TableSchema
from monrest.query.target import MOST_PARAMETERS, MOST_VALUES
from monrest.rows.columns import SCHEMAS
from monrest.web.body import MOST_RELAXED

_INTRODUCTION = f"""\
# API reference

Generated from the declarations of the endpoints: change those, then run `make docs`.
[Requests](../guide/requests.md) explains filters, columns, functions, sites and output formats.

Paths follow the root `/mon/r`. A POST to a path that has only GET is the GET with its parameters
from the body, PUT is POST, HEAD is GET without a body. A name in a path is percent-encoded, a
slash in it as `%2F`. A failure is an object with `code`, `message`, `description` and
`"failed": true`.

A body has up to `server.max_body` bytes (2 MB by default) where an endpoint names no other limit,
up to {MOST_PARAMETERS:,} parameters, and up to {MOST_VALUES:,} commas and opening brackets
together, also those within texts. JSON of up to {MOST_RELAXED:,} bytes may have comments (`#`)
and commas after the last item.

Types: `time` is Unix time in seconds; flags are the numbers 0 and 1, also where the type says
`boolean`. `array_of_strings` is any list; the description names its elements. A column
that a core does not have is empty."""

_OK = 200
_LONGEST_LINE = 150
"""Characters of a line of an example."""

_COMMANDS = """\
A command answers `message` and `commands`, the lines that the cores got. Success means that the
cores accepted it; with `wait` the answer comes when its effect shows. If a core refuses it, the
answer is a 400 with the message of the core in `error`, also when other sites accepted it. A site
that failed is in `failed_sites` and in the header `X-Mon-Failed-Sites`; if all did, the status is
502 or 504, and `message` says whether the command may have been executed. Nothing is ever sent
twice.

Names are exact, without wildcards."""

_COMMON = {
    "Parameters of core lists": (*LIST_PARAMETERS, *SITE_PARAMETERS),
    "Parameters of other lists": LIST_PARAMETERS,
    "Parameters of statistics": STATISTICS_PARAMETERS,
    "Parameters of objects": OBJECT_PARAMETERS,
    "Parameters of commands": COMMAND_PARAMETERS,
}


_ROWS = "rows"
"""The family of the collections, each of which has a page of its own."""

_OTHER_ROWS = "sites"
"""The page of what the cores have beside collections."""

_COMMANDS_PAGE = "external-commands"

_RENAMED = {
    "commands": _COMMANDS_PAGE,
    "downtimes": "recurring-downtimes",
    "explorer": "instance",
}
"""Families that have the name of a collection, and one that is too small for a page."""

_TITLES = {
    "instance": ("This instance", "guide/browser"),
    "hosts": ("Hosts", "guide/requests"),
    "services": ("Services", "guide/requests"),
    "hostgroups": ("Host groups", "guide/requests"),
    "servicegroups": ("Service groups", "guide/requests"),
    "contacts": ("Contacts", "guide/requests"),
    "contactgroups": ("Contact groups", "guide/requests"),
    "commands": ("Check commands", "guide/requests"),
    "timeperiods": ("Time periods", "guide/requests"),
    "comments": ("Comments", "guide/requests"),
    "downtimes": ("Downtimes", "guide/requests"),
    "external-commands": ("External commands", "guide/commands"),
    "sites": ("Sites and cores", "guide/sites"),
    "accounts": ("Users, sessions, API keys", "guide/rights"),
    "jobs": ("Background jobs", "guide/jobs"),
    "cluster": ("Cluster and health", "guide/cluster"),
    "logs": ("Logs and the log cache", "guide/log-cache"),
    "availability": ("Availability and outages", "guide/availability"),
    "objectconfig": ("Object configuration", "guide/objectconfig"),
    "events": ("Events", "guide/events"),
    "recurring-downtimes": ("Recurring downtimes", "guide/downtimes"),
    "broadcasts": ("Broadcasts", "guide/broadcasts"),
    "bp": ("Business processes", "guide/bp"),
    "panorama": ("Dashboards", "guide/dashboards"),
    "nodecontrol": ("Node-control", "guide/nodecontrol"),
    "reports": ("Reports", "guide/reports"),
    "webhooks": ("Webhooks", "howto/webhooks"),
}
"""Name of a page to its title and the page that explains the family."""


def reference(registered: Mapping[str, Family] | None = None) -> dict[str, str]:
    """All pages as Markdown, by their names without the ending; ``index`` is the first.

    ``registered``: families by name, None for all.
    """
    pages: dict[str, list[Endpoint]] = {}
    for name, family in (_registered() if registered is None else registered).items():
        for endpoint in families.endpoints_of([family]):
            pages.setdefault(_page_of(name, endpoint), []).append(endpoint)
    ordered = {name: pages[name] for name in [*_TITLES, *sorted(pages)] if name in pages}
    blocks = {"index": _index(ordered)}
    blocks.update((name, _page(name, endpoints)) for name, endpoints in ordered.items())
    return {name: "\n\n".join(page) + "\n" for name, page in blocks.items()}


def _registered() -> dict[str, Family]:
    """The families, each by the name under which the registry imports it."""
    modules = vars(families).items()
    return {
        name: module.FAMILY
        for name, module in modules
        if getattr(module, "FAMILY", None) in families.FAMILIES
    }


def _page_of(family: str, endpoint: Endpoint) -> str:
    if family != _ROWS:
        return _RENAMED.get(family, family)
    root = root_of(endpoint)
    return root if root in SCHEMAS and root in _TITLES else _OTHER_ROWS


def _title(page: str) -> str:
    return _TITLES[page][0] if page in _TITLES else page


def _index(pages: Mapping[str, Sequence[Endpoint]]) -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Pages"
    yield "\n".join(f"- [{_title(name)}]({name}.md)" for name in pages)
    yield "## Endpoints"
    listed = sorted(
        ((endpoint, name) for name, endpoints in pages.items() for endpoint in endpoints),
        key=lambda each: each[0].path,
    )
    yield _table(
        ("Method", "Path", "Purpose"),
        (
            (
                method,
                f"[`{endpoint.path}`]({name}.md#{_anchor(_heading(endpoint))})",
                endpoint.description,
            )
            for endpoint, name in listed
            for method in endpoint.methods
        ),
    )
    yield "## Common parameters"
    yield (
        "Every path takes these in its query string, with every method. Exceptions: `pretty` has "
        "no effect on files, and public paths, logins and new keys cannot be jobs."
    )
    yield _parameters((PRETTY, BACKGROUND))
    for title, parameters in _COMMON.items():
        yield f"### {title}"
        yield _parameters(parameters)
    yield "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def _page(name: str, endpoints: Sequence[Endpoint]) -> Iterator[str]:
    yield f"# {_title(name)}"
    if name in _TITLES:
        yield f"[How to use it](../{_TITLES[name][1]}.md)."
    described: dict[object, str] = {}
    answered = examples()
    if name == _COMMANDS_PAGE:
        yield _COMMANDS
        yield INTRODUCTION
    for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.path):
        yield from _endpoint(endpoint, described, answered)
    if name == _COMMANDS_PAGE:
        for kind in COMMANDS:
            yield f"## Commands of {kind}"
            yield _table(
                ("Command", "Arguments", "Meaning", "Needs"),
                (_command(command) for _, command in sorted(COMMANDS[kind].items())),
            )
    for schema in dict.fromkeys(endpoint.schema for endpoint in endpoints if endpoint.schema):
        if _home_of(schema) == name:
            yield from _collection(schema)


def _home_of(schema: TableSchema) -> str:
    """The page that describes the columns of a collection."""
    return schema.name if schema.name in _TITLES else _OTHER_ROWS


def _endpoint(
    endpoint: Endpoint, described: dict[object, str], answered: Mapping[str, Example]
) -> Iterator[str]:
    """One endpoint; ``described``: columns and parameters that the page has, to their places."""
    yield f"## {_heading(endpoint)}"
    sentences = [
        f"{endpoint.description[:1].upper()}{endpoint.description[1:].replace('<', '&lt;')}."
    ]
    if endpoint.text:
        sentences.append(endpoint.text)
    sentences.append("Answers one object." if endpoint.shape == "object" else "Answers a list.")
    if endpoint.roles:
        sentences.append(f"Needs the role {', '.join(f'`{role}`' for role in endpoint.roles)}.")
    if endpoint.body_limit:
        sentences.append(f"Takes a body of up to {endpoint.body_limit:,} bytes.")
    if endpoint.schema:
        name = endpoint.schema.name
        sentences.append(f"Columns: [{name}]({_home_of(endpoint.schema)}.md#columns-of-{name}).")
    elif endpoint.columns in described:
        sentences.append(f"Columns as `{described[endpoint.columns]}`.")
    common = next((title for title, each in _COMMON.items() if each == endpoint.parameters), "")
    if common:
        anchor = common.lower().replace(" ", "-")
        sentences.append(f"Takes [{common[0].lower()}{common[1:]}](index.md#{anchor}).")
    elif endpoint.parameters in described:
        sentences.append(f"Parameters as `{described[endpoint.parameters]}`.")
    yield " ".join(sentences)
    if endpoint.parameters and not common and endpoint.parameters not in described:
        described[endpoint.parameters] = _heading(endpoint).replace("`", "")
        yield _parameters(endpoint.parameters)
    if endpoint.columns and endpoint.columns not in described:
        described[endpoint.columns] = endpoint.path
        yield _table(
            ("Column", "Type", "Unit", "Meaning"),
            (_column(each) for each in sorted(endpoint.columns, key=lambda each: each.name)),
        )
    for method in endpoint.methods:
        if example := answered.get(f"{method} {endpoint.path}"):
            yield _example(example)


def _heading(endpoint: Endpoint) -> str:
    return f"{', '.join(endpoint.methods)} `{endpoint.path}`"


def _anchor(heading: str) -> str:
    """The name of a heading in links, as GitHub and MyST make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _example(example: Example) -> str:
    """Request and answer, each row of a list in a line."""
    lines = [f"{example.method} {example.path}"]
    if example.body is not None:
        lines += [_line(example.body), ""]
    if example.status != _OK:
        lines.append(str(example.status))
    if isinstance(example.answer, list):
        lines += [_line(row) for row in example.answer] or ["[]"]
    elif example.answer is not None:
        lines.append(_line(example.answer))
    return "\n".join(["```", *lines, "```"])


def _line(document: object) -> str:
    text = orjson.dumps(document).decode()
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"


def _collection(schema: TableSchema) -> Iterator[str]:
    yield f"## Columns of {schema.name}"
    yield (
        "Columns marked *more* are not part of an answer without `columns`, but can be selected, "
        "filtered and sorted by, as can further columns of the core's own table."
    )
    yield _table(
        ("Column", "Type", "Unit", "Meaning", ""),
        ((*_column(column), "" if default else "*more*") for column, default in columns_of(schema)),
    )
    further = further_columns(schema)
    if further:
        yield "\n".join(["Further columns:", "", *(f"- {text}" for text in further)])


def _command(command: Command) -> tuple[str, ...]:
    kind = command.kind.removesuffix("s")
    return (
        marked(command),
        arguments_text(command),
        command.description,
        needed(command.permission, kind),
    )


def _parameters(parameters: Sequence[DeclaredParameter]) -> str:
    limits = any(parameter.limit for parameter in parameters)
    return _table(
        ("Parameter", "Type", *(("Limit",) if limits else ()), "Meaning"),
        (
            (
                f"`{parameter.name}`",
                parameter.type,
                *((parameter.limit,) if limits else ()),
                f"required; {parameter.description}"
                if parameter.required
                else parameter.description,
            )
            for parameter in parameters
        ),
    )


def _column(column: Column) -> tuple[str, ...]:
    return f"`{column.name}`", column.type, column.unit, column.description


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    """A vertical bar would end the cell, and an angle bracket outside code start a tag."""
    text = text.replace("|", "\\|")
    return text if "`" in text else text.replace("<", "&lt;")


def write(folder: Path) -> None:
    """Write all pages into ``folder``, which has no other pages afterwards."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in reference().items():
        (folder / f"{name}.md").write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
