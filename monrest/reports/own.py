"""Templates that operators write: a file in a folder of theirs (docs/spec/reports.md, "Templates").

A file begins with a head in TOML between two lines ``+++``: ``like``, the built-in template whose
data and parameters it has, and, if wanted, ``title`` and a table ``defaults`` of parameters. What
follows is a Jinja2 text that makes a few elements of HTML ("markup" below), which
become pages, PDFs, workbooks and CSV as those of the built-in templates do.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from html.parser import HTMLParser
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

# The few elements of HTML that operators' templates make, as the parts of a sheet.
#
# ``h2`` (or ``h1``, ``h3``): a title. ``p``: a sentence, of class ``bad`` one that must not be
# overlooked. ``table`` with ``tr``, ``th`` and ``td``: a table, whose title is the ``caption`` or
# the last title before it; the class of a ``th`` says what the column holds (text, number, percent,
# time, duration, state), so that cells hold plain numbers and look right in all forms. ``part``:
# what the built-in template has under the ``title``, such as a chart. Everything else is refused,
# so that a mistake is seen.

_KINDS: frozenset[str] = frozenset(get_args(CellKind))
_TITLES = frozenset({"h1", "h2", "h3"})
_TEXTS = _TITLES | {"p", "caption", "th", "td"}
_AROUND = frozenset({"table", "thead", "tbody", "tr", "b", "br", "div"})
_KNOWN = ", ".join(sorted(_TEXTS | _AROUND | {"part"}))
_NUMBERS: frozenset[str] = frozenset({"number", "percent", "time", "duration"})


def parts_of_markup(text: str, sheet: Sheet) -> list[SheetPart]:
    """The parts in their order; ValueError says what cannot be there."""
    reader = _Reader(sheet)
    reader.feed(text)
    reader.close()
    reader.flush()
    if reader.table is not None:
        raise ValueError("expected </table> at the end")
    return reader.parts


@define
class _Table:
    title: str
    heads: list[Head] = field(factory=list)
    rows: list[list[str]] = field(factory=list)

    def grid(self, low: float) -> Grid:
        wide = max([len(self.heads), *map(len, self.rows)], default=0)
        heads = [*self.heads, *(Head("") for _ in range(wide - len(self.heads)))]
        rows = [
            tuple(
                _value(head.kind, row[at] if at < len(row) else "") for at, head in enumerate(heads)
            )
            for row in self.rows
            if row
        ]
        return Grid(title=self.title, heads=tuple(heads), rows=rows, low=low)


def _value(kind: CellKind, text: str) -> Any:
    """What a cell holds: numbers where the column has numbers; nothing for None."""
    if kind not in _NUMBERS:
        return text
    if text in ("", "None"):
        return None
    try:
        value = float(text)
        return int(value) if value.is_integer() and kind != "percent" else value
    except (ValueError, OverflowError):
        raise ValueError(f"expected a number in a column of {kind}, got {text[:80]!r}") from None


class _Reader(HTMLParser):
    """``parts`` grow while it is fed."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(convert_charrefs=True)
        self.sheet = sheet
        self.parts: list[SheetPart] = []
        # Below which percentage the tables of the built-in template show what is bad.
        self.low = max((one.low for one in sheet.parts if isinstance(one, Grid)), default=0.0)
        self._inside = ""
        self._kind = ""
        self._text = ""
        self._title = ""
        self.table: _Table | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        given = dict(attrs)
        if tag == "part":
            self.flush()
            self._built_in(given.get("title") or "")
        elif tag == "br":
            self._text += " "
        elif tag == "table":
            self.flush()
            last = self.parts[-1] if self.parts else None
            if isinstance(last, Heading):
                self.parts.pop()
            self.table = _Table(last.text if isinstance(last, Heading) else "")
        elif tag == "tr":
            if self.table is None:
                raise ValueError("expected <tr> inside of a table")
            self._end()
            self.table.rows.append([])
        elif tag in _TEXTS:
            self._begin(tag, (given.get("class") or "").strip())
        elif tag not in _AROUND:
            raise ValueError(f"expected one of {_KNOWN}, got <{tag[:40]}>")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._end()
        elif tag == "table" and self.table is not None:
            self._end()
            table, self.table = self.table, None
            if table.heads or any(table.rows):
                self.parts.append(table.grid(self.low))

    def handle_data(self, data: str) -> None:
        """Take a text, which has to be in an element."""
        if self._inside:
            self._text += data
        elif data.strip():
            raise ValueError(f"expected texts inside of elements, got {data.strip()[:80]!r}")

    def flush(self) -> None:
        """End what is open; a title without anything below it is a heading."""
        self._end()
        if self._title:
            self.parts.append(Heading(self._title))
            self._title = ""

    def _begin(self, tag: str, kind: str) -> None:
        self._end()
        if tag in ("th", "td", "caption") and self.table is None:
            raise ValueError(f"expected <{tag}> inside of a table")
        if tag in _TITLES or tag == "p":
            if self.table is not None:
                raise ValueError(f"expected </table> in front of <{tag}>")
            self.flush()
        if tag == "th" and kind and kind not in _KINDS:
            raise ValueError(f"expected a class of {', '.join(sorted(_KINDS))}, got {kind[:40]!r}")
        self._inside, self._kind, self._text = tag, kind, ""

    def _end(self) -> None:
        tag, text = self._inside, " ".join(self._text.split())
        self._inside = self._text = ""
        if tag in _TITLES:
            self._title = text
        elif tag == "p" and text:
            self.parts.append(Note(text, bad=self._kind == "bad"))
        elif self.table is None:
            return
        elif tag == "caption":
            self.table.title = text
        elif tag == "th" and not self.table.rows[1:]:
            kind: Any = self._kind or "text"
            self.table.heads.append(Head(text, kind))
        elif tag in ("td", "th"):
            self.table.rows[-1].append(text)

    def _built_in(self, title: str) -> None:
        """What the built-in template says under a title, in the language of the report."""
        wanted = self.sheet.spelling.say(title)
        if not title:
            raise ValueError("expected <part title=...>")
        self.parts += [
            one
            for one in self.sheet.parts
            if isinstance(one, (Grid, Picture)) and one.title.startswith(wanted)
        ]


_LARGEST_FILE = 1 << 20
_LONGEST_PAGE = 16 << 20
"""Characters that a template may make."""
_MOST_NUMBERS = 100_000
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
        line = text[: match.start(2)].count("\n") + error.lineno
        raise ValueError(f"line {line}: {error.message}") from None
    return made


_LINK = {"url": "/mon/r/"}
"""Something for the one template that needs a URL."""


@define
class _Ranges:
    """``range`` that ends: templates have no other loops than those and over what there is."""

    left: int = _MOST_NUMBERS

    def __call__(self, *bounds: int) -> range:
        made = range(*bounds)
        self.left -= max(1, len(made))
        if self.left < 0:
            raise ValueError(f"expected ranges of at most {_MOST_NUMBERS} numbers together")
        return made


def _environment(sheet: Sheet | None) -> ImmutableSandboxedEnvironment:
    """Everything that a template may use; no files, no names with underscores, no changes."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

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

    What must not be overlooked stays, also where the template leaves it out.
    """
    from jinja2 import TemplateError

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
        if size > _LONGEST_PAGE:
            raise ValueError(f"expected at most {_LONGEST_PAGE} characters")
        pieces.append(piece)
    return "".join(pieces)
