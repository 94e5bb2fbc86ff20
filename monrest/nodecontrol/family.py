"""What node-control is made of."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.jobs.service import Jobs
from monrest.nodecontrol.endpoints import NodeEndpoints
from monrest.nodecontrol.service import NodeControl


def _node_control(common: Common) -> NodeControl:
    config, jobs = common.config, common.the(Jobs)
    return NodeControl(
        *(common.reactor, common.wall, common.database, common.threads, common.duties),
        *(common.registry, config.nodecontrol),
        folder=config.server.var_dir,
        ended=jobs.ending,
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
