"""``monrest sites``: which sites answer, what cores they are, and why others do not."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from monrest.cli import output
from monrest.cli.command_line import Pairs
from monrest.cli.options import DEFAULT_CONFIG
from monrest.cli.output import FAILED
from monrest.cli.probe import TITLES, SiteLine, core_name, probed
from monrest.cli.requester import Requester
from monrest.client.exchange import ClientError, UnreachableError

_COLUMNS = "id,name,addr,type,status,last_error,federation_version"
_PENDING = "not asked yet"
_HIDDEN = "why is for users with the role system_information"
_PATH = f"/sites?columns={_COLUMNS}&backends=ALL"


def run(_: Sequence[str], options: Pairs) -> int:
    """Print a table of sites: as the daemon sees them, or asked from here."""
    named = dict(options)
    lines = _of_file(named["config"]) if "config" in named else _anyhow(options)
    if "json" in named:
        document = [line.document() for line in lines]
        output.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    else:
        output.write_text(output.aligned(TITLES, (line.cells() for line in lines)))
    return FAILED if any(line.state != "up" for line in lines) else 0


def _anyhow(given: Pairs) -> list[SiteLine]:
    """The sites as the daemon reports them; without a daemon, as the sites themselves answer."""
    client = Requester.of_options(given)
    try:
        reply = client.api(_PATH)
    except UnreachableError as error:
        if not os.access(DEFAULT_CONFIG, os.R_OK):
            raise
        client.settings.hint(
            f"monrest: {str(error).partition(chr(10))[0]}\n"
            f"asking the sites of {DEFAULT_CONFIG} from here"
        )
        return _of_file(DEFAULT_CONFIG)
    rows = json.loads(client.body_of("/sites", reply))
    if not isinstance(rows, list):
        raise ClientError("expected a list of sites")
    return [_line(row) for row in rows]


def _line(row: dict[str, Any]) -> SiteLine:
    # One for each hop; the last one is that of the core.
    versions = row.get("federation_version") or [""]
    version = str(versions[-1] if isinstance(versions, list) else versions)
    address, problem = str(row.get("addr") or ""), ""
    if row.get("status"):
        # Who may see the address may see the reason, and there is none before the first probe.
        problem = str(row.get("last_error") or "") or (_PENDING if address else _HIDDEN)
    return SiteLine(
        str(row.get("id")),
        str(row.get("name")),
        address,
        core_name(version) if version else "",
        version,
        problem,
        pending=problem == _PENDING,
    )


def _of_file(path: str) -> list[SiteLine]:
    from monrest.config import ConfigError, load

    try:
        config = load(path)
    except ConfigError as error:
        raise ClientError(f"{path} cannot be used:\n{error}") from None
    return probed(config)
