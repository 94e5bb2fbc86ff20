"""Metrics as text for Prometheus (docs/spec/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from attrs import frozen
from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from monrest.base.meters import BOUNDS, METERS, Meter, Sample


@frozen
class _Families(Collector):
    """Stored values as gauges, and measured ones.

    Counts of what is there may fall again: they are gauges, whose names do not end with
    ``_total``.
    """

    prefix: str
    values: Mapping[str, float]
    helps: Mapping[str, str]
    samples: Mapping[str, list[Sample]]

    def collect(self) -> Iterator[Metric]:
        for name, value in self.values.items():
            family = f"{self.prefix}_{name.removesuffix('_total')}"
            yield GaugeMetricFamily(family, self.helps[name], value=value)
        for meter in METERS:
            if meter.name in self.samples:
                yield _family(meter, self.samples[meter.name])


def _family(meter: Meter, samples: Iterable[Sample]) -> Metric:
    own = meter.name.startswith("process_")
    name = meter.name if own else f"monrest_{meter.name}"
    if meter.kind == "histogram":
        spreads = HistogramMetricFamily(name, meter.help, labels=meter.labels)
        for _, labels, value in samples:
            ends = (*map(str, BOUNDS), "+Inf")
            buckets = list(zip(ends, accumulate(value[:-1]), strict=True))
            spreads.add_metric(labels, buckets, value[-1])
        return spreads
    kind = CounterMetricFamily if meter.kind == "counter" else GaugeMetricFamily
    family = kind(name, meter.help, labels=meter.labels)
    for _, labels, value in sorted(samples):
        family.add_metric(labels, value)
    return family


def exposition(
    prefix: str,
    values: Mapping[str, float],
    helps: Mapping[str, str],
    samples: Iterable[Sample],
    accept: str,
) -> tuple[bytes, str]:
    """Return the text in the format that an Accept header prefers, and its content type."""
    encode, content_type = choose_encoder(accept)
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample[0], []).append(sample)
    body: bytes = encode(_Families(prefix, values, helps, by_name))
    return body, content_type
