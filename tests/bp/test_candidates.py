"""Which processes stay in the file when a core refuses some of them."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from monrest.bp.core_objects import (
    FORMATS,
    MOST_TRIED,
    Candidates,
    ExportRefusedError,
    exported,
    joined,
    place_of,
    split,
)
from monrest.bp.model import read
from tests.table import each


def process(number, label="all", name="", form="nagios"):
    nodes = [{"label": label}, {"id": "x", "label": 'the "x" \\ ü', "create_obj": 1}]
    return exported(number, read({"name": name or f"P{number}", "nodes": nodes}), "mon", form)


def content(*processes, form="nagios"):
    return joined({place: text for one in processes for place, text in one.blocks.items()}, form)


class File:
    """A file, and a core that refuses what has certain texts in it."""

    def __init__(self, threads, wanted, old, bad):
        self.data, self.bad, self.checks = old, bad, 0
        self.candidates = Candidates(
            wanted=wanted,
            old=old,
            form="nagios",
            threads=threads,
            put=self.put,
            check=self.check,
        )

    def put(self, old, new):
        assert self.data == old
        self.data = new

    async def check(self):
        self.checks += 1
        return next((f"no {one}" for one in self.bad if one.encode() in self.data), None)

    def accepted(self, *, refused=(), writer=""):
        found = []
        work = self.candidates.accepted(refused, writer, "no bad1")
        Deferred.fromCoroutine(work).addBoth(found.append)
        if hasattr(found[0], "raiseException"):
            found[0].raiseException()
        return {number: one.reason for number, one in found[0].items()}


@each("form", FORMATS)
def test_the_objects_of_a_file_are_told_apart(form):
    one, two = process("1", form=form), process("22", form=form)
    data = content(one, two, form=form)
    found = split(data)
    assert [number for number, _ in found] == ["1", "22", "1", "1", "22", "22"]
    assert joined({place_of(text): text for _, text in found}, form) == data
    assert split(None) == []


def test_only_what_is_refused_stays_as_it_was(threads):
    before = [process("1", "good1"), process("2"), process("4")]
    wanted = [process("1", "bad1"), process("2"), process("3"), process("4", "bad4")]
    file = File(threads, wanted, content(*before), ["bad1", "bad4"])
    assert file.accepted(writer="3") == {"1": "no bad1", "4": "no bad4"}
    text = file.data.decode()
    assert "P3" in text
    assert "good1" in text
    assert "bad" not in text


def test_one_alone_is_not_tried_twice(threads):
    before = content(process("1", "good1"), process("2"))
    file = File(threads, [process("1", "bad1"), process("2")], before, ["bad1"])
    assert file.accepted(writer="1") == {"1": "no bad1"}
    assert (file.data, file.checks) == (before, 0)


def test_what_was_refused_before_is_not_tried(threads):
    before = content(process("1", "good1"))
    file = File(threads, [process("1", "bad1"), process("2", "bad2")], before, ["bad1", "bad2"])
    assert file.accepted(refused={"1"}, writer="2") == {"2": "no bad1"}
    assert (file.data, file.checks) == (before, 0)


def test_no_process_is_to_blame(threads):
    """Such as for a file of another program, or for one that needs what was taken away."""
    file = File(threads, [process("2")], content(process("1"), process("2")), ["define"])
    with pytest.raises(ExportRefusedError, match="no bad1"):
        file.accepted()
    old = content(process("1", "gone"), process("2"))
    file = File(threads, [process("2"), process("3")], old, ["define"])
    with pytest.raises(ExportRefusedError, match="no define"):
        file.accepted(writer="3")


def test_few_are_tried(threads):
    """A check may take long; what is left has its turn when it is written again."""
    wanted = [process(str(number)) for number in range(1, MOST_TRIED + 4)]
    file = File(threads, [process("99", "bad1"), *wanted], None, ["bad1"])
    assert file.accepted(writer="3").keys() == {"5", "6", "7", "8", "99"}
    assert file.checks == 1 + MOST_TRIED
    assert b"P3\n" in file.data
