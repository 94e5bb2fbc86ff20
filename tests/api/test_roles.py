"""Two roles together show what either shows alone, and nothing more, over the embedded core.

Each pair of roles asks every list and statistic: its rows are the union of what the two roles
see, each value is hidden only if both hide it, and a refusal needs both to be refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any

import orjson
import pytest
from pytest_twisted import blockon, ensureDeferred
from twisted.internet.defer import Deferred

from monrest.api.endpoint import Context
from monrest.base.errors import Forbidden
from monrest.base.values import ADMIN, ROLES, Caller, Document, Identity, RestRequest, Rows
from monrest.config import Config, DisplayConfig
from monrest.render.formats import RenderOptions, render
from tests.api import asking
from tests.examples import some
from tests.fakes.context import KnownContacts
from tests.fakes.demo import demo_context

SHORT = "authorized_for_"
PAIRS = some(combinations(ROLES, 2))
_LINE = "peer_key,time,lineno,message,options,command_name,current_contact_email"
LISTS: Mapping[str, tuple[str, int]] = {
    "/hosts": ("peer_key,name,check_command,event_handler,custom_variables,contacts,_DEMO", 2),
    "/services": ("peer_key,host_name,description,check_command,host_check_command,state", 3),
    "/hostgroups": ("name,members", 1),
    "/servicegroups": ("name,members,peer_key", 1),
    "/contacts": ("peer_key,name,email,host_notification_commands", 2),
    "/contactgroups": ("peer_key,name,members", 2),
    "/timeperiods": ("peer_key,name,in", 2),
    "/commands": ("peer_key,name,line", 2),
    "/comments": ("peer_key,id,comment,host_check_command", 2),
    "/downtimes": ("peer_key,id,comment,service_check_command", 2),
    "/logs": (_LINE, 4),
    "/alerts": (_LINE, 4),
    "/notifications": (_LINE, 4),
    "/processinfo": ("peer_key,peer_addr,program_start", 1),
    "/sites": ("id,addr,federation_addr,federation_version,status", 1),
    "/hosts/web*/commandline": ("peer_key,host_name,command_line,check_command", 2),
}
"""Lists, columns that are asked, and how many of them name a row."""

PAST = dict.fromkeys(("/logs", "/alerts", "/notifications"), (("time[gte]", "-12h"),))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """The demo's core as three sites: for all, for olga's group, for nobody but administrators."""
    groups = {"a": (), "b": ("webteam", "x"), "c": ("nobody",)}
    with demo_context(
        tmp_path_factory.mktemp("core"),
        [{"id": name, "name": name, "groups": of} for name, of in groups.items()],
        {"history_days": 0.25},
        contacts=KnownContacts(olga=("webteam",)),
        config=Config(display=DisplayConfig(expose_custom_variables=("_DEMO",))),
    ) as made:
        yield made


class View:
    """What olga sees with some roles: rows by key for every list, None where she is refused."""

    def __init__(self, context: Context, *roles: str) -> None:
        self.context = context
        self.identity = Identity(user="olga", roles=frozenset(roles))
        self.rows: dict[str, dict[tuple[str, ...], dict[str, Any]] | None] = {}
        for path, (names, key) in LISTS.items():
            self.rows[path] = self.read(path, names, key)
        self.totals = {table: self.total(table) for table in ("hosts", "services", "contacts")}

    def total(self, table: str) -> int:
        answer = self.ask(f"/{table}/totals")
        assert isinstance(answer, Document)
        count: int = answer.value["total"]
        return count

    def ask(self, path: str, *parameters: tuple[str, str]) -> Any:
        request = asking.request(path, *parameters, identity=self.identity)
        return blockon(Deferred.fromCoroutine(self.context.dispatch(self.context, request)))

    def read(self, path: str, names: str, key: int) -> dict[tuple[str, ...], dict[str, Any]] | None:
        try:
            answer = self.ask(path, ("columns", names), *PAST.get(path, ()))
        except Forbidden:
            return None
        assert isinstance(answer, Rows)
        assert not answer.failed_sites
        order = [one.name for one in answer.columns]
        assert order == names.split(",")
        found = {
            tuple(map(str, row[:key])): dict(zip(order, row, strict=True)) for row in answer.rows
        }
        assert len(found) == len(answer.rows), path
        return found

    def keys(self, path: str) -> set[tuple[str, ...]]:
        return set(self.rows[path] or ())


@pytest.fixture(scope="module")
def views(context: Context) -> Mapping[frozenset[str], View]:
    """What is seen with no role, with each one and with the pairs."""
    sets = [(), *((role,) for role in ROLES), *PAIRS]
    return {frozenset(roles): View(context, *roles) for roles in sets}


def pairs(views: Mapping[frozenset[str], View]) -> Iterator[tuple[str, View, View, View]]:
    """A pair of roles as text, what is seen with both, with the one and with the other."""
    for one, other in PAIRS:
        both = views[frozenset({one, other})]
        yield f"{one} and {other}", both, views[frozenset({one})], views[frozenset({other})]


@pytest.mark.parametrize("path", LISTS)
def test_rows_with_two_roles_are_those_with_either(
    views: Mapping[frozenset[str], View], path: str
) -> None:
    seen = "/hosts" if "commandline" in path else path
    for roles, both, one, other in pairs(views):
        refused = both.rows[path] is None
        assert refused == (one.rows[path] is None and other.rows[path] is None), roles
        if refused:
            continue
        union = one.keys(seen) | other.keys(seen)
        assert both.keys(path) == union & set(views[frozenset({ADMIN})].keys(path)), roles
        assert both.keys(seen) == union, roles


@pytest.mark.parametrize("path", LISTS)
def test_values_with_two_roles_are_those_with_either(
    views: Mapping[frozenset[str], View], path: str
) -> None:
    nobody = views[frozenset()]

    @cache
    def opened(view: View) -> set[str]:
        """The columns that these roles show and none does not."""
        return {
            column
            for key, row in (view.rows[path] or {}).items()
            if key in nobody.keys(path)
            for column, value in row.items()
            if value != (nobody.rows[path] or {})[key][column]
        }

    for roles, both, one, other in pairs(views):
        for key, row in (both.rows[path] or {}).items():
            shown = [view.rows[path][key] for view in (one, other) if key in view.keys(path)]  # type: ignore[index]  # it has the key
            for column, value in row.items():
                if any(value == each[column] for each in shown):
                    continue
                # A row that one role shows, in a column that the other one opens.
                assert len(shown) < 2, (roles, key, column)
                assert column in opened(one) | opened(other), (roles, key, column)


def test_what_single_roles_open(views: Mapping[frozenset[str], View]) -> None:
    """The tests above would hold if no role did anything."""
    base = views[frozenset()]
    more = {
        role.removeprefix(SHORT): {
            path for path in LISTS if views[frozenset({role})].rows[path] != base.rows[path]
        }
        for role in ROLES
    }
    logs = {"/logs", "/alerts", "/notifications"}
    entries = {"/comments", "/downtimes"}
    informed = {
        *("/hosts", "/services", "/contacts", "/downtimes", "/logs", "/notifications"),
        *("/hosts/web*/commandline", "/contactgroups"),
    }
    assert more.pop("admin") == set(LISTS)
    assert more == {
        **{role: set() for role in more},
        "all_hosts": {"/hosts", "/hostgroups", *entries, *logs},
        "all_services": {"/services", "/servicegroups", *entries, *logs},
        "configuration_information": informed,
        "system_information": {"/processinfo", "/sites", "/logs"},
    }


def test_statistics_count_the_rows_that_are_seen(views: Mapping[frozenset[str], View]) -> None:
    for roles, view in views.items():
        for table, total in view.totals.items():
            assert total == len(view.keys(f"/{table}")), roles


@ensureDeferred
async def test_exposed_variables_are_on_every_row_for_who_asks_with_the_header(
    context: Context,
) -> None:
    """Also where the same rows were written before for others."""
    identity = Identity(user="olga", roles=frozenset(ROLES))

    async def rows(**headers: str) -> list[dict[str, Any]]:
        request = RestRequest(
            method="GET", path="/services", segments=("services",), identity=identity,
            parameters=(("limit", "30"),), caller=Caller(headers=headers),
        )  # fmt: skip
        answer = await context.dispatch(context, request)
        assert isinstance(answer, Rows)
        found: list[dict[str, Any]] = orjson.loads(b"".join(render(answer, RenderOptions()).pieces))
        assert len(found) == 30
        return found

    plain = [await rows() for _ in range(3)]
    assert plain[0] == plain[1] == plain[2]
    asked = {context.names.header("Columns").lower(): "1"}
    assert await rows(**asked) == [{"_DEMO": "", **row} for row in plain[0]]
    assert not all("_DEMO" in row for row in plain[0])
    assert await rows() == plain[0]
