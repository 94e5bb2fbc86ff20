"""A town whose cores say what a test wants, and calculations over it."""

from __future__ import annotations

import pytest

from monrest.bp.calculation import CalculationOptions, ProcessCalculation, plan
from monrest.bp.core_rows import CoreRows, Needs
from monrest.bp.model import read
from monrest.bp.node_state import NOTHING, restored, stored

NOW = 1_700_000_000


def row(layout, **values):
    empty = {"string": "", "int": 0, "float": 0.0, "list": [], "dict": {}, "time": 0}
    known = {"has_been_checked": 1, "state_type": 1, "last_check": 5, "last_state_change": 4}
    return [values.get(name, known.get(name, empty[kind])) for name, kind in layout]


class Town:
    """What the cores say; ``more`` columns are added to the layouts as a definition needs them."""

    def __init__(self):
        self.hosts, self.services, self.hostgroups = [], [], []
        self.before = NOTHING
        self.now = NOW

    def host(self, name, state=0, *, site="s1", **values):
        self.hosts.append((site, {"name": name, "state": state, **values}))
        return self

    def service(self, host, description, state=0, *, site="s1", **values):
        given = {"host_name": host, "description": description, "state": state}
        output = f"{description} says"
        self.services.append((site, {**given, "plugin_output": output, **values}))
        return self

    def group(self, name, **values):
        self.hostgroups.append(("s1", {"name": name, **values}))
        return self

    def calculate(self, nodes, *, known=None, default_filter=(), **definition):
        made = plan(read({"name": "P", "nodes": nodes, **definition}), default_filter)
        self.options = CalculationOptions(
            variable="MON_BP_ID",
            choose=lambda: 2,
            default_filter=default_filter,
            extensions=getattr(
                self, "extensions", CalculationOptions(variable="", choose=int).extensions
            ),
        )
        needs = Needs()
        needs.add(made.needs)
        live = CoreRows(needs.questions())
        rows = {"hosts": self.hosts, "services": self.services, "hostgroups": self.hostgroups}
        for question in live.questions:
            for site in ("s2", "s1"):  # the first site is taken last
                found = [
                    row(question.layout, **one)
                    for at, one in rows.get(question.table, ())
                    if at == site
                ]
                live.take(question, site, found, frozenset(needs.matched_hosts))
        calculation = ProcessCalculation(
            number="7",
            plan=made,
            before=self.before,
            live=live,
            options=self.options,
            now=self.now,
            known=known or {},
        )
        self.before = calculation.run()
        assert restored(stored(self.before)) == self.before
        return self.before


@pytest.fixture
def town():
    return Town()


def leaf(function, **more):
    return [{"label": "root", "function": function, **more}]
