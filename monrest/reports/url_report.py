"""Reports over any address of this API (docs/spec/reports.md, "A path of the API").

What somebody gets who asks for the address is what the report says: the same request by the owner
of the report, through the same door.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from monrest.api.endpoint import Context, Endpoint
from monrest.base.concurrency import pause
from monrest.base.errors import BadRequest, MethodNotAllowed, NotFound, SitesFailed, Unavailable
from monrest.base.truth import flag
from monrest.base.values import Document, RestRequest, Rows, nobody_follows
from monrest.render.formats import RenderOptions, render, shows_headers
from monrest.reports import answer_sheet as answers
from monrest.reports.link import Link
from monrest.reports.report_asking import Asking
from monrest.reports.sheet import Sheet

_SWITCHES = frozenset({"background", "pretty", "headers"})


def check_link(context: Context, link: Link) -> Endpoint:
    """The endpoint that answers; BadRequest where a report cannot be about it."""
    if link.root != context.names.root:
        raise _wrong(f"a path that begins with {context.names.root}/")
    where = link.target
    try:
        found = context.dispatch.router.find("GET", where.path, where.segments).endpoint
    except (NotFound, MethodNotAllowed) as error:
        raise _wrong(f"a path that can be read: {error.message}") from None
    if found.public or found.at_once:
        raise _wrong("a path whose answer is a list or an object, and not for one reader only")
    if any(name == "background" and flag(name, value) for name, value in link.parameters):
        raise _wrong("a path without background")
    return found


def _wrong(expected: str) -> BadRequest:
    return BadRequest("invalid params.url", f"params.url: expected {expected}")


async def page_of(asking: Asking) -> Sheet:
    """Ask as the owner, again while a site is missing, and keep what was said.

    Whoever waits for the report itself, and does not have a job made, is told at once.
    """
    settings, link = asking.settings, asking.settings.url
    assert link is not None
    check_link(asking.context, link)
    request = evolve(
        asking.request,
        path=link.target.path,
        segments=link.target.segments,
        parameters=tuple(pair for pair in link.parameters if pair[0] not in _SWITCHES),
        query=link.parameters,
        format=link.target.format or "json",
        sites=link.target.sites or asking.request.sites,
        slashed=link.target.slashed,
    )
    left = 1 if request.progress is nobody_follows else settings.retries
    while True:
        left -= 1
        try:
            return await _once(asking, link, request)
        except (SitesFailed, Unavailable) as error:
            if not left:
                raise
            text = f"{error.message}, tried again in {settings.delay:g} s"
            request.progress(5, message=text)
        await pause(asking.context.clock, settings.delay)


async def _once(asking: Asking, link: Link, request: RestRequest) -> Sheet:
    context = asking.context
    answer = await context.dispatch(context, request)
    frame = asking.frame(None, answer.failed_sites)
    assert isinstance(answer, (Rows, Document)), "only what is at once is anything else"
    options = _options(link)

    def work(given_up: Callable[[], bool]) -> Sheet:
        kept = {
            name: b"".join(render(_again(answer), one, given_up).pieces)
            for name, one in options.items()
        }
        return answers.sheet(frame, link.text, answer, kept)

    return await context.threads.stoppable(work)


def _options(link: Link) -> dict[str, RenderOptions]:
    """The forms that are kept as the API gives them; that of the address as it is asked for."""
    given = dict(link.parameters)
    headers = shows_headers(given.get("headers", "1"))
    pretty = flag("pretty", given.get("pretty"))
    wrapped = link.target.format == "wrapped_json"
    found: dict[str, RenderOptions] = {
        "json": RenderOptions(format="wrapped_json" if wrapped else "json", pretty=pretty),
        "csv": RenderOptions(format="csv", headers=headers),
        "xls": RenderOptions(format="xls"),
    }
    if link.form == "text":
        found["text"] = RenderOptions(format="text")
    return found


def _again(answer: Rows | Document) -> Rows | Document:
    """The same answer for one more renderer, which may let go of its rows."""
    return evolve(answer, rows=list(answer.rows)) if isinstance(answer, Rows) else answer
