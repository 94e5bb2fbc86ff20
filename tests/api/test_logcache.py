"""What the statistics of the log cache say of its state, with the cache itself replaced."""

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.logs.model import CachedSite
from tests.api.asking import answer, records
from tests.api.cores import FakeSite
from tests.fakes.context import make_context

NOW = 1_700_000_000
KNOWN = CachedSite(
    id=1, site="a", covered_from=NOW - 900, covered_until=NOW - 5, wanted_from=NOW - 900,
    compacted_until=0, firsts_until=None, items=7, data_size=700, index_size=70, last_update=NOW - 9,
    update_duration=0.5, last_compact=None, compact_duration=0.0, mode="", mode_since=NOW - 9,
    owner="", owned_until=0.0, last_entry=NOW - 5,
)  # fmt: skip


def known(**values):
    return evolve(KNOWN, **values)


class Cache:
    enabled = True

    def __init__(self, **records):
        self.records = records

    async def record(self, site):
        return self.records.get(site.id)

    def busy(self, known):
        return bool(known.owner) and not known.owner.startswith("dead:")


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (None, "logcache not yet created"),
        (known(covered_from=None, covered_until=None), "logcache not yet created"),
        (KNOWN, "OK"),
        (known(wanted_from=NOW - 1795), "importing, 50% done"),
        (
            known(owner="4711:17", owned_until=NOW + 20.0, mode="update"),
            "running update since 2023-11-14 22:13:11 (pid: 17)",
        ),
        # Whoever died holds it no more.
        (known(owner="dead:17", owned_until=NOW + 20.0, mode="update"), "OK"),
    ],
)
def test_states_of_a_cache(record, status):
    context = make_context(Clock(), FakeSite("a"), FakeSite("b"), logcache=Cache(a=record))
    found = records(answer(context, "/mon/logcache/stats", ("columns", "key,status")))
    assert found == [
        {"key": "a", "status": status},
        {"key": "b", "status": "logcache not yet created"},
    ]
