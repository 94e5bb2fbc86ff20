"""The root of all resources, and the way through a request.

One request, one line: path → authentication → parameters → dispatch → response. Everything in
between is a frozen value; the collaborators are given as callables, so that a reload swaps them
together and a request keeps those it started with.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from monrest.accounts.authenticate import Authenticator, Proxies
from monrest.api import csrf
from monrest.api.error_answers import rest_error
from monrest.api.router import Router
from monrest.base.errors import (
    BadRequest,
    MethodNotAllowed,
    RequestTimedOut,
    RestError,
    TooLarge,
)
from monrest.base.log import REQUEST_ID
from monrest.base.names import Names
from monrest.base.trace import TRACE
from monrest.base.truth import flag
from monrest.base.values import (
    ANONYMOUS,
    Answer,
    Caller,
    Identity,
    OutputFormat,
    Parameters,
    RestRequest,
    Rows,
)
from monrest.config import ServerConfig
from monrest.query.target import FORMATS, PathTarget, parameters, parsed_size, target
from monrest.render.formats import RenderOptions, shows_headers
from monrest.web.api_site import ApiRequest, HeaderView
from monrest.web.body import EMPTY, Body, merged, read_body, reads_body
from monrest.web.limits import SMALL_BODY
from monrest.web.pages import Pages
from monrest.web.respond import Responder, accepted_format

if TYPE_CHECKING:
    from klein.resource import KleinResource

    from monrest.web.channel import RemoteEnd

ANY = "*"

_METHODS = b"GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"
_STANDARD_ASKED = (
    *("Accept", "Authorization", "Content-Type", "If-None-Match"),
    *("Traceparent", "X-Request-Id"),
)
_ASKED = ("Auth-Key", "Auth-User", "OutputFormat", "Output-Metadata-Only", "CSRF-Token")
_STANDARD_SHOWN = (
    *("Allow", "Content-Disposition", "ETag", "Location", "Retry-After"),
    "WWW-Authenticate",
)
_SHOWN = ("Failed-Sites", "Warnings")
_KNOWN_FOR = b"7200"
"""Seconds for which a browser need not ask again, the most that any of them accepts."""


@frozen(kw_only=True)
class Origins:
    """The origins whose pages may use the API. They send keys and no cookies."""

    allowed: frozenset[bytes]
    accepted: bytes
    exposed: bytes

    @classmethod
    def of(cls, origins: Collection[str], names: Names) -> Origins | None:
        """Take them from the configuration; None where no other origin may use the API."""
        if not origins:
            return None

        def spelled(standard: tuple[str, ...], own: tuple[str, ...]) -> bytes:
            return ", ".join((*standard, *(names.header(word).title() for word in own))).encode()

        return cls(
            allowed=frozenset(origin.lower().encode("ascii") for origin in origins),
            accepted=spelled(_STANDARD_ASKED, _ASKED),
            exposed=spelled(_STANDARD_SHOWN, _SHOWN),
        )

    def admit(self, request: ApiRequest) -> bool:
        """Whether the page of the request may read the answer, which gets the headers for that."""
        given = request.requestHeaders.getRawHeaders(b"Origin")
        headers = request.responseHeaders
        every = ANY.encode("ascii") in self.allowed
        if not every:
            headers.setRawHeaders(b"Vary", [b"Origin"])
        if given is None or not (every or given[-1].lower() in self.allowed):
            return False
        headers.setRawHeaders(b"Access-Control-Allow-Origin", [b"*" if every else given[-1]])
        headers.setRawHeaders(b"Access-Control-Expose-Headers", [self.exposed])
        return True

    def permit(self, request: ApiRequest) -> bool:
        """Answer a browser that asks for an admitted page before it sends the request itself."""
        if (
            request.method != b"OPTIONS"
            or not request.requestHeaders.hasHeader(b"Access-Control-Request-Method")
            or not request.responseHeaders.hasHeader(b"Access-Control-Allow-Origin")
        ):
            return False
        headers = request.responseHeaders
        headers.setRawHeaders(b"Access-Control-Allow-Methods", [_METHODS])
        headers.setRawHeaders(b"Access-Control-Allow-Headers", [self.accepted])
        headers.setRawHeaders(b"Access-Control-Max-Age", [_KNOWN_FOR])
        request.setResponseCode(204)
        return True


log = Logger()

Answerer: TypeAlias = Callable[[RestRequest], Awaitable[Answer]]
"""Answers a request or raises a RestError."""

_BIG_BODY = 16_384
_KEY_ID = 12
"""So much of the id of an API key names it: `monrest key revoke` takes it."""
_WRAPPED: OutputFormat = "wrapped_json"


@define(eq=False, kw_only=True)
class Api:
    """The parts that serve requests under one state of the configuration."""

    server: ServerConfig
    names: Names
    authenticator: Authenticator
    dispatch: Answerer
    proxies: Proxies
    router: Router
    responder: Responder
    pages: Pages
    origins: Origins | None = field(init=False)
    _format_header: str = field(init=False)
    _keys_header: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._format_header = self.names.header("OutputFormat")
        self._keys_header = self.names.header("Output-Metadata-Only")
        self.origins = Origins.of(self.server.cors_origins, self.names)

    def resource(self) -> FrontResource:
        """Make the root resource for this generation; importing Klein installs a reactor."""
        from klein import Klein

        around = Klein()

        @around.handle_errors(Exception)
        def failed(request: IRequest, failure: Failure) -> None:
            self.fail(cast("ApiRequest", request), failure)

        return FrontResource(self.names, self, around.resource())

    async def admit(self, request: ApiRequest) -> int:
        """Return the bytes of the body that a request may have, of which only the head is there.

        Raises what the whole request would raise for a wrong path, wrong credentials or a role
        that is missing.
        """
        headers = HeaderView(request.requestHeaders)
        where = self._target(request, headers)
        caller = self._caller(request, headers)
        if self.router.public(caller.method, where.segments):
            return min(SMALL_BODY, self.server.max_body)
        identity = await self.authenticator.authenticate(caller)
        method = "POST" if caller.method == "PUT" else caller.method
        endpoint = self.router.find(method, where.path, where.segments).endpoint
        endpoint.check_roles(identity)
        return max(self.server.max_body, endpoint.body_limit)

    def begin(self, request: ApiRequest, serving: Coroutine[Any, Any, None]) -> None:
        """Answer within the request time-out; cancelled when the client leaves."""
        work = Deferred.fromCoroutine(serving)
        if not work.called:
            request.expire_after(self.server.request_timeout, work)
        work.addErrback(self._failed, request)
        # So may the writing of an error, and the client may leave meanwhile.
        work.addErrback(self._failed, request)

    async def show(self, request: ApiRequest, path: bytes) -> None:
        """Answer with the page at ``path``."""
        if request.refusal is not None:
            request.refusal.raiseException()
        if request.method not in (b"GET", b"HEAD"):
            raise MethodNotAllowed(path.decode("ascii"), ("GET", "HEAD"))
        if not self.pages.public(path):
            caller = self._caller(request, HeaderView(request.requestHeaders))
            await self.authenticator.authenticate(caller)
        page = await self.pages.page(path)
        await self.responder.answer(request, page, request.options)
        request.finish()

    async def serve(self, request: ApiRequest) -> None:
        """Answer a request below the root of the API."""
        REQUEST_ID.set(request.request_id)
        if request.trace:
            TRACE.set(request.trace)
        origins = self.origins
        admitted = origins is not None and origins.admit(request)
        headers = HeaderView(request.requestHeaders)
        where = self._target(request, headers)
        if origins is not None and admitted and origins.permit(request):
            request.finish()
            return
        caller = self._caller(request, headers)
        if request.refusal is not None:
            request.refusal.raiseException()
        if self.router.public(caller.method, where.segments):
            identity = ANONYMOUS
        else:
            identity = await self.authenticator.authenticate(caller)
            request.user_name = identity.user or "-"
            request.key_id = identity.key[:_KEY_ID] or "-"
        rest = await self._read(request, caller, where, identity)
        if rest.method == "OPTIONS":
            allowed = ", ".join(self.router.allowed(rest.path, rest.segments))
            request.setResponseCode(204)
            request.responseHeaders.setRawHeaders(b"Allow", [allowed.encode("ascii")])
            request.finish()
            return
        only_keys = flag(self._keys_header.title(), headers.get(self._keys_header, ""))
        answer = await self.dispatch(rest)
        if only_keys and not any(name == "columns" for name, _ in rest.parameters):
            answer = await self.responder.keys_of(answer)
        request.backend_seconds = answer.backend_seconds
        await self.responder.answer(request, answer, request.options)
        request.rows = len(answer.rows) if isinstance(answer, Rows) else 1
        request.finish()

    def _caller(self, request: ApiRequest, headers: HeaderView) -> Caller:
        """Return where the request comes from, and note it for the access log."""
        raw = request.requestHeaders.getRawHeaders
        caller = caller_of(
            request.method.decode("ascii"),
            headers,
            request.peer,
            forwarded_for=b",".join(raw(b"X-Forwarded-For", ())).decode("latin-1"),
            proxies=self.proxies,
        )
        request.client_name = caller.client
        return caller

    def _target(self, request: ApiRequest, headers: HeaderView) -> PathTarget:
        if len(request.uri) > self.server.max_url:
            raise BadRequest(
                "URL too long",
                f"expected a URL of up to {self.server.max_url} bytes; "
                "longer requests go into a POST body",
            )
        try:
            where = target((request.rest or b"").decode("utf-8"))
        except UnicodeDecodeError:
            raise BadRequest("invalid path", "path: expected UTF-8") from None
        request.route = self.router.template(where.segments)
        if where.format is not None:
            request.options = RenderOptions(format=where.format)
        elif wanted := headers.get(self._format_header):
            output = FORMATS.get(wanted.strip().lower())
            if output is None:
                raise BadRequest(
                    "unknown output format",
                    f"{self._format_header.title()}: expected one of {', '.join(sorted(FORMATS))}",
                )
            request.options = RenderOptions(format=output)
        else:
            accept = request.requestHeaders.getRawHeaders(b"Accept")
            if accept is not None and (chosen := accepted_format(b",".join(accept))):
                request.options = RenderOptions(format=chosen)
        return where

    async def _read(
        self, request: ApiRequest, caller: Caller, where: PathTarget, identity: Identity
    ) -> RestRequest:
        method = caller.method
        raw = request.query
        if len(raw) > _BIG_BODY:
            query = await self.responder.threads.run(lambda: parameters(raw))
        else:
            query = parameters(raw)
        body = EMPTY
        if request.too_large or request.body.tell():
            body = await self._body(request, caller.headers, method)
        given = merged(query, body) if body is not EMPTY else query
        if method not in csrf.SAFE:
            given = csrf.check(identity, method, given, caller.headers, self.names)
            body = evolve(body, document=csrf.without_token(identity, body.document))
        options, strict = request.options, False
        if not _PRESENTATION.isdisjoint(map(_NAME, given)):
            given, options, strict = _presentation(given, options)
            request.options = options
        return RestRequest(
            method="POST" if method == "PUT" else method,
            path=where.path,
            segments=where.segments,
            parameters=given,
            query=query,
            form=() if body.document is not None else body.parameters,
            document=body.document,
            structured=body.structured,
            format=options.format,
            pretty=options.pretty,
            sites=where.sites,
            slashed=where.slashed,
            identity=identity,
            request_id=request.request_id,
            caller=caller,
            flows=True,
            strict=strict,
            body_size=request.held,
        )

    async def _body(self, request: ApiRequest, headers: Mapping[str, str], method: str) -> Body:
        if request.too_large:
            raise TooLarge(
                "request body too long", f"expected a body of up to {request.limit} bytes"
            )
        raw = request.body.getvalue()
        if not raw:
            return EMPTY
        content_type = headers.get("content-type", "")
        if not reads_body(method, content_type):
            return EMPTY
        request.hold_values(parsed_size(raw))
        if len(raw) <= _BIG_BODY:
            return read_body(raw, content_type)
        return await self.pages.threads.run(lambda: read_body(raw, content_type))

    def _failed(self, failure: Failure, request: ApiRequest) -> Deferred[None] | None:
        error = failure.value
        if isinstance(error, (CancelledError, RestError)):
            # Cut off from the frames in which it was raised: they hold all that the request was
            # about to answer. Those of a canceled request hold its failure as well, so that it
            # would all stay until the next collection of garbage.
            failure.tb = error.__traceback__ = error.__context__ = None
        if not request.left:
            return Deferred.fromCoroutine(self._answer_failure(request, failure))
        if not failure.check(CancelledError, RestError):
            log.failure("request {id} of a client that had left", failure, id=request.request_id)
        return None

    async def _answer_failure(self, request: ApiRequest, failure: Failure) -> None:
        """Answer a failure and end the request; a list of many problems is written in a thread."""
        error = self._rest_error(request, failure)
        if error is not None:
            body, options = None, request.options
            lists = [value for value in error.extra.values() if isinstance(value, list)]
            if sum(map(len, lists)) > _MANY_PROBLEMS:
                body = await self.responder.threads.run(
                    lambda: self.responder.error_body(error, options)
                )
            self.responder.error(request, error, body)
        request.finish()

    def fail(self, request: ApiRequest, failure: Failure) -> None:
        """Answer a failure with its error document; the caller ends the request.

        After the first byte of a body no error can be sent: the connection is cut, so that
        the client does not take a part for the whole.
        """
        error = self._rest_error(request, failure)
        if error is not None:
            self.responder.error(request, error)

    def _rest_error(self, request: ApiRequest, failure: Failure) -> RestError | None:
        """The error for the client; None where the connection was cut."""
        request.answered()
        if request.startedWriting:
            log.failure("request {id} failed while sending", failure, id=request.request_id)
            request.channel.forceAbortClient()
            return None
        if request.expired and failure.check(CancelledError):
            seconds = self.server.request_timeout
            error: RestError = RequestTimedOut(
                "request timed out",
                f"after {seconds:g} seconds; start longer work with background=1",
            )
        else:
            error = rest_error(failure, request.request_id, self.names.root)
        request.error = error.message
        return error


def caller_of(
    method: str,
    headers: Mapping[str, str],
    peer: RemoteEnd,
    *,
    forwarded_for: str,
    proxies: Proxies,
) -> Caller:
    """``forwarded_for`` are all X-Forwarded-For headers, joined."""
    client, secure = peer.address or "unix", peer.secure
    if peer.address and proxies.trusts(peer.address):
        if forwarded_for:
            client = proxies.client(peer.address, forwarded_for)
        proto = headers.get("x-forwarded-proto", "")
        if proto:
            secure = proto.partition(",")[0].strip().lower() == "https"
    return Caller(
        method=method,
        headers=headers,
        address=peer.address,
        client=client,
        uid=peer.uid,
        secure=secure,
    )


_MANY_PROBLEMS = 500
"""Problems that are written here: a thousand take 5 milliseconds."""

_PRESENTATION = frozenset({"pretty", "headers", "strict"})
_NAME = itemgetter(0)


def _presentation(
    given: Parameters, options: RenderOptions
) -> tuple[Parameters, RenderOptions, bool]:
    """The parameters for handlers, the options of the renderer, and whether it is ``strict``."""
    strict = any(flag(*pair) for pair in given if pair[0] == "strict")
    chosen, headers, pretty = options.format, options.headers, options.pretty
    for name, value in given:
        if name == "pretty":
            pretty = flag(name, value)
        elif name == "headers":
            headers = shows_headers(value)
            if value == _WRAPPED and chosen == "json":
                chosen = _WRAPPED
    rest = tuple(pair for pair in given if pair[0] not in ("pretty", "strict"))
    return rest, RenderOptions(format=chosen, headers=headers, pretty=pretty), strict


_ABSOLUTE = re.compile(rb"https?://[^/?]*", re.IGNORECASE)
_ANYTHING = (b"", b"*/*")


class FrontResource(Resource):
    """Finds what answers by the undecoded path.

    ``api`` serves all below its root, what stands beside the root for it, and the pages. Klein
    would match decoded text, lose an encoded slash, redirect a doubled one and answer odd bytes in
    HTML (docs/spec/http.md, "Routing"). Several slashes at the start count as one. What is neither
    ends in Klein's own 404, ``around``, which the error handler turns into JSON.
    """

    isLeaf = True

    def __init__(self, names: Names, api: Api, around: KleinResource) -> None:
        super().__init__()
        self._api = api
        self._around = around
        self._root = names.root.encode("ascii")
        self._below = self._root + b"/"
        # Paths beside the root that programs ask by themselves, each with what it means below the
        # root, and with the type for clients that take anything, where it is another one there.
        app = names.app.encode("ascii")
        self._beside = {
            b"/-/healthy": (b"/%b/healthy" % app, b""),
            b"/-/ready": (b"/%b/ready" % app, b""),
            b"/metrics": (b"/%b/metrics" % app, b"text/plain"),
            b"/openapi.json": (b"/openapi.json", b""),
        }

    def render(self, request: ApiRequest) -> Any:
        """Serve the request; returns NOT_DONE_YET."""
        path = self._locate(request)
        if request.rest is not None:
            serving = self._api.serve(request)
        elif self._api.pages.has(path, _accepted(request)):
            serving = self._api.show(request, path)
        else:
            return self._around.render(request)
        self._api.begin(request, serving)
        return NOT_DONE_YET

    def fail(self, request: ApiRequest, failure: Failure) -> None:
        """Answer a failure that no handler has seen."""
        self._api.fail(request, failure)

    async def admit(self, request: ApiRequest) -> int:
        """Return the bytes of a body that ``request`` may have; raises when it is refused."""
        self._locate(request)
        return SMALL_BODY if request.rest is None else await self._api.admit(request)

    def _locate(self, request: ApiRequest) -> bytes:
        """Set ``request.rest`` where the API answers; the path with one slash at its start."""
        path = request.path
        if not path.startswith(b"/"):
            path = _ABSOLUTE.sub(b"", path, count=1)
        path = b"/" + path.lstrip(b"/")
        if path == self._root or path.startswith(self._below):
            request.rest = path[len(self._root) :]
        elif path in self._beside:
            request.rest, kind = self._beside[path]
            if kind and _accepted(request) in _ANYTHING:
                request.requestHeaders.setRawHeaders(b"Accept", [kind])
        return path


def _accepted(request: ApiRequest) -> bytes:
    return b",".join(request.requestHeaders.getRawHeaders(b"Accept", ()))
