"""A save that was merged with a change on disk leaves nothing staged, and undoes nothing later."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet import reactor
from twisted.internet.threads import blockingCallFromThread

from monrest.base.errors import Unavailable
from monrest.objectconfig import save, store
from monrest.objectconfig.service import Staging
from tests.objectconfig.staging.site import HOSTS, later

BY_HAND = HOSTS.replace("127.0.0.1", "127.0.0.7")


async def merged(daemon, site):
    """Stage a change of w3 as ann, and change w1 by hand."""
    await daemon.patch("w3", alias="mine")
    Path(site.path("hosts.cfg")).write_text(BY_HAND)


async def nothing_is_left(daemon, site, *others):
    text = site.read("hosts.cfg")
    for part in ("127.0.0.7", "mine", *others):
        assert part in text
    assert await daemon.diff() == {}
    assert await daemon.staging.staged_by(["prod"]) == {}
    assert (await daemon.save()).files == ()
    assert site.read("hosts.cfg") == text


async def test_a_database_that_is_lost_after_a_merged_save(started, daemon, site, monkeypatch):
    await merged(daemon, site)

    def lost(*_):
        def work(_connection):
            raise Unavailable("cannot store", "no connection to the database")

        return work

    with monkeypatch.context() as patch:
        patch.setattr(store, "saved", lost)
        assert len((await daemon.save()).files) == 1
    await nothing_is_left(daemon, site)
    await daemon.stop()
    await nothing_is_left(started(), site)


async def interrupted(daemon, monkeypatch, files):
    """A save that ends after so many files are in place."""
    done = []

    def replace(handle, entry, real=save._replace):
        if len(done) == files:
            raise OSError(5, "Input/output error")
        done.append(entry)
        return real(handle, entry)

    with monkeypatch.context() as patch:
        patch.setattr(save, "_replace", replace)
        with pytest.raises(Unavailable, match="interrupted"):
            await daemon.save()


@pytest.mark.parametrize("files", [0, 1, 2])
@pytest.mark.parametrize("restarted", [True, False])
async def test_a_merged_save_that_is_interrupted(
    started, daemon, site, monkeypatch, stray_failures, files, restarted
):
    stray_failures.append(OSError)
    await merged(daemon, site)
    await daemon.create("new", file="conf.d/a.cfg")
    await daemon.delete("hostgroup", "all")
    await interrupted(daemon, monkeypatch, files)
    if restarted:
        await daemon.stop()
        daemon = started()
        assert await daemon.diff() == {}
    assert (await daemon.save()).files == ()
    await nothing_is_left(daemon, site)
    assert "new" in site.read("a.cfg")
    assert not Path(site.path("groups.cfg")).exists()


async def test_what_was_merged_is_not_merged_again(
    started, daemon, site, monkeypatch, stray_failures
):
    """Joined with what it was joined into, a change between alike objects would come twice."""
    stray_failures.append(OSError)
    path = Path(site.path("hosts.cfg"))
    host = "define host {\n  use  x\n}\n\n"
    by_hand = host * 2 + host.replace("x\n", "x\n  alias  a\n")
    path.write_text(host * 3)
    await daemon.create("new", use="x")
    path.write_text(by_hand)
    await interrupted(daemon, monkeypatch, 0)
    await daemon.stop()
    again = started()
    assert await again.diff() == {}
    assert (await again.save()).files == ()
    assert path.read_text().startswith(by_hand)
    assert path.read_text().count("new") == 1


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("by_hand", [False, True])
async def test_what_another_daemon_stages_during_a_merged_save_is_kept(
    started, daemon, site, monkeypatch, moment, by_hand
):
    other = started("other")
    await merged(daemon, site)

    def meanwhile():
        if by_hand and moment == "after":
            path = Path(site.path("hosts.cfg"))
            path.write_text(path.read_text().replace("127.0.0.2", "127.0.0.8"))
        blockingCallFromThread(reactor, lambda: later(other.patch("w3", notes="more")))

    def write(*arguments, real=save.write, **named):
        if moment == "before":
            meanwhile()
        real(*arguments, **named)
        if moment == "after":
            meanwhile()

    with monkeypatch.context() as patch:
        patch.setattr(save, "write", write)
        await daemon.save()
    for one in (daemon, other):
        diff = (await one.diff())["hosts.cfg"]
        assert [line for line in diff.splitlines()[2:] if line[0] in "+-"] == [
            "+  notes                          more"
        ]
    if by_hand and moment == "after":
        # Taken back by hand, it is not a change of ann's that puts it there again.
        path = Path(site.path("hosts.cfg"))
        path.write_text(path.read_text().replace("127.0.0.8", "127.0.0.2"))
        assert "127.0.0.8" not in (await daemon.diff())["hosts.cfg"]
    await other.save()
    await nothing_is_left(daemon, site, "more")


async def test_a_refresh_drops_no_change_that_was_staged_meanwhile(
    started, daemon, site, monkeypatch
):
    other = started("other")
    await daemon.patch("w1", alias="mine")
    path = Path(site.path("hosts.cfg"))
    path.write_text(HOSTS.replace("127.0.0.1\n", "127.0.0.1\n  alias  theirs\n"))
    looks = []

    async def view(staging, *whose, real=Staging._view):
        found = await real(staging, *whose)
        if staging is other.staging:
            looks.append(found.conflicts)
            if len(looks) == 1:
                await daemon.revert()
                await daemon.patch("w3", alias="new")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "_view", view)
        assert await other.refresh() == ()
    assert looks == [(str(path),), ()]
    assert (await daemon.host("w3")).attributes["alias"] == "new"
