"""Scripted dashboards: programs that print one (docs/spec/panorama.md, "Scripted dashboards").

Lines of comment at the beginning of the file name the owner and the groups that may see it, so that
nothing is run for other users.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import orjson
from attrs import field, frozen

from monrest.base.errors import BadRequest
from monrest.panorama import model as records
from monrest.panorama.model import Dashboard

SUFFIX = ".tab"

_HEADER = re.compile(rb"^[ \t]*#[ \t]*(title|user|groups)[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_HEADER_BYTES = 8192
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|#[^\n]*', re.DOTALL)
_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)


@frozen(kw_only=True)
class Script:
    """A program that prints a dashboard; ``head`` is a record with what its comments say."""

    nr: str
    path: str
    changed: float
    head: dict[str, Any] = field(eq=False)


def scripts_in(folder: str) -> tuple[list[Script], list[str]]:
    """Find the programs of a folder, by name, and what is wrong with others; reads files.

    Raises OSError when the folder cannot be read.
    """
    scripts: list[Script] = []
    problems: list[str] = []
    for path in sorted(Path(folder).iterdir()):
        if path.suffix != SUFFIX or not records.is_nr(path.stem):
            continue
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
                continue
            with path.open("rb") as file:
                head = header(file.read(_HEADER_BYTES))
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
        except BadRequest as error:
            problems.append(f"{path}: {error}")
        else:
            scripts.append(Script(nr=path.stem, path=str(path), changed=status.st_mtime, head=head))
    return scripts, problems


def header(text: bytes) -> dict[str, Any]:
    """Read the comments at the beginning of a file as a record; BadRequest for wrong groups."""
    values = {
        name.decode(): value.decode("utf-8", "replace") for name, value in _HEADER.findall(text)
    }
    settings: dict[str, Any] = {"title": values.get("title", "")}
    if values.get("groups"):
        groups = relaxed(values["groups"])
        pairs = groups.items() if isinstance(groups, dict) else ()
        settings["groups"] = [{name: right} for name, right in pairs] or groups or []
    return records.checked({"user": values.get("user", ""), "tab": {"xdata": settings}}, "")


def relaxed(text: str) -> Any:
    """Read JSON that may have comments and commas at the end of lists; BadRequest."""
    text = _COMMENTS.sub(lambda match: match[1] or "", text)
    text = _COMMAS.sub(lambda match: match[1] or "", text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest("no JSON", str(error)) from None


def dashboard_of(script: Script, output: bytes) -> Dashboard:
    """Take what a program printed; its comments decide whose it is. BadRequest."""
    given = relaxed(output.decode("utf-8", "replace"))
    if not isinstance(given, dict):
        raise BadRequest("no dashboard", "expected a JSON object")
    moment = given.get("ts")
    record = records.checked(given, "")
    head = script.head
    record["user"] = head["user"]
    settings = record["tab"]["xdata"]
    settings["groups"], settings["users"] = head["tab"]["xdata"]["groups"], []
    if head["tab"]["xdata"]["title"]:
        settings["title"] = head["tab"]["xdata"]["title"]
    if not isinstance(moment, (int, float)) or isinstance(moment, bool):
        moment = int(script.changed)
    return Dashboard(
        nr=script.nr,
        record=record,
        changed=moment,
        script=script.path,
    )
