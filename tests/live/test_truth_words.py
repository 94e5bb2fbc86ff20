"""Words for yes and no mean the same in every parameter, body and argument of a command."""

import pytest

SAME_FOR_ALL_CORES = "words are read before a core is asked"

YES = ["1", "true", "YES", "On"]
NO = ["0", "False", "no", "OFF", ""]


def assert_each(pairs):
    """The cases that fail, so that one test tells all of them."""
    wrong = [(case, got) for case, got in pairs if got is not True]
    assert not wrong, wrong


def test_pretty(client):
    assert_each((word, b"\n " in client.get("/hosts", {"pretty": word}).body) for word in YES)
    assert_each((word, b"\n " not in client.get("/hosts", {"pretty": word}).body) for word in NO)


def test_headers_of_csv(client):
    assert_each((word, client.get("/csv/hosts", {"headers": word}).text[0] == "#") for word in YES)
    assert_each((word, client.get("/csv/hosts", {"headers": word}).text[0] != "#") for word in NO)


def test_background(client):
    assert_each((word, "job_id" in client.rows("/mon", {"background": word})) for word in YES)
    assert_each((word, "job_id" not in client.rows("/mon", {"background": word})) for word in NO)


def test_test_only(client):
    path = "/hosts/web01/cmd/disable_host_notifications"

    def sent(word):
        return client.post_form(path, {"test_only": word}).json.get("message", "")

    assert_each((word, "no" in sent(word) or "not" in sent(word)) for word in YES)


def test_flags_of_reports_over_the_log(client):
    for name in ("withdowntimes", "includesoftstates", "assumeinitialstates"):
        assert_each(
            ((name, word), client.get("/hosts/outages", {name: word}).status == 200)
            for word in YES + NO
        )


def test_arguments_of_commands(client):
    path = "/hosts/web01/cmd/acknowledge_host_problem"
    for words, digit in ((YES, "1"), (NO, "0")):
        for word in words if digit == "1" else words[:-1]:
            answer = client.post_form(
                path,
                {"comment_data": "x", "test_only": "1", "persistent_comment": word},
            )
            assert answer.status == 200, answer
            assert f";{digit};" in str(answer.json["commands"]), (word, answer.json)


def test_fields_of_records(client):
    for words, number in ((YES, 1), (NO, 0)):
        for word in words:
            made = client.post_form("/mon/broadcasts", {"text": "x", "loginpage": word})
            assert made.status == 200, made
            file = made.json["file"]
            assert client.rows(f"/mon/broadcasts/{file}")["loginpage"] == number, word
            assert client.request("DELETE", f"/mon/broadcasts/{file}").status == 200


REFUSED = [
    ("GET", "/hosts", "pretty"),
    ("GET", "/csv/hosts", "headers"),
    ("GET", "/hosts", "background"),
    ("GET", "/logs", "logcache"),
    ("GET", "/hosts/outages", "withdowntimes"),
    ("GET", "/hosts/availability", "includesoftstates"),
    ("POST", "/hosts/web01/cmd/disable_host_notifications", "test_only"),
    ("POST", "/hosts/web01/cmd/disable_host_notifications", "wait"),
    ("POST", "/hosts/web01/cmd/acknowledge_host_problem", "persistent_comment"),
    ("POST", "/mon/broadcasts", "loginpage"),
    ("POST", "/mon/api_keys", "superuser"),
    ("POST", "/mon/recurring_downtimes", "fixed"),
    ("POST", "/mon/reports", "is_public"),
    ("POST", "/mon/bp", "create_host_object"),
]


NEEDED = {
    "/mon/broadcasts": {"text": "x"},
    "/hosts/web01/cmd/acknowledge_host_problem": {"comment_data": "x"},
    "/mon/bp": {"name": "x"},
    "/mon/recurring_downtimes": {"target": "host", "host": "web01"},
    "/mon/reports": {"template": "sla_host.tt"},
}
"""Fields without which a request is refused for another reason."""


@pytest.mark.parametrize(("method", "path", "name"), REFUSED)
def test_other_words_are_refused_by_name(client, method, path, name):
    if method == "GET":
        answer = client.get(path, {name: "maybe"})
    else:
        answer = client.post_form(path, {**NEEDED.get(path, {}), name: "maybe"})
    assert answer.status == 400, answer
    assert f"{name}: expected" in answer.text, answer
