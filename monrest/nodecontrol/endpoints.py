"""Node-control: facts about the hosts of sites, and operations there (docs/spec/nodecontrol.md)."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred

from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, declared
from monrest.api.family import Common, Family, Life, Served
from monrest.api.fields import require_only
from monrest.api.lists import local_schema, own_columns, reselect, select
from monrest.base.audit import audited
from monrest.base.concurrency import shielded
from monrest.base.errors import NotFound, error_value
from monrest.base.names import Names
from monrest.base.values import Answer, Column, Document, Progress, RestRequest
from monrest.jobs.endpoints import result_url
from monrest.jobs.running_job import JobWork
from monrest.jobs.service import Jobs
from monrest.nodecontrol.model import FACTS, FAILED, FLAGS, GATHER, Log, Node, node_record
from monrest.nodecontrol.service import NodeControl
from monrest.nodecontrol.store import StoredNodes
from monrest.query.column_names import TableSchema
from monrest.sites.site import Site
from monrest.store.stored import shown_columns, shown_values

COLUMNS = shown_columns(
    Node,
    *FACTS,
    Column("cleaning", "boolean", "", "1 while old versions are being removed"),
    Column("cleaning_failed", "number", "", "0 the last time was fine, 1 it failed, 2 it warned"),
    Column("facts", "object", "", "all that was gathered"),
    Column("gathering", "boolean", "", "1 while facts are being gathered"),
    Column("host_name", "string", "", "host of the site"),
    Column("installing", "boolean", "", "1 while a version is being installed"),
    Column("installing_failed", "number", "", "0 the last time was fine, 1 it failed, 2 it warned"),
    Column("logs", "array_of_strings", "", "each operation's last end: `name`, `failed`, `time`"),
    Column("os_sec_updating", "boolean", "", "1 while security updates are being installed"),
    Column("os_updating", "boolean", "", "1 while the system is being updated"),
    Column("peer_key", "string", "", "id of the site"),
    Column("peer_name", "string", "", "name of the site"),
    Column("peer_type", "string", "", "kind of connection"),
    Column("run_all", "boolean", "", "1 while all of it is being done"),
    Column("section", "string", "", "section of the site"),
    Column("updating", "boolean", "", "1 while the site is being updated"),
    Column("updating_failed", "number", "", "0 the last time was fine, 1 it failed, 2 it warned"),
)
LOG_COLUMNS = shown_columns(Log)
_STARTED = (
    Column("job_id", "string", "", "id of the background job"),
    Column("message", "string", "", "what was done"),
    Column("result_url", "string", "", "path of its result"),
    Column("success", "boolean", "", "true"),
)
_LONGEST_NAME = 80
_OPERATIONS = (GATHER, *FLAGS)
_nodes = partial(
    Endpoint,
    text="Sites with a local socket, sites over HTTP, and those with a `[[nodecontrol.nodes]]`. "
    "Facts are gathered once a day (`nodecontrol.gather_schedule`), when asked and after each "
    "operation. Unknown path (404) while `nodecontrol.enabled` is false.",
    parameters=LIST_PARAMETERS,
    columns=COLUMNS,
    roles=("admin",),
)


@lru_cache(maxsize=8)
def _schema(names: Names) -> TableSchema:
    return local_schema("nodes", own_columns(COLUMNS, names), (), {"last_job": "string"})


@frozen(eq=False, kw_only=True)
class NodeEndpoints:
    """Facts about nodes, and operations there as background jobs."""

    nodecontrol: NodeControl
    jobs: Jobs

    def _require_enabled(self, request: RestRequest) -> None:
        if not self.nodecontrol.config.enabled:
            raise NotFound(f"unknown rest path: {request.path}")

    @_nodes(path="/mon/node-control/nodes", description="hosts of sites, and facts about them")
    @_nodes(path="/mon/nc/nodes", description="alias of /mon/node-control/nodes")
    async def list_nodes(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        self._require_enabled(request)
        stored = await self.nodecontrol.stored()
        control = self.nodecontrol
        rows = [
            self._record(context, site, stored)
            for site in context.sites.sites
            if control.controls(site)
        ]
        return await select(context, request, _schema(context.names), rows)

    def _record(self, context: Context, site: Site, stored: StoredNodes) -> dict[str, Any]:
        node = stored.nodes.get(site.id, Node(site=site.id))
        row = node_record(node, stored.logs.get(site.id, {}), context.wall.now())
        settings = self.nodecontrol.settings(site)
        own = socket.gethostname() if site.local else site.name
        row |= {
            "host_name": settings.host_name if settings and settings.host_name else own,
            "peer_key": site.id,
            "peer_name": site.name,
            "peer_type": site.kind,
            "section": site.section,
        }
        names = context.names
        row["facts"] = {names.own(key): value for key, value in row["facts"].items()}
        return {names.own(key): value for key, value in row.items()}

    def _site(self, context: Context, request: RestRequest, key: str) -> Site:
        self._require_enabled(request)
        for site in context.sites.sites:
            if site.id == key and self.nodecontrol.controls(site):
                return site
        raise NotFound("no such node")

    @Endpoint(
        path="/mon/node-control/nodes/<peer_key>/logs/<name>",
        description="what the last operation of a name wrote on a node",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=LOG_COLUMNS,
        roles=("admin",),
    )
    async def read_log(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        log = await self.nodecontrol.output(self._site(context, request, where[0]), where[1])
        if log is None:
            raise NotFound("no such log")
        return await reselect(
            context, request, Document(value=shown_values(log), columns=LOG_COLUMNS)
        )

    @Endpoint(
        path="/mon/node-control/nodes/<peer_key>/cmd/<operation>",
        methods=("POST",),
        description="do something on a node, as a background job",
        text="`gather` facts now; `install`, `update`, `cleanup`, `os_update` or `os_sec_update` "
        "by the command of the node's `[[nodecontrol.nodes]]`; `run_all` does the first three of "
        "these, as far as there are commands, until one fails. One operation at a time on a node, "
        "else 409; facts are gathered after it. The result of the job has the output, with the "
        "status 502 if it failed.",
        shape="object",
        parameters=(),
        columns=_STARTED,
        roles=("admin",),
        at_once=True,
    )
    async def start(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        site, operation = self._site(context, request, where[0]), where[1]
        with audited(request, f"node {operation[:_LONGEST_NAME]}", site.id):
            if operation not in _OPERATIONS:
                raise NotFound("no such operation", f"expected one of {', '.join(_OPERATIONS)}")
            require_only(request)
            # To its end also when the client leaves, so that nothing stays claimed.
            number = await shielded(self._start(request, site, operation))
        return Document(
            value={
                "job_id": str(number),
                "message": f"{operation} runs as a background job",
                "result_url": result_url(context, number),
                "success": True,
            }
        )

    async def _start(self, request: RestRequest, site: Site, operation: str) -> int:
        control = self.nodecontrol
        if operation == GATHER:
            control.require_gatherer(site)

            async def gathered(_: Progress) -> Answer:
                problem = await control.gather(site, "facts")
                return _result(operation, problem, {"peer_key": site.id})

            return (await self.jobs.start(_work(request, gathered))).id
        claimed = await control.claim(site, operation)
        started: Deferred[int] = Deferred()

        async def done(progress: Progress) -> Answer:
            logs = await control.perform(site, operation, await started, progress)
            problem = f"{logs[-1].name} failed" if logs and logs[-1].failed == FAILED else ""
            return _result(operation, problem, {"logs": [shown_values(log) for log in logs]})

        try:
            job = await self.jobs.start(_work(request, done))
        except BaseException:
            await control.release(site, claimed)
            raise
        try:
            await control.assign(site, job.id, claimed)
        except BaseException as error:
            started.errback(error)
            raise
        started.callback(job.id)
        return job.id


def _work(request: RestRequest, call: Callable[[Progress], Awaitable[Answer]]) -> JobWork:
    return JobWork(
        call=call,
        cmd=f"POST {request.path}",
        identity=request.identity,
        caller=request.caller,
        request_id=request.request_id,
        changes=True,
    )


def _result(operation: str, problem: str, more: Mapping[str, Any]) -> Document:
    """The result of the job; what failed on the node makes the job fail."""
    if problem:
        value = {**error_value(502, f"{operation} failed", problem), **more}
        return Document(value=value, status=502)
    return Document(value={"code": 200, "message": f"{operation} is done", **more})


def _node_control(common: Common) -> NodeControl:
    config, jobs = common.config, common.the(Jobs)
    return NodeControl(
        *(common.reactor, common.wall, common.database, common.threads, common.duties),
        *(common.registry, config.nodecontrol),
        folder=config.server.var_dir,
        job_failure=jobs.failure,
        surely_alive=jobs.surely_alive,
        zone=config.display.zone(),
    )


FAMILY = Family(
    life=Life(
        _node_control,
        configure=lambda common, nodecontrol: nodecontrol.configure(
            common.config.nodecontrol, common.config.display.zone()
        ),
    ),
    served=(
        Served(
            declared(NodeEndpoints),
            lambda common: NodeEndpoints(
                nodecontrol=common.the(NodeControl), jobs=common.the(Jobs)
            ),
        ),
    ),
)
