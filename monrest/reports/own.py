"""Templates that operators write: a file in a folder of theirs (docs/guide/reports.md).

A file begins with a head in TOML between two lines ``+++``: ``like``, the built-in template whose
data and parameters it has, and, if wanted, ``title`` and a table ``defaults`` of parameters. The
rest is a Jinja2 text that calls functions, each of which adds a part to the report.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, get_args

from attrs import define, evolve, field

from monrest.base.errors import BadRequest
from monrest.reports.picture import Picture
from monrest.reports.settings import completed
from monrest.reports.sheet import CellKind, Grid, Head, Heading, Note, Sheet, SheetPart, duration
from monrest.reports.templates import TEMPLATE_NAME, TEMPLATES, ReportTemplate, Templates

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_KINDS: tuple[CellKind, ...] = get_args(CellKind)
_NUMBERS = frozenset({"number", "percent", "time", "duration"})
_LONGEST_REPORT = 16 << 20
"""Characters that a template may make; each part and cell counts as some more."""
_CELL = 8
_CALL = '{{ paragraph("…") }}'


@define
class _Parts:
    """The functions of a template; ``parts`` grow while it runs. ValueError for what cannot be."""

    sheet: Sheet
    parts: list[SheetPart] = field(factory=list)
    _heads: list[Head] = field(factory=list)
    _rows: list[tuple[Any, ...]] | None = None
    _left: int = _LONGEST_REPORT

    def functions(self) -> dict[str, Any]:
        return {
            function.__name__: function
            for function in (self.heading, self.paragraph, self.table, self.row, self.part)
        }

    def heading(self, text: object) -> str:
        return self._add(Heading(self._text(text)))

    def paragraph(self, text: object, *, bad: bool = False) -> str:
        return self._add(Note(self._text(text), bad=bool(bad)))

    def table(self, *columns: object, title: object = "") -> str:
        """Begin a table; a column is its title, or a pair of the title and what its cells are."""
        if not columns:
            raise ValueError("expected a column at least")
        heads = []
        for column in columns:
            name, kind = column if isinstance(column, (tuple, list)) else (column, "text")
            if kind not in _KINDS:
                raise ValueError(f"expected a column of {', '.join(_KINDS)}, got {kind!r:.40}")
            heads.append(Head(self._text(name), kind))
        # What is bad is shown as in the tables of the built-in template.
        low = max((grid.low for grid in self.sheet.grids), default=0.0)
        rows: list[tuple[Any, ...]] = []
        self._add(Grid(title=self._text(title), heads=tuple(heads), rows=rows, low=low))
        self._heads, self._rows = heads, rows
        return ""

    def row(self, *cells: object) -> str:
        """Add a row to the table that was begun last; cells that are left out are empty."""
        if self._rows is None:
            raise ValueError("expected table() in front of row()")
        if len(cells) > len(self._heads):
            raise ValueError(f"expected at most {len(self._heads)} cells, got {len(cells)}")
        values = zip_longest(self._heads, cells)
        self._rows.append(tuple(self._cell(head, value) for head, value in values))
        return ""

    def part(self, title: object) -> str:
        """The charts and tables of the built-in template whose title begins with this one."""
        wanted = self.sheet.spelling.say(str(title))
        drawn = [part for part in self.sheet.parts if isinstance(part, (Grid, Picture))]
        return self._add(*(part for part in drawn if part.title.startswith(wanted)))

    def output(self, text: str) -> None:
        """Refuse what a template writes beside its functions."""
        if text.strip():
            raise ValueError(f"expected texts as {_CALL}, got {text.strip()[:80]!r}")

    def _add(self, *parts: SheetPart) -> str:
        self._count(_CELL)
        self.parts += parts
        self._rows = None
        return ""

    def _text(self, value: object) -> str:
        text = "" if value is None else " ".join(str(value).split())
        self._count(len(text))
        return text

    def _count(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise ValueError(f"expected at most {_LONGEST_REPORT} characters")

    def _cell(self, head: Head, value: Any) -> Any:
        self._count(_CELL)
        if head.kind not in _NUMBERS:
            return self._text(value)
        if value in ("", None):
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not isfinite(number):
            raise ValueError(f"expected a number in a column of {head.kind}, got {value!r:.80}")
        return int(number) if number.is_integer() and head.kind != "percent" else number


_LARGEST_FILE = 1 << 20
_MOST_NUMBERS = 100_000
_HEAD = re.compile(r"\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*\r?$\n?(.*)", re.DOTALL | re.MULTILINE)
_KEYS = {"like": str, "title": str, "defaults": dict}


def templates_in(folder: str) -> tuple[Templates, list[str]]:
    """The built-in templates and those of a folder, and what is wrong with others; reads files.

    Raises OSError when the folder cannot be read.
    """
    templates = dict(TEMPLATES)
    problems: list[str] = []
    if not folder:
        return templates, problems
    for path in sorted(path for path in Path(folder).iterdir() if path.suffix == ".tt"):
        try:
            templates[path.name] = _read(path)
        except OSError as error:
            problems.append(f"{path.name}: {error.strerror}")
        except ValueError as error:
            problems.append(f"{path.name}: {error}")
    return templates, problems


def _read(path: Path) -> ReportTemplate:
    if not TEMPLATE_NAME.fullmatch(path.name):
        raise ValueError("expected a name of letters, digits and _ that ends in .tt")
    if path.name in TEMPLATES:
        raise ValueError("there is a built-in template of this name")
    if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"expected a file of at most {_LARGEST_FILE} bytes")
    return read_template(path.name, path.read_text("utf-8"))


def read_template(name: str, text: str) -> ReportTemplate:
    """The template that a file holds; ValueError with what is wrong."""
    from jinja2 import TemplateSyntaxError

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
    template = evolve(
        like,
        name=name,
        title=head.get("title", like.title),
        text=match[2],
        defaults={**like.defaults, **defaults},
    )
    try:
        completed(template, dict.fromkeys(template.needed, "x") | _LINK)
        _environment().from_string(template.text)
    except BadRequest as error:
        raise ValueError(f"defaults: {error.description}") from None
    except TemplateSyntaxError as error:
        line = text[: match.start(2)].count("\n") + error.lineno
        raise ValueError(f"line {line}: {error.message}") from None
    return template


_LINK = {"url": "/mon/r/"}
"""Something for the one template that needs a URL."""


@define
class _Ranges:
    """``range`` that ends: templates have no other loops than those and over what there is."""

    left: int = _MOST_NUMBERS

    def __call__(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self.left -= max(1, len(numbers))
        if self.left < 0:
            raise ValueError(f"expected ranges of at most {_MOST_NUMBERS} numbers together")
        return numbers


def _environment() -> ImmutableSandboxedEnvironment:
    """Everything that a template may use; no files, no names with underscores, no changes."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Texts are escaped by the forms that need it, not here.
    environment = ImmutableSandboxedEnvironment(autoescape=False, undefined=StrictUndefined)
    environment.globals.pop("lipsum", None)
    environment.globals["range"] = _Ranges()
    environment.filters |= dict.fromkeys(("percent", "time", "day"), str)
    environment.filters["duration"] = duration
    return environment


def written(template: ReportTemplate, sheet: Sheet, params: Mapping[str, Any]) -> Sheet:
    """The sheet as an operator's template has it, in a thread; BadRequest says what is wrong.

    What must not be overlooked stays, also where the template leaves it out.
    """
    from jinja2 import TemplateError

    environment, how, parts = _environment(), sheet.spelling, _Parts(sheet)
    environment.globals |= {"say": how.say, **parts.functions()}
    environment.filters |= {"percent": how.percent, "time": how.time, "day": how.day}
    values = {
        **(sheet.data if isinstance(sheet.data, dict) else {}),
        "name": sheet.title,
        "facts": sheet.facts,
        "params": params,
        "title": template.title,
    }
    try:
        for piece in environment.from_string(template.text).generate(values):
            parts.output(piece)
    except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
            MemoryError, RecursionError) as error:  # fmt: skip
        lines = [line for frame, line in walk_tb(error.__traceback__)
                 if frame.f_code.co_filename == "<template>"]  # fmt: skip
        where = f", line {lines[-1]} below its head" if lines else ""
        raise BadRequest(
            f"report template '{template.name}' failed{where}",
            f"{type(error).__name__}: {str(error)[:500]}",
        ) from None
    warnings = [part for part in sheet.parts if isinstance(part, Note) and part.bad]
    return evolve(sheet, parts=(*warnings, *parts.parts))
