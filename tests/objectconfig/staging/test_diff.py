"""What two texts differ in: as a diff, and merged with the changes of a third one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from monrest.objectconfig import diff
from monrest.objectconfig.diff import matches, merge, split_lines, unified
from tests.table import each

NUMBERED = [f"line {number}\n" for number in range(40)]
TEXTS = st.lists(st.sampled_from("abcdefg"), max_size=40).flatmap(
    lambda words: st.sampled_from(["\n".join(words), "".join(f"{word}\n" for word in words)])
)


def applied(output, old):
    """Read a diff as a program does that knows nothing but the format."""
    lines = split_lines(old)
    new, place, mark = [], 0, b""
    body = output.encode().split(b"\n")[:-1][2:] if output else []
    for line in body:
        head = re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\Z", line)
        if head is not None:
            start, count = int(head[1]), int(head[2] if head[2] is not None else 1)
            start = start - 1 if count else start
            new += lines[place:start]
            place = start
            assert len(new) == int(head[3]) - (1 if head[4] != b"0" else 0)
        elif line.startswith(b"\\"):
            if mark != b"-":
                new[-1] = new[-1].removesuffix(b"\n")
        else:
            mark = line[:1]
            if mark in b" -":
                assert lines[place].removesuffix(b"\n") == line[1:]
                place += 1
            if mark in b" +":
                new.append(line[1:] + b"\n")
    return b"".join(new + lines[place:])


@given(old=TEXTS, new=TEXTS)
def test_the_new_file_follows_from_the_old_one_and_the_diff(old, new):
    old, new = old.encode(), new.encode()
    output = unified("/etc/a.cfg", old, new, (0, 0))
    assert applied(output, old) == new
    assert bool(output) == (old != new)


def test_heads_name_the_file_and_both_times():
    times = (1_769_839_444_677_081_996, 1_769_839_500_000_000_000)
    output = unified("/etc/a.cfg", b"a\nb\n", b"a\nc\n", times)
    assert output == (
        "--- /etc/a.cfg\t2026-01-31 06:04:04.677081996 +0000\n"
        "+++ /etc/a.cfg\t2026-01-31 06:05:00.000000000 +0000\n"
        "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    )


def test_three_lines_of_context_and_one_hunk_where_they_touch():
    old = "".join(NUMBERED).encode()
    near = old.replace(b"line 10\n", b"LINE\n").replace(b"line 17\n", b"")
    far = near.replace(b"line 30\n", b"line 30\nmore\n")
    assert unified("/x", old, near, (0, 0)).count("@@ -") == 1
    output = unified("/x", old, far, (0, 0))
    assert [line for line in output.split("\n") if line.startswith("@@")] == [
        "@@ -8,14 +8,13 @@",
        "@@ -29,6 +28,7 @@",
    ]


def test_files_that_come_and_go_and_have_no_last_line_end():
    assert unified("/x", None, b"a\n", (0, 0)).endswith("@@ -0,0 +1 @@\n+a\n")
    assert unified("/x", b"a\nb", None, (0, 0)).endswith(
        "@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file\n"
    )


def test_white_space_can_be_ignored():
    old, new = b"define host {\n  alias   a\n}\nx\n", b"define host{\n\talias a \n}\ny\n"
    output = unified("/x", old, new, (0, 0), ignore_whitespace=True)
    assert output.endswith("@@ -1,4 +1,4 @@\n define host {\n   alias   a\n }\n-x\n+y\n")
    assert unified("/x", old, new.replace(b"y", b"x"), (0, 0), ignore_whitespace=True) == ""


def test_bytes_that_are_no_utf8_are_latin1():
    assert "+caf\u00e9\n" in unified("/x", b"", b"caf\xe9\n", (0, 0))


LINES = st.lists(
    st.sampled_from([b"define host {\n", b"  a\n", b"  b\n", b"}\n", b"\n", b"#define x {\n"]),
    max_size=30,
)
MERGED = st.builds(lambda parts, end: b"".join(parts) + end, LINES, st.sampled_from([b"", b"x"]))


def text(*words):
    return b"".join(word.encode() + b"\n" for word in words)


BASE = text("a", "b", "c", "d", "e")


@each(
    ("mine", "theirs", "expected"),
    [
        (text("a", "B", "c", "d", "e"), BASE, text("a", "B", "c", "d", "e")),
        (BASE, text("a", "b", "c", "d"), text("a", "b", "c", "d")),
        (
            text("A", "b", "c", "d", "e"),
            text("a", "b", "c", "d", "E"),
            text("A", "b", "c", "d", "E"),
        ),
        (
            text("b", "c", "d", "e"),
            text("a", "b", "c", "d", "e", "f"),
            text("b", "c", "d", "e", "f"),
        ),
        (
            text("a", "x", "b", "c", "d", "e"),
            text("a", "b", "c", "e"),
            text("a", "x", "b", "c", "e"),
        ),
        (
            text("a", "b", "x", "d", "e"),
            text("a", "b", "x", "d", "e"),
            text("a", "b", "x", "d", "e"),
        ),
        # The same change, and another one of each.
        (
            text("A", "b", "X", "d", "e"),
            text("a", "b", "X", "d", "E"),
            text("A", "b", "X", "d", "E"),
        ),
        (text("a", "X", "c", "d", "e"), text("a", "Y", "c", "d", "e"), None),
        (text("a", "c", "d", "e"), text("a", "Y", "c", "d", "e"), None),
        # Next to each other: they may belong together.
        (text("a", "B", "c", "d", "e"), text("a", "b", "C", "d", "e"), None),
        # Both added at the end: their order is not known.
        (BASE + b"x\n", BASE + b"y\n", None),
        (b"", text("a", "b", "c", "d", "E"), None),
    ],
)
def test_merges(mine, theirs, expected):
    assert merge(BASE, mine, theirs) == expected
    assert merge(BASE, theirs, mine) == expected


def test_line_ends_count():
    assert merge(b"a\nb\nc\n", b"a\r\nb\nc\n", b"a\nb\nC\n") == b"a\r\nb\nC\n"
    assert merge(b"a\nb\nc", b"A\nb\nc", b"a\nb\nc\n") == b"A\nb\nc\n"


@given(base=MERGED, mine=MERGED, theirs=MERGED)
def test_a_side_that_changed_nothing_takes_the_other(base, mine, theirs):
    assert merge(base, mine, base) == mine
    assert merge(base, base, theirs) == theirs
    assert merge(base, mine, mine) == mine
    assert merge(base, mine, theirs) == merge(base, theirs, mine)


@given(
    st.lists(st.sampled_from(["mine", "theirs", "both", "neither"]), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_changes_apart_from_each_other_all_arrive(changes, random):
    """Every second line stays, each of the others is changed, removed or gets a neighbour."""
    sides = {"base": [], "mine": [], "theirs": [], "merged": []}
    for number, who in enumerate(changes):
        old = [f"old {number}\n"]
        new = random.choice([[], [f"new {number}\n"], [*old, f"more {number}\n"]])
        for side, found in sides.items():
            changed = {"base": False, "merged": who != "neither"}.get(side, who in (side, "both"))
            found += [*(new if changed else old), f"kept {number}\n"]
    base, mine, theirs, merged = ("".join(part).encode() for part in sides.values())
    assert merge(base, mine, theirs) == merged


def check(first, second):
    found = matches(first, second)
    i = j = 0
    for start, other, count in found:
        assert count > 0
        assert start >= i
        assert other >= j
        assert first[start : start + count] == second[other : other + count]
        i, j = start + count, other + count
    assert i <= len(first)
    assert j <= len(second)
    return found


@given(first=LINES, second=LINES, product=st.sampled_from([0, 4, 250_000]))
def test_what_two_texts_have_in_common_is_in_both_in_order(first, second, product):
    before, diff._PRODUCT = diff._PRODUCT, product
    try:
        check(first, second)
    finally:
        diff._PRODUCT = before


def test_services_that_are_much_alike_are_told_apart():
    def definition(host, number):
        return split_lines(
            f"define service {{\n  service_description s{number}\n  host_name h{host}\n"
            "  use generic\n}\n\n".encode()
        )

    first = [line for host in range(60) for n in range(20) for line in definition(host, n)]
    second = [line.replace(b"use generic", b"use other") for line in first]
    found = check(first, second)
    assert sum(count for *_, count in found) == len(first) - 1200
