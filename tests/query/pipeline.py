"""The whole pure pipeline over example hosts: parse, bind, plan, finish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities, Column, Document, Row, Rows
from monrest.query.bind import bind
from monrest.query.column_names import (
    ColumnNames,
    CoreColumn,
    DerivedColumn,
    TableSchema,
    View,
    Visibility,
)
from monrest.query.flow import SitePart
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.parse import parse_query
from monrest.query.plan import layout, plan
from monrest.query.stages import absent_labels, finish

NOW = 1_795_242_791.0


def column(
    name: str, core_type: str, api: str, unit: str = "", *, default: bool = True
) -> CoreColumn:
    return CoreColumn(column=Column(name, api, unit), core_type=core_type, default=default)


COLUMNS = [
    column("name", "string", "string"),
    column("alias", "string", "string"),
    column("state", "int", "number"),
    column("num_services", "int", "number"),
    column("num_services_ok", "int", "number"),
    column("latency", "float", "number", "s"),
    column("last_check", "int", "time"),
    column("last_state_change", "int", "time"),
    column("check_command", "string", "string"),
    column("groups", "list", "array_of_strings"),
    column("services", "list", "array_of_strings"),
    column("perf_data", "string", "string"),
    column("custom_variables", "dict", "object"),
    column("custom_variable_names", "list", "array_of_strings"),
    column("custom_variable_values", "list", "array_of_strings"),
    column("id", "int", "number", default=False),
]
HOSTS = TableSchema(
    name="hosts",
    table="hosts",
    columns={one.name: one for one in COLUMNS}
    | {
        "last_state_change_order": DerivedColumn(
            column=Column("last_state_change_order", "time"),
            sources=("last_state_change", "program_start"),
            compute=lambda changed, start: changed or start,
        )
    },
    strip="host_",
    order=("name",),
    perf=(("perf_data", ""),),
    custom=(("custom_variables", "_"),),
)
NAEMON = Capabilities(
    kind="naemon",
    tables={"hosts": {one.name: one.core_type for one in COLUMNS}},
    key="naemon",
)


def host(
    name: str, state: int, groups: list[str], services: list[str], **more: Any
) -> dict[str, Any]:
    variables = more.pop("variables", {})
    return {
        "name": name,
        "alias": name.upper(),
        "state": state,
        "num_services": len(services),
        "num_services_ok": len(services) - 1,
        "latency": 0.5,
        "last_check": int(NOW) - 60,
        "last_state_change": int(NOW) - 3600,
        "check_command": "ping!100!200",
        "groups": groups,
        "services": services,
        "perf_data": "",
        "custom_variables": variables,
        "custom_variable_names": list(variables),
        "custom_variable_values": list(variables.values()),
        "id": len(name),
        **more,
    }


S1 = [
    host(
        "web01",
        0,
        ["web", "linux"],
        ["ping", "http", "load", "disk"],
        perf_data="rta=0.030ms;3000.000;5000.000;0; pl=0%;80;100;;",
        variables={"WORKER": "local", "NUM": "10"},
        latency=0.875,
    ),
    host("db01", 0, ["linux"], ["ping", "sql"], perf_data="rta=12.5ms;3000;5000;0; pl=20%;80;100;;"),
    host("web02", 1, ["web", "linux"], ["ping", "http"], variables={"WORKER": "remote"}),
    host("router1", 1, [], ["ping", "if"], perf_data="rta=0.000ms;3000;5000;0; pl=100%;80;100;;", last_state_change=0),
]  # fmt: skip
DISK = host("disk", 0, [], [], perf_data="used-01=7 rta=5")
EVERYBODY = View()
NO_CONTACT = View(
    commands=False,
    variables=Visibility(patterns=("WORKER",), all_visible=False),
    contact="ann",
    addresses=False,
)


class HeldRows:
    """Keeps log lines where they are."""

    def keep(self, rows: list[Row]) -> list[Row]:
        return rows


def run(
    params: str,
    sites: Mapping[str, list[dict[str, Any]]] | None = None,
    view: View = EVERYBODY,
    schema: TableSchema = HOSTS,
    core: Capabilities = NAEMON,
) -> Any:
    """Rows as dictionaries, or the object of an ungrouped aggregation."""
    pairs = tuple(
        (name, value)
        for name, _, value in (part.partition("→") for part in params.split("&") if part)
    )
    bound = bind(
        parse_query(pairs), ColumnNames(schema, {}), view, Moment(now=NOW, zone=ZoneInfo("UTC"))
    )
    shape = layout(bound, [core])
    made = plan(bound, shape, core, push_down=False)
    assert made is not None
    parts = [
        SitePart(
            plan=made,
            rows=[[row[name] for name, _ in shape.columns] for row in rows],
            constants={
                "peer_key": site,
                "peer_name": site.upper(),
                "peer_section": "Default",
                "program_start": 77,
            },
        )
        for site, rows in (sites or {"s1": S1}).items()
    ]
    missing = absent_labels(bound, shape, parts)
    if missing:
        raise BadRequest("possible typo in filter", ", ".join(missing))
    with Limit() as limit:
        result = finish(bound, shape, parts, limit)
    if isinstance(result, Document):
        return result.value
    assert isinstance(result, Rows)
    names = [one.name for one in result.columns]
    rows = [dict(zip(names, row, strict=True)) for row in result.rows]
    if result.expand is not None:
        rows = [
            {**result.expand(row), **found} for row, found in zip(result.rows, rows, strict=True)
        ]
    return rows


def names(params: str, **more: Any) -> list[str]:
    return [row["name"] for row in run(f"columns→name&{params}", **more)]
