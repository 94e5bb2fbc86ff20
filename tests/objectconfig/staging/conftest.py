"""Staging on SQLite and on PostgreSQL, over real files."""

import os

import pytest
import pytest_twisted

from monrest.objectconfig.save import SaveRoom, Writable, Write, write
from tests.objectconfig.staging.files import NO_CONTACT, sha256
from tests.objectconfig.staging.site import Daemon, Site


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "core")


@pytest.fixture
def started(database_url, site, tmp_path):
    """A function that starts a daemon on the same database; ``name`` is its state folder."""
    daemons = []

    def start(name="var"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        daemons.append(Daemon(database_url, folder, site))
        return daemons[-1]

    yield start
    for daemon in daemons:
        if daemon.staging.running:
            pytest_twisted.blockon(pytest_twisted.defer.ensureDeferred(daemon.stop()))


@pytest.fixture
def daemon(started):
    return started()


@pytest.fixture
def conf(tmp_path):
    folder = tmp_path / "conf.d"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.cfg").write_bytes(b"old a")
    (folder / "sub" / "b.cfg").write_bytes(b"old b")
    return folder


@pytest.fixture
def room(tmp_path):
    return SaveRoom.of(tmp_path / "var", "prod")


@pytest.fixture
def saved(conf, room):
    """A function that saves contents by name, on the base of what is on disk or of ``bases``."""

    def save_(contents, bases=None, files=()):
        def base(name):
            path = conf / name
            return path.read_bytes() if path.is_file() else None

        writes = [
            Write(
                path=str(conf / name),
                base_hash=sha256((bases or {}).get(name, base(name))),
                content=content,
            )
            for name, content in contents.items()
        ]
        with room.locked():
            allowed = Writable(folders=(str(conf),), files=files)
            return write(room, writes, allowed, note={"user": "ann"})

    return save_


@pytest.fixture
def asuser(tmp_path):
    """A function that calls another one without the rights of root, as member of ``groups``."""
    if os.getuid():
        yield lambda function, groups=(): function()
        return
    for path in [tmp_path, *tmp_path.rglob("*")]:
        os.chown(path, NO_CONTACT, NO_CONTACT)
    parents = [path for path in tmp_path.parents if path.owner() == "root"]
    modes = {path: path.stat().st_mode for path in parents}
    for path in parents:
        path.chmod(modes[path] | 0o011)

    before = os.getgroups()

    def call(function, groups=()):
        os.setgroups(groups)
        os.setegid(NO_CONTACT)
        os.seteuid(NO_CONTACT)
        try:
            return function()
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(before)

    yield call
    for path in parents:
        path.chmod(modes[path])
