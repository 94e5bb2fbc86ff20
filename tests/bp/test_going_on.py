"""A calculation that goes on from the one before finds what one that begins anew finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.calculation import CalculationOptions, ProcessCalculation, plan
from monrest.bp.core_rows import SERVICE_COLUMNS, CoreQuestion, CoreRows
from monrest.bp.model import read
from monrest.bp.node_state import NOTHING

NAMES = "abcd"
PROCESS = read(
    {
        "name": "P",
        "nodes": [
            {"label": "root", "function": "worst()", "depends": ["W", "B", "N", "Q"]},
            {"id": "W", "label": "worst", "function": "worst()", "depends": [*NAMES]},
            {"id": "B", "label": "best", "function": "best()", "depends": ["a", "b1", "W"]},
            {"id": "N", "label": "two", "function": "at_least(2, 1)", "depends": ["a", "b1", "c"]},
            {"id": "Q", "label": "no", "function": "equals(0)", "filter": ["downtime_filter"]},
            {"id": "b1", "label": "b1", "function": "status('h', 'b')"},
            *({"id": one, "label": one, "function": f"status('h', '{one}')"} for one in NAMES),
        ],
    }
)
PLACE = {name: at for at, (name, _) in enumerate(SERVICE_COLUMNS)}
CHANGES = {
    "state": st.sampled_from([0, 1, 2, 3, "2", None, 9]),
    "acknowledged": st.sampled_from([0, 1]),
    "scheduled_downtime_depth": st.sampled_from([0, 2]),
    "last_check": st.integers(1, 9),
    "plugin_output": st.sampled_from(["", "fine", "fine|a=1", "bad", 5]),
    "host_custom_variables": st.sampled_from([{}, {"MON_BP_ID": "3"}]),
}
"""What the core says of one service, wrong types too."""
ROW = st.tuples(
    st.sampled_from(["s1", "s2"]), st.sampled_from(NAMES), st.fixed_dictionaries(CHANGES)
)
ANSWERS = st.lists(st.lists(ROW, max_size=5, unique_by=lambda one: one[:2]), min_size=1, max_size=5)


def made(description, values):
    row = [{"string": "", "dict": {}}.get(kind, 0) for _, kind in SERVICE_COLUMNS]
    for name, value in {"host_name": "h", "description": description, **values}.items():
        row[PLACE[name]] = value
    return row


class Run:
    """Calculations of one process, one after the other."""

    def __init__(self, *, remembers):
        self.remembers = remembers
        self.plan, self.result = plan(PROCESS, ()), NOTHING

    def calculate(self, answer, now):
        live = CoreRows()
        for site in ("s2", "s1"):
            rows = [made(name, values) for at, name, values in answer if at == site]
            question = CoreQuestion("services", SERVICE_COLUMNS, None)
            live.take(question, site, rows, frozenset())
        if not self.remembers:
            self.plan = plan(PROCESS, ())
        calculation = ProcessCalculation(
            number="1",
            plan=self.plan,
            before=self.result,
            live=live,
            options=CalculationOptions(variable="MON_BP_ID", choose=int),
            now=now,
            known={},
        )
        self.result = calculation.run()
        return self.result


@given(ANSWERS)
def test_it_finds_the_same(answers):
    going, anew = Run(remembers=True), Run(remembers=False)
    for at, answer in enumerate(answers):
        for _ in range(2):
            found, wanted = going.calculate(answer, 100 + at), anew.calculate(answer, 100 + at)
            assert found == wanted
