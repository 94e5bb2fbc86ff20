"""The nodes of a cluster, and whether this one should be asked (docs/spec/cluster.md)."""

from __future__ import annotations

from shutil import disk_usage
from typing import Any

from attrs import frozen

from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.fields import require_only
from monrest.api.lists import local_schema, reselect, select
from monrest.api.visibility import SYSTEM
from monrest.base.audit import audit, audited
from monrest.base.errors import (
    BadRequest,
    Conflict,
    NotClustered,
    NotFound,
    Unavailable,
)
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.cluster.model import RestartStep
from monrest.cluster.service import Cluster

COLUMNS = (
    Column("hostname", "string", "", "its host, empty until that is known"),
    Column("last_contact", "time", "", "when it answered this node last, 0 for never"),
    Column("last_error", "string", "", "why it did not answer the last time; empty if it did"),
    Column("maintenance", "time", "", "since when it is in maintenance, 0 if it is not"),
    Column("node_id", "string", "", "its id; node<n> until that is known"),
    Column("node_url", "string", "", "where the nodes reach it"),
    Column("pids", "array_of_strings", "", "its processes"),
    Column("response_time", "number", "s", "how long its last answer took"),
    Column("version", "string", "", "its version"),
)
STEPS = (
    Column("changed", "time", "", "when it came to this state"),
    Column("message", "string", "", "what went wrong, or why it was left out"),
    Column("node_id", "string", "", "id of the node"),
    Column("node_url", "string", "", "where the nodes reach it"),
    Column("position", "number", "", "its turn, from 0"),
    Column("state", "string", "", "waiting, ordered, leaving, done, failed or skipped"),
)
_SCHEMA = local_schema("cluster", COLUMNS, ())
_LEAST_FREE = 1_048_576
"""Bytes of the disk of ``server.var_dir``."""
_STEPS = local_schema("cluster_restart", STEPS, ())
_MESSAGE = Column("message", "string", "", "what was done")


def _step_record(step: RestartStep) -> dict[str, Any]:
    return {
        "changed": step.changed,
        "message": step.message,
        "node_id": str(step.node) if step.node else "",
        "node_url": step.url,
        "position": step.position,
        "state": step.state,
    }


@frozen(eq=False, kw_only=True)
class ClusterEndpoints:
    """The cluster as one of its nodes knows it."""

    cluster: Cluster

    def _require(self) -> None:
        if not self.cluster.clustered:
            raise NotClustered(
                "cluster disabled", "this is a single node installation and not clustered"
            )

    def _record(self, context: Context, url: str) -> dict[str, Any]:
        """A node as this one knows it."""
        cluster = self.cluster
        node, seen, own = cluster.node_at(url), cluster.seen(url), cluster.is_own(url)
        return {
            "hostname": node.host if node else "",
            "last_contact": int(context.wall.now() if own else seen.last_contact),
            "last_error": "" if own else seen.last_error,
            "maintenance": node.maintenance if node else 0,
            "node_id": cluster.name_of(url),
            "node_url": url,
            "pids": [str(node.pid)] if node else [],
            "response_time": 0.0 if own else seen.response_time,
            "version": node.version if node else "",
        }

    def _url_of(self, text: str) -> str:
        """Find the url of a node by its id or url; NotFound."""
        cluster = self.cluster
        for url in cluster.urls():
            if text in (cluster.name_of(url), url):
                return url
        raise NotFound("no such cluster node")

    @Endpoint(
        path="/mon/cluster",
        description="nodes of the cluster",
        text="As the node that answers knows them; sorted by URL. An empty list without a cluster.",
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
        roles=(SYSTEM,),
    )
    async def list_nodes(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        await self.cluster.current()
        records = [self._record(context, url) for url in self.cluster.urls()]
        return await select(context, request, _SCHEMA, records)

    @Endpoint(
        path="/mon/cluster/<id>",
        description="one node of the cluster, by its id or URL",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
        roles=(SYSTEM,),
    )
    async def read_node(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        await self.cluster.current()
        value = self._record(context, self._url_of(where[0]))
        return await reselect(context, request, Document(value=value, columns=COLUMNS))

    @Endpoint(
        path="/mon/cluster/heartbeat",
        methods=("POST",),
        description="call all other nodes now",
        text="Every node does this by itself all `cluster.heartbeat_interval` seconds. 501 without "
        "a cluster.",
        shape="object",
        parameters=(),
        columns=(
            _MESSAGE,
            Column(
                "nodes", "object", "", "by id of the node: its answer, null where there is none"
            ),
        ),
        roles=("admin",),
    )
    async def heartbeat(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        del context
        self._require()
        require_only(request)
        pongs = await self.cluster.heartbeat()
        documents = {name: None if pong is None else pong.document for name, pong in pongs.items()}
        return Document(value={"message": "heartbeat send", "nodes": documents})

    @Endpoint(
        path="/mon/cluster/heartbeat",
        description="not to be used: POST it",
        text="Always an error.",
        shape="object",
        parameters=(),
        roles=("admin",),
    )
    async def no_heartbeat(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        del context, request
        self._require()
        raise BadRequest("bad request", "POST method required")

    @Endpoint(
        path="/mon/cluster/restart",
        methods=("POST",),
        description="restart all nodes, one after another",
        text="Each node says at `/mon/ready` for `cluster.restart_notice` seconds that it leaves, "
        "lets its requests and jobs end (`server.drain_timeout`), and starts again; the next one "
        "follows when it answers. The node that is asked is the last. A node that does not "
        "answer is left out; one that does not come back ends it. 409 during another restart, "
        "501 without a cluster.",
        shape="object",
        parameters=(),
        columns=(_MESSAGE, Column("nodes", "object", "", "by id of the node: waiting or skipped")),
        roles=("admin",),
    )
    async def restart(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        with audited(request, "cluster restart"):
            self._require()
            require_only(request)
            steps = await self.cluster.restart_all()
            if steps is None:
                raise Conflict(
                    "a restart is already running", f"GET {context.names.root}/mon/cluster/restart"
                )
        states = {str(step.node) if step.node else step.url: step.state for step in steps}
        message = "the cluster nodes are restarted one after another"
        return Document(value={"message": message, "nodes": states})

    @Endpoint(
        path="/mon/cluster/restart",
        description="how far the last restart of all nodes is",
        text="Empty before the first one. 501 without a cluster.",
        parameters=LIST_PARAMETERS,
        columns=STEPS,
        roles=(SYSTEM,),
    )
    async def list_restarts(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        self._require()
        await self.cluster.look()
        return await select(context, request, _STEPS, map(_step_record, self.cluster.steps))

    @Endpoint(
        path="/mon/cluster/<id>/maintenance",
        methods=("POST",),
        description="take a node out of the balance",
        text="`/mon/ready` of the node answers 503 `MAINTENANCE` within seconds; requests are "
        "still served. It stays so over restarts.",
        shape="object",
        parameters=(),
        columns=(_MESSAGE,),
        roles=("admin",),
    )
    @Endpoint(
        path="/mon/cluster/<id>/maintenance",
        methods=("DELETE",),
        description="let a node into the balance again",
        text="Also when it was not in maintenance.",
        shape="object",
        parameters=(),
        columns=(_MESSAGE,),
        roles=("admin",),
    )
    async def maintain(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        del context
        on = request.method != "DELETE"
        require_only(request)
        url = self._url_of(where[0])
        name = self.cluster.name_of(url)
        if not (name.isdigit() and await self.cluster.maintain(int(name), on=on)):
            raise Conflict("the node is not known yet", "it has to run before")
        action = "cluster maintenance" if on else "cluster maintenance end"
        audit(request.identity, request.caller, action, target=url)
        what = "put into maintenance mode" if on else "taken out of maintenance mode"
        return Document(value={"message": f"node {name} {what}"})

    @Endpoint(
        path="/mon/cluster/ping",
        description="what a node says of itself to another node",
        text="For the nodes of a cluster only, which prove with `X-Mon-Cluster-Auth` that they "
        "have the same secret key.",
        shape="object",
        parameters=(
            Parameter(
                name="url",
                description="the base URL by which the node was called",
                required=True,
            ),
        ),
        public=True,
    )
    async def ping(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        credentials = request.caller.headers.get(context.names.header("Cluster-Auth"), "")
        url = next((value for name, value in request.parameters if name == "url"), "")
        return Document(value=self.cluster.answer(credentials, url), plain=True)

    @Endpoint(
        path="/mon/ready",
        description="whether requests should be sent to this daemon",
        text="For load balancers, without credentials: 200 `OK`, or 503 `MAINTENANCE`, "
        "`STARTING`, `STOPPING`, `NO DATABASE` or `DISK FULL`. "
        "Also at `/-/ready`, beside the API root.",
        shape="object",
        parameters=(),
        columns=(_MESSAGE,),
        public=True,
    )
    async def ready(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        del request
        await self.cluster.current()
        if reason := self.cluster.not_ready():
            raise Unavailable(reason, "send requests to another node")
        folder = context.config.server.var_dir
        if (await context.threads.run(lambda: disk_usage(folder))).free < _LEAST_FREE:
            raise Unavailable("DISK FULL", "changes and large answers cannot be stored")
        return Document(value={"message": "OK"}, plain=True)

    @Endpoint(
        path="/mon/healthy",
        description="whether this daemon answers",
        text="For who restarts what hangs, without credentials: always 200 `OK`, also while "
        "no requests should be sent to it. Also at `/-/healthy`, beside the API root.",
        shape="object",
        parameters=(),
        columns=(_MESSAGE,),
        public=True,
    )
    async def healthy(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        del context, request
        return Document(value={"message": "OK"}, plain=True)
