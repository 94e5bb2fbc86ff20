"""What a core is, from its status row and its columns table."""

import pytest
from twisted.internet.defer import Deferred

from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    LivestatusError,
    ProtocolError,
    RefusedError,
)
from monrest.query.model import Pushed
from monrest.sites.capabilities import (
    COLUMNS_QUERY,
    STATUS_COLUMNS,
    Program,
    detect,
    read_status,
    status_query,
)
from monrest.sites.static import NAEMON, icinga2, joined, shinken

ROWS = [["hosts", "name", "string"], ["hosts", "state", "int"], ["log", "time", "time"]]


def detected(program, answer=ROWS):
    asked = []

    async def ask(pushed):
        asked.append(pushed)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = []
    Deferred.fromCoroutine(detect(program, ask)).addBoth(found.append)
    if hasattr(found[0], "raiseException"):
        found[0].raiseException()
    return found[0], asked


@pytest.mark.parametrize(
    ("program_version", "livestatus_version", "kind"),
    [
        ("1.5.2", "1.5.1-naemon", "naemon"),
        ("3.5.1", "1.2.8p25", "mk"),
        ("r2.13.6-1-icinga2", "r2.13.6-1", "icinga2"),
        ("", "2.9.0-icinga2", "icinga2"),
        ("2.4", "1.1.0-shinken", "shinken"),
    ],
)
def test_kinds(program_version, livestatus_version, kind):
    program = Program(program_version=program_version, livestatus_version=livestatus_version)
    found, asked = detected(program)
    assert found.kind == kind
    assert found.program_version == program_version
    assert found.livestatus_version == livestatus_version
    if kind in ("icinga2", "shinken"):
        assert asked == []
        assert found.tables == (icinga2() if kind == "icinga2" else shinken())
    else:
        assert asked == [COLUMNS_QUERY]
        assert found.tables == {
            "hosts": {"name": "string", "state": "int"},
            "log": {"time": "time"},
        }


@pytest.mark.parametrize("program", [Program(several=True), Program()])
def test_an_lmd_is_no_core(program):
    rows = ROWS if program.several else [*ROWS, ["hosts", "peer_key", "string"]]
    with pytest.raises(LivestatusError, match=r"this is an LMD: its address belongs in \[lmd\]"):
        detected(program, rows)


def test_an_unknown_core_without_columns_table_gets_the_shortest_list():
    found, _ = detected(Program(livestatus_version="7"), RefusedError(404, "no table"))
    assert found.tables == shinken()


def test_a_core_that_does_not_answer_is_not_guessed_at():
    with pytest.raises(BrokenConnectionError):
        detected(Program(), BrokenConnectionError("connection lost"))
    with pytest.raises(ProtocolError):
        detected(Program(), [])


def test_strange_names_and_types_stay_outside():
    rows = [*ROWS, ["ho sts", "x", "int"], ["hosts", "a\nb", "int"], ["hosts", "new", "blob"]]
    assert detected(Program(), rows)[0].tables["hosts"] == {
        "name": "string",
        "state": "int",
        "new": "string",
    }


def test_the_key_tells_cores_apart():
    first, _ = detected(Program(livestatus_version="1-naemon", program_version="1"))
    same, _ = detected(Program(livestatus_version="1-naemon", program_version="2"), ROWS[::-1])
    other, _ = detected(Program(livestatus_version="1-naemon"), ROWS[:2])
    kind, _ = detected(Program(livestatus_version="1"))
    assert first.key == same.key
    assert first.tables is same.tables
    assert len({first.key, other.key, kind.key}) == 3


def test_status():
    assert status_query(None) == Pushed(table="status", columns=STATUS_COLUMNS)
    clock = Capabilities(kind="mk", tables={"status": {"localtime": "float"}})
    assert status_query(clock).columns == (*STATUS_COLUMNS, "localtime")
    program = read_status([["1", "2", 3, 4, 5.5]])
    assert program == Program(
        program_version="1", livestatus_version="2", program_start=3, nagios_pid=4, localtime=5.5
    )
    assert read_status([["1", "2", 3, 4], ["1", "2", 3, 4]]).several
    assert read_status([[None, None, None, ""]]) == Program()
    with pytest.raises(ProtocolError):
        read_status([])


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"program_start": 2}, False),
        ({"nagios_pid": 2}, False),
        ({"program_version": "2"}, False),
        ({"localtime": 2.0}, True),
    ],
)
def test_restarts(change, same):
    assert Program().same_run(Program(**change)) is same


def test_naemon_lists_have_the_sizes_of_the_running_module():
    sizes = {table: len(columns) for table, columns in joined(NAEMON).items()}
    assert sizes == {
        "commands": 3, "comments": 221, "contactgroups": 4, "contacts": 26, "downtimes": 221,
        "hostgroups": 26, "hosts": 118, "hostsbygroup": 144, "log": 254, "servicegroups": 19,
        "services": 210, "servicesbygroup": 229, "servicesbyhostgroup": 236, "status": 41,
        "timeperiods": 11,
    }  # fmt: skip


def test_shinken_has_no_column_that_naemon_lacks_except_its_own():
    extras = {
        "is_impact", "business_impact", "source_problems", "impacts", "criticity", "is_problem",
        "realm", "poller_tag", "got_business_rule", "parent_dependencies",
    }  # fmt: skip
    for table in ("hosts", "services", "contacts", "comments"):
        own = {name for name in shinken()[table] if not name.startswith(("host_", "service_"))}
        assert own - set(NAEMON[table]) <= extras
