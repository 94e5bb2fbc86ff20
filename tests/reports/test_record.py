"""Records of reports: what may be in one, who may do what, what the search means."""

from __future__ import annotations

from datetime import UTC

import pytest

from monrest.base.errors import BadRequest
from monrest.base.values import ADMIN, Identity
from monrest.query.model import Condition, Group
from monrest.reports.model import Report, checked, shown_permissions
from monrest.reports.sheet import _WORDS, speaker
from monrest.reports.templates import LANGUAGES, TEMPLATES
from tests.reports.samples import NOW, report
from tests.table import each

NEEDED = {
    "sla_host.tt": {"host": "h"},
    "sla_host_outage.tt": {"host": "h"},
    "sla_hostgroup.tt": {"hostgroup": "g"},
    "sla_servicegroup.tt": {"servicegroup": "g"},
    "sla_service.tt": {"host": "h", "service": "s"},
    "sla_service_outage.tt": {"host": "h", "service": "s"},
    "sla_business_process.tt": {"businessprocess": "b"},
}
ALSO = {"report_from_url.tt": {"url": "/mon/r/hosts"}}  # fmt: skip


@each("template", sorted(TEMPLATES))
def test_defaults(template):
    """Defaults are filled in, and checking what came out changes nothing."""
    record = checked({"template": template, "params": (NEEDED | ALSO).get(template, {})}, TEMPLATES)
    assert (record["name"], record["desc"], record["failed_backends"]) == (
        "New Report", "Description", "cancel",
    )  # fmt: skip
    for name, value in TEMPLATES[template].defaults.items():
        assert record["params"][name] == value
    assert checked(record, TEMPLATES) == record


def test_what_the_defaults_are():
    params = checked({"template": "sla_report.tt"}, TEMPLATES)["params"]
    assert params == {
        "breakdown": "months", "decimals": 2, "details_max_level": 100, "filter_type": "Both",
        "graph_min_sla": 90, "language": "en", "mail_max_level": -1, "max_outages_pages": -1,
        "max_pnp_sources": 1, "max_worst_pages": 1, "sla": 98, "timeperiod": "last12months",
        "unavailable": ["down", "unreachable", "critical", "unknown"],
    }  # fmt: skip
    outage = checked({"template": "sla_outage.tt"}, TEMPLATES)["params"]
    assert (outage["timeperiod"], outage["breakdown"], outage["mail_max_level"]) == (
        "lastweek", "days", 100,
    )  # fmt: skip


@each("template", sorted(NEEDED))
def test_required_params(template):
    for name in NEEDED[template]:
        for empty in ({}, {name: ""}, {name: []}, {name: " , "}):
            with pytest.raises(BadRequest) as caught:
                checked(
                    {"template": template, "params": {**NEEDED[template], name: None, **empty}},
                    TEMPLATES,
                )
            assert caught.value.description == f"params.{name}: expected at least one name"


@each(
    ("fields", "words"),
    [
        ({"template": "nothing.tt"}, "template: expected one of eventlog.tt"),
        ({"template": "../x.tt"}, "template: expected one of"),
        ({"template": 7}, "template: expected one of"),
        ({}, "template: expected one of"),
        ({"params": []}, "params: expected an object"),
        ({"params": "sla=9"}, "params: expected an object, in a form as JSON"),
        ({"params": "[1]"}, "params: expected an object"),
        ({"send_types": "daily"}, "send_types: expected a list, in a form as JSON"),
        ({"params": {"sla": "much"}}, "params.sla: expected a number from 0 to 100"),
        ({"params": {"sla": "nan"}}, "params.sla: expected a number from 0 to 100"),
        ({"params": {"sla": [1]}}, "params.sla: expected a text"),
        ({"params": {"decimals": 1.5}}, "params.decimals: expected a whole number from 0 to 6"),
        ({"params": {"timeperiod": "nextweek"}}, "params.timeperiod: expected one of today"),
        ({"params": {"timeperiod": "custom"}}, "params.t1: expected a time"),
        ({"params": {"timeperiod": "custom", "t1": 1}}, "params.t2: expected a time"),
        ({"params": {"breakdown": "years"}}, "params.breakdown: expected one of months"),
        ({"params": {"language": "xx"}}, "params.language: expected one of de"),
        ({"params": {"unavailable": "down,on fire"}}, "params.unavailable: expected some of up"),
        ({"params": {"filter_type": "All"}}, "params.filter_type: expected one of Hosts"),
        ({"params": {"initialassumedhoststate": 2}}, "params.initialassumedhoststate: expected"),
        ({"params": {"assumeinitialstates": "maybe"}}, "params.assumeinitialstates: expected 0 or 1"),
        ({"params": {"hostnameformat": "hostcustom"}}, "params.hostnameformat_cust: expected"),
        ({"params": {"mail_max_level": -0.5}}, "params.mail_max_level: expected -1 or a number"),
        ({"params": {"datetimeformat": "%Y" * 100}}, "params.datetimeformat: expected a format"),
        ({"params": {"attach": "doc"}}, "params.attach: expected some of pdf"),
        ({"params": {"host": "a\nb"}}, "params.host: expected at most"),
        ({"params": {"filter": {"dfl_s0_what": "x"}}}, "params.filter: expected fields such as"),
        ({"params": {"filter": {"dfl_s0_type": "parent", "dfl_s0_value": "x"}}},
         "params.filter: expected one of search"),
        ({"params": {"filter": {"dfl_s0_type": "host", "dfl_s0_op": "<", "dfl_s0_value": "x"}}},
         "params.filter: expected one of = !="),
        ({"params": {"filter": {"dfl_s0_hoststatustypes": "4"}}}, "no hoststatustypes"),
        ({"params": {"q": "host ="}}, "params.filter: expected the query language"),
        ({"params": {"filter": 7}}, "params.filter: expected an object of search fields"),
        ({"template": "eventlog.tt", "params": {"pattern": "("}},
         "params.pattern: expected a regular expression"),
        ({"template": "eventlog.tt", "params": {"event_types": ["host_on_fire"]}},
         "params.event_types: expected some of host_up"),
        ({"template": "eventlog.tt",
          "params": {"event_types": ["host_state_hard", "host_state_soft"]}},
         "params.event_types: expected at most one of host_state_hard"),
        ({"to": "nobody"}, "to: expected mail addresses, as user@example.org, got 'nobody'"),
        ({"cc": "a@b.c, x\r\nBcc: d@e.f"}, "cc: expected a text without control characters"),
        ({"to": "a@b.c>, <d@e.f"}, "to: expected mail addresses"),
        ({"to": ["a@b.c", 'x y@b.c']}, "to: expected mail addresses"),
        ({"name": "a\nb"}, "name: expected a text without control characters"),
        ({"name": "a\x85Bcc: b"}, "name: expected a text without control characters"),
        ({"name": "a\u2028b"}, "name: expected a text without control characters"),
        ({"to": "=?utf-8?q?=0aBcc=3a_x?=@y.z"}, "to: expected mail addresses"),
        ({"name": "x" * 301}, "name: expected at most 300 characters"),
        ({"desc": {"a": 1}}, "desc: expected a text"),
        ({"is_public": 2}, "is_public: expected 0 or 1"),
        ({"failed_backends": "ignore"}, "failed_backends: expected cancel or continue"),
        ({"send_types": [{"type": "never"}]}, "send_types.0.type: expected one of"),
        ({"permissions": "all"}, "permissions: expected a list, in a form as JSON"),
        ({"permissions": [{"type": "x"}]}, "permissions.0.type: expected user or group"),
        ({"permissions": [{"type": "user", "perm": "x"}]}, "permissions.0.perm: expected ro or rw"),
        ({"permissions": [{"type": "user", "perm": "ro", "name": 7}]}, "permissions.0.name: expect"),
    ],
)  # fmt: skip
def test_bad_records(fields, words):
    given = {"template": "sla_report.tt", **fields} if fields else {}
    with pytest.raises(BadRequest) as caught:
        checked(given, TEMPLATES)
    assert words in caught.value.description


def test_what_is_kept():
    record = checked(
        {
            "template": "sla_report.tt", "own": {"a": 1}, "nr": 7, "readonly": 1, "failed": 1,
            "params": {"sla": "99,5", "t1": 1, "t2": 2, "mine": "x"}, "to": "b@x.org,a@x.org,b@x.org",
        },
        TEMPLATES,
    )  # fmt: skip
    assert record["own"] == {"a": 1}
    assert "nr" not in record
    assert "failed" not in record
    assert record["to"] == "b@x.org, a@x.org"
    assert record["params"]["mine"] == "x"
    assert "t1" not in record["params"]
    assert Report(number=1, record=record).settings(TEMPLATES).sla == 99.5


def test_forms_have_texts_of_json():
    record = checked(
        {
            "template": "sla_report.tt", "params": '{"sla": 99}',
            "send_types": '[{"type": "day", "hour": 1, "minute": 2}]',
            "permissions": '[{"type": "user", "name": ["eva"], "perm": "ro"}]',
        },
        TEMPLATES,
    )  # fmt: skip
    assert record["params"]["sla"] == 99
    assert record["permissions"][0]["name"] == ["eva"]
    assert record["send_types"][0]["type"] == "day"
    assert checked({"template": "sla_report.tt", "params": "", "send_types": ""}, TEMPLATES)


def test_custom_times():
    one = report(params={"timeperiod": "custom", "t1": "1700000000", "t2": "1690000000"})
    span = one.settings(TEMPLATES).span(NOW, UTC, 1)
    assert (span.start, span.end) == (1690000000, 1700000000)
    bad = report(params={"timeperiod": "custom", "t1": "soon", "t2": "1"})
    with pytest.raises(BadRequest, match=r"params\.t1: expected a date"):
        bad.settings(TEMPLATES).span(NOW, UTC, 1)


def search(given, q=""):
    return report(params={"filter": given, "q": q}).settings(TEMPLATES).search


def test_a_search_form():
    both = {
        "dfl_s0_type": ["host", "hostgroup"], "dfl_s0_op": ["~", "="],
        "dfl_s0_value": ["^web", "linux"], "dfl_s1_type": "service", "dfl_s1_value": "ping",
        "dfl_s0_hoststatustypes": "15",
    }  # fmt: skip
    assert search(both) == (
        Group("or", (
            Group("and", (
                Condition("host", "~~", "^web", "filter"),
                Condition("host_groups", ">=", "linux", "filter"),
            )),
            Group("and", (Condition("service", "=", "ping", "filter"),)),
        )),
    )  # fmt: skip


def test_an_empty_search_finds_everything():
    assert search({}) == ()
    assert search({"dfl_s0_type": "host", "dfl_s0_value": ""}) == ()
    some = {"dfl_s0_type": "host", "dfl_s0_value": "a", "dfl_s1_type": "host", "dfl_s1_value": ""}
    assert search(some) == ()


def test_search_for_a_text_is_no_expression():
    ((tree,),) = [search({"dfl_s0_type": "search", "dfl_s0_value": "a.b(c"})]
    assert {one.value for one in tree.items[0].items[0].items} == {r"a\.b\(c"}
    assert len(search("host = a", "service = b")) == 2


def identity(user, *roles):
    return Identity(user=user, roles=frozenset(roles))


def test_access():
    one = report(
        permissions=[
            {"type": "user", "name": "hans, eva", "perm": "ro"},
            {"type": "group", "name": ["admins"], "perm": "rw"},
        ]
    )
    assert one.access(identity("olga"), (), own=True) == "rw"
    assert one.access(identity("olga"), (), own=False) == ""
    assert one.access(identity("x", ADMIN), (), own=False) == "rw"
    assert one.access(identity("eva"), (), own=False) == "ro"
    assert one.access(identity("eva"), ["admins"], own=False) == "rw"
    assert one.access(identity("x"), ["admins"], own=False) == "rw"
    assert one.access(identity("x"), ["eva"], own=False) == ""
    assert one.access(identity("admins"), (), own=False) == ""
    assert one.access(identity("*"), (), own=False) == ""


def test_public_ones():
    public = report(is_public="1")
    assert public.access(identity("x"), (), own=False) == "ro"
    assert shown_permissions(public.record) == [{"type": "user", "name": ["*"], "perm": "ro"}]
    star = report(permissions=[{"type": "group", "name": ["*"], "perm": "rw"}])
    assert star.record["is_public"] == 1
    assert star.access(identity("x"), (), own=False) == "rw"


def test_a_template_that_is_gone():
    one = Report(number=1, record={**report().record, "template": "old.tt"})
    assert one.error(TEMPLATES) == "report template 'old.tt' not available"
    with pytest.raises(BadRequest):
        one.settings(TEMPLATES)


def test_every_language_has_every_word():
    for language in LANGUAGES:
        say = speaker(language)
        for word in _WORDS:
            assert say(word).strip()
    assert speaker("de")("Outages") == "Ausfälle"
    assert speaker("en")("Outages") == "Outages"
    assert speaker("de")("unheard of") == "unheard of"
