"""Webhooks over real sockets: what a receiver gets, also when daemons are killed meanwhile."""

import json
import signal
import threading
from collections import Counter

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.nodes import Nodes
from harness.waiting import until
from standardwebhooks.webhooks import Webhook as ReferenceWebhook

SAME_FOR_ALL_CORES = "what is sent does not depend on the core"
PATH = "/mon/webhooks"
DUTY = "webhooks"
TAKEN_OVER = 60.0


@pytest.fixture(scope="module")
def own(shared):
    return shared.core()


@pytest.fixture(scope="module")
def daemon(own, shared):
    return shared.daemon(
        [site("s1", own)],
        sections={"webhooks": {"allow": ["127.0.0.1"], "timeout": 2, "per_user": 30}},
    ).start()


@pytest.fixture
def client(daemon):
    with daemon.client() as one:
        yield one
        for row in one.rows(f"{PATH}?columns=id"):
            assert one.json("DELETE", f"{PATH}/{row['id']}").status == 200


def create(client, receiver, **fields):
    """A webhook that listens, and its secret."""
    record = {
        "name": "test",
        "url": receiver.url,
        "filter": "types=state&plugin_output[regex]=^result",
        **fields,
    }
    response = client.post_json(PATH, record)
    assert response.status == 200, response
    return response.json["id"], response.json["secret"]


COUNT = iter(range(1, 1_000_000))


def result_of(own, state, host="web01", service="ping"):
    """A passive result; its text, which no other one has."""
    text = f"result {next(COUNT)}"
    own.command(f"PROCESS_SERVICE_CHECK_RESULT;{host};{service};{state};{text}")
    return text


def texts(receiver):
    return [json.loads(body)["data"]["plugin_output"] for _, body in receiver.posts]


def change(own, receiver, service="ping"):
    """Two changes of a service that arrive; their texts."""
    return [result_of(own, 2, service=service), result_of(own, 0, service=service)]


def test_events_arrive_signed(client, own, receiver):
    number, secret = create(client, receiver)
    assert secret.startswith("whsec_")
    first, last = change(own, receiver)
    until(lambda: last in texts(receiver), "the recovery arrives")
    found = [one for one in texts(receiver) if one.startswith("result")]
    assert found.index(last) == len(found) - 1
    assert len(found) == len(set(found))
    assert first not in found or found.index(first) < found.index(last)
    reference = ReferenceWebhook(secret)
    for headers, body in receiver.posts:
        event = reference.verify(body, headers)
        assert (event["type"], event["source"]) == ("state", "/sites/s1")
        assert event["subject"] == "services/web01/ping"
    with pytest.raises(Exception, match="No matching signature"):
        ReferenceWebhook("whsec_" + "A" * 40 + "====").verify(body, headers)
    assert len(set(receiver.ids)) == len(receiver.ids)
    row = until(lambda: sent(client, number), "all is noted")
    assert (row["paused"], row["last_error"], row["waiting"]) == ("", "", 0)
    assert "secret" not in json.dumps(client.get(f"{PATH}/{number}").json).replace('"secrets"', "")
    deliveries = client.rows(f"{PATH}/{number}/deliveries")
    assert {one["state"] for one in deliveries} == {"sent"}
    assert {one["message_id"] for one in deliveries} == set(receiver.ids)
    again = deliveries[0]
    before = len(receiver.posts)
    assert client.post_json(f"{PATH}/{number}/deliveries/{again['id']}/resend", {}).status == 200
    until(lambda: len(receiver.posts) > before, "it is sent again")
    assert receiver.ids[-1] == again["message_id"]


def sent(client, number):
    row = client.rows(f"{PATH}/{number}")
    return row if row["last_delivery"] and not row["waiting"] else None


def test_a_receiver_that_is_slow_with_one_object_gets_the_others(client, own, receiver):
    """The order of that object stays, and the receiver is not left alone for it."""
    go = threading.Event()

    def answer(headers, body):
        if json.loads(body)["subject"].endswith("/http"):
            go.wait(300)
        return 204

    receiver.answer = answer
    number, _ = create(client, receiver)
    slow = change(own, receiver, service="http")
    until(lambda: any(one in texts(receiver) for one in slow), "the slow one is on its way")
    for _ in range(5):
        _, last = change(own, receiver)
        until(lambda last=last: last in texts(receiver), "others arrive")
    assert client.rows(f"{PATH}/{number}")["paused"] == ""
    go.set()
    until(lambda: sent(client, number), "all is noted", seconds=90)
    found = list(dict.fromkeys(one for one in texts(receiver) if one in slow))
    assert found[-1] == slow[-1]


def test_a_test_message_says_what_the_receiver_said(client, receiver):
    number, secret = create(client, receiver, body="slack", headers={"X-Team": "ops"})
    answer = client.post_json(f"{PATH}/{number}/test", {}).json
    assert (answer["taken"], answer["status"], answer["error"]) == (1, 204, "")
    ((headers, body),) = receiver.posts
    assert ReferenceWebhook(secret).verify(body, headers)["text"]
    assert headers["x-team"] == "ops"
    assert client.rows(f"{PATH}/{number}")["headers"] == {"X-Team": "***"}
    receiver.answer = lambda headers, body: 500
    answer = client.post_json(f"{PATH}/{number}/test", {}).json
    assert (answer["taken"], answer["status"], answer["error"]) == (0, 500, "status 500")
    for url, error in (
        ("http://10.1.2.3/", "10.1.2.3 has no address that is public or in webhooks.allow"),
        ("http://169.254.169.254/latest/", "169.254.169.254 has no address that is public"),
        ("http://[::ffff:127.0.0.1]:1/", ""),
        ("http://2130706434:1/", "2130706434 has no address that is public"),
        ("http://nothing.invalid/", "nothing.invalid has no address that is public"),
    ):
        assert client.patch(f"{PATH}/{number}", {"url": url}).status == 200
        answer = client.post_json(f"{PATH}/{number}/test", {}).json
        assert answer["taken"] == 0
        assert answer["error"].startswith(error), (url, answer)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("type=state", "did you mean types=state?"),
        ("typ=state", "named: typ, did you mean type?"),
        ("hostname=web01", "named: hostname, did you mean host_name?"),
        ("q=plugin_outpt ~ x", "named: plugin_outpt, did you mean plugin_output?"),
        ("foo=1", "named: foo"),
        ("type=SERVICE ALERT", ""),
        ("_LOCATION=Berlin", ""),
        ("host_groups[gte]=linux", ""),
        ("rta[gt]=5", ""),
    ],
)
def test_a_filter_that_would_never_find_anything_is_refused(client, receiver, wanted, expected):
    given = {"name": "x", "url": receiver.url, "filter": wanted}
    answer = client.post_json(PATH, given)
    assert (answer.status == 200) == (not expected), answer
    if expected:
        assert expected in answer.json["description"]
        assert answer.status == 400


def test_owners_see_their_own(daemon, client, own, receiver):
    """olga is contact of web01, and of the service ping on db01."""
    with daemon.client("olga") as olga, daemon.client("nobody") as nobody:
        number, _ = create(olga, receiver)
        assert [one["owner"] for one in client.rows(PATH)] == ["olga"]
        assert nobody.rows(PATH) == []
        refused(nobody.get(f"{PATH}/{number}"), 404, "no such webhook")
        for path in ("test", "resume", "rotate"):
            refused(nobody.post_json(f"{PATH}/{number}/{path}", {}), 404)
        refused(nobody.get(f"{PATH}/{number}/deliveries"), 404)
        response = olga.post_json(PATH, {"name": "x", "url": receiver.url, "owner": "admin"})
        refused(response, 403, "only administrators name another owner")
        response = olga.post_json(PATH, {"name": "x", "url": receiver.url, "roles": ["admin"]})
        refused(response, 400, "roles: expected roles that you hold")
        hidden = result_of(own, 2, "db01", "Disk /var")
        result_of(own, 1, "db01", "Disk /var")
        _, last = change(own, receiver)
        until(lambda: last in texts(receiver), "what she may see arrives")
        assert hidden not in texts(receiver)
        assert {json.loads(body)["subject"] for _, body in receiver.posts} == {
            "services/web01/ping"
        }


def test_bad_input_is_refused(client, receiver):
    for fields, word in (
        ({"url": "ftp://x/"}, "url:"),
        ({"filter": "types=nonsense"}, "filter: types:"),
        ({"filter": "types=state&sort=time"}, "filter: sort:"),
        ({"filter": "q=(("}, "filter: "),
        ({"body": "alertmanager", "filter": "state=2"}, "filter: state"),
        ({"body": "alertmanager", "filter": "plugin_output[regex]=x"}, "filter: plugin_output"),
        ({"body": "alertmanager", "filter": "types=comment"}, "filter: "),
        ({"headers": {"Host": "x"}}, "headers:"),
        ({"template": "{{ x.__class__() }}"}, "template:"),
    ):
        record = {"name": "n", "url": receiver.url, **fields}
        refused(client.post_json(PATH, record), 400, word)
    assert client.rows(PATH) == []
    objects = "types=state,comment&host_groups[gte]=web&host_name=a&_TEAM=x"
    for fields in (
        {"filter": "types=state&host_groups[gte]=web"},
        {"filter": "?types=state"},
        {"filter": ""},
        {"body": "alertmanager", "filter": ""},
        {"body": "alertmanager", "filter": objects},
    ):
        answer = client.post_json(PATH, {"name": "n", "url": receiver.url, **fields})
        assert answer.status == 200, answer


def test_a_secret_is_rotated(client, receiver):
    number, old = create(client, receiver)
    answer = client.post_json(f"{PATH}/{number}/rotate", {"hours": 1}).json
    assert answer["secret"] != old
    client.post_json(f"{PATH}/{number}/test", {})
    headers, body = receiver.posts[0]
    for secret in (old, answer["secret"]):
        ReferenceWebhook(secret).verify(body, headers)
    assert client.rows(f"{PATH}/{number}")["secrets"] == 2
    client.post_json(f"{PATH}/{number}/rotate", {"hours": 0})
    client.post_json(f"{PATH}/{number}/test", {})
    headers, body = receiver.posts[1]
    assert len(headers["webhook-signature"].split()) == 1


def test_410_ends_the_subscription(client, own, receiver):
    receiver.answer = lambda headers, body: 410
    number, _ = create(client, receiver)
    change(own, receiver)
    row = until(lambda: ended(client, number), "it is switched off")
    assert row["paused"] == "the receiver answered 410, which ends the subscription"


def ended(client, number):
    row = client.rows(f"{PATH}/{number}")
    return row if not row["enabled"] else None


def test_killed_in_the_middle_of_a_delivery(daemon, client, own, receiver):
    """Nothing is lost, and what is repeated has the same id."""
    receiver.hold()
    create(client, receiver)
    first = result_of(own, 2)
    assert receiver.held.wait(300)
    daemon.stop(signal.SIGKILL)
    last = result_of(own, 0)
    held = Counter(receiver.ids)
    receiver.release()
    daemon.start()
    until(lambda: last in texts(receiver), "what happened meanwhile arrives")
    if daemon.sections["server"]["workers"] == 1:
        # A worker whose parent is killed ends what it has begun.
        until(lambda: all(receiver.ids.count(one) > 1 for one in held), "it is repeated")
    bodies = {}
    for headers, body in receiver.posts:
        assert bodies.setdefault(headers["webhook-id"], body) == body
    found = list(dict.fromkeys(texts(receiver)))
    assert found[-1] == last
    assert first in found


def test_a_killed_node_of_a_cluster(tmp_path, postgres_server, own, receiver, lab):
    """Another one goes on: nothing is lost, each object is in order."""
    nodes = lab.keep(
        Nodes(
            tmp_path,
            postgres_server,
            [site("s1", own)],
            count=2,
            webhooks={"allow": ["127.0.0.1"]},
        )
    )
    nodes.start()
    until(lambda: nodes.holder(DUTY) is not None, "somebody sends")
    dead = nodes.holder(DUTY)
    with nodes.nodes[1 - dead].client() as client:
        create(client, receiver)
    first = result_of(own, 2)
    until(lambda: first in texts(receiver) or len(receiver.posts) > 2, "it sends")
    receiver.hold()
    last = [result_of(own, 0)]
    assert receiver.held.wait(300)
    nodes.nodes[dead].kill()
    last += [result_of(own, 2), result_of(own, 0)]
    receiver.release()
    until(lambda: nodes.holder(DUTY) not in (None, dead), "another one sends", seconds=TAKEN_OVER)
    until(lambda: last[-1] in texts(receiver), "all arrives", seconds=TAKEN_OVER)
    found = [one for one in dict.fromkeys(texts(receiver)) if one.startswith("result")]
    assert found == sorted(found, key=lambda one: int(one.split()[1]))
    bodies = {}
    for headers, body in receiver.posts:
        assert bodies.setdefault(headers["webhook-id"], body) == body
