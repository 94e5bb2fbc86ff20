"""Two users, an editor and kills change the same files in any order: nothing is lost.

Every change sets a variable of a host to a number that was never used before, so that it can be
said of each what must stand on the disk and what must be staged for whom. A variable of its own
for each party merges with everything; the one that all parties share makes conflicts.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest_twisted
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from twisted.internet import reactor
from twisted.internet.threads import blockingCallFromThread

from monrest.objectconfig import save, store
from monrest.objectconfig.save import ChangedOnDiskError
from tests.examples import examples
from tests.fakes.store import migrated_sqlite_url
from tests.objectconfig.staging.site import Daemon, Site, later

HOSTS = {f"h{number}": f"{'ab'[number % 2]}.cfg" for number in range(4)}
FILES = frozenset(HOSTS.values())
PARTIES = ("ann", "ben", "hand")
SHARED = "_shared"
LINE = re.compile(r"^([-+ ])  (_\w+) +(\d+)$", re.MULTILINE)

users = st.sampled_from(PARTIES[:2])
hosts = st.sampled_from(sorted(HOSTS))
daemons = st.integers(0, 1)


def definition(host):
    """A host whose variables stand between lines that stay."""
    lines = [f"  {key:<30} 0\n  {key + '_keep':<30} x\n" for key in (*map(own, PARTIES), SHARED)]
    return f"define host {{\n  {'host_name':<30} {host}\n{''.join(lines)}}}\n\n"


def own(party):
    return f"_{party}"


class Killed(Exception):
    """The process is not there any more."""


class Interleaved(RuleBasedStateMachine):
    """``disk`` and ``staged`` say what should be: numbers by host and variable."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="monrest-interleaved-"))
        self.site = Site(self.folder / "core")
        for file in FILES:
            text = "".join(definition(host) for host, place in HOSTS.items() if place == file)
            Path(self.site.path(file)).write_text(text)
        self.url = migrated_sqlite_url(self.folder)
        self.daemons = [self.start(number) for number in range(2)]
        self.numbers = count(1)
        self.disk = {}
        self.staged = {user: {} for user in PARTIES[:2]}
        self.replaced = {user: {} for user in PARTIES[:2]}

    def start(self, number):
        folder = self.folder / f"var{number}"
        folder.mkdir(exist_ok=True)
        daemon = Daemon(self.url, folder, self.site)
        daemon.number = number
        return daemon

    def teardown(self):
        for daemon in self.daemons:
            self.run(daemon.stop())
        shutil.rmtree(self.folder)

    def run(self, work):
        return pytest_twisted.blockon(later(work))

    @rule(number=daemons, user=users, host=hosts, shared=st.booleans())
    def stage(self, number, user, host, shared):
        self.staged_is(user, *self.run(self.patched(number, user, host, shared=shared)))

    async def patched(self, number, user, host, *, shared=False):
        key, value = SHARED if shared else own(user), next(self.numbers)
        await self.daemons[number].patch(host, user, **{key: str(value)})
        return (host, key), value

    def staged_is(self, user, place, value):
        self.staged[user][place] = value
        self.replaced[user].setdefault(place, self.disk.get(place, 0))

    @rule(host=hosts, shared=st.booleans(), back=st.booleans())
    def edit_by_hand(self, host, shared, back):
        key = SHARED if shared else own("hand")
        value = 0 if back and not shared else next(self.numbers)
        path = Path(self.site.path(HOSTS[host]))
        before, found, after = path.read_text().partition(f"  {'host_name':<30} {host}\n")
        after, changed = re.subn(
            rf"^(  {key} +)\d+$", rf"\g<1>{value}", after, count=1, flags=re.MULTILINE
        )
        assert found
        assert changed
        path.write_text(before + found + after)
        self.disk[host, key] = value
        if not value:
            del self.disk[host, key]

    @rule(number=daemons, user=users)
    def revert(self, number, user):
        self.run(self.daemons[number].revert(user))
        self.forget(user)

    @rule(number=daemons, user=users)
    def refresh(self, number, user):
        dropped = {Path(path).name for path in self.run(self.daemons[number].refresh(user))}
        self.forget(user, dropped)

    def forget(self, user, files=FILES):
        for place in list(self.staged[user]):
            if HOSTS[place[0]] in files:
                del self.staged[user][place], self.replaced[user][place]

    @rule(number=daemons, user=users)
    def save(self, number, user):
        self.saved(number, user)

    @rule(number=daemons, user=users, host=hosts, before=st.booleans())
    def save_while_another_daemon_stages(self, number, user, host, before):
        """On top of what is saved, which is on the disk already or not yet."""
        during = []

        def meanwhile():
            work = self.patched(1 - number, user, host)
            during.append(blockingCallFromThread(reactor, lambda: later(work)))

        def write(*arguments, real=save.write, **named):
            if before:
                meanwhile()
            real(*arguments, **named)
            if not before:
                meanwhile()

        self.saved(number, user, (save, "write", write))
        for place, value in during:
            self.staged_is(user, place, value)

    @precondition(lambda self: any(self.staged.values()))
    @rule(
        number=daemons,
        user=users,
        moment=st.sampled_from(["before", "committed", "one file", "written"]),
    )
    def save_and_be_killed(self, number, user, moment):
        replaced = []

        def write(*_arguments, **_named):
            raise Killed

        def replace(*arguments, real=save._replace):
            if len(replaced) == (moment == "one file"):
                raise Killed
            replaced.append(arguments)
            return real(*arguments)

        def lost(*_arguments):
            raise Killed

        dying = {
            "before": (save, "write", write),
            "committed": (save, "_replace", replace),
            "one file": (save, "_replace", replace),
            "written": (store, "saved", lost),
        }
        try:
            self.saved(number, user, dying[moment])
        except Killed:
            if moment != "before":
                self.written(user)
            self.run(self.daemons[number].stop())
            self.daemons[number] = self.start(self.daemons[number].number)

    def saved(self, number, user, instead=None):
        """Save; ``instead`` is what something is replaced by meanwhile."""
        if instead is not None:
            module, name, other = instead
            real = getattr(module, name)
            setattr(module, name, other)
        try:
            self.run(self.daemons[number].save(user))
        except ChangedOnDiskError:
            assert self.conflicts(user)
        else:
            self.written(user)
        finally:
            if instead is not None:
                setattr(module, name, real)

    def written(self, user):
        for place, value in self.staged[user].items():
            found = self.disk.get(place, 0)
            assert found == self.replaced[user][place], f"{found} of another party at {place}"
            self.disk[place] = value
        self.forget(user)

    def conflicts(self, user):
        """Files in which another party changed what the user changes."""
        return {
            HOSTS[place[0]]
            for place, value in self.replaced[user].items()
            if self.disk.get(place, 0) != value
        }

    @invariant()
    def everything_is_on_the_disk(self):
        assert self.values(self.site.read(file) for file in FILES) == self.disk

    @invariant()
    def each_user_has_their_own_staged_and_nothing_else(self):
        for user, daemon in zip(self.staged, self.daemons, strict=True):
            self.run(self.check(daemon, user))
        self.daemons.reverse()

    async def check(self, daemon, user):
        view = await daemon.view(user)
        conflicts = {Path(path).name for path in view.conflicts}
        assert conflicts == self.conflicts(user)
        assert {Path(path).name for path in view.staged} == {
            HOSTS[host] for host, _ in self.staged[user]
        }
        seen = self.values(
            file.document.data().decode()
            for path, file in view.model.loaded.items()
            if Path(path).name not in conflicts
        )
        here = {
            place: value
            for place, value in {**self.disk, **self.staged[user]}.items()
            if HOSTS[place[0]] not in conflicts and value
        }
        assert seen == here
        for file, output in (await daemon.diff(user)).items():
            if file in conflicts:
                continue
            changed = {
                (key, int(value)) for sign, key, value in LINE.findall(output) if sign == "+"
            }
            assert changed == {
                (key, value)
                for (host, key), value in self.staged[user].items()
                if HOSTS[host] == file
            }

    def values(self, texts):
        found = {}
        for text in texts:
            for block in text.split("define ")[1:]:
                name = re.search(r"host_name +(\w+)", block)
                for _, key, value in LINE.findall(
                    re.sub("^(?=  _)", " ", block, flags=re.MULTILINE)
                ):
                    if int(value):
                        found[name[1], key] = int(value)
        return found


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(max_examples=examples(20, 4), stateful_step_count=20)
