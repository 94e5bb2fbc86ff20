"""A daemon on the database that one of version 0.2 has left: what users stored is there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from harness.client import Client
from harness.daemon import site

DATABASES = Path(__file__).parents[1] / "store/databases"
KEY = "34f655aba0b7e452a875ba1a0a120b140766cffa530310121e915fe24706a216_1"
"""An API key of the administrator, as version 0.2 gave it."""


def test_keys_and_records_of_before_are_there(made, embedded, tmp_path):
    daemon = made([site("demo", embedded)])
    folder = Path(daemon.sections["server"]["var_dir"])
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / "monrest.sqlite")) as old:
        for version in ("0.1", "0.2"):
            old.executescript((DATABASES / f"{version}.sqlite.sql").read_text())
    daemon.start()
    with Client(daemon.port, KEY, None) as client:
        assert client.rows("/mon/whoami")["id"] == "admin"
        names = {
            path: [one["name"] for one in client.rows(f"/mon/{path}?columns=name")]
            for path in ("broadcasts", "bp", "reports", "webhooks")
        }
        assert names == {
            "broadcasts": ["Works"], "bp": ["Shop"], "reports": ["Week"], "webhooks": ["to chat"],
        }  # fmt: skip
        assert [one["comment"] for one in client.rows("/mon/recurring_downtimes")] == ["weekly"]
        assert [one["comment"] for one in client.rows("/mon/api_keys")] == ["of before"]
        assert [one["cmd"] for one in client.rows("/mon/jobs")]
        assert client.rows("/mon/users/alice")["locked"] == 1
