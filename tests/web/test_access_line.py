"""What of a query string stands in the access log."""

import pytest

from monrest.web.api_site import shown_query

KEY = b"0123456789abcdef"


@pytest.mark.parametrize(
    "name",
    [
        *(b"X-Mon-Auth-Key", b"x-mon-auth-key", b"X-Own_App-Auth-Key", b"X-Mon-Auth%2dKey"),
        *(b"X-Mon-Auth%2DKey", b"auth_key", b"Auth.Key", b"%61uth%5fkey", b"apikey", b"api-key"),
        *(b"private-key", b"X-Mon-CSRF-Token", b"password"),
    ],
)
def test_no_key_is_shown(name):
    assert shown_query(b"limit=1&" + name + b"=" + KEY + b"&q=x").endswith("=***&q=x")


def test_other_parameters_are():
    query = b"X-Mon-Auth-User=ann&key=a&name%2d=b&passive=1"
    assert shown_query(query) == query.decode()
