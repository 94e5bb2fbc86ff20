"""The present problems as events (docs/spec/events.md, "Snapshot")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from monrest.api.endpoint import Context
from monrest.base.values import Identity, Row
from monrest.events.model import Event, object_subject
from monrest.events.object_sets import rows_of_objects
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition, FilterTree
from monrest.rows.columns import HOSTS, SERVICES

_NAMES = {HOSTS.name: ("name",), SERVICES.name: ("host_name", "description", "host_groups")}
_COLUMNS = (
    *("groups", "state", "state_type", "current_attempt", "plugin_output", "perf_data"),
    *("last_state_change", "last_hard_state_change"),
    *("acknowledged", "scheduled_downtime_depth"),
)
_PROBLEM = Condition("state", "!=", "0", "snapshot")


@frozen(kw_only=True)
class PresentProblems:
    """Problems as events, each with the groups of its object; ``silent`` sites did not answer."""

    problems: Sequence[tuple[Event, Sequence[str]]] = ()
    silent: frozenset[str] = frozenset()


async def problems(
    context: Context,
    who: Identity,
    sites: tuple[str, ...],
    of_hosts: tuple[FilterTree, ...] = (),
    of_services: tuple[FilterTree, ...] = (),
) -> PresentProblems:
    """The hosts and services with problems, as changes to their present states.

    ``context`` has the sites that exist for ``who``; of hosts and services those that fulfil these
    conditions. The oldest problem comes first.
    """
    pairs: list[tuple[Event, Sequence[str]]] = []
    silent: frozenset[str] = frozenset()
    for schema, conditions in ((HOSTS, of_hosts), (SERVICES, of_services)):
        columns = ("peer_key", *_NAMES[schema.name], *_COLUMNS)
        asked = (_PROBLEM, *conditions)
        rows, failed = await rows_of_objects(context, who, sites, schema, columns, asked)
        silent |= failed
        pairs += _events(schema, rows)
    return PresentProblems(problems=sorted(pairs, key=lambda pair: pair[0].time), silent=silent)


def groups_of(*lists: Any) -> list[str]:
    """The names in some lists, each once."""
    return list(dict.fromkeys(str(name) for names in lists for name in names or ()))


def _events(schema: TableSchema, rows: list[Row]) -> Iterator[tuple[Event, Sequence[str]]]:
    for row in rows:
        site, host, *values = row
        service, of_host = (values.pop(0), values.pop(0)) if schema is SERVICES else ("", ())
        own, state, hard, attempt, output, figures, changed, hardened, *more = values
        since = int((hard and hardened) or changed or 0)
        subject = object_subject(host, service)
        data: dict[str, Any] = {
            "host_name": host,
            **({"service_description": service} if service else {}),
            "class": 1,
            "type": "SERVICE ALERT" if service else "HOST ALERT",
            "state": state,
            "old_state": None,
            "state_type": "HARD" if hard else "SOFT",
            "attempt": attempt,
            "plugin_output": output,
            "perf_data": figures,
            "time": since,
            "acknowledged": more[0],
            "scheduled_downtime_depth": more[1],
        }
        event = Event(
            site=site,
            type="state",
            time=since,
            subject=subject,
            data=data,
            name=f"{site}@{since}/{subject}",
        )
        yield event, groups_of(of_host, own)
