"""The ``q`` language: conditions joined by and, or and brackets (docs/spec/query.md, "q").

There is no precedence: connectors are applied strictly from left to right, and equal neighbours
form one group. The parser keeps its own stack, so brackets cannot exhaust Python's.
"""

from __future__ import annotations

import re

from attrs import Factory, define

from monrest.base.errors import BadRequest
from monrest.query.model import OPERATORS, Condition, Connector, FilterTree, Group
from monrest.query.scan import UNPRINTABLE, printable

MOST_TEXT = 65_536
"""Characters of one ``q``."""

MOST_CONDITIONS = 1000
"""Conditions of all filters of a request together."""

MOST_BRACKETS = 20
"""Brackets within brackets."""

MOST_PAIRS = 4 * MOST_CONDITIONS
"""Pairs of brackets side by side."""

MOST_LEVELS = 100
"""Levels of the tree: ``a or b and c or d …`` grows one with every change of the connector."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_CONNECTOR = re.compile(r"&&|\|\||(?:and|or)(?![A-Za-z0-9_^.*-])", re.IGNORECASE)
_CONNECTORS: dict[str, Connector] = {"and": "and", "&&": "and", "or": "or", "||": "or"}
_KEY = re.compile(r"""'[^']+'|"[^"]+"|`[^`]+`|:?[A-Za-z0-9_^.*-]+""")
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[A-Za-z0-9_^~.*-]+(?:,[A-Za-z0-9_^~.*-]+)*""")
_SIGNS = re.compile(r"[=!<>~]+")
_WORD = re.compile(r"[A-Za-z0-9_^~.*-]+")
_ALIAS = re.compile(r"as[ \t\r\n]+[A-Za-z0-9_^~.*-]+[ \t\r\n]*\Z", re.IGNORECASE)
_WORDS = frozenset({"like", "unlike"})

EVERYTHING: Group[Condition] = Group("and", ())
"""The tree of an empty query."""


def parse_q(text: str) -> FilterTree:
    """The tree of a query; an empty query and empty brackets filter nothing.

    Raises BadRequest with the place where reading stopped (characters are counted from 1), and
    beyond 64 KiB, 1000 conditions, 20 nested or 4000 pairs of brackets, or 100 levels. Quoted
    values keep their spaces; control characters are refused in them, and newlines and tabs are
    spaces between tokens.
    """
    if len(text) > MOST_TEXT:
        raise wrong(f"at most {MOST_TEXT} characters are accepted")
    inner, before = text.strip(), len(text) - len(text.lstrip())
    wrapper = inner[:3]
    # Three equal characters around the whole; brackets are never such a wrapper.
    if len(wrapper) == 3 and wrapper == wrapper[0] * 3 and wrapper[0] != "(":
        end = inner.find(wrapper, 3)
        if end > 0:
            inner, before = inner[3:end], before + 3
    return _Parser(inner, before).tree()


def wrong(description: str) -> BadRequest:
    """The error for a ``q`` that cannot be accepted."""
    return BadRequest("error during request", f"q: {description}")


@define
class _Frame:
    """An expression being read: the query itself or what stands in a pair of brackets.

    ``levels`` is the height of the tallest item. ``begun``: something was read, perhaps empty
    brackets; ``pending`` is a connector whose right side is still to come, ``word`` its spelling.
    ``opened`` is where its bracket stands.
    """

    opened: int = 0
    connector: Connector | None = None
    items: list[FilterTree] = Factory(list)
    levels: int = 0
    begun: bool = False
    pending: Connector | None = None
    word: str = ""

    def add(self, item: FilterTree | None, levels: int) -> None:
        """Join ``item`` to what was read so far; None is a pair of empty brackets."""
        connector = self.pending or "and"
        self.begun, self.pending = True, None
        if item is None:
            return
        if self.items:
            if self.connector not in (None, connector):
                self.items, self.levels = [self.tree()], self.levels + 1
            self.connector = connector
        self.items.append(item)
        self.levels = max(self.levels, levels)
        if self.levels > MOST_LEVELS:
            raise wrong(f"at most {MOST_LEVELS} changes between and and or are accepted")

    def tree(self) -> FilterTree:
        """The whole expression as one item."""
        if len(self.items) == 1:
            return self.items[0]
        return Group(self.connector or "and", tuple(self.items))


@define
class _Parser:
    """One pass over the text; ``at`` is where the next token starts.

    ``before`` characters of what the client sent stand in front of the text.
    """

    text: str
    before: int
    at: int = 0
    frames: list[_Frame] = Factory(lambda: [_Frame()])
    conditions: int = 0
    pairs: int = 0

    def tree(self) -> FilterTree:
        text = self.text
        while not self._ended():
            frame = self.frames[-1]
            connector = _CONNECTOR.match(text, self.at)
            if text[self.at] == "(":
                self._open()
            elif text[self.at] == ")":
                self._close()
            elif connector:
                self._connect(frame, connector)
            elif (
                len(self.frames) == 1
                and frame.begun
                and not frame.pending
                and _ALIAS.match(text, self.at)
            ):
                # Only ``as word`` is left, which means nothing here.
                break
            else:
                frame.add(self._condition(), 1)
        if self.frames[-1].pending:
            raise self._wrong(f"unexpected end of query after {self.frames[-1].word}")
        if len(self.frames) > 1:
            self.at = self.frames[-1].opened
            raise self._wrong(f"expected closing bracket for {self._rest()}")
        return self.frames[0].tree() if self.frames[0].items else EVERYTHING

    def _ended(self) -> bool:
        """Skip blanks; whether nothing is left."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks is not None
        self.at = blanks.end()
        return self.at >= len(self.text)

    def _wrong(self, what: str) -> BadRequest:
        return wrong(f"{what} (character {self.before + self.at + 1})")

    def _rest(self) -> str:
        return printable(self.text[self.at :])

    def _open(self) -> None:
        if len(self.frames) > MOST_BRACKETS:
            raise wrong(f"at most {MOST_BRACKETS} brackets may be nested")
        if self.pairs >= MOST_PAIRS:
            raise wrong(f"at most {MOST_PAIRS} pairs of brackets are accepted")
        self.pairs += 1
        self.frames.append(_Frame(self.at))
        self.at += 1

    def _close(self) -> None:
        frame = self.frames[-1]
        if len(self.frames) == 1 or frame.pending:
            raise self._wrong(f"unexpected closing bracket at {self._rest()}")
        self.frames.pop()
        levels = frame.levels + (len(frame.items) > 1)
        self.frames[-1].add(frame.tree() if frame.items else None, levels)
        self.at += 1

    def _connect(self, frame: _Frame, match: re.Match[str]) -> None:
        connector = _CONNECTORS[match[0].lower()]
        if frame.pending:
            raise self._wrong(f"unexpected end of query after {frame.word} at {self._rest()}")
        if not frame.begun:
            raise self._wrong(f"unexpected {connector.upper()} at {self._rest()}")
        frame.pending, frame.word = connector, match[0]
        self.at = match.end()

    def _condition(self) -> Condition:
        if self.conditions >= MOST_CONDITIONS:
            raise wrong(f"at most {MOST_CONDITIONS} conditions are accepted")
        self.conditions += 1
        key = self._token(_KEY)
        if self._ended():
            raise self._wrong(f"unexpected end of query after {printable(key)}")
        match = _SIGNS.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if match is None:
            raise self._wrong(f"parse error at {self._rest()}")
        sign = match[0]
        if sign not in OPERATORS or (sign.isalpha() and sign not in _WORDS):
            raise self._wrong(f"unknown operator {printable(sign)} at {self._rest()}")
        self.at = match.end()
        if self._ended():
            raise self._wrong(f"unexpected end of query after {sign}")
        return Condition(_plain(key), OPERATORS[sign], _plain(self._token(_VALUE)))

    def _token(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self._wrong(f"parse error at {self._rest()}")
        token = match[0]
        if UNPRINTABLE.search(token):
            raise self._wrong(f"control characters are not accepted in {printable(token)}")
        self.at = match.end()
        return token


def _plain(token: str) -> str:
    return token[1:-1] if token[0] in "'\"`" else token
