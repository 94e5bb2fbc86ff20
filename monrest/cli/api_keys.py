"""``monrest key create|list|revoke``: API keys over the API like any client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from monrest.cli import data, output
from monrest.cli.command_line import Pairs
from monrest.cli.output import UsageError
from monrest.cli.requester import Requester
from monrest.client.exchange import ClientError, plain, segment

_SHOWN_OF_ID = 16
_SHORTEST_ID = 6
_COUNTED = ("/hosts/totals", "/services/totals")
_TITLES = ("ID", "OWNER", "ROLES", "CREATED", "LAST USED", "FROM", "COMMENT")


def create(_: Sequence[str], options: Pairs) -> int:
    """Make a key: the key alone goes to standard output, what it is to standard error."""
    named = dict(options)
    client, path = _client(options)
    superuser = "superuser" in named
    if superuser and "user" in named:
        raise UsageError("expected --user or --superuser, not both")
    if "force-user" in named and not superuser:
        raise UsageError("--force-user: goes with --superuser")
    # By the socket alone the daemon takes the client for its administrator.
    settings = client.settings
    internal = settings.address.scheme == "unix" and not settings.key and not settings.user
    if not superuser and "user" not in named and internal:
        raise UsageError("expected --user NAME or --superuser: the socket's administrator "
                         "is no user who could own a key")  # fmt: skip
    asked: dict[str, Any] = {}
    for option, name in (("user", "username"), ("force-user", "force_user"), ("comment",) * 2):
        if option in named:
            asked[name] = named[option]
    if superuser:
        asked["superuser"] = 1
    roles = [value for name, value in options if name == "role"]
    if roles:
        asked["roles"] = roles
    body = client.body_of(path, client.api(path, method="POST", body=data.body(asked)))
    created = _decoded(body)
    if "json" in named:
        _print_json(body)
        return 0
    try:
        key, identifier = created["private_key"], created["hashed_key"]
    except (TypeError, KeyError):
        raise ClientError("the daemon did not tell the key") from None
    output.write_text(f"{key}\n")
    client.settings.hint(
        f"made API key {plain(str(identifier))[:_SHOWN_OF_ID]}; it is not shown again"
    )
    if not client.settings.quiet and (warning := _blind(client, str(key))):
        client.settings.hint(warning)
    return 0


def _blind(client: Requester, key: str) -> str:
    """A warning when a new key sees no host and no service although there are some."""
    settings = client.settings
    # Nothing of ours: the key alone is asked about.
    with_key = Requester(settings._replace(key=key, user=""))
    try:
        who = _decoded(with_key.api(f"/{settings.address.app}/whoami").read())
        sees = [_count(with_key, path) for path in _COUNTED]
        there = [_count(client, path) for path in _COUNTED]
    except ClientError:
        return ""
    if any(sees) or not any(there) or not isinstance(who, dict):
        return ""
    name = plain(str(who.get("id")))
    roles = who.get("roles") or ()
    holds = f"it has {', '.join(map(str, roles))}" if roles else "it has no role"
    return (
        f"monrest: this key sees no host and no service: {name} is contact of none, and {holds}. "
        f"[auth.roles] of the configuration gives roles to users (all_hosts, all_services); a key "
        f"without a user that sees everything is made with --superuser --role all_hosts "
        f"--role all_services"
    )


def _count(client: Requester, path: str) -> int:
    """The number of objects; an answer that lacks sites raises ClientError."""
    reply = client.api(path)
    document = _decoded(reply.read())
    if not reply.good or reply.failed_sites(client.settings.address.app):
        raise ClientError("not confirmed")
    return int(_number(document.get("total"))) if isinstance(document, dict) else 0


def show(_: Sequence[str], options: Pairs) -> int:
    """Print a table of keys."""
    client, path = _client(options)
    body = client.body_of(path, client.api(path))
    if "json" in dict(options):
        _print_json(body)
        return 0
    output.write_text(table(_rows(body)))
    return 0


def revoke(identifiers: Sequence[str], options: Pairs) -> int:
    """Delete keys by their ids or the unique beginnings of them; nothing when one is unknown."""
    client, path = _client(options)
    hashes = [str(row.get("hashed_key")) for row in _rows(client.body_of(path, client.api(path)))]
    keys = [_whole_hash(identifier, hashes) for identifier in identifiers]
    for identifier in dict.fromkeys(keys):
        target = f"{path}/{segment(identifier)}"
        body = client.body_of(target, client.api(target, method="DELETE"))
        if "json" in dict(options):
            _print_json(body)
        else:
            output.write_text(f"revoked {identifier[:_SHOWN_OF_ID]}\n")
    return 0


def _whole_hash(beginning: str, hashes: Iterable[str]) -> str:
    fits = [hashed for hashed in hashes if hashed.startswith(beginning)]
    if beginning in fits:
        return beginning
    if len(beginning) < _SHORTEST_ID:
        raise UsageError(f"{beginning}: expected at least {_SHORTEST_ID} characters of the id")
    if len(fits) != 1:
        raise ClientError(f"{beginning}: {'no' if not fits else 'more than one'} such api key")
    return fits[0]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The keys, newest first, as aligned columns."""
    ordered = sorted(rows, key=lambda row: -_number(row.get("created")))
    return output.aligned(_TITLES, map(_line, ordered))


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    owner = str(row.get("user") or "")
    if row.get("superuser"):
        owner = "(superuser)"
        if row.get("force_user"):
            owner += f" as {row['force_user']}"
    roles = row.get("roles")
    roles_text = "all" if roles is None else ",".join(str(role) for role in roles) or "none"
    return (
        str(row.get("hashed_key"))[:_SHOWN_OF_ID],
        owner,
        roles_text.replace("authorized_for_", ""),
        _moment(row.get("created")),
        _moment(row.get("last_used")),
        str(row.get("last_from") or "-"),
        str(row.get("comment") or ""),
    )


def _moment(value: Any) -> str:
    number = _number(value)
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(number)) if number else "-"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _client(given: Pairs) -> tuple[Requester, str]:
    client = Requester.of_options(given)
    return client, f"/{client.settings.address.app}/api_keys"


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _rows(body: bytes) -> list[dict[str, Any]]:
    rows = _decoded(body)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ClientError("expected a list of keys")
    return rows


def _print_json(body: bytes) -> None:
    output.write(body if body.endswith(b"\n") else body + b"\n")
