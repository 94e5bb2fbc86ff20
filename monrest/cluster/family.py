"""The parts of the cluster."""

from __future__ import annotations

from monrest import __version__
from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.cluster.endpoints import ClusterEndpoints
from monrest.cluster.model import Member
from monrest.cluster.peers import Peers
from monrest.cluster.seal import key_of
from monrest.cluster.service import Cluster


def _cluster(common: Common) -> Cluster:
    config = common.config
    return Cluster(
        database=common.database,
        health=common.health,
        clock=common.reactor,
        wall=common.wall,
        duties=common.duties,
        peers=Peers(reactor=common.reactor, names=config.names),
        config=config.cluster,
        drain=config.server.drain_timeout,
        check=common.may_restart,
        leave=common.restart,
        workers=common.workers,
    )


def _open(common: Common, cluster: Cluster) -> None:
    node = common.node
    cluster.own = Member(
        id=node.id, run=node.run, host=node.host, pid=node.pid, version=__version__
    )
    cluster.peers.configure(common.config.names, key_of(common.key))


def _configure(common: Common, cluster: Cluster) -> None:
    config = common.config
    cluster.peers.configure(config.names, key_of(common.key))
    cluster.configure(config.cluster, config.server.drain_timeout)


FAMILY = Family(
    life=Life(_cluster, open=_open, configure=_configure),
    served=(
        Served(
            declared(ClusterEndpoints),
            lambda common: ClusterEndpoints(cluster=common.the(Cluster)),
        ),
    ),
)
