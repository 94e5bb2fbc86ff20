"""The token that requests with a session cookie need."""

import pytest

from monrest.api.csrf import check, check_page, without_token
from monrest.base.errors import Forbidden
from monrest.base.names import Names
from monrest.base.values import ANONYMOUS, Identity
from tests.table import each

TOKEN = "a" * 64 + "_1"
SESSION = Identity(user="ann", source="cookie", session="5e55", csrf_token=TOKEN)
GIVEN = (("comment", "x"), ("n", "1"))


@each("method", ["POST", "PUT", "PATCH", "DELETE", "MERGE", "post"])
@each(
    ("sent", "headers"),
    [
        ((("CSRFtoken", TOKEN),), {}),
        ((("token", TOKEN),), {}),
        ((), {"x-mon-csrf-token": TOKEN}),
        ((("CSRFtoken", "wrong"), ("CSRFtoken", TOKEN)), {}),
        ((("token", "of the device"),), {"x-mon-csrf-token": TOKEN}),
    ],
)
def test_the_right_token_is_taken_out(method, sent, headers):
    assert check(SESSION, method, (*sent[:1], *GIVEN, *sent[1:]), headers, Names()) == GIVEN


@each(
    ("sent", "headers"),
    [
        ((), {}),
        ((), {"x-mon-csrf-token": ""}),
        ((("CSRFtoken", ""),), {}),
        ((("CSRFtoken", TOKEN[:-1]),), {}),
        ((("CSRFtoken", TOKEN.upper()),), {}),
        ((("CSRFtoken", TOKEN + " "),), {}),
        ((("csrftoken", TOKEN),), {}),
        ((("xtoken", TOKEN),), {}),
        ((("token", "\ud800ü"),), {"x-mon-csrf-token": "\u00fc"}),
        ((), {"x-other-csrf-token": TOKEN}),
        ((), {"x-mon-auth-key": TOKEN}),
        ((), {"x-forwarded-for": "127.0.0.1", "host": "localhost"}),
        ((*[("token", "x")] * 1000, ("token", TOKEN)), {}),
    ],
)
def test_everything_else_is_refused(sent, headers):
    with pytest.raises(Forbidden, match=r"CSRF Security Alert: .*API key") as refused:
        check(SESSION, "POST", (*GIVEN, *sent), headers, Names())
    assert TOKEN not in str(refused.value)


@each("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_needs_none(method):
    assert check(SESSION, method, GIVEN, {}, Names()) == GIVEN


@each("identity", [ANONYMOUS, Identity(user="ann", key="abc")])
def test_who_has_no_session_needs_none_and_keeps_his_parameters(identity):
    given = (*GIVEN, ("token", "of the device"))
    assert check(identity, "POST", given, {}, Names()) == given


def test_a_session_without_a_token_changes_nothing():
    bare = Identity(user="ann", session="5e55")
    with pytest.raises(Forbidden):
        check(bare, "POST", (("token", ""),), {"x-mon-csrf-token": ""}, Names())


def test_the_word_of_the_site_is_in_the_header():
    names = Names(app="abc")
    assert check(SESSION, "POST", GIVEN, {"x-abc-csrf-token": TOKEN}, names) == GIVEN
    with pytest.raises(Forbidden, match="X-Abc-Csrf-Token"):
        check(SESSION, "POST", GIVEN, {"x-mon-csrf-token": TOKEN}, names)


OWN_PAGES = [
    {},
    {"host": "mon.test"},
    {"sec-fetch-site": "same-origin", "origin": "https://evil.test", "host": "mon.test"},
    {"sec-fetch-site": "none"},
    {"origin": "https://mon.test:8443", "host": "mon.test:8443"},
    {"origin": "https://mon.test", "host": "mon.test:443"},
    {"origin": "http://MON.test", "host": "mon.test"},
    {"origin": "http://[2001:db8::1]:8080", "host": "[2001:db8::1]:8080"},
    {"origin": "https://mon.test", "host": "127.0.0.1:8080", "x-forwarded-host": "a.test, mon.test"},
]  # fmt: skip
OTHER_PAGES = [
    {"sec-fetch-site": " Cross-Site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "https://mon.test", "host": "mon.test"},
    {"origin": "https://evil.test", "host": "mon.test"},
    {"origin": "https://mon.test.evil.test", "host": "mon.test"},
    {"origin": "https://mon.test@evil.test", "host": "mon.test"},
    {"origin": "http://mon.test", "host": "mon.test:8080"},
    {"origin": "https://mon.test:8443", "host": "mon.test"},
    {"origin": "http://mon.test:9999", "host": "mon.test:8080", "x-forwarded-host": "mon.test"},
    {"origin": "http://mon.test:x", "host": "mon.test:x"},
    {"origin": "null", "host": "mon.test"},
    {"origin": "null"},
    {"origin": "", "host": ""},
    {"origin": "http://[", "host": "["},
]


@each("source", ["basic auth", "default_user_name"])
def test_a_page_of_another_site_gains_nothing_from_what_browsers_send_along(source):
    ann = Identity(user="ann", source=source)
    for headers in OWN_PAGES:
        check_page(headers)
        assert check(ann, "POST", GIVEN, headers, Names()) == GIVEN
    for headers in OTHER_PAGES:
        assert check(ann, "GET", GIVEN, headers, Names()) == GIVEN
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(Forbidden, match="CSRF Security Alert"):
                check(ann, method, GIVEN, headers, Names())


@each("source", ["api_key", "secret_key", "cli", "none"])
def test_what_only_programs_send_is_not_asked_for_its_page(source):
    for headers in OTHER_PAGES:
        assert check(Identity(user="ann", source=source), "POST", GIVEN, headers, Names()) == GIVEN


def test_the_token_is_no_field_of_what_is_sent():
    key = Identity(user="ann", source="key", key="abc")
    sent = {"CSRFtoken": "a", "token": "t", "name": "x"}
    assert without_token(SESSION, sent) == {"name": "x"}
    assert without_token(key, sent) == {"token": "t", "name": "x"}
    assert without_token(key, [sent]) == [sent]
    assert check(key, "POST", (("CSRFtoken", "a"), *GIVEN), {}, Names()) == GIVEN
