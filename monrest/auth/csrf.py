"""State-changing requests that came by a session cookie need the session's token.

Browsers send cookies along with requests that another site's page makes; the token is what such
a page cannot know (auth-and-commands.md, section 4.6, "Ours": whatever the client's address).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from monrest.errors import Forbidden
from monrest.names import Names
from monrest.values import Identity, Parameters

PARAMETERS = ("CSRFtoken", "token")
"""Names of the parameter that carries the token."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_MOST_VALUES = 8


def check(
    identity: Identity,
    method: str,
    parameters: Parameters,
    headers: Mapping[str, str],
    names: Names,
) -> Parameters:
    """Give ``parameters`` without the token; Forbidden unless it is that of the session.

    ``headers`` have lower-case names; the header ``X-Mon-CSRF-Token`` does as well as the
    parameter. Who came by other means than a cookie needs none, as do safe methods.
    """
    if not identity.session or method in SAFE:
        return parameters
    header = names.header("CSRF-Token")
    sent = [headers.get(header, "")]
    sent += [value for name, value in parameters if name in PARAMETERS][:_MOST_VALUES]
    if not any(_equal(value, identity.csrf_token) for value in sent):
        raise Forbidden(
            "CSRF Security Alert",
            f"send a POST request with the token of your session in {header.title()} or in the "
            f"parameter {PARAMETERS[0]}, or use an API key",
        )
    return tuple([pair for pair in parameters if pair[0] not in PARAMETERS])


def check_login(headers: Mapping[str, str]) -> None:
    """Raise Forbidden when a page of another site logs its visitor in, under a name it chose."""
    if headers.get("sec-fetch-site", "").strip().lower() == "cross-site":
        raise Forbidden("CSRF Security Alert", "log in from a page of this site, not of another")


def _equal(sent: str, token: str) -> bool:
    return bool(token) and hmac.compare_digest(
        sent.encode("utf-8", "surrogatepass"), token.encode("ascii")
    )
