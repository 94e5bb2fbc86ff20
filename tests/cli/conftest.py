"""Fixtures of the command line: a fake daemon, and the command in this process."""

import pytest

from monrest.cli.main import main
from tests.cli.fake import Fake


class Ran:
    """How a run ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.close()


@pytest.fixture
def monrest(fake, capfd, monkeypatch, tmp_path):
    """Run ``monrest`` with these words against the fake daemon."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MONREST_URL", fake.url)
    for name in ("MONREST_KEY", "MONREST_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("monrest.cli.client_settings.SYSTEM_FILE", str(tmp_path / "system.toml"))

    def run(*words):
        status = main(words)
        captured = capfd.readouterr()
        return Ran(status, captured.out, captured.err)

    return run
