"""The path of the description of the API."""

from __future__ import annotations

import orjson
from attrs import define, field

from monrest import __version__
from monrest.api.endpoint import Context, Endpoint, declared
from monrest.api.family import Family, Served
from monrest.base.values import Answer, Page, RestRequest
from monrest.explorer.examples import examples
from monrest.explorer.openapi import openapi
from monrest.render.json import ascii_only


@define(eq=False, kw_only=True)
class ApiDescription:
    """Describes all endpoints of a configuration; made for the first request, and kept packed.

    It takes a tenth of a second and half a megabyte, packed a twentieth of that.
    """

    _page: Page | None = field(default=None, init=False)

    @Endpoint(
        path="/openapi.json",
        description="this API as OpenAPI 3.1",
        text="Also at `/openapi.json` of the server. Needs no account unless "
        "`server.public_docs` is off. `ETag` says whether it is still the same.",
        shape="object",
        parameters=(),
        media=("application/json",),
        at_once=True,
        documents=True,
    )
    async def read(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        del request
        if self._page is None:
            self._page = await context.threads.run(lambda: self._new_page(context))
        return self._page

    def _new_page(self, context: Context) -> Page:
        endpoints = context.dispatch.router.endpoints
        document = openapi(endpoints, context.names, __version__, examples())
        body = orjson.dumps(document)
        if context.config.server.ascii_json:
            body = b"".join(ascii_only((body,)))
        return Page.of("application/json", body)


FAMILY = Family((Served(declared(ApiDescription), lambda _: ApiDescription()),))
