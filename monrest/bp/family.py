"""The parts of business processes."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.bp.core_objects import Exporter
from monrest.bp.endpoints import ProcessRecords
from monrest.bp.service import BusinessProcesses


def _business_processes(common: Common) -> BusinessProcesses:
    config, clock, folder = common.config, common.reactor, common.folder
    bp = BusinessProcesses(
        database=common.database,
        duties=common.duties,
        clock=clock,
        wall=common.wall,
        sites=common.registry,
        threads=common.threads,
        config=config.bp,
        app=config.names.app,
        zone=config.display.zone(),
        exporter=Exporter(
            reactor=clock,
            wall=common.wall,
            threads=common.threads,
            sites=common.registry,
            var_dir=folder,
        ),
        folder=folder / "bp",
    )
    common.figures.offer(bp.statistics)
    return bp


FAMILY = Family(
    life=Life(
        _business_processes,
        configure=lambda common, bp: bp.configure(
            common.config.bp, common.config.names.app, common.config.display.zone()
        ),
    ),
    served=(
        Served(
            (*ProcessRecords.endpoints(), *declared(ProcessRecords)),
            lambda common: ProcessRecords(
                database=common.database,
                bp=common.the(BusinessProcesses),
            ),
        ),
    ),
)
