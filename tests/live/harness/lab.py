"""Cores, daemons and other servers, each in a folder of its own; the last one that was made ends first."""

import os
import signal
from contextlib import ExitStack

import pytest

from .cores import CoreMissing, EmbeddedCore
from .daemon import Daemon


def started(core):
    """Start and prime ``core``; a missing program is a skip, under MONREST_CI an error."""
    try:
        core.start()
    except CoreMissing as missing:
        if os.environ.get("MONREST_CI"):
            raise
        pytest.skip(str(missing))
    core.prime()
    return core


class Lab:
    """Daemons end by the signal ``ending``."""

    def __init__(self, folder, ending=signal.SIGTERM):
        self.root, self.ending = folder, ending
        self.ends = ExitStack()
        self.count = 0

    def folder(self):
        """A new folder with a short path, which a socket needs."""
        self.count += 1
        folder = self.root / f"lab{self.count}"
        folder.mkdir()
        return folder

    def core(self, kind=EmbeddedCore, *arguments, **more):
        """A core that is started and primed."""
        core = kind(self.folder(), *arguments, **more)
        self.ends.callback(core.stop)
        return started(core)

    def daemon(self, sites, *, folder=None, kind=Daemon, **more):
        """A daemon that is not started."""
        daemon = kind(folder or self.folder(), sites, **more)
        self.ends.callback(self._stop, daemon)
        return daemon

    def pair(self, sites, url, **sections):
        """Two daemons on one database, not started."""
        sections["database"] = {"url": url}
        return [self.daemon(sites, sections=sections) for _ in range(2)]

    def _stop(self, daemon):
        if daemon.process is not None:
            daemon.stop(self.ending)

    def keep(self, server):
        """``server`` itself, which is closed at the end."""
        self.ends.callback(server.close)
        return server

    def close(self):
        self.ends.close()
