"""``$USERn$`` of command lines: of a core, over an LMD, and over another instance."""

import pytest
from harness.cores import OBJECTS
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key
from harness.lmd import FakeLmd
from harness.waiting import until


@pytest.fixture(scope="module")
def near(shared):
    """A daemon with a core of another instance, and with one that two sites of an LMD stand for."""
    folder = shared.folder()
    objects = folder / "objects"
    objects.mkdir()
    for file in OBJECTS.glob("*.cfg"):
        text = file.read_text().replace("/usr/lib/nagios/plugins", "$USER1$")
        (objects / file.name).write_text(text)
    for name in ("far", "lmd"):
        (folder / f"{name}.cfg").write_text(f"$USER1$=/{name}\n")
    core = shared.core(objects=objects)
    lmd = shared.keep(FakeLmd(folder / "live", dict.fromkeys("ab", core.socket)))
    far = shared.daemon([site("core", core, resource_file=str(folder / "far.cfg"))]).start()
    with_macros = {"id": "b", "resource_file": str(folder / "lmd.cfg")}
    sections = {
        "lmd": {"address": lmd.address, "sites": [with_macros]},
        "display": {"commandline_obfuscate_pattern": ["[0-9]+%"]},
    }
    sites = [far_site("f", far, superuser_key(far), section="Near")]
    return shared.daemon(sites, sections=sections).start(connected={"f"})


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
