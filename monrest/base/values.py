"""The values that travel through a request, each frozen, each made in one room and read in others.

Shapes follow the sections "Request conventions", "Output formats" and "Index, sites,
instance info" of the API description.
"""

from __future__ import annotations

import gzip
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, overload

from attrs import define, field, frozen

from monrest.base.errors import BrokenRowsError

Row: TypeAlias = list[Any]
"""One result row; the position of a value is given by the layout that travels beside it."""

Parameters: TypeAlias = tuple[tuple[str, str], ...]
"""Decoded (name, value) pairs in the order sent: query string first, then body."""

ADMIN = "authorized_for_admin"
READ_ONLY = "authorized_for_read_only"

ROLES = (
    ADMIN,
    "authorized_for_all_host_commands",
    "authorized_for_all_hosts",
    "authorized_for_all_service_commands",
    "authorized_for_all_services",
    "authorized_for_broadcasts",
    "authorized_for_business_processes",
    "authorized_for_configuration_information",
    "authorized_for_panorama_view_media_manager",
    "authorized_for_public_bookmarks",
    READ_ONLY,
    "authorized_for_reports",
    "authorized_for_system_commands",
    "authorized_for_system_information",
)
"""All role names of the reference, as whoami prints them."""


@frozen(kw_only=True)
class Identity:
    """The user of a request and the roles that are held.

    ``roles`` are full names (``authorized_for_…``). ``superuser`` marks local administration and
    superuser keys used without a user; ``source`` is the ``auth_src`` of ``/mon/whoami``.
    ``limit`` are the roles to which a key or a session restricts, None when it does not.
    ``original`` is the name before it was transformed. ``key`` and ``session`` are the hashes of
    what was presented, ``csrf_token`` is what a state-changing request of a session must carry.
    ``confirmed``: False when the database cannot say now whether that is still in force, so that
    it is good for reading only.
    """

    user: str
    roles: frozenset[str] = frozenset()
    source: str = "secret_key"
    superuser: bool = False
    limit: frozenset[str] | None = None
    original: str = ""
    key: str = ""
    session: str = ""
    csrf_token: str = field(default="", repr=False)
    confirmed: bool = True

    def may(self, role: str) -> bool:
        """Whether ``role`` (full name) is held; admin implies every role except read_only."""
        if role in self.roles:
            return True
        return role != READ_ONLY and (self.superuser or ADMIN in self.roles)

    def why_not(self, role: str) -> str:
        """Why ``role`` is not held where a key or session is limited: to go behind a refusal.

        Empty where there is no limit, or where the role is held.
        """
        if self.limit is None or self.may(role):
            return ""
        what = "session" if self.session else "key"
        if role in self.limit or ADMIN in self.limit:
            return f"; the {what} allows it, its user {self.user} does not hold it"
        return f"; the {what} is limited to other roles"


API = "(api)"
CLI = "(cli)"
INTERNAL = frozenset({API, CLI, "(cron)"})
"""Names of no user, which no client can have."""

ANONYMOUS = Identity(user="", source="none")
"""No user; handlers see it only behind endpoints that are declared public."""


@frozen(kw_only=True)
class Contact:
    """A user as the cores know them.

    ``can_submit_commands`` is None where no core has a contact of this name or says anything
    about it; False on one site wins. ``alias`` and ``email`` are None for a user who is no contact.
    """

    groups: frozenset[str] = frozenset()
    alias: str | None = None
    email: str | None = None
    can_submit_commands: bool | None = None


class ContactBook(Protocol):
    """Knows users as contacts of the cores."""

    async def of(self, user: str) -> Contact:
        """Return what is known of ``user``, an empty contact for nothing."""

    def expire(self) -> None:
        """Read the contacts of the cores again, because they may have changed."""


@frozen(kw_only=True)
class Caller:
    """The origin of a request, and its headers (lower-case names).

    ``address`` is the other end of the connection, empty for a Unix socket, whose user is
    ``uid``. ``client`` is the address of the person or script, which is another one behind a
    trusted proxy. ``secure``: over TLS, as far as this daemon or a trusted proxy knows.
    """

    method: str = "GET"
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    address: str = ""
    client: str = ""
    uid: int | None = None
    secure: bool = False


OutputFormat: TypeAlias = Literal["json", "wrapped_json", "ndjson", "csv", "xls", "text"]

OBJECTS: frozenset[OutputFormat] = frozenset({"json", "wrapped_json", "ndjson"})
"""Formats in which each row has keys of its own."""


class Progress(Protocol):
    """Takes how far a handler is, to be called now and then by one that takes long."""

    def __call__(self, percent: float, remaining: float | None = None, message: str = "") -> None:
        """``percent`` of 100 are done; ``remaining`` seconds, None to have them estimated."""


def always() -> bool:
    return True


def no_progress(percent: float, remaining: float | None = None, message: str = "") -> None:
    """Take the progress of a request that is no job."""
    del percent, remaining, message


def nothing() -> None:
    pass


def part_of(progress: Progress, begin: float, end: float) -> Progress:
    """Return the progress of work that is the part from ``begin`` to ``end`` percent of another."""
    if progress is no_progress:
        return progress

    def of_part(percent: float, remaining: float | None = None, message: str = "") -> None:
        progress(begin + (end - begin) * percent / 100, remaining, message)

    return of_part


@frozen(kw_only=True)
class RestRequest:
    """One request after HTTP is peeled off.

    ``path`` is what is left after prefixes, undecoded, with a leading slash and without a
    trailing one (``slashed`` when there was one). ``segments`` are its parts, undecoded; handlers
    get the decoded ones as path arguments. ``sites`` is the selection by path prefix, empty when
    there was none.
    ``query`` are the parameters of the query string alone and ``form`` those of a form body alone,
    for resources to which it matters where something stands.
    ``document`` is the parsed JSON body, if there was one; ``structured`` names its first member
    that is no plain value or list of such and hence in no parameter (empty for a body that is a
    list), None when there is none. ``progress`` takes how far the handler is. ``flows``: the
    caller reads rows of the answer piece by piece, so that they may be made meanwhile.
    ``strict``: a column that no row has is an error. ``body_size`` are the bytes of memory that the
    body and its values take, at most.
    """

    method: str
    path: str
    segments: tuple[str, ...]
    parameters: Parameters = ()
    query: Parameters = ()
    form: Parameters = ()
    document: Any = None
    structured: str | None = None
    format: OutputFormat = "json"
    pretty: bool = False
    sites: tuple[str, ...] = ()
    slashed: bool = False
    identity: Identity
    request_id: str = ""
    caller: Caller = Caller()
    progress: Progress = field(default=no_progress, eq=False, repr=False)
    flows: bool = False
    strict: bool = False
    body_size: int = 0


ColumnType: TypeAlias = Literal["string", "number", "boolean", "time", "array_of_strings", "object"]


@frozen
class Column:
    """A declared result column: what wrapped JSON's ``meta.columns`` and the reference page say.

    ``type`` is empty for a name about which nothing is known; ``unit`` is one of
    ``s``, ``%``, ``bytes``, ``minutes``, ``MB`` or a unit of performance data.
    """

    name: str
    type: ColumnType | Literal[""] = ""
    unit: str = ""
    description: str = ""


@frozen
class SiteProblem:
    """A site that could not answer: its id, its name and a short reason without paths."""

    site: str
    name: str
    reason: str
    timed_out: bool = False


@frozen(kw_only=True)
class Answer:
    """The result of every handler; the subclasses are the kinds of bodies."""

    failed_sites: tuple[SiteProblem, ...] = ()
    backend_seconds: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    """Further response headers, such as a cookie."""
    warnings: tuple[str, ...] = ()
    """Warnings of a successful answer, such as a column that no row has.

    They are in the header ``X-Mon-Warnings``, in ``meta`` of wrapped JSON and on the standard
    error of the command line.
    """


Expand: TypeAlias = Callable[[Row], Mapping[str, Any]]

KeysAndValues: TypeAlias = tuple[tuple[str, ...], Sequence[Any]]


@frozen
class Expansion:
    """The further keys of a row, each source by itself.

    A source is a place in the row and what makes keys and values of what stands there; nothing
    is made of what is empty. Of equal keys the later one counts.
    """

    sources: tuple[tuple[int, Callable[[Any], KeysAndValues]], ...]

    def __call__(self, row: Row) -> Mapping[str, Any]:
        values: dict[str, Any] = {}
        for at, made_of in self.sources:
            if row[at]:
                values.update(zip(*made_of(row[at]), strict=True))
        return values


@define(eq=False)
class RowSource:
    """Rows that ``make`` makes anew each time they are iterated over.

    Their number is known after the first complete iteration, or is ``count``.
    """

    make: Callable[[], Iterator[Row]]
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Row]:
        count = 0
        for row in self.make():
            count += 1
            yield row
        self.count = count

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> Row: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[Row]: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> Row | list[Row]:
        if isinstance(at, slice):
            return list(islice(self.make(), at.start, at.stop, at.step))
        for row in islice(self.make(), at.__index__(), None):
            return row
        raise IndexError(at)


RowList: TypeAlias = list[Row] | RowSource


@frozen(kw_only=True)
class Rows(Answer):
    """A list answer. Every row has one value per column, in the order of ``columns``.

    ``columns`` are in the order the client asked for (sorted by name when it did not ask).
    ``further`` are those of keys that only ``expand`` gives, as far as they are declared.
    Rows may be longer than ``columns``: what follows is for ``expand``, which gives the further
    keys of a row (performance data and custom variables) and is None when there are none.
    The rows belong to the renderer, which may release them as it proceeds. ``gone`` is called when
    all of them are written, and again at the end of the answer, of any kind. ``without`` makes
    the answer anew when going through the rows has raised a BrokenRowsError.
    """

    columns: tuple[Column, ...]
    rows: RowList
    expand: Expand | None = None
    further: tuple[Column, ...] = ()
    gone: Callable[[], None] = field(default=nothing, eq=False, repr=False)
    without: Callable[[BrokenRowsError], Rows] | None = field(default=None, eq=False, repr=False)

    def once(self) -> Iterator[Row]:
        """Return the rows for one look at them; their room ends with it."""
        try:
            yield from self.rows
        finally:
            self.gone()


@frozen(kw_only=True)
class Document(Answer):
    """A single JSON value, nearly always an object; ``columns`` describe its keys where declared.

    ``order`` is the order of keys for CSV, Excel and text; empty means sorted. ``plain``: it is
    JSON in any format that was asked for.
    """

    value: Any
    columns: tuple[Column, ...] = ()
    order: tuple[str, ...] = ()
    status: int = 200
    plain: bool = False


@frozen(kw_only=True)
class Stream(Answer):
    """A body of ``size`` bytes that was rendered before, with all that belongs to it."""

    status: int
    content_type: str
    disposition: str | None
    size: int
    pieces: AsyncIterator[bytes]


@frozen(kw_only=True)
class Page(Answer):
    """A body that is the same for all users: a page, a script, the description of the API.

    ``packed`` is the body in gzip, and ``tag`` names it.
    """

    content_type: str
    packed: bytes = field(repr=False)
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Page:
        """Pack ``body``, which takes some milliseconds for each 100 KB."""
        packed = gzip.compress(body, mtime=0)
        tag = sha256(body).hexdigest()[:16]
        return cls(content_type=content_type, packed=packed, tag=tag, headers=headers)

    @property
    def body(self) -> bytes:
        return gzip.decompress(self.packed)


class Outlet(Protocol):
    """The receiver of an endless body; ``paused``: the client has not accepted all bytes."""

    paused: bool

    def write(self, data: bytes) -> None:
        """Send ``data``, or keep it while the client takes its time."""

    def on_room(self, resume: Callable[[], None]) -> None:
        """Have ``resume`` called whenever the client has taken enough for more."""


@frozen(kw_only=True)
class Endless(Answer):
    """A body that is written as things happen.

    ``run`` writes it and returns when it is over. It is cancelled when the client leaves.
    """

    content_type: str
    run: Callable[[Outlet], Awaitable[None]]


@frozen(kw_only=True, cache_hash=True)
class Capabilities:
    """The capabilities of a core, read at connect.

    ``tables`` maps table name to column name to core type (string, int, float, list, dict,
    time). ``tables`` is compared by identity of contents through ``key``, so that plans can be
    cached per core and not per site.
    """

    kind: Literal["naemon", "mk", "icinga2", "shinken", "lmd", "rest"]
    """``rest``: another instance of monrest in front of a core."""
    program_version: str = ""
    livestatus_version: str = ""
    tables: Mapping[str, Mapping[str, str]] = field(factory=dict, eq=False)
    key: str = ""
    """A digest of kind and tables; two cores with equal keys understand the same queries."""
    over_icinga2: bool = False
    """Whether it is an LMD that speaks for an Icinga 2."""
    ordered: frozenset[str] = frozenset()
    """Tables whose rows come in our default order unasked, as far as that is known."""

    def has(self, table: str, column: str) -> bool:
        return column in self.tables.get(table, {})

    @property
    def icinga2(self) -> bool:
        """Whether states, and lines of the log, mean what they mean for an Icinga 2."""
        return self.kind == "icinga2" or self.over_icinga2

    @property
    def newest_first(self) -> bool:
        """Whether lines of one second come newest first; those of another instance never do."""
        return not self.icinga2 and self.kind != "rest"

    @property
    def sorts(self) -> bool:
        """Whether the Sort header works."""
        return self.kind in ("naemon", "lmd", "rest")
