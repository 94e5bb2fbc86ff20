"""The precheck and a real ``nagios4 -v`` agree: what is refused, and which object is named.

Sites are drawn from a table of definitions: each attribute has texts that are right, of which one
is taken or none, and texts that are wrong, of which a site has a few at most. Where the two judge
differently on purpose, it is one of ``DIFFERENCES``.
"""

from __future__ import annotations

import re

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.objectconfig.model import load
from monrest.objectconfig.precheck import precheck
from tests.examples import examples
from tests.fakes.nagios4 import Nagios4
from tests.fakes.objectfiles import define

BASE = (
    define("command", "command_name cmd", "command_line /bin/true")
    + define("timeperiod", "timeperiod_name always", "alias Always", "monday 00:00-24:00")
    + define(
        "contact",
        "contact_name c1",
        "host_notification_commands cmd",
        "service_notification_commands cmd",
        "host_notification_period always",
        "service_notification_period always",
    )
    + define("contactgroup", "contactgroup_name cg1", "alias CG", "members c1")
)


@frozen
class Choice:
    """Right texts of an attribute, None for none, and wrong ones; the first is the plain one."""

    right: tuple[str | None, ...]
    wrong: tuple[str | None, ...] = ()


def choice(*right, wrong=()):
    return Choice(right, tuple(wrong))


HOSTGROUPS = choice(None, "g1", "g1,g2", "+g2", "g1,g2,!g2", "null", wrong=("nope", "g1,!g1"))
OPTIONS = choice(None, "d,u", "n", "down,unreachable", "a", "d , r", wrong=("d,x", "up"))
CONTACTS = choice(None, "c1", "+c1", "null", wrong=("nope", "c1,nope"))
CONTACT_GROUPS = choice(None, "cg1", "+cg1", "null", wrong=("nope",))
PERIOD = choice(None, "always", wrong=("nope",))
EXCEPTIONS = {
    "monday": choice("00:00-24:00", "9:00-17:00", "20:00-08:00", "09:00-10:00,11:00-12:00",
                     wrong=("00:00-25:00", "noon", "09:00-10:00, 11:00-12:00")),
    "december 25": choice(None, "00:00-00:00", wrong=("x",)),
    "day 1 - 15": choice(None, "00:00-24:00"),
    "friday -1": choice(None, "00:00-24:00"),
    "thursday -1 november": choice(None, "00:00-24:00"),
    "monday 1 january - friday 2 march / 2": choice(None, "01:00-02:00"),
    "2026-01-01 - 2026-02-01 / 3": choice(None, "01:00-02:00"),
    "someday 3": choice(None, wrong=("00:00-24:00",)),
}  # fmt: skip

SITE = (
    ("host", {
        "name": choice("ht1"), "register": choice("0"), "max_check_attempts": choice("3"),
        "check_command": choice(None, "cmd"), "contacts": choice(None, "c1"),
        "hostgroups": choice(None, "g1", "+g1"), "parents": choice(None, "null"),
    }),
    ("host", {
        "name": choice("ht2"), "register": choice("0"), "use": choice(None, "ht1"),
        "hostgroups": choice(None, "g2", "+g2"), "contact_groups": choice(None, "+cg1"),
    }),
    *(
        ("host", {
            "host_name": choice(name, wrong=(None,)),
            "use": choice("ht1", "ht1,ht2", "ht2,ht1", wrong=("nope", "null")),
            "max_check_attempts": choice("1", None, wrong=("0", "x", "-1")),
            "hostgroups": HOSTGROUPS, "contacts": CONTACTS, "contact_groups": CONTACT_GROUPS,
            "parents": choice(*parents, wrong=("nope", name)),
            "check_period": PERIOD, "notification_options": OPTIONS,
            "check_command": choice(None, "cmd", "cmd!a!b", "null", wrong=("none", "nope!a")),
            "event_handler": choice(None, "cmd!x", "null", wrong=("none!x",)),
            "check_interval": choice(None, "0", "0.5", wrong=("-1",)),
            "alias": choice(None, "An alias", "null"), "_foo": choice(None, "bar"),
            "no_such_attribute": choice(None, wrong=("1",)),
        })
        for name, parents in (("h1", (None, "null")), ("h2", (None, "h1")), ("h3", (None, "h1,h2")))
    ),
    ("hostgroup", {
        "hostgroup_name": choice("g1", wrong=(None,)), "alias": choice("G", None),
        "members": choice("h1,h2", "h1", "*", "*,!h3", None, wrong=("nope", "h1,!nope")),
    }),
    ("hostgroup", {
        "hostgroup_name": choice("g2"), "members": choice("h2", "h2,h3,!h3", None),
        "hostgroup_members": choice(None, "g1", wrong=("g2", "nope")),
    }),
    ("service", {
        "name": choice("st"), "register": choice("0"), "max_check_attempts": choice("3"),
        "check_command": choice("cmd"), "servicegroups": choice(None, "sg1"),
    }),
    ("service", {
        "service_description": choice("s1", wrong=(None,)),
        "host_name": choice("h1", "h1,h2", "*", "*,!h2", wrong=("nope", "h1,!nope", None)),
        "use": choice("st", wrong=("nope",)), "check_command": choice(None, "cmd!a", wrong=("nope",)),
        "servicegroups": choice(None, "sg1", "+sg1", "null", wrong=("nope",)),
        "contact_groups": choice(None, "cg1", wrong=("nope",)),
        "check_interval": choice(None, "1", "0", ".5", wrong=("-1",)),
        "retry_interval": choice(None, "1", wrong=("0",)),
        "parents": choice(None, "null", wrong=("nope", "s1", "h1,s1,h2", "nope,s1")),
    }),
    ("service", {
        "service_description": choice("s2"), "hostgroup_name": choice("g1", "g1,!g2", wrong=("nope",)),
        "host_name": choice("h1", "h1,h3,!h3"), "max_check_attempts": choice("1", wrong=(None,)),
        "check_command": choice("cmd", wrong=(None, "null")),
        "parents": choice(None, "h1,s1"),
    }),
    ("servicegroup", {
        "servicegroup_name": choice("sg1"), "alias": choice("SG"),
        "members": choice(None, "h1,s1", "h1,*", "h1,s1,h1,s2",
                          wrong=("h1", "h1,nope", "nope,s1")),
        "servicegroup_members": choice(None, wrong=("sg1", "nope")),
    }),
    ("hostdependency", {
        "host_name": choice("h1"), "dependent_host_name": choice("h2", "h2,h3"),
        "execution_failure_criteria": choice("d,u", "n", wrong=("x",)),
        "dependency_period": PERIOD,
    }),
    ("servicedependency", {
        "host_name": choice("h1", wrong=("nope",)),
        "service_description": choice("s1", wrong=("nope", None)),
        "dependent_host_name": choice("h1", None), "dependent_service_description": choice("s2"),
        "notification_failure_criteria": choice("w,c", "n", wrong=("x",)),
    }),
    ("hostescalation", {
        "host_name": choice("h1", "*", wrong=("nope", None)), "hostgroup_name": choice(None, "g1"),
        "contacts": choice("c1", wrong=("nope",)), "first_notification": choice("1"),
        "last_notification": choice("3"), "notification_interval": choice("10"),
        "escalation_period": PERIOD,
    }),
    ("serviceescalation", {
        "host_name": choice("h1", wrong=("nope",)), "service_description": choice("s1", "*"),
        "contact_groups": choice("cg1", wrong=("nope",)), "first_notification": choice("1"),
        "last_notification": choice("0"), "notification_interval": choice("10"),
    }),
    ("timeperiod", {
        "timeperiod_name": choice("t2"), "alias": choice("T", wrong=(None,)),
        "exclude": choice(None, "always", wrong=("t2", "nope")),
        "use": choice(None, "tt", wrong=("nope",)), **EXCEPTIONS,
    }),
    ("timeperiod", {"name": choice("tt"), "register": choice("0"), "sunday": choice("00:00-24:00")}),
    ("contact", {
        "contact_name": choice("c2", wrong=(None,)),
        "host_notification_commands": choice("cmd", wrong=("nope", None)),
        "service_notification_commands": choice("cmd", "cmd!a,cmd"),
        "contactgroups": choice(None, "cg1", wrong=("nope",)),
        "host_notification_period": choice("always", wrong=("nope",)),
        "service_notification_period": choice("always"),
        "address6": choice(None, "x"), "address7": choice(None, wrong=("x",)),
    }),
    ("contactgroup", {
        "contactgroup_name": choice("cg2"), "alias": choice("CG", None),
        "members": choice("c1,c2", "c2", "*,!c1", wrong=("nope",)),
        "contactgroup_members": choice(None, "cg1", wrong=("cg2", "nope")),
    }),
)  # fmt: skip
"""Every definition of a site with what its attributes may be."""

TWICE = ("host", "hostgroup", "service", "timeperiod", "contact", "contactgroup", "servicegroup")
"""Types of which a definition may come twice."""

FAULTS = (
    *((index, name, text) for index, (_, attributes) in enumerate(SITE)
      for name, one in attributes.items() for text in one.wrong),
    *((index, "", None) for index, (kind, _) in enumerate(SITE) if kind in TWICE),
)  # fmt: skip
"""All that can be wrong: definition, attribute and its text; without an attribute it comes twice."""

DIFFERENCES = {
    "a service that is defined twice": (
        "precheck",
        r"duplicate service definition",
        "the core warns and keeps the last one; the other one is without effect",
    ),
    "a definition without a name that others use": (
        "precheck",
        r"object has no name",
        "the core takes it for a template without register 0, and there is no such object",
    ),
    "host dependencies": (
        "precheck",
        r"(?:referenced host \S+ does not exist|hostdependency .* has no) ",
        "Nagios tells of a host dependency that leads nowhere and starts without it",
    ),
    "circular dependencies": (
        "core",
        r"Circular (?:execution|notification) dependency",
        "the precheck does not follow dependencies",
    ),
    "a site without services": (
        "core",
        r"There are no services defined",
        "a Naemon starts without services",
    ),
}
"""Difference to who refuses, the text of it, and why. Everything else is agreed on."""


def pattern(who):
    return re.compile("|".join(text for one, text, _ in DIFFERENCES.values() if one == who))


STRICTER, UNSEEN = pattern("precheck"), pattern("core")


def rendered(texts, faults=()):
    """The text of a site and its definitions by the line of their ``define``."""
    lines = BASE.split("\n")[:-1]
    places = {}
    wrong = {(index, name): text for index, name, text in faults if name}
    twice = [index for index, name, _ in faults if not name]
    for index in sorted([*range(len(SITE)), *twice]):
        kind, attributes = SITE[index]
        own = {name: wrong.get((index, name), texts[index, name]) for name in attributes}
        own = {name: text for name, text in own.items() if text is not None}
        places[len(lines) + 1] = (kind, own)
        lines += [f"define {kind} {{", *(f"  {name} {text}" for name, text in own.items()), "}"]
    return "\n".join([*lines, ""]), places


def plain():
    """Every attribute with its plain text."""
    return {
        (index, name): one.right[0]
        for index, (_, attributes) in enumerate(SITE)
        for name, one in attributes.items()
    }


@st.composite
def sites(draw):
    """The texts of a site, most of them plain, and what is wrong with it."""
    texts = plain()
    places = st.sampled_from(sorted(texts))
    for index, name in draw(st.lists(places, max_size=25, unique=True)):
        texts[index, name] = draw(st.sampled_from(SITE[index][1][name].right))
    return texts, draw(st.lists(st.sampled_from(FAULTS), max_size=2, unique=True))


@pytest.fixture(scope="module")
def nagios(tmp_path_factory):
    return Nagios4(tmp_path_factory.mktemp("nagios4"))


def disagreement(nagios, text, places):
    """In what the two differ about a site, beside the differences that are declared."""
    (nagios.objects / "x.cfg").write_text(text)
    verdict = nagios.judge()
    problems = precheck(load(nagios.tool))
    serious = [one for one in problems if not STRICTER.search(one)]
    errors = [one for one in verdict.errors if not UNSEEN.search(one)]
    if verdict.accepts and serious:
        return f"only the precheck refuses: {serious}"
    if verdict.accepts or (verdict.errors and not errors):
        return ""
    if not errors:
        return f"the core refuses and says nothing: {verdict.output}"
    if not problems:
        return f"only the core refuses: {errors}"
    told = {int(found) for one in problems for found in re.findall(r"x\.cfg:(\d+)", one)}
    if not any(_named(one, places) & (told | _definitions(told, places)) for one in errors):
        return f"the core names {errors}, the precheck {problems}"
    return ""


def _definitions(lines, places):
    """The definitions in which these lines stand."""
    return {max((start for start in places if start <= line), default=0) for line in lines}


def _named(error, places):
    """The definitions that an error of the core is about: by their line, or by their names."""
    lines = {int(line) for line in re.findall(r"line (\d+)", error)}
    found = _definitions(lines, places)
    names = set(re.findall(r"'([^']*)'", error))
    keys = ("host_name", "service_description", "name", "contact_name", "timeperiod_name",
            "hostgroup_name", "servicegroup_name", "contactgroup_name")  # fmt: skip
    for start, (_, own) in places.items():
        if names & {own.get(key) for key in keys}:
            found.add(start)
    return found | {
        start
        for start, (kind, own) in places.items()
        for user in set(found)
        if own.get("name") in places.get(user, (kind, {}))[1].get("use", "").split(",")
    }


def test_both_take_the_plain_site(nagios):
    text, places = rendered(plain())
    assert disagreement(nagios, text, places) == ""
    assert nagios.judge().accepts
    assert precheck(load(nagios.tool)) == []


def test_they_agree_on_every_text_that_is_right(nagios):
    """Each one alone in the plain site."""
    wrong = {}
    for index, (kind, attributes) in enumerate(SITE):
        for name, one in attributes.items():
            for text in one.right[1:]:
                site, places = rendered({**plain(), (index, name): text})
                if found := disagreement(nagios, site, places):
                    wrong[kind, index, name, text] = found
    assert wrong == {}


def test_they_agree_on_every_text_that_is_wrong(nagios):
    """Each one alone in the plain site is refused by both, but for what is declared."""
    wrong = {}
    for fault in FAULTS:
        site, places = rendered(plain(), [fault])
        if found := disagreement(nagios, site, places):
            wrong[SITE[fault[0]][0], *fault] = found
    assert wrong == {}


@settings(max_examples=examples(150))
@given(sites())
def test_they_agree_on_generated_sites(nagios, drawn):
    text, places = rendered(*drawn)
    assert disagreement(nagios, text, places) == ""
