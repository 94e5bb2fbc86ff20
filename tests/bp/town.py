"""A town whose cores say what a test wants, and calculations over it."""

from __future__ import annotations

import pytest

from monrest.bp.calculation import CalculationOptions, ProcessCalculation, add_needs
from monrest.bp.core_rows import CoreRows, Needs
from monrest.bp.custom import EMPTY
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
        self.before, self.extensions = NOTHING, EMPTY
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
        made = read({"name": "P", "nodes": nodes, **definition})
        needs = Needs()
        add_needs(needs, made, default_filter)
        rows = {"hosts": self.hosts, "services": self.services, "hostgroups": self.hostgroups}
        calculation = ProcessCalculation(
            number="7",
            definition=made,
            before=self.before,
            live=live(needs, rows),
            options=CalculationOptions(
                variable="MON_BP_ID",
                choose=lambda: 2,
                default_filter=default_filter,
                extensions=self.extensions,
            ),
            now=self.now,
            known=known or {},
        )
        self.before = calculation.run()
        assert restored(stored(self.before)) == self.before
        return self.before


def live(needs, rows):
    """What is kept of ``rows`` by table, which are pairs of a site and values by column."""
    found = CoreRows(needs.questions())
    for question in found.questions:
        for site in ("s2", "s1"):  # the first site is taken last
            theirs = [
                row(question.layout, **values)
                for at, values in rows.get(question.table, ())
                if at == site
            ]
            found.take(question, site, theirs)
    return found


@pytest.fixture
def town():
    return Town()


def leaf(function, **more):
    return [{"label": "root", "function": function, **more}]
