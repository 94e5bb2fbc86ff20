"""Business processes become hosts and services of a core, and their results its passive checks."""

import shutil
import threading

import pytest
from harness.configured import ConfiguredCore
from harness.cores import ICINGA2_SITE, Icinga2Core
from harness.daemon import site
from harness.expect import refused
from harness.processes import alive, patch
from harness.waiting import until

from tests.forks import REPOSITORY

SHOP = {
    "name": "Web Shop",
    "nodes": [
        {
            "label": "Whole shop",
            "function": "worst()",
            "depends": ["f"],
            "contacts": ["olga"],
            "contactgroups": ["webteam"],
            "max_check_attempts": 2,
            "notification_period": "24x7",
        },
        {
            "id": "f",
            "label": 'Front "ends" \\ ü',
            "function": "at_least(2, 1)",
            "depends": ["a"],
            "create_obj": 1,
        },
        {"id": "a", "label": "a", "function": "status('web02', 'http')"},
    ],
}
SERVICES = "GET services\nColumns: description state plugin_output\nFilter: host_name = Web Shop"


class ConfiguredIcinga2(Icinga2Core):
    """A real Icinga 2 that also reads the templates of etc and a file of processes."""

    def arguments(self):
        site = self.folder / "site.conf"
        more = [REPOSITORY / "etc" / "bp_templates.conf", self.folder / "bp.conf"]
        lines = [f'include "{path}"' for path in more]
        site.write_text("\n".join([ICINGA2_SITE.read_text(), *lines, ""]))
        self.folder.joinpath("bp.conf").touch()
        found = super().arguments()
        found[found.index(str(ICINGA2_SITE))] = str(site)
        return found


class Templated(ConfiguredCore):
    def __init__(self, folder):
        super().__init__(folder)
        shutil.copy(REPOSITORY / "etc" / "bp_templates.cfg", self.files.objects)


@pytest.fixture
def core(lab):
    """An embedded core whose files a daemon may edit, with the templates of etc."""
    return lab.core(Templated)


@pytest.fixture
def file(core):
    return core.files.objects / "bp.cfg"


@pytest.fixture
def server(core, file, made):
    """A daemon that writes the file; the site's commands check and restart the core."""
    tool = core.tool()
    return made(
        [site("s1", core, configtool=tool)],
        sections={
            "bp": {
                "refresh_interval": 0,
                "objects_save_file": str(file),
                "objects_reload_cmd": tool["obj_reload_cmd"],
            }
        },
    )


def started(core):
    return core.ask("GET status\nColumns: program_start")[0][0]


def states(core):
    return {name: (state, output) for name, state, output in core.ask(SERVICES)}


def test_a_process_is_a_host_and_its_nodes_are_services(core, file, server):
    with server.start().client() as client:
        assert client.post_json("/mon/bp", SHOP).status == 200
        assert not file.exists(), "a draft is nothing to a core"
        before = started(core)
        assert patch(client, 1, {}).status == 200
        assert started(core) > before
        (host,) = core.ask(
            "GET hosts\nColumns: alias custom_variables contacts\nFilter: name = Web Shop"
        )
        assert host[0] == "Business Process: Whole shop"
        assert host[1] == {"MON_BP_ID": "1", "MON_NODE_ID": "node1"}
        assert host[2] == ["olga"]
        label = 'Front "ends" \\ ü'
        assert states(core) == {"Whole shop": (0, ""), label: (0, "")}
        response = client.post_json("/mon/bp/1/refresh", {})
        assert response.json["data"]["bp_backend"] == "s1"
        until(lambda: states(core)[label][0] == 2, "the results are there")
        assert states(core)["Whole shop"][1].startswith("CRITICAL - Front")
        assert client.rows("/hosts/Web%20Shop?columns=state,plugin_output")[0]["state"] == 0
        with server.client("olga") as olga:
            assert olga.values("/mon/bp", "name") == ["Web Shop"]
        # The object configuration shows them and leaves them alone.
        (row,) = client.rows("/config/objects?host_name=Web%20Shop&:TYPE=host")
        assert row[":READONLY"] == 1
        # What changes no object needs no restart.
        before = started(core)
        assert patch(client, 1, {"rankDir": "LR"}).status == 200
        assert started(core) == before
        assert client.request("DELETE", "/mon/bp/1").status == 200
        assert core.ask("GET hosts\nColumns: name\nFilter: name = Web Shop") == []
        assert "define" not in file.read_text()


def test_one_that_is_refused_holds_up_no_other(core, file, server):
    """Its objects stay as they were, also after a restart of the daemon, until it is mended."""
    with server.start().client() as client:
        alive(client, SHOP)
        before, text = started(core), file.read_text()
        wrong = {"template": "no-such-template", "nodes": [{"label": "Renamed"}]}
        refused(patch(client, 1, wrong), 500, "reload command failed", "no-such-template")
        assert (started(core), file.read_text()) == (before, text)
        assert client.rows("/mon/bp/1")["template"] == "no-such-template"
        for name in ("Mail", "News"):
            answer = client.post_json("/mon/bp", {"name": name, "nodes": [{"label": "all"}]})
            response = patch(client, answer.json["data"]["id"], {})
            assert response.status == 200, response
            assert "Web Shop (1)" in response.json["description"]
            assert "no-such-template" in response.json["description"]
            assert set(states(core)) == {"Whole shop", 'Front "ends" \\ ü'}
            assert core.ask(f"GET services\nColumns: description\nFilter: host_name = {name}")
            if name == "Mail":
                server.stop()
                server.start()
        assert server.log.count("business process not exported: Web Shop (1)") == 2
        response = patch(client, 1, {"template": None})
        assert response.json == {"message": "business process successfully updated"}
        assert set(states(core)) == {"Renamed", 'Front "ends" \\ ü'}


def test_labels_that_the_core_forbids(core, file, server):
    """Refused when they are written; those of before hold up nobody."""
    with server.start().client() as client:
        alive(client, SHOP)
        main = core.files.main
        main.write_text(f"{main.read_text()}illegal_object_name_chars=`~!$%^&*|'\"<>?,()=@\n")
        words = ("nodes[1].label", 'Front "ends"', "expected none of")
        refused(patch(client, 1, {"rankDir": "LR"}), 400, "invalid name", *words)
        refused(client.post_json("/mon/bp", SHOP), 400, "invalid name", *words)
        named = {"name": "a@b", "nodes": [{"label": "all"}]}
        refused(client.post_json("/mon/bp", named), 400, "name: expected none of")
        inner = {
            "name": "Inner",
            "nodes": [SHOP["nodes"][0], {**SHOP["nodes"][1], "create_obj": 0}],
        }
        response = client.post_json("/mon/bp", inner)
        assert "nodes[1].label" in response.json["description"], "the old one is named"
        response = patch(client, 2, {})
        assert response.status == 200, response
        assert "Web Shop (1): nodes[1].label" in response.json["description"]
        assert "Inner" in file.read_text()
        nodes = {"nodes": [{}, {"host_name": "a*b", "label": "Front"}]}
        refused(patch(client, 1, nodes), 400, "invalid name", "nodes[1].host_name")
        response = patch(client, 1, {"nodes": [{}, {"label": "Front"}]})
        assert response.json == {"message": "business process successfully updated"}
        assert set(states(core)) == {"Whole shop", "Front"}


def test_a_core_that_does_not_reload_is_told_of_again(core, file, server, tmp_path):
    """The file stays changed; the next change has it read, even if the file is the same.

    A daemon that was started meanwhile knows it as well.
    """
    gate, told = tmp_path / "open", tmp_path / "told"
    command = server.sections["bp"]["objects_reload_cmd"]
    server.sections["bp"]["objects_reload_cmd"] = f"test -e {gate} && touch {told} && {command}"
    server.write_config()
    with server.start().client() as client:
        assert client.post_json("/mon/bp", SHOP).status == 200
        refused(patch(client, 1, {}), 500, "reload command failed")
        assert "Web Shop" in file.read_text()
        assert states(core) == {}
        server.stop()
        server.start()
        refused(patch(client, 1, {}), 500, "reload command failed")
        gate.touch()
        # By now other files may be broken.
        broken = core.files.write("broken.cfg", "define host {\n  use  none\n}\n")
        refused(patch(client, 1, {"rankDir": "LR"}), 500, "reload command failed", "none")
        assert not told.exists()
        broken.unlink()
        assert patch(client, 1, {"rankDir": "TB"}).status == 200
        assert "Whole shop" in states(core)


def test_a_core_that_is_away_reads_it_when_it_starts(core, file, server):
    with server.start().client() as client:
        core.stop()
        until(lambda: client.rows("/sites")[0]["connected"] == 0, "the site is away")
        alive(client, SHOP)
        core.start()
        until(lambda: client.rows("/sites")[0]["connected"] == 1, "the site is back")
        assert "Whole shop" in states(core)


def test_without_a_command_the_core_restarts_itself(core, file, server):
    server.sections["bp"]["objects_reload_cmd"] = ""
    server.write_config()
    with server.start().client() as client:
        alive(client, SHOP)
        assert "Whole shop" in states(core)


def test_a_folder_that_cannot_be_written(core, file, server):
    file.symlink_to(file.with_name("elsewhere.cfg"))
    with server.start().client() as client:
        assert client.post_json("/mon/bp", SHOP).status == 200
        refused(patch(client, 1, {}), 500, "reload command failed", "symbolic link")
    assert "Traceback" not in server.log


def test_all_that_write_at_once_are_in_the_file(core, file, server):
    """No write loses the objects of another one, and every client hears that no core has them."""
    server.sections["server"]["workers"] = 2
    server.sections["bp"]["objects_reload_cmd"] = "false"
    server.write_config()
    server.start()
    numbers = range(1, 5)
    with server.client() as client:
        for number in numbers:
            assert client.post_json("/mon/bp", {**SHOP, "name": f"P{number}"}).status == 200
    codes = []

    def commit(number):
        with server.client() as client:
            codes.append(patch(client, number, {}).status)

    threads = [threading.Thread(target=commit, args=(number,)) for number in numbers]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    text = file.read_text()
    assert [f"P{number}" for number in numbers if f" P{number}\n" not in text] == []
    # Every reload has failed; none of them lost anything.
    assert codes == [500] * 4


@pytest.mark.icinga2
def test_icinga2_reads_them_in_its_language(lab):
    core = lab.core(ConfiguredIcinga2)
    export = {
        "refresh_interval": 0,
        "objects_save_file": str(core.folder / "bp.conf"),
        "objects_save_format": "icinga2",
    }
    daemon = lab.daemon([site("s1", core)], sections={"bp": export}).start()
    with daemon.client() as client:
        alive(client, SHOP)
        label = 'Front "ends" \\ ü'
        assert set(states(core)) == {"Whole shop", label}
        exclaimed = patch(client, 1, {"nodes": [{"label": "Shop!"}]})
        refused(exclaimed, 400, "invalid name", "nodes[0].label: expected none of !")
        (host,) = core.ask(
            "GET hosts\nColumns: custom_variable_names custom_variable_values "
            "max_check_attempts\nFilter: name = Web Shop"
        )
        names = dict(zip(host[0], host[1], strict=True))
        assert names["MON_BP_ID"] == "1"
        assert host[2] == 2
        data = client.post_json("/mon/bp/1/refresh", {}).json["data"]
        assert (data["status"], data["bp_backend"]) == (2, "s1")
        until(lambda: states(core)[label][0] == 2, "the results are there")
        assert states(core)["Whole shop"][1].startswith("CRITICAL - Front")
