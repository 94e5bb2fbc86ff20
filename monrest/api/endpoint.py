"""How an endpoint is declared, and what its handler gets (docs/spec/http.md, "Endpoints").

Everything that lists, routes or describes endpoints reads these declarations: the router,
``/index``, the role checks and the reference page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable
from datetime import tzinfo
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from attrs import define, evolve, field, frozen

from monrest.api.fields import Field, Flag, ParameterType, Seconds
from monrest.base.clock import WallClock
from monrest.base.errors import Forbidden
from monrest.base.values import ADMIN, Answer, Column, ContactBook, Identity, RestRequest
from monrest.query.columns import MOST_CALLS, MOST_NESTED, MOST_TEXT
from monrest.query.functions import MOST_ITEMS, Moment
from monrest.query.limit import Limit
from monrest.query.parse import MOST_DIGITS, MOST_NAME, MOST_SORT_KEYS
from monrest.query.q import MOST_BRACKETS, MOST_CONDITIONS
from monrest.query.q import MOST_TEXT as MOST_Q
from monrest.query.regex import MOST_PATTERN

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from monrest.api.dispatch import Dispatch
    from monrest.base.concurrency import Threads
    from monrest.base.names import Names
    from monrest.config import Config
    from monrest.livestatus.inbox import AnswerMemory, Inbox
    from monrest.query.column_names import TableSchema
    from monrest.sites.registry import Sites

T = TypeVar("T")

FEW_VALUES = 20_000
"""Values of rows that the reactor's thread works on: some milliseconds."""

MANY = FEW_VALUES + 1
"""Values where their number is not known and may be large."""


@define(eq=False)
class RequestCache:
    """Results of requests that may come again: the only cache of requests.

    Dashboards and scripts send the same requests again and again. For them it holds where a
    path leads, the question that its parameters mean for the cores, and what is sent to each kind
    of core: 420 of 900 microseconds of a small request. It lives as long as a configuration
    is in force. The caller checks that the sites and their cores are still the same; what
    means something else a moment later, or is long, is not kept.
    """

    MOST: ClassVar[int] = 2000
    LONGEST: ClassVar[int] = 1000
    """Characters of a request that are worth keeping."""

    _known: dict[Hashable, Any] = field(factory=dict, init=False)
    find: Callable[[Hashable], Any] = field(init=False)
    """Return what is known under a key, None for nothing."""

    def __attrs_post_init__(self) -> None:
        self.find = self._known.get

    def keep(self, key: Hashable, value: object) -> None:
        """Know ``value`` from now on; everything is forgotten when there is too much of it."""
        if len(self._known) >= self.MOST:
            self._known.clear()
        self._known[key] = value

    def is_short(self, request: RestRequest) -> bool:
        """Whether what a request means may be kept, by the length of its path and parameters."""
        size = sum(len(name) + len(value) for name, value in request.parameters)
        return len(request.path) + size <= self.LONGEST


@define(eq=False, kw_only=True)
class Context:
    """The parts that handlers use; made once by the composition root and swapped on reload.

    ``sites`` are those that exist for the user: all others are taken out before (``dispatch``).
    ``contacts`` are the users as the cores know them. ``zone`` is the zone of dates without one,
    ``chosen_zone`` returns that of a user, None where they chose none. ``instance`` is the random
    id of this daemon among those that federate. ``dispatch`` has another request answered,
    ``reactor`` starts programs, which ``clock`` does not. ``memory`` has the answers of cores and
    the threads that work on large ones; ``threads`` are for everything else.
    ``request_cache`` is what is known of requests that were answered before.
    """

    dispatch: Dispatch
    clock: IReactorTime
    wall: WallClock
    sites: Sites
    config: Config
    names: Names
    zone: tzinfo
    chosen_zone: Callable[[str], Coroutine[Any, Any, tzinfo | None]]
    contacts: ContactBook
    reactor: Any
    threads: Threads
    memory: AnswerMemory
    instance: str = ""
    request_cache: RequestCache = field(factory=RequestCache)

    def moment(self) -> Moment:
        """Return the present for the functions of one request."""
        return Moment(now=self.wall.now(), zone=self.zone)

    async def compute(
        self,
        work: Callable[[Limit], T],
        values: int,
        limit: Limit | None = None,
        inbox: Inbox | None = None,
    ) -> T:
        """Return what ``work`` makes of so many values: here when they are few, else in a thread.

        ``work`` touches nothing but what it was given. ``limit`` is what is left of that of the
        answer, where it is made in several parts. Rows that are stored in ``inbox`` are many.
        """
        limit = Limit() if limit is None else limit

        def limited(left: Callable[[], bool]) -> T:
            limit.left = left
            with limit:
                limit.check()
                return work(limit)

        if inbox is not None and inbox.size:
            inbox.begin_work()
            return await self.memory.threads.stoppable(limited, inbox.end_work)
        if values > FEW_VALUES:
            return await self.memory.threads.stoppable(limited)
        return limited(bool)


Handler: TypeAlias = Callable[[Context, RestRequest, tuple[str, ...]], Awaitable[Answer]]
"""Gets the decoded variable segments of the path in their order; returns an answer."""

FamilyHandler: TypeAlias = Callable[[Any, Context, RestRequest, tuple[str, ...]], Awaitable[Answer]]
"""A method of a family, which has what the family was made with as well."""

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]

METHOD_ORDER: tuple[Method, ...] = ("GET", "POST", "PATCH", "DELETE")
"""The order of methods in listings and in the Allow header."""


@frozen(kw_only=True)
class Parameter:
    """A parameter that no ``Field`` reads, such as a part of a query.

    ``limit`` says how much of it its reader takes; empty for no limit of its own.
    """

    name: str
    description: str
    type: ParameterType = "string"
    required: bool = False
    limit: str = ""


DeclaredParameter: TypeAlias = Parameter | Field
"""A parameter of one endpoint, or a common one."""

STRICT = Flag("strict", "1: a name in `columns` or `sort` that no row has is a 400 and not null")

LIST_PARAMETERS: tuple[DeclaredParameter, ...] = (
    Parameter(
        name="columns",
        description="comma list of columns, renames, calculations and functions; default: all",
        limit=f"{MOST_ITEMS} items, {MOST_CALLS} functions, {MOST_NESTED} nested, "
        f"{MOST_TEXT} characters",
    ),
    Parameter(
        name="<column>[<op>]",
        description="filter, for example `state[ne]=0`; repeatable",
        limit=f"{MOST_CONDITIONS} conditions, names of {MOST_NAME} characters, "
        f"patterns of {MOST_PATTERN} bytes",
    ),
    Parameter(
        name="q",
        description="filter in the query language",
        limit=f"{MOST_Q} characters, {MOST_CONDITIONS} conditions, {MOST_BRACKETS} nested brackets",
    ),
    Parameter(
        name="sort",
        description="comma list of columns, descending with `-` in front",
        limit=f"{MOST_SORT_KEYS} keys, {MOST_TEXT} characters",
    ),
    Parameter(
        name="limit",
        description="maximum number of rows",
        type="integer",
        limit=f"{MOST_DIGITS} digits",
    ),
    Parameter(
        name="offset",
        description="number of rows to skip",
        type="integer",
        limit=f"{MOST_DIGITS} digits",
    ),
    Parameter(name="headers", description="0 leaves out the first line of CSV", type="boolean"),
    STRICT,
)
"""The parameters of every list."""

OBJECT_PARAMETERS = (LIST_PARAMETERS[0], STRICT)
"""The parameters of every single object."""

TIMEOUT = Seconds(
    "timeout",
    "seconds; sites that have not answered by then are named as failed beside the others' rows; "
    "default: the time-out of each site",
    least=0.1,
    most=300,
    title="error during request",
)

SITE_PARAMETERS: tuple[DeclaredParameter, ...] = (
    Parameter(name="backends", description="comma list of sites by id, name or section"),
    TIMEOUT,
)
"""The parameters of every resource that asks cores, unless the path selects sites."""

PRETTY = Flag("pretty", "1 indents JSON")
"""A parameter of every path that answers in the formats of lists and objects."""

BACKGROUND = Flag(
    "background",
    "1 starts the request as a job; the answer is the address of its result",
)
"""A parameter of every path whose answer may be stored."""

STATISTICS_PARAMETERS = (*OBJECT_PARAMETERS, *LIST_PARAMETERS[1:3], *SITE_PARAMETERS)
"""Statistics are objects, whose filters choose what is counted."""


async def _no_handler(*_: object) -> Answer:
    raise NotImplementedError


H = TypeVar("H", bound=Callable[..., Awaitable[Answer]])


@frozen(kw_only=True)
class Endpoint:
    """One path template with the methods that one handler serves.

    ``path`` is like ``/hosts/<name>/services``; a variable is a whole segment. ``description`` is
    the line that ``/index`` shows, ``text`` what the reference page adds. ``shape`` says whether
    the answer is a list or one object. ``columns`` describe a row or the object; a collection of
    core rows has a ``schema`` instead. ``parameters`` are all that it takes, beside
    ``common_parameters``. ``roles`` are written as in the error text: ``admin`` or a full name; all
    must be held. ``public``: answers without credentials, as a login must. ``structured``: takes
    JSON bodies that are lists or hold objects, which come as ``RestRequest.document``. ``at_once``:
    cannot be a background job, because the answer is for the eyes of the user only or is about a
    job itself; so is what is public. ``own_session``: ends the session of the user, so that the
    role read_only does not forbid it as it does all other changes. ``documents``: describes the API
    and nothing that is monitored, so that it is public unless ``server.public_docs`` is off.
    ``media`` are the types of an answer that is a file and none of the formats of lists.
    ``body_limit`` are the bytes of the longest body, where it may be longer than
    ``server.max_body``. ``handler`` is a function where a request has all that it needs, else a
    method of the class of its family: mostly the one that the declaration stands above.
    """

    path: str
    description: str
    handler: Handler | FamilyHandler = field(default=_no_handler, eq=False)
    methods: tuple[Method, ...] = ("GET",)
    text: str = ""
    shape: Literal["list", "object"] = "list"
    parameters: tuple[DeclaredParameter, ...] = (*LIST_PARAMETERS, *SITE_PARAMETERS)
    columns: tuple[Column, ...] = ()
    schema: TableSchema | None = field(default=None, eq=False)
    roles: tuple[str, ...] = ()
    public: bool = False
    structured: bool = False
    at_once: bool = False
    own_session: bool = False
    documents: bool = False
    media: tuple[str, ...] = ()
    body_limit: int = 0

    def __call__(self, handler: H) -> H:
        """Declare the handler that follows; ``declared`` finds it."""
        vars(handler).setdefault("__endpoints__", []).insert(0, evolve(self, handler=handler))
        return handler

    @property
    def changes(self) -> bool:
        return "GET" not in self.methods

    @property
    def segments(self) -> tuple[str, ...]:
        """The template's segments; empty for ``/``."""
        return tuple(self.path.strip("/").split("/")) if self.path != "/" else ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variable segments in their order."""
        return tuple(segment[1:-1] for segment in self.segments if is_variable(segment))

    @property
    def common_parameters(self) -> tuple[Flag, ...]:
        """The parameters beside ``parameters``, in the query string of any method."""
        file = self.documents or (self.media and "application/json" not in self.media)
        parameters = () if file else (PRETTY,)
        return parameters if self.public or self.at_once else (*parameters, BACKGROUND)

    def check_roles(self, identity: Identity) -> None:
        """Raise ``Forbidden`` unless ``identity`` holds every role that the path needs."""
        missing = [role for role in self.roles if not holds(identity, role)]
        if missing:
            raise Forbidden(
                "not authorized",
                f"this path requires certain roles: {', '.join(self.roles)}"
                f"{identity.why_not(_full(missing[0]))}",
            )


def declared(room: type | ModuleType) -> tuple[Endpoint, ...]:
    """The endpoints that stand above the methods of a class or the functions of a module."""
    here = room.__name__ if isinstance(room, ModuleType) else room.__module__
    handlers = [
        handler for handler in vars(room).values() if getattr(handler, "__module__", "") == here
    ]
    return tuple(
        endpoint for handler in handlers for endpoint in getattr(handler, "__endpoints__", ())
    )


def is_variable(segment: str) -> bool:
    """Whether a segment of a template stands for any text."""
    return segment.startswith("<") and segment.endswith(">")


def holds(identity: Identity, role: str) -> bool:
    """Whether the role of a declaration (``admin`` for short, else a full name) is held."""
    return identity.may(_full(role))


def _full(role: str) -> str:
    return ADMIN if role == "admin" else role
