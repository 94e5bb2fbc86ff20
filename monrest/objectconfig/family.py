"""The parts of the object configuration."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Family, Life, Served
from monrest.objectconfig import (
    editor_endpoints,
    file_endpoints,
    object_endpoints,
)
from monrest.objectconfig.save import recover_all
from monrest.objectconfig.service import Staging

FAMILY = Family(
    life=Life(
        lambda common: Staging(common.reactor, common.wall, common.database, common.folder),
        open=lambda common, _: recover_all(common.folder),
    ),
    served=(
        Served(
            (
                *declared(object_endpoints),
                *object_endpoints.ENDPOINTS,
                *declared(file_endpoints),
            ),
            lambda common: common.the(Staging),
        ),
        Served(declared(editor_endpoints)),
    ),
)
