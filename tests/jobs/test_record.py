"""Who sees which job, and how jobs are numbered."""

from __future__ import annotations

import pytest
from attrs import evolve

from monrest.base.values import Identity
from monrest.jobs.model import Job, id_of, visible
from tests.fakes.jobs import ANN, BOB, ROOT

JOB = Job(
    id=1, user="ann", roles=("authorized_for_all_hosts",), run=1, host_id=1, host_name="h", pid=1,
    cmd="GET /", created=0.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("job", "identity", "seen"),
    [
        (JOB, ANN, False),
        (evolve(JOB, roles=()), ANN, True),
        (JOB, Identity(user="ann", roles=frozenset(JOB.roles)), True),
        (JOB, BOB, False),
        (JOB, ROOT, True),
        (JOB, Identity(user="", superuser=True), True),
        (JOB, Identity(user=""), False),
        (evolve(JOB, user=""), Identity(user=""), False),
        (evolve(JOB, user=None), BOB, True),
        (JOB, Identity(user="ann", limit=frozenset()), False),
        (evolve(JOB, roles=()), Identity(user="ann", limit=frozenset()), True),
        (
            JOB,
            Identity(user="ann", limit=frozenset(JOB.roles), roles=frozenset(JOB.roles)),
            True,
        ),
    ],
)
def test_visible(job, identity, seen):
    assert visible(job, identity) is seen


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None), ("0", None),
     ("01", None), ("-1", None), ("1\n", None), ("٣", None), ("", None), ("1 ", None)],
)  # fmt: skip
def test_ids(text, number):
    assert id_of(text) == number
