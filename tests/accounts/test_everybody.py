"""All contacts of all sites, as the list of users shows them."""

import pytest
from twisted.internet.defer import Deferred

from monrest.accounts.contacts import Contacts
from monrest.base.values import Contact
from tests.fakes.livestatus import (
    NAEMON_COLUMNS,
    Script,
    as_json,
    columns_of,
    framed,
    hang,
    table_of,
)
from tests.fakes.sites import outcome

COLUMNS = [
    *NAEMON_COLUMNS,
    ["contacts", "name", "string"],
    ["contacts", "alias", "string"],
    ["contacts", "email", "string"],
    ["contactgroups", "name", "string"],
    ["contactgroups", "members", "list"],
]


def core(town, id, contacts, groups, columns=COLUMNS):
    """A site with contacts (name, alias) and groups (name, members)."""

    def answer(talk, request):
        if table_of(request) == "contactgroups":
            rows = [{"name": name, "members": members} for name, members in groups]
        else:
            rows = [
                {"name": name, "alias": alias, "email": "", "can_submit_commands": 0}
                for name, alias in contacts
            ]
        wanted = columns_of(request)
        talk.write(framed(as_json([[row[one] for one in wanted] for row in rows])))

    return town.site(id, Script(default=answer, columns=columns))


def all_contacts(town, *sites):
    found = outcome(Deferred.fromCoroutine(Contacts(None, town.clock).all_contacts(sites)))
    if not found:
        town.pass_time(60)
    (value,) = found
    return value


def test_contacts_of_all_sites_with_their_groups(town):
    with_rights = [*COLUMNS, ["contacts", "can_submit_commands", "int"]]
    first = core(town, "a", [("ann", "Ann"), ("bob", "Bob")], [("ops", ["ann", "ghost"])])
    second = core(town, "b", [("ann", "Another")], [("web", ["ann", "bob"])], with_rights)
    found, problems = all_contacts(town, first, second)
    assert problems == ()
    assert found == {
        "ann": Contact(
            groups=frozenset({"ops", "web"}), alias="Ann", email="", can_submit_commands=False
        ),
        "bob": Contact(groups=frozenset({"web"}), alias="Bob", email=""),
    }


@pytest.mark.parametrize("members", [None, "ann", 7, [None, 3], [["ann"]]])
def test_members_of_wrong_types(town, members):
    found, _ = all_contacts(town, core(town, "a", [("ann", "Ann")], [("ops", members)]))
    assert found["ann"].alias == "Ann"


def test_sites_that_do_not_answer_are_named(town):
    silent = town.site("b", Script(default=hang, columns=COLUMNS))
    found, problems = all_contacts(town, core(town, "a", [("ann", "Ann")], []), silent)
    assert set(found) == {"ann"}
    assert [problem.site for problem in problems] == ["b"]
    found, problems = all_contacts(town, silent)
    assert found == {}
    assert [problem.site for problem in problems] == ["b"]
    assert all_contacts(town) == ({}, ())
