"""What the clients do, as steps without any input or output: ``Ask`` a request, ``Pause``. Pure.

Each operation is written once, as a generator that gets the answers of what it asks; the clients
drive it, one with blocking calls and one with Deferreds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

from monrest.client.client_problems import (
    ClientError,
    IncompleteError,
    NotThereError,
    OverloadedError,
    UnreachableError,
    failure_of,
)
from monrest.client.exchange import SAFE, ReplyHeaders, failed_sites_of, segment, warnings_of

T = TypeVar("T")

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_AGAIN = 302
_UNAVAILABLE = 503


class Ask(NamedTuple):
    """A request of the API; ``query`` is encoded, ``prefix`` an output format."""

    path: str
    method: str = "GET"
    query: str = ""
    document: Any = None
    prefix: str = ""
    sites: tuple[str, ...] = ()

    @property
    def body(self) -> bytes | None:
        """The document as it is sent."""
        if self.document is None:
            return None
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()


class Pause(NamedTuple):
    """Seconds to wait."""

    seconds: float


class Answered(NamedTuple):
    """A whole answer; the driver throws UnreachableError into the steps where there is none."""

    status: int
    headers: ReplyHeaders
    body: bytes


ClientSteps: TypeAlias = Generator[Ask | Pause, Answered | None, T]
TellsProgress: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Gets the state of a job again and again."""


class AnsweredRows(list[Any]):
    """The rows of an answer.

    ``failed_sites`` are missing in them, ``warnings`` are the daemon's.
    """

    failed_sites: Sequence[str] = ()
    warnings: Sequence[str] = ()


class Policy(NamedTuple):
    """How a client asks: ``whole``: answers that lack sites are errors; ``app`` as in headers.

    ``strict``: names of columns that no row has are errors.
    """

    app: str = "mon"
    retries: int = 2
    whole: bool = False
    strict: bool = True


def answered(ask: Ask, policy: Policy) -> ClientSteps[Answered]:
    """Ask, and ask again when that is safe; errors are raised."""
    for attempt in range(policy.retries + 1):
        last = attempt == policy.retries or ask.method not in SAFE
        pause = _FIRST_PAUSE * 2**attempt
        try:
            answer = yield ask
        except UnreachableError as error:
            # A daemon that did not answer in time may still be at work.
            if last or isinstance(error.__cause__, TimeoutError):
                raise
        else:
            assert answer is not None, "it was asked"
            if answer.status // 100 == 2 or answer.status == _AGAIN:
                return answer
            problem = failure_of(answer.status, answer.body, answer.headers.get("Retry-After", ""))
            if last or answer.status != _UNAVAILABLE:
                raise problem
            if isinstance(problem, OverloadedError) and problem.retry_after is not None:
                pause = min(problem.retry_after, _LONGEST_PAUSE)
        yield Pause(pause)
    raise AssertionError("the last attempt ends it")


def document(ask: Ask, policy: Policy) -> ClientSteps[Any]:
    """The decoded answer; a list is an ``AnsweredRows``."""
    answer = yield from answered(ask, policy)
    return decoded(answer, policy)


def decoded(answer: Answered, policy: Policy) -> Any:
    """The JSON of an answer; raises ClientError for something else, and for missing sites."""
    failed = failed_sites_of(answer.headers, policy.app)
    if failed and policy.whole:
        raise IncompleteError(failed)
    if not answer.body:
        return None
    try:
        found = json.loads(answer.body)
    except ValueError:
        raise ClientError("the answer is no JSON: is this the address of a monrest?") from None
    if not isinstance(found, list):
        return found
    rows = AnsweredRows(found)
    rows.failed_sites = failed
    rows.warnings = warnings_of(answer.headers, policy.app)
    return rows


def only_row(answer: Any) -> Any:
    """One object by its name; raises NotThereError when no site has it.

    Several sites may have an object of this name: the first row counts.
    """
    if isinstance(answer, list):
        if not answer:
            raise NotThereError(404, {"message": "no such object"})
        return answer[0]
    return answer


def number_of(answer: Any) -> int:
    """The count of an answer with the one column ``n``."""
    found = answer[0] if isinstance(answer, list) and answer else answer
    if not isinstance(found, dict):
        return 0
    return int(found.get("n") or 0)


def query_of(parameters: Mapping[str, Any]) -> str:
    """Parameters as a query string; lists repeat their name, None is left out."""
    return "&".join(
        f"{segment(name)}={segment(_text(one))}"
        for name, value in parameters.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one is not None
    )


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


class CommandFate(NamedTuple):
    """What became of a command.

    ``code``: 200 when all cores took it. ``effect``: what was seen afterwards where ``wait`` was
    given, ``effects`` by site. ``failed_sites`` did not get it; with ``uncertain`` they may have.
    ``document`` is the whole answer.
    """

    code: int
    message: str
    effect: str
    effects: Mapping[str, str]
    commands: Sequence[str]
    failed_sites: Sequence[str]
    uncertain: bool
    warnings: Sequence[str]
    document: Mapping[str, Any]

    @property
    def sent(self) -> bool:
        """Whether all cores took it."""
        return self.code == 200 and not self.failed_sites


def command(
    name: str, arguments: Mapping[str, Any], sites: tuple[str, ...], policy: Policy
) -> ClientSteps[CommandFate]:
    """Send one command; errors of the daemon and refusals of a core are raised."""
    sent = {"cmd": name, **{key: one for key, one in arguments.items() if one is not None}}
    query = query_of({key: sent.pop(key) for key in ("wait", "test_only") if key in sent})
    answer = yield from document(Ask("/cmd", "POST", query, sent, sites=sites), policy)
    return _outcome(answer)


def commands(
    entries: Sequence[Mapping[str, Any]], wait: float | None, sites: tuple[str, ...], policy: Policy
) -> ClientSteps[list[CommandFate]]:
    """Send a list of commands in one request: one outcome for each, refusals of cores included."""
    ask = Ask("/cmd", "POST", query_of({"wait": wait}), list(map(dict, entries)), sites=sites)
    answers = yield from document(ask, policy)
    return [_outcome(one) for one in answers]


def _outcome(answer: Any) -> CommandFate:
    if not isinstance(answer, dict):
        _unexpected("the outcome of a command")
    return CommandFate(
        code=int(answer.get("code", 200)),
        message=str(answer.get("message") or answer.get("error") or ""),
        effect=str(answer.get("effect") or ""),
        effects=answer.get("effects") or {},
        commands=_lines(answer.get("commands")),
        failed_sites=list(answer.get("failed_sites") or ()),
        uncertain=bool(answer.get("uncertain")),
        warnings=list(answer.get("warnings") or ()),
        document=answer,
    )


def _lines(value: Any) -> list[str]:
    return value.splitlines() if isinstance(value, str) else list(value or ())


def _unexpected(what: str) -> NoReturn:
    raise ClientError(f"expected {what}: is this the address of a monrest?")


def begin_job(ask: Ask, policy: Policy) -> ClientSteps[str]:
    """Have a request done in the background; the id of its job."""
    query = f"{ask.query}&background=1" if ask.query else "background=1"
    answer = yield from document(ask._replace(query=query), policy)
    if not isinstance(answer, dict) or not answer.get("job_id"):
        _unexpected("an answer with a job_id")
    return str(answer["job_id"])


def job_path(job: str, policy: Policy) -> str:
    """The path of a job."""
    return f"/{policy.app}/jobs/{segment(job)}"


def job_state(job: str, policy: Policy) -> ClientSteps[Mapping[str, Any]]:
    """The record of a job: ``is_running``, ``percent``, ``remaining``, ``message`` …."""
    answer = yield from document(Ask(job_path(job, policy)), policy)
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if not isinstance(answer, dict):
        _unexpected("the state of a job")
    return answer


def job_result(job: str, progress: TellsProgress | None, policy: Policy) -> ClientSteps[Any]:
    """Wait for a job and give what its request answers; its errors are raised.

    ``progress`` gets the state every now and then; without it the daemon holds the request.
    """
    pause = _FIRST_PAUSE
    while progress is not None:
        state = yield from job_state(job, policy)
        progress(state)
        if not state.get("is_running"):
            break
        yield Pause(pause)
        pause = min(pause * 1.5, 2.0)
    while True:
        answer = yield from answered(Ask(f"{job_path(job, policy)}/output"), policy)
        if answer.status != _AGAIN:
            return decoded(answer, policy)
        yield Pause(_FIRST_PAUSE)


def cancel_job(job: str, policy: Policy) -> ClientSteps[None]:
    """End a job, or remove the record of one that has ended."""
    yield from document(Ask(job_path(job, policy), "DELETE"), policy)
