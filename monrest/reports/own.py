"""Templates that operators write: a file in a folder of theirs (docs/spec/reports.md, "Templates").

A file begins with a head in TOML between two lines ``+++``: ``like``, the built-in template whose
data and parameters it has, and, if wanted, ``title`` and a table ``defaults`` of parameters. What
follows is a Jinja2 text that makes a few elements of HTML (``monrest.reports.markup``), which
become pages, PDFs, workbooks and CSV as those of the built-in templates do.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any

from attrs import define, evolve
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from monrest.base.errors import BadRequest
from monrest.reports.markup import parts_of_markup
from monrest.reports.settings import completed
from monrest.reports.sheet import Note, Sheet, duration
from monrest.reports.templates import TEMPLATE_NAME, TEMPLATES, ReportTemplate, Templates

_LARGEST_FILE = 1 << 20
_LONGEST = 16 << 20
"""Characters that a template may make."""
_MOST_TURNS = 100_000
_HEAD = re.compile(r"\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*\r?$\n?(.*)", re.DOTALL | re.MULTILINE)
_KEYS = {"like": str, "title": str, "defaults": dict}


def templates_in(folder: str) -> tuple[Templates, list[str]]:
    """The built-in templates and those of a folder, and what is wrong with others; reads files.

    Raises OSError when the folder cannot be read.
    """
    found = dict(TEMPLATES)
    problems: list[str] = []
    if not folder:
        return found, problems
    for path in sorted(path for path in Path(folder).iterdir() if path.suffix == ".tt"):
        try:
            found[path.name] = _read(path)
        except OSError as error:
            problems.append(f"{path.name}: {error.strerror}")
        except ValueError as error:
            problems.append(f"{path.name}: {error}")
    return found, problems


def _read(path: Path) -> ReportTemplate:
    """One template; OSError, or ValueError with what is wrong."""
    if not TEMPLATE_NAME.fullmatch(path.name):
        raise ValueError("expected a name of letters, digits and _ that ends in .tt")
    if path.name in TEMPLATES:
        raise ValueError("there is a built-in template of this name")
    if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"expected a file of at most {_LARGEST_FILE} bytes")
    return read_template(path.name, path.read_text("utf-8"))


def read_template(name: str, text: str) -> ReportTemplate:
    """The template that a file holds; ValueError with what is wrong."""
    match = _HEAD.fullmatch(text)
    if match is None:
        raise ValueError("expected a head in TOML between two lines +++")
    head = tomllib.loads(match[1])
    unknown = sorted(head.keys() - _KEYS.keys())
    if unknown:
        raise ValueError(f"{unknown[0]}: expected one of {', '.join(sorted(_KEYS))}")
    like = TEMPLATES.get(str(head.get("like", "")))
    if like is None:
        raise ValueError(f"like: expected one of {', '.join(sorted(TEMPLATES))}")
    defaults = head.get("defaults", {})
    wrong = [key for key, kind in _KEYS.items() if not isinstance(head.get(key, kind()), kind)]
    if wrong:
        raise ValueError(f"{wrong[0]}: expected a {'table' if wrong[0] == 'defaults' else 'text'}")
    try:
        json.dumps(defaults, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("defaults: expected texts, numbers, lists and tables of them") from None
    made = evolve(
        like,
        name=name,
        title=head.get("title", like.title),
        text=match[2],
        defaults={**like.defaults, **defaults},
    )
    try:
        completed(made, dict.fromkeys(made.needed, "x") | _LINK)
        _environment(None).from_string(made.text)
    except BadRequest as error:
        raise ValueError(f"defaults: {error.description}") from None
    except TemplateSyntaxError as error:
        raise ValueError(f"line {_line(match, error)}: {error.message}") from None
    return made


_LINK = {"url": "/mon/r/"}
"""Something for the one template that needs a URL."""


def _line(match: re.Match[str], error: TemplateSyntaxError) -> int:
    return match.string[: match.start(2)].count("\n") + error.lineno


@define
class _Ranges:
    """``range`` that ends: templates have no other loops than those and over what there is."""

    left: int = _MOST_TURNS

    def __call__(self, *bounds: int) -> range:
        made = range(*bounds)
        self.left -= max(1, len(made))
        if self.left < 0:
            raise ValueError(f"expected ranges of at most {_MOST_TURNS} numbers together")
        return made


def _environment(sheet: Sheet | None) -> ImmutableSandboxedEnvironment:
    """Everything that a template may use; no files, no names with underscores, no changes."""
    environment = ImmutableSandboxedEnvironment(autoescape=True, undefined=StrictUndefined)
    environment.globals.pop("lipsum", None)
    environment.globals["range"] = _Ranges()
    if sheet is not None:
        how = sheet.spelling
        environment.globals["say"] = how.say
        environment.filters |= {"percent": how.percent, "time": how.time, "day": how.day}
    else:
        environment.filters |= dict.fromkeys(("percent", "time", "day"), str)
    environment.filters["duration"] = duration
    return environment


def written(template: ReportTemplate, sheet: Sheet, params: Mapping[str, Any]) -> Sheet:
    """The sheet as an operator's template has it, in a thread; BadRequest says what is wrong.

    What must not be overlooked stays, whatever the template says.
    """
    data = sheet.data if isinstance(sheet.data, dict) else {}
    values = {
        **data,
        "name": sheet.title,
        "facts": sheet.facts,
        "params": params,
        "title": template.title,
    }
    try:
        text = _rendered(_environment(sheet), template.text, values)
        parts = parts_of_markup(text, sheet)
    except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
            MemoryError, RecursionError) as error:  # fmt: skip
        raise BadRequest(
            f"report template '{template.name}' failed{_where(error)}",
            f"{type(error).__name__}: {str(error)[:500]}",
        ) from None
    warnings = [one for one in sheet.parts if isinstance(one, Note) and one.bad]
    return evolve(sheet, parts=(*warnings, *parts))


def _where(error: BaseException) -> str:
    """In which line of a template something went wrong, as far as that is known."""
    lines = [line for frame, line in walk_tb(error.__traceback__)
             if frame.f_code.co_filename == "<template>"]  # fmt: skip
    return f", line {lines[-1]} below its head" if lines else ""


def _rendered(environment: ImmutableSandboxedEnvironment, text: str, values: Any) -> str:
    pieces: list[str] = []
    size = 0
    for piece in environment.from_string(text).generate(values):
        size += len(piece)
        if size > _LONGEST:
            raise ValueError(f"expected at most {_LONGEST} characters")
        pieces.append(piece)
    return "".join(pieces)
