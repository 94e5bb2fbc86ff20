"""Texts that functions make of many rows are bounded, and so is the time for it."""

from __future__ import annotations

import pytest

from monrest.base.errors import BadRequest, ClientLeftError
from monrest.query import limit as module
from monrest.query.limit import Limit
from tests.query.pipeline import host, run

NESTED = "{}'x'{}".format("concat(" * 19, ",".join(["", *["lower(alias))"] * 19]))


@pytest.mark.parametrize(
    "params",
    [
        "columns→concat(concat(alias,alias),alias) as a",
        f"columns→{NESTED} as a",
        "columns→" + ",".join(f"upper(alias) as a{at}" for at in range(400)),
        "columns→concat(alias,'x') as a&sort→-a",
        "columns→concat(alias,name) as a,count(*) as n",
        "columns→max(fmt('%s%s', alias, alias)) as a",
    ],
)
def test_texts_made_of_many_rows_are_bounded_in_all(
    monkeypatch: pytest.MonkeyPatch, params: str
) -> None:
    rows = {"s1": [host(f"h{at}", 0, [], [], alias="ALIAS" * 20) for at in range(60)]}
    assert run(params, rows)
    monkeypatch.setattr(module, "MOST_MADE", 5_000)
    with pytest.raises(BadRequest, match="functions make at most 5000 characters in one answer"):
        run(params, rows)
    assert run("columns→concat(alias,name) as a", {"s1": rows["s1"][:20]})


def test_the_processor_time_of_one_answer_is_bounded_in_all_its_parts() -> None:
    limit = Limit()
    for _ in range(3):
        with limit:
            limit.check()
    assert limit.seconds < module.SECONDS
    limit.seconds = 0.0
    with limit, pytest.raises(BadRequest, match="2 seconds of processor time"):
        limit.check()


def test_work_ends_when_the_client_has_left() -> None:
    with Limit(left=lambda: True) as limit, pytest.raises(ClientLeftError):
        limit.check()
