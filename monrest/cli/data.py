"""The options ``-d`` and ``-D``: parameters of a request (docs/spec/cli.md, "What is fetched")."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from monrest.cli.output import UsageError
from monrest.client.exchange import json_body


def parameters(given: Iterable[tuple[str, str]]) -> dict[str, Any] | list[Any]:
    """Merge all values of ``data`` and ``rawdata``, in the order in which they were given.

    ``key=value`` of ``data`` adds to what is there, everything else replaces it. The result is a
    list only when a JSON list was given alone. Raises UsageError.
    """
    merged: dict[str, Any] = {}
    bulk: list[Any] | None = None
    count = 0
    for option, text in given:
        count += 1
        if not text:
            continue
        document = _document(option, text)
        if isinstance(document, list):
            bulk = document
        elif isinstance(document, dict):
            merged.update(document)
        else:
            name, value = _pair(option, text)
            earlier = merged.get(name)
            if option != "data" or name not in merged:
                merged[name] = value
            else:
                merged[name] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
    if bulk is None:
        return merged
    if count > 1:
        raise UsageError("--data: a JSON list is a request of its own, give nothing beside it")
    return bulk


def _document(option: str, text: str) -> Any:
    """The JSON object or list that ``text`` is or names as ``@file``; None for other texts."""
    source = f"--{option}"
    if text.startswith("@"):
        source, text = f"{source} {text}", _read(option, text[1:])
    elif text[0] not in "{[":
        return None
    try:
        document = json.loads(text)
    except RecursionError:
        raise UsageError(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{source}: expected a JSON object or list: {error}") from None
    if not isinstance(document, (dict, list)):
        raise UsageError(f"{source}: expected a JSON object or list")
    return document


def _read(option: str, path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(path, encoding="utf-8-sig") as file:  # noqa: PTH123  pathlib costs 8 ms
            return file.read()
    except UnicodeDecodeError:
        raise UsageError(f"--{option} @{path}: expected UTF-8") from None
    except OSError as error:
        raise UsageError(f"--{option} @{path}: {error.strerror}") from None


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--{option}: expected KEY=VALUE, a JSON object or @FILE, got {text!r}")
    # The sign in front of a relative time such as +60m is meant.
    sign, rest = ("+", value[1:]) if value.startswith("+") else ("", value)
    try:
        return name, sign + unquote_to_bytes(rest.replace("+", " ")).decode("utf-8")
    except UnicodeError:
        raise UsageError(f"--{option}: {name}: expected percent-encoded UTF-8") from None


def body(data: Any) -> bytes:
    """``data`` as a JSON body. Raises UsageError for text that is no UTF-8."""
    try:
        return json_body(data) or b""
    except UnicodeEncodeError:
        raise UsageError("--data: expected UTF-8") from None
