"""What of a process its reader may see; pure."""

from datetime import UTC

from monrest.bp.calculation import add_needs
from monrest.bp.core_rows import Needs
from monrest.bp.model import StoredProcess, read
from monrest.bp.node_state import NodeState, ProcessResult
from monrest.bp.runner import NOT_VISIBLE, masked, visible_nodes
from monrest.query.functions import Moment
from tests.bp import town
from tests.bp.town import NOW
from tests.table import each


def definition(*nodes):
    return read({"name": "P", "nodes": list(nodes)})


def live(made, hosts=(), services=()):
    """What the cores say of these (site, host) and (site, host, service)."""
    needs = Needs()
    add_needs(needs, made, (), members=True)
    rows = {
        "hosts": [(site, {"name": host, "groups": ["g"]}) for site, host in hosts],
        "services": [
            (site, {"host_name": host, "description": name, "host_groups": ["g"]})
            for site, host, name in services
        ],
    }
    return town.live(needs, rows)


def seen(made, everything, theirs, services=()):
    now = Moment(NOW, UTC)
    return visible_nodes(made, live(made, *everything), live(made, *theirs), services, now)


def leaf(function):
    return definition({"label": "root", "function": function})


HOSTS = [("s1", "a"), ("s1", "b")]
SERVICES = [("s1", "a", "x"), ("s1", "a", "y")]


@each(
    ("function", "theirs", "visible"),
    [
        ("status('a')", ([("s1", "a")], []), True),
        ("status('a')", ([("s1", "b")], []), False),
        ("status('c')", (HOSTS, []), False),
        ("status('a', 'x')", ([], [("s1", "a", "x")]), True),
        ("status('a', 'x')", (HOSTS, [("s1", "a", "y")]), False),
        ("status('a', '.', '~')", ([], SERVICES), True),
        ("status('a', '.', '~')", ([], SERVICES[:1]), False),
        ("status('a', 'z', '~')", ([], SERVICES), False),
        ("groupstatus('hostgroup', 'g')", (HOSTS, SERVICES), True),
        ("groupstatus('hostgroup', 'g')", (HOSTS[:1], SERVICES), False),
        ("groupstatus('hostgroup', 'g')", (HOSTS, SERVICES[:1]), False),
        ("groupstatus('hostgroup', 'none')", (HOSTS, SERVICES), False),
        ("fixed('OK')", ([], []), True),
        ("random()", ([], []), True),
        ("custom('f')", (HOSTS, SERVICES), False),
        ("worst()", ([], []), True),
    ],
)
def test_one_node(function, theirs, visible):
    assert bool(seen(leaf(function), (HOSTS, SERVICES), theirs)) is visible


def test_the_object_of_another_site_is_another_one():
    """The first site counts in a calculation, whatever the reader sees on the second."""
    both = ([("s1", "a"), ("s2", "a")], [])
    assert seen(leaf("status('a')"), both, ([("s2", "a")], [])) == frozenset()
    assert seen(leaf("status('a')"), both, ([("s1", "a")], [])) == {"node1"}


def test_parents_and_exported_nodes():
    made = definition(
        {"id": "node1", "label": "root", "function": "worst()", "depends": ["one", "two"]},
        {"id": "one", "label": "one", "function": "best()", "depends": ["a"], "create_obj": 1},
        {"id": "two", "label": "two", "function": "status('b')"},
        {"id": "a", "label": "a", "function": "status('a')"},
    )
    everything, nothing = (HOSTS, []), ([], [])
    assert seen(made, everything, nothing) == frozenset()
    assert seen(made, everything, nothing, {("P", "one")}) == {"one"}
    assert seen(made, everything, nothing, {("P", "two")}) == frozenset(), "it is not exported"
    assert seen(made, everything, ([("s1", "b")], []), {("P", "one")}) == {"node1", "one", "two"}


def test_what_is_left_of_a_result():
    made = definition(
        {"id": "node1", "label": "root", "function": "worst()", "depends": ["a"]},
        {"id": "a", "label": "a", "function": "status('a')"},
    )
    states = {
        "node1": NodeState(2, "says a", "worst of", 5, 4, 1, 1),
        "a": NodeState(2, "secret", "secret", 5, 4, 1, 1, "7", "s1"),
    }
    result = ProcessResult(
        status=2, status_text="CRITICAL - a critical", last_check=9, last_state_change=4,
        affected_peers=("s1", "s2"), bp_backend="s1", nodes=states,
    )  # fmt: skip
    stored = StoredProcess(nr=1, draft=False, version=1, stamp=1, definition=made, result=result)
    left = masked(stored, (), {"s2"}).result
    assert (left.status, left.status_text, left.last_state_change) == (2, NOT_VISIBLE, 4)
    assert (left.affected_peers, left.bp_backend) == (("s2",), None)
    hidden = NodeState(4, NOT_VISIBLE, NOT_VISIBLE)
    assert left.nodes == {
        "node1": hidden._replace(status=2, last_state_change=4),
        "a": hidden,
    }
    assert masked(stored, {"node1", "a"}, {"s1", "s2"}).result == result
