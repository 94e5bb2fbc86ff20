"""What of a process its reader may see, beside what tests/attack/test_visibility.py asserts."""

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


HOSTS = [("s1", "a"), ("s1", "b"), ("s2", "a")]
SERVICES = [("s1", "a", "x"), ("s1", "a", "y")]
EVERYTHING, NOTHING = (HOSTS, SERVICES), ([], [])
GROUP = "groupstatus('hostgroup', 'g')"


@each(
    ("function", "theirs", "visible"),
    [
        # The first site counts in a calculation, not what the reader sees on the second.
        ("status('a')", (HOSTS[:1], []), True),
        ("status('a')", (HOSTS[2:], []), False),
        ("status('a', '.', '~')", ([], SERVICES), True),
        ("status('a', '.', '~')", ([], SERVICES[:1]), False),
        (GROUP, EVERYTHING, True),
        (GROUP, (HOSTS[:1], SERVICES), False),
        (GROUP, (HOSTS, SERVICES[:1]), False),
        ("random()", NOTHING, True),
        ("worst()", NOTHING, True),
        ("custom('f')", EVERYTHING, False),
    ],
)
def test_one_node(function, theirs, visible):
    made = definition({"label": "root", "function": function})
    assert bool(seen(made, EVERYTHING, theirs)) is visible


def test_only_exported_nodes_are_seen_as_services():
    made = definition(
        {"id": "node1", "label": "root", "function": "worst()", "depends": ["one", "two"]},
        {"id": "one", "label": "one", "function": "best()", "depends": ["a"], "create_obj": 1},
        {"id": "two", "label": "two", "function": "status('b')"},
        {"id": "a", "label": "a", "function": "status('a')"},
    )
    assert seen(made, EVERYTHING, NOTHING, {("P", "one"), ("P", "two")}) == {"one"}


def test_what_is_left_of_a_result():
    made = definition(
        {"label": "root", "function": "worst()", "depends": ["a"]},
        {"id": "a", "label": "a", "function": "status('a')"},
    )
    states = {"node1": NodeState(2, "says a", "worst of", 5, 4, 1, 1)}
    result = ProcessResult(
        status=2, last_state_change=4, affected_peers=("s1", "s2"), bp_backend="s1", nodes=states
    )
    stored = StoredProcess(nr=1, draft=False, version=1, stamp=1, definition=made, result=result)
    left = masked(stored, (), {"s2"}).result
    assert (left.affected_peers, left.bp_backend) == (("s2",), None)
    assert left.nodes["node1"] == NodeState(2, NOT_VISIBLE, NOT_VISIBLE, last_state_change=4)
