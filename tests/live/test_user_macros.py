"""``$USERn$`` of command lines: of a core, over an LMD, and over another instance."""

from __future__ import annotations

import pytest
from harness.cores import OBJECTS, EmbeddedCore
from harness.daemon import Daemon, site
from harness.expect import refused
from harness.federated import far_site, superuser_key
from harness.lmd import FakeLmd
from harness.waiting import until


@pytest.fixture(scope="module")
def near(ready, tmp_path_factory):
    """A daemon with a core of another instance, and with one that two sites of an LMD stand for."""
    folder = tmp_path_factory.mktemp("macros")
    objects = folder / "objects"
    objects.mkdir()
    for file in OBJECTS.glob("*.cfg"):
        text = file.read_text().replace("/usr/lib/nagios/plugins", "$USER1$")
        (objects / file.name).write_text(text)
    for name, macros in {"far": "/far", "lmd": "/lmd"}.items():
        (folder / f"{name}.cfg").write_text(f"$USER1$={macros}\n")
        (folder / name).mkdir()
    (folder / "near").mkdir()
    core = EmbeddedCore(folder, objects=objects)
    daemons, lmds = [], []
    try:
        address = f"unix:{ready(core).socket}"
        lmd = FakeLmd(folder / "lmd" / "live", dict.fromkeys("ab", core.socket))
        lmds.append(lmd)
        own = site("core", address, resource_file=str(folder / "far.cfg"))
        daemons.append(Daemon(folder / "far", [own]).start())
        sections = {
            "lmd": {
                "address": f"unix:{lmd.path}",
                "sites": [{"id": "b", "resource_file": str(folder / "lmd.cfg")}],
            },
            "display": {"commandline_obfuscate_pattern": ["[0-9]+%"]},
        }
        sites = [far_site("f", daemons[0], superuser_key(daemons[0]), section="Near")]
        daemons.append(Daemon(folder / "near", sites, sections=sections).start(connected={"f"}))
        yield daemons[1]
    finally:
        for one in (*daemons, core):
            one.stop()
        for one in lmds:
            one.close()


def test_each_site_has_its_own(near):
    """The other instance expands its own; what is hidden here is hidden in its lines as well."""
    with near.client() as client:
        until(lambda: len(client.rows("/sites")) == 3, "the sites of the LMD are known")
        rows = client.rows("/hosts/web01/commandline?sort=peer_key")
        assert [row["peer_key"] for row in rows] == ["a", "b", "f"]
        assert [row["command_line"].partition("/check")[0] for row in rows] == [
            "$USER1$", "/lmd", "/far",
        ]  # fmt: skip
        assert [bool(row["error"]) for row in rows] == [True, False, False]
        assert all("***" in row["command_line"] for row in rows)
        assert rows[2]["peer_section"] == "Near"
        (row,) = client.rows("/sites/f/services/db01/Disk%20%2Fvar/commandline")
        assert row["command_line"] == "/far/check_disk -w ***"
    with near.client("olga") as olga:
        refused(olga.get("/hosts/web01/commandline"), 403)
