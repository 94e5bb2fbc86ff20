"""``monrest import DIR``: an installation of the older front end becomes one of this daemon."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from monrest.cli import output
from monrest.cli.command_line import Pairs
from monrest.cli.options import DEFAULT_CONFIG
from monrest.cli.output import FAILED
from monrest.client.exchange import ClientError

if TYPE_CHECKING:
    from monrest.importer.import_lines import ImportLines

DEFAULT_STATE = "/var/lib/monrest"


def run(folders: Sequence[str], options: Pairs) -> int:
    """Print what becomes of what; 1 when something could not be read."""
    named = dict(options)
    # The database and the rules of all families take their time to import.
    importer = import_module("monrest.importer.run")
    request = importer.ImportRequest(
        folder=folders[0],
        var=named.get("var", ""),
        config=Path(named.get("config", DEFAULT_CONFIG)).absolute(),
        state=Path(named.get("state", DEFAULT_STATE)).absolute(),
        apply="apply" in named,
        secret_key="secret-key" in named,
        fill_targets="fill-targets" in named,
    )
    try:
        lines: ImportLines = importer.run_import(request)
    except importer.RefusedImportError as error:
        raise ClientError(str(error)) from None
    ordered = lines.ordered(importer.KINDS)
    if "json" in named:
        rows = [line.document() for line in ordered]
        output.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
    else:
        output.write_text(output.aligned(importer.TITLES, [line.cells() for line in ordered]))
    counts = [f"{number} {outcome}" for outcome, number in sorted(lines.counts.items()) if number]
    done = "Written" if request.apply else "Nothing is written without --apply"
    output.note(f"{done}: {', '.join(counts)}.")
    return FAILED if lines.refused else 0
