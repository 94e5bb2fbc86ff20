"""``twistd monrest --demo`` as a process."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

from tests.forks import TWISTD, start

from .daemon import command_line
from .waiting import until


class Demo:
    """A demo on a port of its own choice, whose folder for temporary files is ``scratch``.

    ``line`` is another command line that starts one.
    """

    def __init__(self, folder, program=TWISTD, line=None):
        self.output = folder / "output"
        # Near the root: the path of a socket has room for a hundred letters.
        self.scratch = Path(tempfile.mkdtemp(prefix="monrest-"))
        with self.output.open("wb") as stream:
            self.process = start(
                line or command_line("--demo", "--port", "0"),
                stream,
                program=program,
                env={**os.environ, "TMPDIR": str(self.scratch)},
            )

    def lines(self):
        """What it has printed when the last of its commands to try is there."""
        return until(self._printed, "the demo says what to try", seconds=120.0)

    def _printed(self):
        if self.process.poll() is not None:
            raise AssertionError(self.output.read_text())
        lines = self.output.read_text().splitlines()
        return lines if sum("/monrest r " in line for line in lines) == 2 else None

    def found(self):
        """Its address, port and key, once they are printed."""
        said = next(line for line in self.lines() if line.startswith("monrest demo:"))
        _monrest, _demo, address, _key, key, _user, user = said.split()
        assert user == "admin"
        return address, int(address.split(":")[2].split("/")[0]), key

    def stop(self, number=signal.SIGTERM):
        """End it with a signal; nothing is left, and no traceback was printed."""
        self.process.send_signal(number)
        try:
            assert self.process.wait(300) in (0, -number)
            assert list(self.scratch.iterdir()) == []
        finally:
            self.process.kill()
            shutil.rmtree(self.scratch)
        assert "Traceback" not in self.output.read_text()
