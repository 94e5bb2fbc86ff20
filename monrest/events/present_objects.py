"""Hosts and services at present: which of them a question means, and which are problems.

One question to the cores serves all events and all clients that ask the same. It is asked when an
event comes that it decides about, and what is known is too old (docs/spec/events.md, "Objects"
and "Snapshot").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime

from monrest.api.endpoint import Context
from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.values import Identity, RestRequest, Row, Rows
from monrest.events.filter import on_host, on_service
from monrest.events.model import Event, object_subject
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition, FilterTree, Group, leaves, rewritten
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.fetch import fetch
from monrest.sites.site import Site

MOST_AGE = 60.0
"""Seconds for which what a configuration says is good while no core was started again."""

_CHANGING_CORES = 4.0
"""The same where objects may change without a start, as in an Icinga 2."""

_CHANGING_COLUMNS = 1.0
"""Seconds for which a condition on something that checks change is good."""

_STARTED_TO_CHANGE = frozenset({"naemon", "mk", "shinken"})
_LASTING = re.compile(
    r"(?:current_)?(?:host_|service_)?(?:name|alias|display_name|description|address|groups|contacts"
    r"|contact_groups|parents|childs|notes|notes_expanded|notes_url|action_url|icon_image"
    r"|check_command|check_period|notification_period|custom_variables|custom_variable_names"
    r"|depends_exec|depends_notify)|_.*|peer_.*"
)
_CHANGES_VARIABLES = re.compile(r"CHANGE_CUSTOM_(?:HOST|SVC|CONTACT)_VAR")


@define(eq=False)
class ObjectSet:
    """The hosts and services for which ``tree`` holds, of those that ``who`` may see.

    ``tree`` None: all of them. ``context`` has the sites that exist for ``who``.
    """

    who: Identity
    tree: FilterTree | None
    clock: IReactorTime
    _current: frozenset[tuple[str, str, str]] = field(init=False, default=frozenset())
    _until: float = field(init=False, default=0.0)
    _runs: Collection[object] = field(init=False, default=())

    def holds(self, site: str, host: str, service: str) -> bool:
        """Whether the object is among them, as far as was read."""
        return (site, host, service) in self._current

    def stale(self, sites: Collection[Site]) -> bool:
        """Whether the cores have to be asked again before anything is decided."""
        return self.clock.seconds() >= self._until or self._runs != _runs(sites)

    def expire(self, command: str = "") -> None:
        """Ask anew; an external ``command`` may have changed custom variables."""
        if not command or _CHANGES_VARIABLES.fullmatch(command):
            self._until = 0.0

    async def read(self, context: Context, sites: Collection[Site]) -> None:
        """Ask the cores; of those that fail the last answer counts.

        Raise BadRequest when neither hosts nor services have what is asked for.
        """
        runs = _runs(sites)
        ids = tuple(site.id for site in sites)
        objects: set[tuple[str, str, str]] = set()
        failed: set[str] = set()
        errors: list[BadRequest] = []
        for schema in (HOSTS, SERVICES):
            tree = self._tree(schema)
            if tree is False:
                continue
            names = ("name",) if schema is HOSTS else ("host_name", "description")
            conditions = () if tree is None else (tree,)
            try:
                rows, silent = await rows_of_objects(
                    *(context, self.who, ids, schema, ("peer_key", *names), conditions)
                )
            except BadRequest as error:
                errors.append(error)
                continue
            failed |= silent
            objects.update((row[0], row[1], row[2] if len(row) > 2 else "") for row in rows)
        if len(errors) > 1 or (errors and self._tree(HOSTS) is False):
            raise errors[-1]
        objects.update(key for key in self._current if key[0] in failed)
        age = MOST_AGE
        if any(
            site.capabilities and site.capabilities.kind not in _STARTED_TO_CHANGE for site in sites
        ):
            age = _CHANGING_CORES
        columns = (
            () if self.tree is None else [condition.column for condition in leaves([self.tree])]
        )
        if failed or not all(map(_LASTING.fullmatch, columns)):
            age = _CHANGING_COLUMNS
        self._current, self._runs = frozenset(objects), runs
        self._until = self.clock.seconds() + age

    def _tree(self, schema: TableSchema) -> FilterTree | Literal[False] | None:
        """The conditions in terms of a collection; False where they never hold."""
        if self.tree is None:
            return None
        if schema is SERVICES:
            return rewritten(self.tree, on_service)
        return _on_hosts(self.tree)


def _on_hosts(tree: FilterTree) -> FilterTree | Literal[False]:
    """The conditions on hosts; what only services have holds for none."""
    if isinstance(tree, Condition):
        return on_host(tree) or False
    items = [_on_hosts(item) for item in tree.items]
    if tree.connector == "and":
        return False if False in items else Group("and", tuple(item for item in items if item))
    kept = tuple(item for item in items if item is not False)
    return Group("or", kept) if kept else False


def _runs(sites: Collection[Site]) -> list[object]:
    """Values that differ whenever a core may have other objects than before."""
    return [
        (site.id, (program := site.health.program).program_start, program.nagios_pid)
        for site in sites
    ]


async def rows_of_objects(
    context: Context,
    who: Identity,
    sites: tuple[str, ...],
    schema: TableSchema,
    columns: Sequence[str],
    conditions: tuple[FilterTree, ...],
) -> tuple[list[Row], frozenset[str]]:
    """The rows of some sites, and the sites that did not answer.

    ``context`` has the sites that exist for ``who``. Raise BadRequest for conditions on what the
    objects do not have.
    """
    request = RestRequest(
        method="GET",
        path=f"/{schema.name}",
        segments=(schema.name,),
        parameters=(("columns", ",".join(columns)),),
        sites=sites,
        identity=who,
    )
    try:
        answer = await fetch(context, request, schema, extra=conditions)
    except SitesFailed as error:
        return [], frozenset(problem.site for problem in error.problems)
    assert isinstance(answer, Rows)
    return list(answer.once()), frozenset(problem.site for problem in answer.failed_sites)


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
