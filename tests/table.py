"""A table of cases as one test, which reports every case that fails."""

from __future__ import annotations

import functools
import inspect

import pytest


def each(names, cases, ids=None):
    """Like ``pytest.mark.parametrize``, but for the fixtures, which all cases share."""
    names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_row(case, len(names)) for case in cases]
    assert rows, "a table without cases asserts nothing"
    if ids is not None and not callable(ids):
        ids = iter(list(ids))
        labels = [next(ids) for _ in rows]
    else:
        labels = [" ".join(str(ids(one)) if ids else repr(one) for one in row) for row in rows]

    def whole(test):
        signature = inspect.signature(test)
        rest = [one for one in signature.parameters.values() if one.name not in names]

        @functools.wraps(test)
        def run(**fixtures):
            wrong = []
            for label, row in zip(labels, rows, strict=True):
                try:
                    given = test(**fixtures, **dict(zip(names, row, strict=True)))
                    assert given is None, "what a case gives is not waited for"
                # A case that is skipped would take those with it that come after it.
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    error.add_note(f"in the case {label}")
                    wrong.append(error)
            if wrong:
                raise BaseExceptionGroup(f"{len(wrong)} of {len(rows)} cases", wrong)

        assert not inspect.iscoroutinefunction(test), "cases of coroutines are not run"
        run.__signature__ = signature.replace(parameters=rest)
        return run

    return whole


def _row(case, width):
    if isinstance(case, type(pytest.param())):
        assert not case.marks
        case = case.values
    elif width == 1:
        case = (case,)
    row = tuple(case)
    assert len(row) == width, row
    return row
