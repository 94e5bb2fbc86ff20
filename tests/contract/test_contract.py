"""What a user sees is what the golden files have: answers, the description of the API, help.

A change that is meant to be seen makes them again with ``make contract``, in a commit of its own. The
reference pages, ``docs/api``, are golden files too; tests/api/test_declarations.py compares them.
"""

from difflib import SequenceMatcher
from itertools import zip_longest

import pytest

from .recorded import answers, description, frozen_demo, help_texts, kept

AROUND = 60
"""Characters that are shown on both sides of the first difference in a line."""


def test_a_demo_answers_as_it_did():
    with frozen_demo() as client:
        found = differences("answers.txt", answers(client))
        found += differences("openapi.txt", description(client))
    if found:
        pytest.fail(
            "\n\n".join([f"{len(found)} differ (make contract, if meant)", *found]), pytrace=False
        )


def test_help_is_as_it_was():
    found = differences("help.txt", help_texts())
    if found:
        pytest.fail(
            "\n\n".join([f"{len(found)} differ (make contract, if meant)", *found]), pytrace=False
        )


def differences(name, blocks):
    """Each block of a golden file that is another one now, missing or new, with its lines."""
    before, now = kept(name), list(blocks)
    titles = [title for title, _ in before], [title for title, _ in now]
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, *titles, autojunk=False).get_opcodes():
        if kind != "equal":
            found += [f"{name}: gone: {title}" for title in titles[0][a:b]]
            found += [f"{name}: new: {title}" for title in titles[1][c:d]]
            continue
        for (title, old), (_, new) in zip(before[a:b], now[c:d], strict=True):
            if old != new:
                found.append(f"{name}: {title}\n" + "\n".join(changed(old, new)))
    return found


def changed(old, new):
    """The lines of two texts that differ, cut to where they do."""
    old, new = old.split("\n"), new.split("\n")
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            for was, line in zip_longest(old[a:b], new[c:d]):
                pairs = enumerate(zip_longest(was or "", line or ""))
                at = max(next(place for place, (x, y) in pairs if x != y) - AROUND, 0)
                for sign, text in (("-", was), ("+", line)):
                    if text is not None:
                        yield f"  {sign} {'…' if at else ''}{text[at : at + 2 * AROUND]}"
