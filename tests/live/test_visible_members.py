"""Lists and counters of groups and hosts are those of the objects that the user may see.

What each user sees of groups is compared with what the same user sees in ``/hosts`` and ``/services``.
"""

from contextlib import ExitStack
from functools import cached_property

import pytest
from harness.daemon import site
from harness.federated import far_site, superuser_key
from harness.lmd import FakeLmd
from harness.waiting import until

from monrest.rows.columns import SCHEMAS

ROLES = {
    "all_hosts": ["hostviewer", "viewer"],
    "all_services": ["serviceviewer", "viewer"],
    "configuration_information": ["viewer"],
}
USERS = ("admin", "viewer", "olga", "hostviewer", "serviceviewer", "nobody")
"""olga is a contact of the host web01 and of the service ping on db01."""

GROUPS = ("hostgroups", "servicegroups", "contactgroups")
WORDS = {"ok": 0, "warn": 1, "crit": 2, "unknown": 3, "up": 0, "down": 1, "unreach": 2}
WORST = {"service": (0, 1, 3, 2), "host": (0, 2, 1)}
STATES = "state,has_been_checked,state_type,last_hard_state"

_OF_AN_OBJECT = (
    "parents",
    "childs",
    "contacts",
    "contact_groups",
    "depends_exec",
    "depends_notify",
)
"""An object's own definition names others."""


class View:
    """What a user sees through a daemon."""

    def __init__(self, client, strict):
        self.client, self.strict, self.collections = client, strict, {}

    @cached_property
    def hosts(self):
        return self.client.rows(f"/hosts?columns=name,peer_key,plugin_output,{STATES}")

    @cached_property
    def services(self):
        return self.client.rows(
            f"/services?columns=host_name,description,peer_key,plugin_output,{STATES}"
        )

    def rows(self, collection):
        """All columns of a collection, which no test changes."""
        if collection not in self.collections:
            names = ",".join([*SCHEMAS[collection].columns, "peer_key"])
            answer = self.client.post_form(f"/{collection}", {"columns": names}).json
            self.collections[collection] = answer
        return self.collections[collection]


def in_state(objects, word, *, hard=False):
    if word == "pending":
        return sum(not one["has_been_checked"] for one in objects)
    key = "last_hard_state" if hard else "state"
    return sum(
        one["has_been_checked"] and one[key if one["state_type"] == 0 else "state"] == WORDS[word]
        for one in objects
    )


def expected(column, hosts, services):
    """A counter of visible objects by the name of its column."""
    kind = "host" if "host" in column else "service"
    objects = hosts if kind == "host" else services
    if column.startswith("worst"):
        checked = [one["state"] for one in objects if one["has_been_checked"]]
        return max(checked, key=WORST[kind].index, default=0)
    word = column.rsplit("_", 1)[-1]
    return len(objects) if word.endswith("s") else in_state(objects, word, hard="hard" in column)


def checked_columns(row, hosts, services):
    for column in row:
        if column.startswith(("num_", "worst_", "total_")):
            wanted = [
                expected(
                    column,
                    [one for one in hosts if one["peer_key"] == key],
                    [one for one in services if one["peer_key"] == key],
                )
                for key in sorted({one["peer_key"] for one in hosts + services})
            ]
            joined = max(wanted, default=0) if column.startswith("worst") else sum(wanted)
            assert row[column] == joined, (row["name"], column)


def with_state(objects, *names):
    return sorted([one[name] for name in names] for one in objects)


@pytest.fixture(
    scope="module",
    params=[("cores", False), ("cores", True), ("lmd", True), ("federation", False)],
    ids=lambda param: f"{param[0]}-{'strict' if param[1] else 'loose'}",
)
def views(request, embedded, shared):
    """What each user sees; of a strict daemon a host's contact does not see its services."""
    kind, strict = request.param
    sections = {"auth.roles": ROLES, "auth": {"strict_host_authorization": strict}}
    sites = [site("a", embedded), site("b", embedded)]
    if kind == "lmd":
        lmd = shared.keep(FakeLmd(shared.folder() / "lmd", dict.fromkeys("ab", embedded.socket)))
        sites, sections["lmd"] = [], {"address": lmd.address}
    if kind == "federation":
        # The other side knows these users as administrators: what they see is decided here.
        everybody = {"auth.roles": {"admin": ["admin", *USERS]}}
        far = shared.daemon([site("core", embedded)], sections=everybody).start()
        sites = [site("a", embedded), far_site("b", far, superuser_key(far))]
    daemon = shared.daemon(sites, sections=sections).start()
    with ExitStack() as clients:
        views = {user: View(clients.enter_context(daemon.client(user)), strict) for user in USERS}
        until(
            lambda: sum(views["admin"].client.values("/sites", "connected")) == 2,
            "both sites are up",
        )
        yield views
    daemon.stop()


@pytest.fixture
def whole(views):
    return views["admin"]


@pytest.fixture(params=USERS)
def view(request, views):
    return views[request.param]


def test_users_see_what_they_shall(view):
    counts = (len(view.hosts), len(view.services))
    assert (
        counts
        == {
            "admin": (12, 22),
            "viewer": (12, 22),
            "olga": (2, 2 if view.strict else 10),
            "hostviewer": (12, 0),
            "serviceviewer": (0, 22),
            "nobody": (0, 0),
        }[view.client.user]
    )


def test_host_groups(view, whole):
    members = {row["name"]: set(row["members"]) for row in whole.rows("hostgroups")}
    assert members["linux"] == {"db01", "web01", "web02"}
    rows = view.rows("hostgroups")
    assert [row["name"] for row in rows] == sorted(members)
    for row in rows:
        hosts = [one for one in view.hosts if one["name"] in members[row["name"]]]
        services = [one for one in view.services if one["host_name"] in members[row["name"]]]
        assert sorted(row["members"]) == sorted(one["name"] for one in hosts)
        states = with_state(hosts, "name", "state", "has_been_checked")
        assert sorted(row["members_with_state"]) == states
        checked_columns(row, hosts, services)


def test_service_groups(view, whole):
    members = {row["name"]: list(row["members"]) for row in whole.rows("servicegroups")}
    for row in view.rows("servicegroups"):
        services = [
            one
            for one in view.services
            if [one["host_name"], one["description"]] in members[row["name"]]
        ]
        assert sorted(row["members"]) == with_state(services, "host_name", "description")
        names = ("host_name", "description", "state", "has_been_checked")
        assert sorted(row["members_with_state"]) == with_state(services, *names)
        checked_columns(row, [], services)


def test_contact_groups(view, whole):
    seen = set(view.client.values("/contacts", "name"))
    assert ("admin" in seen) == (view.client.user in ("admin", "viewer"))
    members = {
        (row["name"], row["peer_key"]): row["members"] for row in whole.rows("contactgroups")
    }
    for row in view.rows("contactgroups"):
        visible = [one for one in members[row["name"], row["peer_key"]] if one in seen]
        assert row["members"] == visible
    assert any(members.values())


@pytest.mark.parametrize("prefix", ["", "host_"])
def test_services_of_a_host(view, prefix):
    """Those that the columns of a host tell, also behind the name of one of its services."""
    rows = view.rows("services" if prefix else "hosts")
    for row in rows:
        name = row[f"{prefix}name"]
        row = {
            key.removeprefix(prefix): value
            for key, value in row.items()
            if key.startswith(prefix) or key == "peer_key"
        }
        services = [
            one
            for one in view.services
            if (one["host_name"], one["peer_key"]) == (name, row["peer_key"])
        ]
        assert sorted(row["services"]) == sorted(one["description"] for one in services)
        names = ("description", "state", "has_been_checked", "plugin_output")
        assert sorted(row["services_with_info"]) == with_state(services, *names)
        assert sorted(row["services_with_state"]) == with_state(services, *names[:3])
        checked_columns(row, [], services)


def test_no_filter_order_or_sum_tells_more(view):
    """All of them look at what is shown."""
    rows = view.rows("hostgroups")

    def asked(query):
        return view.client.rows(f"/hostgroups?{query}")

    for column in ("num_services_crit", "worst_host_state", "num_hosts", "worst_service_state"):
        for least in (1, 2):
            found = asked(f"columns=name&{column}[gte]={least}")
            assert [one["name"] for one in found] == [
                row["name"] for row in rows if row[column] >= least
            ]
            found = asked(f"columns=name&q={column}%20%3E=%20{least}")
            assert len(found) == sum(row[column] >= least for row in rows)
        assert asked(f"columns={column}&sort=-{column}") == [
            {column: value} for value in sorted((row[column] for row in rows), reverse=True)
        ]
        assert asked(f"columns=sum({column})%20as%20n")["n"] == sum(row[column] for row in rows)
        both = asked(f"columns=count(*)%20as%20n,{column}&{column}[gt]=0")
        assert sum(row["n"] for row in both) == sum(row[column] > 0 for row in rows)
    names = [row["name"] for row in rows if "web02" in row["members"]]
    assert [row["name"] for row in asked("columns=name&members[gte]=web02")] == names
    made = asked("columns=to_rows(members)%20as%20m")
    assert len(made) == sum(len(row["members"]) for row in rows)
    first = view.client.rows("/hostgroups/linux")[0]
    assert first["members"] == next(row for row in rows if row["name"] == "linux")["members"]


def test_statistics_count_what_is_visible(view):
    hosts = view.rows("hosts")
    critical = sum(row["num_services_crit"] > 0 for row in hosts)
    found = view.client.rows("/hosts/totals?num_services_crit[gt]=0")
    assert found["total"] == critical
    assert (
        view.client.rows("/hosts?columns=count(*)%20as%20n&num_services_crit[gt]=0")["n"]
        == critical
    )
    web = [row for row in hosts if "web" in row["groups"]]
    assert view.client.rows("/hostgroups/web/stats")["total"] == len(web)
    assert view.client.rows("/hosts/stats?services[gte]=http")["total"] == sum(
        "http" in row["services"] for row in hosts
    )
    services = view.rows("services")
    assert view.client.rows("/services/totals?host_num_services_crit[gt]=0")["total"] == sum(
        row["host_num_services_crit"] > 0 for row in services
    )


def texts(value, column=""):
    """All texts in a document, without those of an object's own definition."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not key.endswith(_OF_AN_OBJECT) and not key.startswith("depends"):
                yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


def test_nothing_of_a_hidden_object_is_in_any_column_of_any_collection(view, whole):
    seen = {one["name"] for one in view.hosts} | {one["host_name"] for one in view.services}
    shown = {one["plugin_output"] for one in view.hosts + view.services}
    # A service shows what its host says.
    shown |= {one["host_plugin_output"] for one in view.rows("services")}
    outputs = {one["plugin_output"] for one in whole.hosts + whole.services} - shown - {""}
    hidden = ({one["name"] for one in whole.hosts} - seen) | outputs
    assert bool(hidden) == (view.client.user not in ("admin", "viewer"))
    for collection in SCHEMAS:
        if collection in ("commands", "processinfo"):
            continue
        found = set(texts(view.rows(collection)))
        assert not found & hidden, collection


def test_a_core_counts_the_same_for_whom_all_is_visible(whole, view):
    if view.client.user == "viewer":
        for collection in GROUPS:
            assert view.rows(collection) == whole.rows(collection)
