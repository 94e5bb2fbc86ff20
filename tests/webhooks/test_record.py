"""What may be in a webhook, where it may send to, and what it sends."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.config import Config, WebhooksConfig
from monrest.config.check import problems_of
from monrest.events.followers import StreamEvent
from monrest.webhooks import bodies, placeholders
from monrest.webhooks.following import filter_of
from monrest.webhooks.model import HIDDEN, Webhook, checked, webhook_record
from monrest.webhooks.posting import AllowedTargets
from tests.table import each
from tests.webhooks.world import event

MADE = {"name": "n", "url": "https://example.org/x"}


@each(
    "fields, text",
    [
        ({"name": ""}, "name: expected what it is for"),
        ({"url": None}, "url: expected where the events are sent to"),
        ({"url": "ftp://h/"}, "url: expected http(s)://"),
        ({"url": "http://user:pass@h/"}, "url: expected http(s)://"),
        ({"url": "http://h/#x"}, "url: expected http(s)://"),
        ({"url": "http://h/a b"}, "url: expected http(s)://"),
        ({"url": "http://h/\r\nHost: x"}, "url: expected http(s)://"),
        ({"url": "http://h/ü"}, "url: expected http(s)://"),
        ({"url": "http://h..x/"}, "url: expected http(s)://"),
        ({"url": f"http://{'a' * 64}.x/"}, "url: expected http(s)://"),
        ({"url": "http://h:0/"}, "url: expected a port"),
        ({"url": "http://h:70000/"}, "url: expected a port"),
        ({"url": "http://h/" + "a" * 2000}, "url: expected http(s)://"),
        ({"body": "xml"}, "body: expected one of"),
        ({"body": "template"}, "template: expected one"),
        ({"template": "{{ data.__class__() }}"}, "template: expected"),
        ({"headers": []}, "headers: expected an object"),
        ({"headers": {"Host": "x"}}, "headers: expected names"),
        ({"headers": {"content-LENGTH": "1"}}, "headers: expected names"),
        ({"headers": {"Webhook-Signature": "v1,x"}}, "headers: expected names"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers: expected names"),
        ({"headers": {"X A": "1"}}, "headers: expected names"),
        ({"headers": {"X-A\r\nX-B": "1"}}, "headers: expected names"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "headers.X-A: expected one line"),
        ({"headers": {"X-A": "ü"}}, "headers.X-A: expected one line"),
        ({"headers": {"X-A": 5}}, "headers.X-A: expected one line"),
        ({"headers": {"X-A": HIDDEN}}, "headers.X-A: expected a value"),
        ({"headers": {f"X-{n}": "1" for n in range(21)}}, "headers: expected an object of at most 20"),
        ({"roles": ["nonsense"]}, "roles: expected names out of"),
        ({"filter": "x" * 9000}, "filter: expected at most 8000"),
    ],
)  # fmt: skip
def test_what_is_refused(fields, text):
    with pytest.raises(BadRequest) as caught:
        checked({**MADE, **fields})
    assert caught.value.description.startswith(text)


def test_values_of_headers_are_not_shown_and_stay_when_they_come_back():
    stored = checked({**MADE, "headers": {"Authorization": "Bearer 1", "X-A": "2"}})
    hook = Webhook(number=1, record={**stored, "owner": "olga"})
    seen = webhook_record(hook)
    assert seen["headers"] == {"Authorization": HIDDEN, "X-A": HIDDEN}
    again = checked({**seen, "headers": {**seen["headers"], "X-A": "3"}}, stored)
    assert again["headers"] == {"Authorization": "Bearer 1", "X-A": "3"}
    assert not {"paused", "waiting", "secrets", "id"} & again.keys()


def test_a_blank_at_the_end_of_a_filter_is_kept():
    record = checked({"name": "n", "url": "https://example.org/", "filter": "plugin_output=a "})
    (condition,) = filter_of(record["filter"]).query.filter.items
    assert condition.value == "a "


PUBLIC = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "8.8.8.8")
NOT_PUBLIC = (
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:8.8.8.8", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "192.0.0.8", "192.0.0.200", "192.88.99.1", "3fff::1", "3fff:fff::1", "5f00::1", "fec0::1",
    "64:ff9b:1::a00:1", "100:0:0:1::1", "2001:0:7f00:1::", "2001:db8::1", "not an address", "",
)  # fmt: skip


def test_only_public_addresses_are_reached():
    none = AllowedTargets.of(())
    assert [one for one in PUBLIC if not none.permits("h", one)] == []
    assert [one for one in NOT_PUBLIC if none.permits("h", one)] == []


@each(
    "allow, host, address, good",
    [
        (["10.0.0.0/8"], "h", "10.1.2.3", True),
        (["10.0.0.0/8"], "h", "::ffff:10.1.2.3", True),
        (["10.0.0.0/8"], "h", "192.168.1.1", False),
        (["127.0.0.1"], "h", "127.0.0.1", True),
        (["127.0.0.1"], "h", "127.0.0.2", False),
        (["::1"], "h", "::1", True),
        (["169.254.169.254"], "h", "169.254.169.254", True),
        (["Alerts.example.org"], "alerts.example.org", "10.1.2.3", True),
        (["alerts.example.org"], "ALERTS.example.org.", "10.1.2.3", True),
        (["alerts.example.org"], "x.alerts.example.org", "10.1.2.3", False),
        (["*.example.org"], "a.b.example.org", "127.0.0.1", True),
        (["*.example.org"], "example.org", "127.0.0.1", False),
        (["*.example.org"], "badexample.org", "127.0.0.1", False),
        (["a.example.org"], "a.example.org", "169.254.169.254", False),
        (["a.example.org"], "a.example.org", "fe80::1", False),
        (["a.example.org"], "a.example.org", "::ffff:10.0.0.1", False),
        (["a.example.org"], "a.example.org", "224.0.0.1", False),
        (["a.example.org"], "a.example.org", "0.0.0.0", False),
    ],
)  # fmt: skip
def test_what_is_listed_is_reached(allow, host, address, good):
    assert AllowedTargets.of(allow).permits(host, address) == good


@each(
    "config, text",
    [
        ({"allow": ("10.0.0.0/33",)}, "webhooks.allow[0]: expected a network"),
        ({"allow": ("ok.example.org", "*")}, "webhooks.allow[1]: expected a network"),
        ({"allow": ("http://x/",)}, "webhooks.allow[0]: expected a network"),
        ({"timeout": 16.0}, "webhooks.timeout: expected 1 to 15 seconds"),
        ({"per_user": 0}, "webhooks.per_user: expected 1 to"),
        ({"waiting": 0}, "webhooks.waiting: expected 1 to"),
        ({"ca_file": "/nowhere"}, "webhooks.ca_file: "),
    ],
)
def test_the_configuration_says_what_is_wrong(config, text):
    found = problems_of(Config(webhooks=WebhooksConfig(**config)))
    (problem,) = [one for one in found if one.startswith("webhooks.")]
    assert problem.startswith(text)


VALUES = {
    "type": "state",
    "data": {"host": 'a"b\\c\n</script>', "n": 5, "list": ["x", "y"], "no": None},
}


@each(
    "template, made",
    [
        ("{{ data.host }}", VALUES["data"]["host"]),
        ("{{data.n}}", 5),
        ("n: {{ data.n }}", "n: 5"),
        ("{{ data.list }}", ["x", "y"]),
        ("{{ data.list.1 }}{{ data.list.7 }}", "y"),
        ("is {{ data.list }}", "is x, y"),
        ("{{ data.nothing.at.all }}", None),
        ("[{{ data.nothing.at.all }}]", "[]"),
        ("{{ data.no | default('none') }}", "none"),
        ("{{ type | upper }}", "STATE"),
        ("{{ type | upper | truncate(3) }}", "ST…"),
        ("{{ data.n | choose('5=five', '*=other') }}", "five"),
        ("{{ type | choose('5=five', '*=other') }}", "other"),
        ("{{ type | choose('5=five') }}", ""),
        ("{{ data.n | date }}", "1970-01-01T00:00:05Z"),
        ("{{ data.list | json }}", '["x","y"]'),
        ({"a": ["{{ data.n }}", True, None, {"b": "x"}]}, {"a": [5, True, None, {"b": "x"}]}),
    ],
)  # fmt: skip
def test_placeholders_become_values(template, made):
    placeholders.check(template)
    assert placeholders.filled(template, VALUES) == made


@each(
    "template",
    [
        "{{ }}", "{{ data.n", "data.n }}", "{{ data.n + 1 }}", "{{ data['n'] }}", "{{ data.n() }}",
        "{% for a in b %}x{% endfor %}", "{{ data.n | nonsense }}", "{{ data.n | upper('x') }}",
        "{{ data.n | truncate('x') }}", "{{ data.n | default }}", "{{ {{ data.n }} }}",
        "{{ _.__class__.__mro__ | x }}", {"{{ type }}": 1}, ["{{ type }}"] * 201, "x" * 20_000,
        "{{ data" + " | upper" * 6 + " }}", "{{ host_name }}", ["{{ data.n }} {{ nonsense | upper }}"],
    ],
)  # fmt: skip
def test_other_templates_are_refused(template):
    if template == "{% for a in b %}x{% endfor %}":
        placeholders.check(template)
        assert placeholders.filled(template, VALUES) == template
        return
    with pytest.raises(ValueError, match="expected"):
        placeholders.check(template)


def test_hostile_templates_cost_no_time():
    deep = "x"
    for _ in range(30):
        deep = [deep]
    with pytest.raises(ValueError, match="levels"):
        placeholders.check(deep)
    for text in (
        "{{" * 8000,
        "{{a" * 5000,
        "}}" * 8000,
        "{{ a |" * 2000,
        "{{ a" + " " * 16000 + "}}",
    ):
        began = time.process_time()
        with suppress(ValueError):
            placeholders.check(text)
        assert time.process_time() - began < 1
    large = {"data": {"x": "y" * 1_000_000}}
    template = ["{{ data.x }}{{ data.x }}"] * 100
    assert len(json.dumps(placeholders.filled(template, large))) < 4_000_000


@given(st.recursive(st.text(max_size=50), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)), st.text())  # fmt: skip
def test_whatever_a_template_is_its_body_is_json_or_it_is_refused(template, value):
    try:
        placeholders.check(template)
    except (ValueError, TypeError):
        return
    made = placeholders.filled(template, {"data": {"x": value}, "type": value})
    json.dumps(made)


@given(st.text())
def test_no_value_breaks_out_of_its_text(value):
    template = {"text": "a {{ data.x }} b", "whole": "{{ data.x }}"}
    made = json.loads(json.dumps(placeholders.filled(template, {"data": {"x": value}})))
    assert made == {"text": f"a {value[:10000]} b", "whole": value}


def body(form, one, **more):
    record = {**checked({**MADE, "body": form, **more}), "owner": "olga"}
    return bodies.body_of(
        StreamEvent(one, one.data, "c"), Webhook(number=1, record=record, token="t" * 32)
    )


PROBLEM = event(1, plugin_output="<b> & @here")


def test_ready_bodies():
    slack = json.loads(body("slack", PROBLEM).data)
    assert slack["text"] == "a: h/s CRITICAL"
    (attachment,) = slack["attachments"]
    assert (attachment["color"], attachment["text"]) == ("#a30200", "&lt;b&gt; &amp; @here")
    plain = body("plain", PROBLEM)
    assert plain.content_type == "text/plain; charset=utf-8"
    assert plain.data.decode().endswith("a: h/s CRITICAL\n<b> & @here\n")
    oncall = json.loads(body("oncall", PROBLEM).data)
    assert oncall == {
        "alert_uid": "tttttttt:a:services/h/s", "title": "a: h/s CRITICAL", "state": "alerting",
        "message": "<b> & @here",
    }  # fmt: skip
    fine = json.loads(body("oncall", event(2, state=0)).data)
    assert (fine["state"], fine["alert_uid"]) == ("ok", oncall["alert_uid"])
    cloud = json.loads(body("cloudevents", PROBLEM).data)
    assert (cloud["specversion"], cloud["id"], cloud["type"]) == ("1.0", PROBLEM.id, "state")
    assert cloud["data"]["plugin_output"] == "<b> & @here"


def test_a_template_knows_the_event_and_more():
    template = {
        "s": "{{ severity }} {{ state_name }}",
        "t": "{{ title }}",
        "h": "{{ data.host_name }}",
    }
    made = json.loads(body("template", PROBLEM, template=template).data)
    assert made == {"s": "critical CRITICAL", "t": "a: h/s CRITICAL", "h": "h"}


def test_a_body_that_is_too_large_is_none():
    large = event(1, plugin_output="x" * 300_000)
    with pytest.raises(bodies.BodyError, match="more than 262144 bytes"):
        body("cloudevents", large)


@each(
    "one, title",
    [
        (event(1, service="", state=1), "a: h DOWN"),
        (event(1, service="", state=2), "a: h UNREACHABLE"),
        (event(1, type="downtime", action="started", state=None), "a: h/s downtime started"),
        (event(1, host="", service="", type="site", state=None, action="down"), "a: sites/a site down"),
        (event(1, type="notification"), "a: h/s notification CRITICAL"),
    ],
)  # fmt: skip
def test_titles(one, title):
    assert bodies.title_of(one) == title


def test_a_template_is_used_unless_another_body_is_wanted():
    record = {"name": "n", "url": "https://example.org/", "template": {"text": "{{ title }}"}}
    assert checked(record)["body"] == "template"
    assert checked({**record, "body": "slack"})["body"] == "slack"
    assert checked({**record, "template": None})["body"] == "cloudevents"
