"""The files that the editor offers to a user (docs/spec/objectconfig.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import re2

from monrest.api.endpoint import LIST_PARAMETERS, Context, Endpoint
from monrest.api.lists import local_schema, select
from monrest.base.errors import Unavailable
from monrest.base.values import ADMIN, Answer, Column, RestRequest
from monrest.config import EditorConfig, EditorFiles

SECTIONS = (
    Column("files", "array_of_strings", "", "objects with folder, filter and what else is set"),
    Column("groups", "array_of_strings", "", "contact groups that may edit; empty: all users"),
    Column("name", "string", "", "name of the section"),
)
_SECTIONS = local_schema("editor", SECTIONS, ())
FILES = (
    Column("action", "array_of_strings", "", "names of action menus"),
    Column("file", "string", "", "path of the file"),
    Column("has_save_prompt", "boolean", "", "1: saving asks for a summary, for its commands"),
    Column("path", "string", "", "the configured folder it was found in"),
    Column("section", "string", "", "name of the section"),
    Column("syntax", "string", "", "language of the file; null when unknown"),
)
_FILES = local_schema("editor_files", FILES, ())
_TEXTS = ("syntax", "action", "pre_save_cmd", "post_save_cmd")
_MOST_FILES = 10_000


@Endpoint(
    path="/mon/editor",
    description="sections of files that the user may edit",
    text="A section is for its contact groups; administrators see all of them.",
    parameters=LIST_PARAMETERS,
    columns=SECTIONS,
)
async def editor(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    records = [
        {
            "name": section.name,
            "groups": list(section.groups),
            "files": [_as_configured(files) for files in section.files],
        }
        for section in await _sections(context, request)
    ]
    return await select(context, request, _SECTIONS, records)


def _of_files(path: str) -> Endpoint:
    return Endpoint(
        path=path,
        description="files of these sections",
        text=f"Of each folder the first {_MOST_FILES:,} files are looked at.",
        parameters=LIST_PARAMETERS,
        columns=FILES,
    )


@_of_files("/mon/editor/files")
@_of_files("/mon/editor/file")
async def editor_files(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    sections = await _sections(context, request)
    records = await context.threads.run(lambda: _found(sections))
    return await select(context, request, _FILES, records)


async def _sections(context: Context, request: RestRequest) -> list[EditorConfig]:
    sections = context.config.editor
    if not sections:
        return []
    if request.identity.may(ADMIN):
        return list(sections)
    groups = (await context.contacts.of(request.identity.user)).groups
    return [
        section
        for section in sections
        if not section.groups or not groups.isdisjoint(section.groups)
    ]


def _as_configured(files: EditorFiles) -> dict[str, Any]:
    record: dict[str, Any] = {
        "folder": [_plain(folder) for folder in files.folder],
        "filter": list(files.filter),
    }
    record |= {name: text for name in _TEXTS if (text := getattr(files, name))}
    if files.show_summary_prompt is not None:
        record["show_summary_prompt"] = int(files.show_summary_prompt)
    return record


def _plain(folder: str) -> str:
    return folder.rstrip("/") or "/"


def _found(sections: Iterable[EditorConfig]) -> list[dict[str, Any]]:
    """One record for each file of each section; the last block that has it counts.

    Raises Unavailable for a folder that cannot be read.
    """
    try:
        return list(_records(sections))
    except OSError as error:
        raise Unavailable(
            "cannot read the files", f"{error.filename or ''}: {error.strerror}".lstrip(": ")
        ) from None


def _records(sections: Iterable[EditorConfig]) -> Iterator[dict[str, Any]]:
    for section in sections:
        records: dict[str, dict[str, Any]] = {}
        for files in section.files:
            hooks = bool(files.pre_save_cmd or files.post_save_cmd)
            patterns = [re2.compile(pattern) for pattern in files.filter]
            for folder in map(_plain, files.folder):
                for path in islice(_below(folder), _MOST_FILES):
                    if patterns and not any(pattern.search(path) for pattern in patterns):
                        continue
                    records[path] = {
                        "file": path,
                        "path": folder,
                        "section": section.name,
                        "syntax": files.syntax or None,
                        "action": [files.action] if files.action else [],
                        "has_save_prompt": int(hooks and files.show_summary_prompt is not False),
                    }
        yield from (records[path] for path in sorted(records))


def _below(folder: str) -> Iterator[str]:
    """Files below a folder, symbolic links followed but no folder entered twice; or the file."""
    if Path(folder).is_file():
        yield folder
        return
    entered: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, onerror=_unreadable, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        for name in names:
            path = os.fsencode(f"{place.rstrip('/')}/{name}").decode("utf-8", "replace")
            if os.path.isfile(f"{place}/{name}"):  # noqa: PTH113 - what a link must not see is none
                yield path


def _unreadable(error: OSError) -> None:
    """An unreadable folder is no empty one; one that is not there is."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error
