"""Figures about this instance, as JSON or for Prometheus (docs/spec/http.md, "Figures")."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping

from attrs import evolve, frozen
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import reselect
from monrest.api.visibility import SYSTEM
from monrest.base.errors import BadRequest
from monrest.base.metrics import FIGURES, Metrics
from monrest.base.values import Answer, Column, Document, RestRequest, Stream, nobody_follows

COLUMNS = tuple(
    Column(
        one.name,
        "time" if one.unit == "time" else "number",
        "" if one.unit == "time" else one.unit,
        one.help,
    )
    for one in FIGURES
)
_HELP = {one.name: one.help for one in FIGURES}
_JSON = "application/json"
_VARIES = (("Vary", "Accept"),)
_PROMETHEUS = ("text/plain", "application/openmetrics-text")
_WEIGHT = re.compile(r"[ \t]*q[ \t]*=[ \t]*([01](?:\.[0-9]{0,3})?)[ \t]*", re.IGNORECASE)


def quality(accept: str, media_type: str) -> float:
    """Give the weight of a media type in an Accept header, 0 for one that is not wanted.

    The range that names it best decides (RFC 9110, section 12.5.1); parameters of the type are
    not looked at, because all versions of a format are known here.
    """
    wanted = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    found: dict[str, float] = {}
    for item in accept.split(","):
        name, *parameters = item.split(";")
        weights = [match[1] for one in parameters if (match := _WEIGHT.fullmatch(one))]
        name = name.strip().lower()
        found[name] = max(found.get(name, 0.0), float(weights[0]) if weights else 1.0)
    return next((found[name] for name in wanted if name in found), 0.0)


def wants_prometheus(accept: str) -> bool:
    """Whether a text for Prometheus is preferred to JSON, which is the answer otherwise."""
    return max(quality(accept, one) for one in _PROMETHEUS) > quality(accept, _JSON)


class _Gauges(Collector):
    """All figures are numbers that may fall again, also those that end with ``_total``."""

    def __init__(self, prefix: str, values: Mapping[str, float]) -> None:
        self.prefix, self.values = prefix, values

    def collect(self) -> Iterator[Metric]:
        for name, value in self.values.items():
            yield GaugeMetricFamily(f"{self.prefix}_{name}", _HELP[name], value=value)


@frozen(eq=False, kw_only=True)
class FigureEndpoints:
    """The figures that all parts of the daemon offer."""

    figures: Metrics

    async def read_figures(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        """Answer GET /mon/stats and /mon/metrics."""
        known = Document(value=await self.figures.current(), columns=COLUMNS)
        answer = await reselect(context, request, known)
        accept = request.caller.headers.get("accept", "")
        # The header of a request that starts a job is about its answer, not about the result.
        direct = request.progress is nobody_follows
        if request.format != "json" or not direct:
            return answer
        if wants_prometheus(accept):
            return _exposed(context.names.app, answer.value, accept)
        return evolve(answer, headers=_VARIES)


def _exposed(app: str, values: Mapping[str, float], accept: str) -> Stream:
    unknown = [name for name in values if name not in _HELP]
    if unknown:
        raise BadRequest(
            "invalid columns", f"columns: {unknown[0][:80]!r}: expected names of figures"
        )
    # What is selected and was not filled yet is null.
    present = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    encode, content_type = choose_encoder(accept)
    body: bytes = encode(_Gauges(app, present))

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    return Stream(
        status=200,
        content_type=content_type,
        disposition=None,
        size=len(body),
        headers=_VARIES,
        pieces=pieces(),
    )


_TEXT = (
    "A figure is absent until there is something to tell. Sessions and users are counted when "
    "they are asked for, at most every 30 seconds, and anew after each look at their lists. With "
    "an `Accept` that prefers `text/plain` or `application/openmetrics-text` to JSON, as that of "
    "Prometheus does, the answer is in that format, the names with `mon_` in front; the result of "
    "a background job is always JSON."
)

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    Endpoint(
        path=path,
        description=description,
        text=_TEXT,
        handler=FigureEndpoints.read_figures,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
        roles=(SYSTEM,),
    )
    for path, description in (
        ("/mon/stats", "figures about this instance"),
        ("/mon/metrics", "figures about this instance, alias of /mon/stats"),
    )
)
