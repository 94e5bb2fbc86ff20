"""A real Alertmanager, of Debian's package, whose receiver sends nothing."""

import json
import os
import shutil
import subprocess
import urllib.request
from contextlib import suppress

import pytest

from .daemon import free_port
from .waiting import until

PROGRAM = "prometheus-alertmanager"
CONFIG = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n"


class Alertmanager:
    """A process with a folder of its own; ``firing`` are the labels of what is wrong."""

    def __init__(self, folder):
        if shutil.which(PROGRAM) is None:
            if os.environ.get("MONREST_CI"):
                raise AssertionError(f"{PROGRAM} is not installed")
            pytest.skip(f"{PROGRAM} is not installed")
        self.folder, self.port, self.process = folder, free_port(), None
        (folder / "alertmanager.yml").write_text(CONFIG)
        self.base = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.output = (self.folder / "output").open("ab")
        self.process = subprocess.Popen(
            [
                *(PROGRAM, f"--config.file={self.folder}/alertmanager.yml"),
                *(f"--storage.path={self.folder}/data", "--cluster.listen-address="),
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        until(self.ready, "the Alertmanager answers")
        return self

    def ready(self):
        assert self.process.poll() is None, (self.folder / "output").read_text()
        with suppress(OSError):
            return self.ask("/-/ready") is not None
        return False

    def ask(self, path):
        with urllib.request.urlopen(self.base + path, timeout=10) as answer:
            return answer.read()

    def alerts(self):
        """All that it takes for firing."""
        return json.loads(self.ask("/api/v2/alerts?active=true"))

    def firing(self):
        """(host, service, severity) of what is firing."""
        found = [one["labels"] for one in self.alerts() if "host" in one["labels"]]
        return {(one["host"], one.get("service", ""), one["severity"]) for one in found}

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(300)
            self.output.close()
