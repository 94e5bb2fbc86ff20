"""What the cores say of users: kept, shared, merged over sites, kept while they are away; of all."""

import pytest
from twisted.internet.defer import Deferred

from monrest.accounts.contacts import NO_CONTACT, Contacts
from monrest.base.values import Contact
from tests.fakes.keystore import value_of
from tests.fakes.livestatus import (
    NAEMON_COLUMNS,
    Script,
    as_json,
    columns_of,
    framed,
    hang,
    table_of,
)
from tests.fakes.sites import Town, outcome

CONTACT_COLUMNS = [
    *NAEMON_COLUMNS,
    ["contacts", "name", "string"],
    ["contacts", "alias", "string"],
    ["contacts", "email", "string"],
    ["contacts", "can_submit_commands", "int"],
    ["contactgroups", "name", "string"],
    ["contactgroups", "members", "list"],
]
ENTRY = ("name", "alias", "email", "can_submit_commands")
WITHOUT_RIGHTS = [one for one in CONTACT_COLUMNS if one[1] != "can_submit_commands"]


class Phonebook:
    """A core's contacts: name to (alias, email, can_submit_commands), and names of groups.

    Groups have their members, or are those of each user that is asked about.
    """

    def __init__(self, entries=None, groups=()):
        self.entries = entries or {}
        self.groups = groups
        self.asked = []

    def __call__(self, talk, request):
        self.asked.append(request)
        if table_of(request) == "contactgroups":
            members = self.groups if isinstance(self.groups, dict) else dict.fromkeys(self.groups)
            found = [{"name": name, "members": those} for name, those in members.items()]
        else:
            lines = request.splitlines()
            found = [
                dict(zip(ENTRY, (name, *values), strict=True))
                for name, values in self.entries.items()
                if b"Filter:" not in request or f"Filter: name = {name}".encode() in lines
            ]
        wanted = columns_of(request)
        talk.write(framed(as_json([[row[one] for one in wanted] for row in found])))


@pytest.fixture
def town():
    made = Town()
    made.clock.advance(1_000_000)
    yield made
    made.stop()


class Hall:
    """``sites`` as a registry has them."""

    def __init__(self, *sites):
        self.sites = sites


def core(town, id="a", book=None, columns=CONTACT_COLUMNS, **options):
    return town.site(id, Script(default=book or Phonebook(), columns=columns), **options)


def of(town, contacts, user="ann", seconds=0.5):
    found = outcome(Deferred.fromCoroutine(contacts.of(user)))
    if not found:
        town.pass_time(seconds)
    assert found, "no answer yet"
    return value_of(found)


def test_a_contact(town):
    book = Phonebook({"ann": ("Ann A.", "ann@example.org", 1)}, ["ops", "web"])
    contacts = Contacts(Hall(core(town, book=book)), town.clock)
    assert of(town, contacts) == Contact(
        groups=frozenset({"ops", "web"}),
        alias="Ann A.",
        email="ann@example.org",
        can_submit_commands=True,
    )
    assert len(book.asked) == 2
    (groups,) = [one for one in book.asked if table_of(one) == "contactgroups"]
    assert b"Filter: members >= ann" in groups.splitlines()


def test_who_is_no_contact(town):
    assert of(town, Contacts(Hall(core(town)), town.clock)) == NO_CONTACT
    assert of(town, Contacts(Hall(), town.clock)) == NO_CONTACT


def test_several_sites_are_put_together(town):
    first = Phonebook({"ann": ("First", "1@example.org", 1)}, ["ops"])
    second = Phonebook({"ann": ("Second", "2@example.org", 0)}, ["web", "ops"])
    contacts = Contacts(
        Hall(core(town, "a"), core(town, "b", first), core(town, "c", second)), town.clock
    )
    assert of(town, contacts) == Contact(
        groups=frozenset({"ops", "web"}),
        alias="First",
        email="1@example.org",
        can_submit_commands=False,  # one site forbids it for all
    )


def test_a_core_without_the_column_says_nothing_about_commands(town):
    book = Phonebook({"ann": ("Ann", "a@example.org", 0)})
    contacts = Contacts(Hall(core(town, book=book, columns=WITHOUT_RIGHTS)), town.clock)
    contact = of(town, contacts)
    assert (contact.alias, contact.can_submit_commands) == ("Ann", None)


def test_what_is_known_is_good_for_300_seconds(town):
    book = Phonebook(groups=["ops"])
    contacts = Contacts(Hall(core(town, book=book)), town.clock)
    assert of(town, contacts).groups == {"ops"}
    book.groups = ["new"]
    town.pass_time(299, 1)
    assert of(town, contacts).groups == {"ops"}
    assert len(book.asked) == 2
    town.pass_time(1)
    assert of(town, contacts).groups == {"new"}
    assert len(book.asked) == 4


def test_a_site_that_is_taken_out_says_nothing_any_more(town):
    first, second = Phonebook(groups=["ops"]), Phonebook(groups=["web"])
    hall = Hall(core(town, "a", first), core(town, "b", second))
    contacts = Contacts(hall, town.clock)
    assert of(town, contacts).groups == {"ops", "web"}
    hall.sites = hall.sites[1:]
    assert of(town, contacts).groups == {"web"}
    assert of(town, contacts).groups == {"web"}
    assert (len(first.asked), len(second.asked)) == (2, 4)


def test_users_do_not_share_what_is_known(town):
    book = Phonebook({"ann": ("Ann", "a@example.org", 1)})
    contacts = Contacts(Hall(core(town, book=book)), town.clock)
    assert of(town, contacts).alias == "Ann"
    assert of(town, contacts, "bob") == NO_CONTACT
    assert of(town, contacts, "Ann") == NO_CONTACT


def test_requests_at_the_same_time_share_one_question(town):
    book = Phonebook(groups=["ops"])
    contacts = Contacts(Hall(core(town, book=book)), town.clock)
    found = [outcome(Deferred.fromCoroutine(contacts.of("ann"))) for _ in range(20)]
    town.pass_time(0.5)
    assert [one[0].groups for one in found] == [{"ops"}] * 20
    assert len(book.asked) == 2


def test_a_client_that_leaves_does_not_end_the_question_of_the_others(town, stray_failures):
    contacts = Contacts(Hall(core(town, book=Phonebook(groups=["ops"]))), town.clock)
    leaving = Deferred.fromCoroutine(contacts.of("ann"))
    gone = outcome(leaving)
    staying = outcome(Deferred.fromCoroutine(contacts.of("ann")))
    leaving.cancel()
    assert gone
    town.pass_time(0.5)
    assert staying[0].groups == {"ops"}


def test_nothing_known_and_no_site_to_ask(town):
    contacts = Contacts(Hall(core(town, up=False)), town.clock)
    assert of(town, contacts) == NO_CONTACT


@pytest.mark.parametrize("expired", [False, True])
def test_what_is_known_stays_while_the_cores_are_away(town, expired):
    """It is asked for again after a while, or when it has expired."""
    script = Script(default=Phonebook({"ann": ("Ann", "", 0)}, ["ops"]), columns=CONTACT_COLUMNS)
    site = town.site("a", script, timeout=2.0)
    contacts = Contacts(Hall(site), town.clock)
    known = of(town, contacts)
    script.default = hang
    if expired:
        contacts.expire()
    else:
        town.pass_time(300, 1)
    assert of(town, contacts, seconds=4) == known
    assert of(town, contacts, "bob", seconds=4) == NO_CONTACT
    script.default = Phonebook(groups=["new"])
    town.pass_time(60, 1)
    assert of(town, contacts).groups == {"new"}


def test_one_site_that_is_away_leaves_in_force_what_it_said(town):
    away = Script(default=Phonebook(groups=["wheel"]), columns=CONTACT_COLUMNS)
    other = Phonebook(groups=["ops"])
    hall = Hall(town.site("a", away, timeout=2.0), core(town, "b", other))
    contacts = Contacts(hall, town.clock)
    assert of(town, contacts).groups == {"wheel", "ops"}
    away.default, other.groups = hang, ["web"]
    town.pass_time(300, 1)
    assert of(town, contacts, seconds=4).groups == {"wheel", "web"}


def test_a_slow_core_does_not_hold_up_known_users(town):
    script = Script(default=Phonebook(groups=["ops"]), columns=CONTACT_COLUMNS)
    contacts = Contacts(Hall(town.site("a", script, timeout=30.0)), town.clock)
    assert of(town, contacts).groups == {"ops"}
    script.default = hang
    town.pass_time(300, 1)
    found = outcome(Deferred.fromCoroutine(contacts.of("ann")))
    town.pass_time(4.8)
    assert found == []
    town.pass_time(0.4)
    assert found[0].groups == {"ops"}
    town.pass_time(40)


def test_users_are_not_kept_for_ever(town, monkeypatch):
    monkeypatch.setattr("monrest.accounts.contacts._REMEMBERED", 3)
    book = Phonebook()
    contacts = Contacts(Hall(core(town, book=book)), town.clock)
    for number in range(10):
        of(town, contacts, f"user{number}")
    for number, asked in ((9, 20), (7, 20), (6, 22)):
        of(town, contacts, f"user{number}")
        assert len(book.asked) == asked


def all_contacts(town, *sites):
    found = outcome(Deferred.fromCoroutine(Contacts(None, town.clock).all_contacts(sites)))
    if not found:
        town.pass_time(60)
    (value,) = found
    return value


def test_contacts_of_all_sites_with_their_groups(town):
    ann, bob = ("Ann", "", 0), ("Bob", "", 0)
    first = Phonebook({"ann": ann, "bob": bob}, {"ops": ["ann", "ghost"]})
    second = Phonebook({"ann": ("Another", "", 0)}, {"web": ["ann", "bob"]})
    sites = core(town, "a", first, WITHOUT_RIGHTS), core(town, "b", second)
    found, problems = all_contacts(town, *sites)
    assert problems == ()
    assert found == {
        "ann": Contact(
            groups=frozenset({"ops", "web"}), alias="Ann", email="", can_submit_commands=False
        ),
        "bob": Contact(groups=frozenset({"web"}), alias="Bob", email=""),
    }


def test_members_of_wrong_types(town):
    book = Phonebook({"ann": ("Ann", "", 0)})
    site = core(town, "a", book)
    for members in (None, "ann", 7, [None, 3], [["ann"]]):
        book.groups = {"ops": members}
        assert all_contacts(town, site)[0]["ann"].alias == "Ann"


def test_sites_that_do_not_answer_are_named(town):
    silent = town.site("b", Script(default=hang, columns=CONTACT_COLUMNS))
    answering = core(town, "a", Phonebook({"ann": ("Ann", "", 0)}))
    for sites, names in (((answering, silent), {"ann"}), ((silent,), set())):
        found, problems = all_contacts(town, *sites)
        assert set(found) == names
        assert [problem.site for problem in problems] == ["b"]
    assert all_contacts(town) == ({}, ())
