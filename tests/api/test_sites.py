"""The list of sites: what it tells, to whom, and that it is a list like any other."""

import pytest

from monrest.base.values import ADMIN, ANONYMOUS, ROLES, Identity
from tests.api.asking import answer, records
from tests.fakes.context import KnownContacts, make_context
from tests.fakes.sites import Town

INFORMED = Identity(user="ann", roles=frozenset({"authorized_for_system_information"}))
ANN = Identity(user="ann")
ADDRESS = "/run/core/live"


@pytest.fixture
def town():
    made = Town()
    made.clock.advance(1_000_000)
    yield made
    made.stop()


@pytest.fixture
def context(town):
    """A living, a hidden, a dead and a site that is not asked yet, in this order."""
    return make_context(
        town.clock,
        town.site("up", name="Berlin", section="Europe"),
        town.site("hid", name="athens", hidden=True),
        town.site("dead", up=False),
        town.site("new", start=False),
    )


def ask(context, *parameters, identity=INFORMED, path="/sites", selected=()):
    return answer(context, path, *parameters, identity=identity, sites=selected)


def ids(found):
    return [one["id"] for one in records(found)]


def test_addresses_need_the_role(context):
    for row in records(ask(context, identity=ANN)):
        assert (row["addr"], row["federation_addr"]) == ("", [""])
        assert ADDRESS not in str(row)
    for row in records(ask(context, ("addr", ADDRESS), identity=INFORMED)):
        assert row["addr"] == ADDRESS
    # Who may not see an address must not find it by a filter either.
    assert ids(ask(context, ("addr", ADDRESS), identity=ANN)) == []
    assert ids(ask(context, ("federation_addr[gte]", ADDRESS), identity=ANN)) == []


def test_what_runs_there_and_why_it_fails_need_the_role(context):
    for row in records(ask(context, identity=ANN)):
        assert (row["last_error"], row["federation_version"]) == ("", [""])
        assert row["connected"] == int(row["id"] in ("up", "hid"))
    assert ids(ask(context, ("last_error[ne]", ""), identity=ANN)) == []
    assert ids(ask(context, ("last_error[ne]", ""))) == ["dead"]


@pytest.fixture
def divided(town):
    """A site for all, one for two groups, a hidden one for one group."""
    return make_context(
        town.clock,
        town.site("open"),
        town.site("team", name="Team", section="Asia", groups=("web", "db")),
        town.site("night", section="Asia", groups=("night",), hidden=True),
        contacts=KnownContacts(ann=("db", "x"), eve=("night", "web"), bob=("webs", "")),
    )


ROOT = Identity(user="root", roles=frozenset({"authorized_for_admin"}))


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (ANN, ["open", "team"]),
        (Identity(user="eve"), ["open", "team", "night"]),
        (Identity(user="bob"), ["open"]),
        (Identity(user="nobody"), ["open"]),
        (Identity(user="bob", roles=frozenset(ROLES) - {ADMIN}), ["open"]),
        (ROOT, ["open", "team", "night"]),
        (Identity(user="(api)", superuser=True), ["open", "team", "night"]),
        (ANONYMOUS, ["open"]),
    ],
)
def test_sites_of_other_groups_do_not_exist(divided, identity, expected):
    assert ids(ask(divided, identity=identity)) == expected
