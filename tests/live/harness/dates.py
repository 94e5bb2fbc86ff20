"""A daemon whose wall clock a test sets while it runs; that of the machine is left alone."""

import os
from pathlib import Path

from .daemon import Daemon

WOUND = Path(__file__).with_name("wound")


class DatedDaemon(Daemon):
    """``set_clock`` puts its wall clock so many seconds before or behind that of the machine."""

    def spawn(self, **environment):
        if not self._ahead.exists():
            self.set_clock(0)
        path = os.pathsep.join(filter(None, (str(WOUND), os.environ.get("PYTHONPATH"))))
        super().spawn(PYTHONPATH=path, MONREST_TEST_DATE=str(self._ahead), **environment)

    @property
    def _ahead(self):
        return self.folder / "ahead"

    def set_clock(self, seconds):
        """Put it there, from one moment to the next."""
        fresh = self.folder / "ahead.new"
        fresh.write_text(str(seconds))
        fresh.replace(self._ahead)
