"""What the system says of this process, and what it is."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from monrest import __version__
from monrest.base.meters import METERS, Sample

_NAMES = frozenset(one.name for one in METERS)


def process_measured() -> Iterator[Sample]:
    """Give the version, and the processor time, memory and files of this process."""
    # Many a daemon is looked at by no Prometheus.
    from prometheus_client import ProcessCollector

    yield "build_info", (__version__, platform.python_version()), 1
    for family in ProcessCollector(registry=None).collect():
        for sample in family.samples:
            if sample.name in _NAMES:
                yield sample.name, (), sample.value
