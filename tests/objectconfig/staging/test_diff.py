"""The text of a diff: what ``patch`` would make the new file of, and how it looks."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from monrest.objectconfig.diff import split_lines, unified

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
