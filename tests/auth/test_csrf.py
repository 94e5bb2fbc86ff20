"""The token that requests with a session cookie need."""

import pytest

from monrest.auth.csrf import check, check_login
from monrest.errors import Forbidden
from monrest.names import Names
from monrest.values import ANONYMOUS, Identity

TOKEN = "a" * 64 + "_1"
SESSION = Identity(user="ann", source="cookie", session="5e55", csrf_token=TOKEN)
GIVEN = (("comment", "x"), ("n", "1"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "MERGE", "post"])
@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_needs_none(method):
    assert check(SESSION, method, GIVEN, {}, Names()) == GIVEN


@pytest.mark.parametrize("identity", [ANONYMOUS, Identity(user="ann", key="abc")])
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


def test_pages_of_other_sites_log_nobody_in():
    for fine in ({}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}):
        check_login(fine)
    with pytest.raises(Forbidden, match="CSRF"):
        check_login({"sec-fetch-site": " Cross-Site"})
