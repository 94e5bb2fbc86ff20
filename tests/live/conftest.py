"""Fixtures of the black-box suite: cores, a daemon in front of them, clients."""

import signal
import sys
import tempfile
from functools import cached_property
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.chosen import why_not
from harness.cores import CORES, EmbeddedCore
from harness.daemon import Daemon, site
from harness.demo import Demo
from harness.given import GIVEN, GivenCore
from harness.lab import Lab, started
from harness.lying import LyingSite
from harness.proxy import Line
from harness.recorder import Recorder, problems

from tests.fakes.receiver import HookReceiver


def pytest_collection_modifyitems(config, items):
    """With a core of the command line: leave out what is not for it, and say why.

    Otherwise an Icinga 2 has no part in modules that say why they are ``SAME_FOR_ALL_CORES``.
    """
    if GIVEN is None:
        items[:] = [one for one in items if not superfluous(one)]
        return
    core = GivenCore(tempfile.mkdtemp())
    core.start()
    try:
        reasons = {name: why_not(name, core) for name in {Path(one.path).stem for one in items}}
    finally:
        core.stop()
    config.hook.pytest_deselected(items=[one for one in items if reasons[Path(one.path).stem]])
    items[:] = [one for one in items if not reasons[Path(one.path).stem]]
    for name, reason in sorted(reasons.items()):
        print(f"{name}: {f'left out, {reason}' if reason else 'runs'}")


def superfluous(item):
    """Whether a test asserts of an Icinga 2 what does not depend on the core."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if "icinga2" not in (params.get("bench"), params.get("own")):
        return False
    return hasattr(item.module, "SAME_FOR_ALL_CORES")


@pytest.fixture(autouse=True)
def _survivors():
    """No request of a test has ended an embedded core; if one did, the test fails with its line."""
    yield
    assert EmbeddedCore.deaths() == []


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A demo that ``monrest serve`` started, for tests that read or add what disturbs nobody."""
    code = "import sys; from monrest.cli.main import main; sys.exit(main())"
    line = [sys.executable, "-c", code, "serve", "--demo", "--port", "0"]
    demo = Demo(tmp_path_factory.mktemp("served"), "", line)
    try:
        demo.address, demo.port, demo.key = demo.found()
        demo.address = demo.address.rstrip("/")
        yield demo
    finally:
        demo.stop()


KINDS = ["given"] if GIVEN else ["embedded", pytest.param("icinga2", marks=pytest.mark.icinga2)]
NAMES = ["given"] if GIVEN else ["embedded", "icinga2"]


class Bench:
    """A primed core of a kind, with a daemon before it whose requests are recorded."""

    def __init__(self, kind, factory):
        self.kind, self.factory, self.ends = kind, factory, []

    @cached_property
    def core(self):
        core = made_core(CORES, self.kind, self.factory.mktemp(self.kind))
        self.ends.append(core.stop)
        return started(core)

    @cached_property
    def recorder(self):
        recorder = Recorder(self.factory.mktemp("recorder") / "live", self.core.socket)
        self.ends.append(recorder.close)
        return recorder

    @cached_property
    def daemon(self):
        """With the core as its only site ``s1``, connected through the recorder."""
        address = f"unix:{self.recorder.path}"
        sites = [site("s1", address, name="Site One", section="Europe/Munich")]
        sections = {}
        if self.core.lmd_sites:
            others = [{"id": key, "hidden": True} for key in self.core.lmd_sites[1:]]
            sites, sections = [], {"lmd": {"address": address, "sites": others}}
        daemon = Daemon(self.factory.mktemp("daemon"), sites, sections=sections)
        self.ends.append(daemon.stop)
        return daemon.start()

    def close(self):
        for end in reversed(self.ends):
            end()


@pytest.fixture(scope="session")
def benches(tmp_path_factory):
    """One bench for each kind of core; at the end every request of the suite must be clean."""
    made = {kind: Bench(kind, tmp_path_factory) for kind in NAMES}
    yield made
    bad = []
    for bench in made.values():
        bench.close()
        if "recorder" in vars(bench):
            bad += [(one, found) for one in bench.recorder.requests if (found := problems(one))]
    assert not bad


@pytest.fixture(scope="session", params=KINDS)
def bench(request, benches):
    """The embedded core, and the real Icinga 2; or the one of ``make test-core``."""
    return benches[request.param]


@pytest.fixture(scope="session")
def core(bench):
    """A primed core, of each kind."""
    return bench.core


def made_core(cores, name, folder):
    """A core of a kind, not yet started."""
    return GivenCore(folder) if name == "given" else cores[name](folder)


@pytest.fixture(scope="module", params=KINDS)
def own(request, shared):
    """A core that the module has for itself, of each kind; ``OWN`` of the module are others."""
    if request.param == "given":
        return shared.core(GivenCore)
    return shared.core(getattr(request.module, "OWN", CORES)[request.param])


@pytest.fixture(scope="module")
def tape(own, shared):
    """The proxy in front of ``own``, with what reaches the core."""
    return shared.keep(Recorder(shared.folder() / "live", own.socket))


@pytest.fixture(scope="session")
def recorder(bench):
    """The proxy in front of ``core``."""
    return bench.recorder


@pytest.fixture(scope="session")
def daemon(bench):
    return bench.daemon


@pytest.fixture(scope="session")
def differences(core):
    """In what the core in use differs from the others, by name."""
    return core.differences


@pytest.fixture(scope="session")
def client(daemon):
    with daemon.client() as client:
        yield client


@pytest.fixture(scope="session")
def olga(daemon):
    """An ordinary contact: of the host web01 and of the service ping on db01."""
    with daemon.client("olga") as client:
        yield client


@pytest.fixture(scope="session")
def embedded(tmp_path_factory):
    """The embedded core alone, for tests that are not about cores."""
    core = EmbeddedCore(tmp_path_factory.mktemp("alone"))
    try:
        yield started(core)
    finally:
        core.stop()


@pytest.fixture
def clean(recorder):
    """After the test: nothing but expected lines has reached the core."""
    mark = recorder.mark()
    yield
    for request in recorder.since(mark):
        assert not problems(request), request
        assert b"DISABLE_NOTIFICATIONS" not in request
        assert b"AuthUser: olga" not in request


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Makes what the tests of a file share."""
    lab = Lab(tmp_path_factory.mktemp("shared"))
    yield lab
    lab.close()


@pytest.fixture
def lab(tmp_path):
    """Makes what one test has for itself; daemons are killed at its end."""
    lab = Lab(tmp_path, signal.SIGKILL)
    yield lab
    lab.close()


@pytest.fixture
def made(lab):
    """A function that makes a daemon (not started), killed at the end."""
    return lab.daemon


@pytest.fixture
def alone(lab):
    """An embedded core that one test has for itself."""
    return lab.core()


@pytest.fixture
def receiver(lab):
    return lab.keep(HookReceiver())


@pytest.fixture
def line(tmp_path, postgres_server, lab):
    """The way to the database, which can be cut; it ends in the folder ``pg``."""
    (tmp_path / "pg").mkdir(mode=0o755)
    end = tmp_path / "pg" / ".s.PGSQL.5432"
    return lab.keep(Line(postgres_server.folder / ".s.PGSQL.5432", end))


@pytest.fixture
def line_url(tmp_path, postgres_server, line):
    """The URL of a new database at the end of the line."""
    return f"postgresql+psycopg://postgres@/{postgres_server.create()}?host={tmp_path / 'pg'}"


@pytest.fixture
def slow(embedded, lab):
    """A site whose answers can be held back."""
    return lab.keep(LyingSite(lab.folder() / "slow", embedded.socket))
