"""What is read from files and programs of a host, and what gatherers may say."""

from __future__ import annotations

import orjson
import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from monrest.nodecontrol import gather
from monrest.nodecontrol.gather import (
    apt_updates,
    dnf_advisories,
    dnf_updates,
    full_name,
    os_release,
)
from monrest.nodecontrol.model import GatherError, Node, facts_of, node_record, outcome
from tests.fakes.threads import NoThreads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('NAME="Debian GNU/Linux"\nVERSION_ID="12"\n', ("Debian GNU/Linux", "12")),
        ("NAME=Fedora\nVERSION_ID=40\n# NAME=x\n", ("Fedora", "40")),
        ("NAME='it''s'\nVERSION_ID=\"broken\n", ("its", "")),
        ("", ("", "")),
    ],
)
def test_os_release(text, expected):
    assert os_release(text) == expected


@pytest.mark.parametrize(
    ("canonical", "expected"),
    [
        ("node1.example.org", "node1.example.org"), ("node1", "node1"), ("", "node1"),
        ("localhost", "node1"), ("localhost.localdomain", "node1"), (OSError, "node1"),
    ],
)  # fmt: skip
def test_full_names(canonical, expected):
    def resolve(host, port, **_):
        assert (host, port) == ("node1", None)
        if canonical is OSError:
            raise OSError("no such name")
        return [(2, 1, 6, canonical, ("127.0.1.1", 0)), (10, 1, 6, "", ("::1", 0, 0, 0))]

    assert full_name("node1", resolve) == expected


def test_apt():
    text = (
        "Reading package lists...\n"
        "Inst libc6 [2.36-9] (2.36-10 Debian:12.1/stable [amd64]) []\n"
        "Inst openssl [3.0.9-1] (3.0.11-1 Debian-Security:12/stable-security [amd64])\n"
        "Inst new (1.0 Debian:12.1/stable [all])\n"
        "Conf libc6 (2.36-10 Debian:12.1/stable [amd64])\n"
    )
    assert apt_updates(text) == (["libc6", "new", "openssl"], ["openssl"])
    assert apt_updates("") == ([], [])


def test_dnf():
    text = (
        "\nkernel.x86_64    5.14.0-362.el9    baseos\n"
        "glibc-common.i686 2.34-83.el9 baseos\n"
        "Last metadata expiration check: 0:00:01 ago\n"
        "Obsoleting Packages\nold.noarch   1-1   baseos\n"
    )
    assert dnf_updates(text) == ["glibc-common", "kernel"]
    advisories = (
        "FEDORA-2024-1 Important/Sec. openssl-libs-3.0.9-2.fc38.x86_64\n"
        "FEDORA-2024-2 Low/Sec.  vim-2:9.0-1.fc38.noarch\n"
    )
    assert dnf_advisories(advisories) == ["openssl-libs", "vim"]


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (0, "fine", 0), (1, "fine", 1), (1, "[ERROR]", 1), (0, "a [ERROR] b", 2), (0, "[WARN]", 2),
        (0, "[WARNING] x", 2), (0, "WARNING", 0), (0, "[error]", 0),
    ],
)  # fmt: skip
def test_outcome(status, output, expected):
    assert outcome(status, output) == expected


KEYS = st.sampled_from(
    ["cm_fqdn", "cpu_perc", "cpu_cores", "dist_status", "dist_versions", "os_updates", "other"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES))
def test_whatever_a_gatherer_says_is_refused_by_name_or_shown(said):
    text = orjson.dumps(said)
    try:
        facts = facts_of(text)
    except GatherError as error:
        found = error
    else:
        row = node_record(Node(site="a", data=facts), {}, 0)
        assert orjson.loads(orjson.dumps(row["facts"])) == facts
        assert row.keys() >= said.keys() - {"other"}
        return
    assert any(key in str(found) for key in said)


@pytest.mark.parametrize(("levels", "fine"), [(1, True), (50, True), (51, False), (900, False)])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_no_more_levels_than_can_be_shown(levels, fine, begin, end):
    output = b'{"own":' + begin * levels + b"1" + end * levels + b"}"
    if fine:
        assert facts_of(output).keys() == {"own"}
        return
    with pytest.raises(GatherError, match="own: expected at most 50 levels"):
        facts_of(output)


@given(st.binary(max_size=40))
def test_no_output_is_too_strange(output):
    try:
        assert isinstance(facts_of(output), dict)
    except GatherError as error:
        found = str(error)
    else:
        return
    assert "expected" in found


@pytest.mark.parametrize("files", [{}, {"meminfo": "MemTotal: many kB", "stat": "intr 1"}])
@pytest_twisted.ensureDeferred
async def test_a_source_that_is_missing_is_an_error_and_no_zero(monkeypatch, tmp_path, files):
    """A service manager may hide files of /proc; zeros looked like a machine without memory."""
    monkeypatch.setattr("psutil.PROCFS_PATH", str(tmp_path))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    gone = str(tmp_path / "gone")
    host = gather.LocalHost(
        reactor=Clock(), threads=NoThreads(), folder=gone, seconds=10.0, find=lambda _: None
    )
    found = await host.learn("facts")
    assert (
        not {"cpu_perc", "memtotal", "memfree", "dist_disk_free", "os_updates"} & found.data.keys()
    )
    assert found.data["cpu_cores"] > 0
    expected = (
        ["processors: unknown format", "memory: unknown format"]
        if files
        else [f"{tmp_path}/stat: No such file", f"{tmp_path}/meminfo: No such file"]
    )
    for words in (*expected, f"{gone}: No such file", "os_updates: expected apt-get"):
        assert found.problem.count(words) == 1, found.problem
    row = node_record(Node(site="a", data=found.data), {}, 0)
    assert (row["memfree"], row["cpu_perc"], row["dist_disk_total"]) == (None, None, None)
