"""Changes that another site's page makes in the name of its visitor are refused.

Browsers send cookies along with such requests; the session's token is what the page cannot know
(docs/spec/accounts.md, "Pages of other sites"). They send passwords along as well, and proxies and
``auth.default_user`` name a user for requests of any page: there is no token then, and what counts
is what the browser says about the page.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from monrest.base.errors import Forbidden
from monrest.base.names import Names
from monrest.base.values import Identity, Parameters

PARAMETERS = ("CSRFtoken", "token")
"""Names of the parameter that carries the token."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_MOST_VALUES = 8
# Sources of identities that need nothing which only the user's own program has.
_AMBIENT = frozenset({"basic auth", "default_user_name"})
_OWN_PAGE = frozenset({"same-origin", "none"})
_ALERT = "CSRF Security Alert"


def check(
    identity: Identity,
    method: str,
    parameters: Parameters,
    headers: Mapping[str, str],
    names: Names,
) -> Parameters:
    """Return ``parameters`` without the token; Forbidden unless it is that of the session.

    ``CSRFtoken`` is never a parameter of anything else, ``token`` may be one without a session.

    ``headers`` have lower-case names; the header ``X-Mon-CSRF-Token`` does as well as the
    parameter. A login by other means than a cookie needs none, as do safe methods; Forbidden
    also for a page of another site that makes use of a password, a proxy or the default user.
    """
    if method in SAFE:
        return parameters
    if not identity.session:
        if identity.source in _AMBIENT:
            check_page(headers)
        return tuple([pair for pair in parameters if pair[0] != PARAMETERS[0]])
    header = names.header("CSRF-Token")
    sent = [headers.get(header, "")]
    sent += [value for name, value in parameters if name in PARAMETERS][:_MOST_VALUES]
    if not any(_equal(value, identity.csrf_token) for value in sent):
        raise Forbidden(
            _ALERT,
            f"send a POST request with the token of your session in {header.title()} or in the "
            f"parameter {PARAMETERS[0]}, or use an API key",
        )
    return tuple([pair for pair in parameters if pair[0] not in PARAMETERS])


def without_token(identity: Identity, document: Any) -> Any:
    """Return the JSON body of a change without the token, as ``check`` returns its parameters."""
    if not isinstance(document, dict):
        return document
    tokens = PARAMETERS if identity.session else PARAMETERS[:1]
    return {name: value for name, value in document.items() if name not in tokens}


def check_page(headers: Mapping[str, str]) -> None:
    """Raise Forbidden when a browser says that a page of another site makes the request.

    Where ``Sec-Fetch-Site`` is missing, as without TLS, the hosts and ports in ``Origin`` and
    ``Host`` are compared. No page can set any of these headers, nor ``X-Forwarded-Host``; programs
    other than browsers send no ``Origin``.
    """
    site = headers.get("sec-fetch-site", "").strip().lower()
    if site:
        own = site in _OWN_PAGE
    else:
        origin = headers.get("origin")
        own = origin is None or _own(origin, headers)
    if not own:
        raise Forbidden(
            _ALERT,
            "this request comes from a page of another site, by Sec-Fetch-Site or Origin; "
            "a proxy in between has to pass on Host or X-Forwarded-Host with the port",
        )


def _own(origin: str, headers: Mapping[str, str]) -> bool:
    """Whether an origin is this service, by the names that the client has for it."""
    scheme = origin.strip().partition(":")[0]
    names = (headers.get("host", ""), *headers.get("x-forwarded-host", "").split(","))
    page = _address(origin)
    return page is not None and page in [_address(f"{scheme}://{name.strip()}") for name in names]


def _address(url: str) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(url.strip())
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (name, port or {"http": 80, "https": 443}.get(parts.scheme)) if name else None


def _equal(sent: str, token: str) -> bool:
    return bool(token) and hmac.compare_digest(
        sent.encode("utf-8", "surrogatepass"), token.encode("ascii")
    )
