"""Metrics of this instance, as JSON or for Prometheus (docs/spec/http.md, "Metrics")."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping

from attrs import evolve, frozen

from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import reselect
from monrest.api.visibility import SYSTEM
from monrest.base.errors import BadRequest
from monrest.base.meters import Meters, Sample
from monrest.base.metrics import FIGURES, Metrics
from monrest.base.values import Answer, Column, Document, RestRequest, Stream, no_progress

COLUMNS = tuple(
    Column(
        figure.name,
        "time" if figure.unit == "time" else "number",
        "" if figure.unit == "time" else figure.unit,
        figure.help,
    )
    for figure in FIGURES
)
_HELP = {figure.name: figure.help for figure in FIGURES}
_JSON = "application/json"
_VARIES = (("Vary", "Accept"),)
_PROMETHEUS = ("text/plain", "application/openmetrics-text")
_WEIGHT = re.compile(r"[ \t]*q[ \t]*=[ \t]*([01](?:\.[0-9]{0,3})?)[ \t]*", re.IGNORECASE)


def quality(accept: str, media_type: str) -> float:
    """Return the weight of a media type in an Accept header, 0 for one that is not wanted.

    The range that names it best decides (RFC 9110, section 12.5.1); parameters of the type are
    not looked at, because all versions of a format are known here.
    """
    wanted = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    by_media: dict[str, float] = {}
    for item in accept.split(","):
        name, *parameters = item.split(";")
        weights = [match[1] for parameter in parameters if (match := _WEIGHT.fullmatch(parameter))]
        name = name.strip().lower()
        by_media[name] = max(by_media.get(name, 0.0), float(weights[0]) if weights else 1.0)
    return next((by_media[name] for name in wanted if name in by_media), 0.0)


def wants_prometheus(accept: str) -> bool:
    """Whether a text for Prometheus is preferred to JSON, which is the answer otherwise."""
    return max(quality(accept, media) for media in _PROMETHEUS) > quality(accept, _JSON)


_TEXT = (
    "A metric is absent until there is something to tell. With "
    "an `Accept` that prefers `text/plain` or `application/openmetrics-text` to JSON, as that of "
    "Prometheus does, the answer is in that format and has what the daemon measures of itself as "
    "well, unless `columns` selects some (docs/guide/metrics.md lists all); the result of a "
    "background job is always JSON."
)


def _figures(path: str, description: str) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        text=_TEXT,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
        roles=(SYSTEM,),
        media=(_JSON, *_PROMETHEUS),
    )


@frozen(eq=False, kw_only=True)
class FigureEndpoints:
    """The endpoints of the metrics of all parts of the daemon."""

    figures: Metrics
    meters: Meters

    @_figures("/mon/stats", "metrics of this instance")
    @_figures("/mon/metrics", "metrics of this instance, alias of /mon/stats")
    async def read(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        document = Document(value=await self.figures.current(), columns=COLUMNS)
        answer = await reselect(context, request, document)
        accept = request.caller.headers.get("accept", "")
        # The header of a request that starts a job is about its answer, not about the result.
        direct = request.progress is no_progress
        if request.format != "json" or not direct:
            return answer
        if wants_prometheus(accept):
            chosen = any(name == "columns" for name, _ in request.parameters)
            samples = () if chosen else await self.meters.all()
            return _exposed(context.names.app, answer.value, samples, accept)
        return evolve(answer, headers=_VARIES)


def _exposed(
    app: str, values: Mapping[str, float], samples: Iterable[Sample], accept: str
) -> Stream:
    unknown = [name for name in values if name not in _HELP]
    if unknown:
        raise BadRequest(
            "invalid columns", f"columns: {unknown[0][:80]!r}: expected names of metrics"
        )
    # What is selected and was not filled yet is null.
    present = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    # Imported here, because no Prometheus reads the metrics of most daemons.
    from monrest.instance.exposition import exposition

    body, content_type = exposition(app, present, _HELP, samples, accept)

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
