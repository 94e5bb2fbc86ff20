"""Figures: all sources are asked, and what becomes of failures."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from monrest.base.errors import Unavailable
from monrest.base.metrics import Metrics
from tests.fakes.keystore import result


def test_all_sources_are_asked_each_time():
    figures, values, problems = Metrics(), {"users_total": 1}, []

    async def users():
        if problems:
            raise problems[0]
        return dict(values)

    async def processes():
        return {"business_process_total": 3}

    def now():
        return result(Deferred.fromCoroutine(figures.current()))

    assert now() == {}
    figures.offer(users)
    figures.offer(processes)
    assert now() == {"business_process_total": 3, "users_total": 1}
    values["users_total"] = 2
    assert now() == {"business_process_total": 3, "users_total": 2}
    problems.append(Unavailable("cannot read", "gone"))
    with pytest.raises(Unavailable):
        now()
    problems.clear()
    assert now()["users_total"] == 2
