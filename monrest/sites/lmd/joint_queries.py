"""One request for many sites: what is asked of each of them in one turn goes to the LMD together.

Each site is given its own rows, in the order in which they came, or why it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import orjson
from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.values import Row
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    LivestatusError,
    NoHeaderError,
    ProtocolError,
    RefusedError,
)
from monrest.livestatus.framing import SLICE, parse_rows
from monrest.livestatus.joint_answer import WrappedParser, WrappedRows, limited_to
from monrest.livestatus.pool import CoreRequest, Pool

_BAD_REQUEST = 400


class BehindLmdError(LivestatusError):
    """The LMD answers, and says that it cannot ask the site."""


@define(eq=False)
class SiteShare:
    """What one site is given of a joint answer."""

    site: str
    asked: CoreRequest
    done: Deferred[list[Row]] = field(init=False)
    rows: list[Row] = field(factory=list)

    def take(self, rows: list[Row]) -> None:
        """Add rows as they were sent, without the id of the site; who has left takes none."""
        if self.done.called:
            return
        asked = self.asked
        made = rows if asked.transform is None else asked.transform(rows)
        packed = asked.packed
        if packed is None or not packed.packs or not packed.pack(orjson.dumps(made), len(made)):
            self.rows += made

    def begin(self) -> None:
        """Begin with an answer, which may be the second one."""
        self.rows = []
        if self.asked.packed is not None:
            self.asked.packed.forget()


@define(eq=False)
class JointQuery:
    """One request for ``shares``, until it is sent and while it runs."""

    shares: dict[str, SiteShare] = field(factory=dict)
    running: Deferred[WrappedRows] | None = None

    @property
    def asked(self) -> CoreRequest:
        """What all of them ask."""
        return next(iter(self.shares.values())).asked

    def requests(self) -> list[CoreRequest]:
        """What is sent, one after the other."""
        asked = self.asked
        assert asked.width is not None
        width, take = asked.width + 1, partial(self._take, asked.key_at)
        return [
            evolve(
                asked,
                request=limited_to(request, list(self.shares)),
                recall=None,
                packed=None,
                log=False,
                further=(),
                parser=partial(WrappedParser, width, take, begin),
            )
            for request, begin in (
                (asked.request, self._begin),
                *((one, _go_on) for one in asked.further),
            )
        ]

    def _begin(self, length: int) -> None:
        for share in self.shares.values():
            share.begin()
        kept = [one.asked.packed for one in self.shares.values() if one.asked.packed is not None]
        if not kept or length <= SLICE:
            return
        if all(one.share is kept[0].share for one in kept):
            kept[0].begin(length, None)
            if not kept[0].packs:
                return
        # Of several questions each one takes room for its own rows, when it knows their size.
        for one in kept:
            one.begin_packing(parse_rows)

    def _take(self, at: int | None, rows: list[Row]) -> list[Row]:
        assert at is not None
        found: dict[str, list[Row]] = {}
        try:
            for row in rows:
                key = row.pop(at)
                if key in found:
                    found[key].append(row)
                else:
                    found[key] = [row]
            for key, mine in found.items():
                self.shares[key].take(mine)
        except (KeyError, TypeError):
            raise ProtocolError("a row of a site that was not asked") from None
        return []


async def _in_turn(pool: Pool, requests: Sequence[CoreRequest], timeout: float) -> WrappedRows:
    """Send requests one after the other; what they have in common is the failed sites."""
    whole = WrappedRows()
    failed: dict[str, str] = {}
    for request in requests:
        rows = await pool.query(request, timeout)
        assert isinstance(rows, WrappedRows)
        failed.update(rows.failed)
    whole.failed = failed
    return whole


def _go_on(_length: int) -> None:
    """The rows of a further request come behind those that are there."""


@define(eq=False)
class JointQueries:
    """Asks an LMD; queries of the log go one by one over ``logs``, for these wait for their core.

    ``on_lost`` is called when a connection ended in the middle of a query.
    """

    clock: IReactorTime
    pool: Pool
    logs: Pool
    on_lost: Callable[[], None]
    _waiting: dict[object, JointQuery] = field(init=False, factory=dict)

    def query(self, site: str, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        """Give the rows of one site; fails with LivestatusError."""
        share = SiteShare(site, asked)
        key = (asked.request, asked.transform, asked.among, round(timeout, 1))
        joint = self._waiting.get(key)
        if joint is None or site in joint.shares or asked.log:
            joint = self._waiting[key] = JointQuery()
            self.clock.callLater(0, self._send, key, joint, timeout)
        joint.shares[site] = share
        share.done = Deferred(partial(self._cancelled, joint, share))
        return share.done

    def _cancelled(self, joint: JointQuery, share: SiteShare, _: Deferred[list[Row]]) -> None:
        # The rows of one who has left are still read, for the others.
        if joint.running is None:
            del joint.shares[share.site]
        elif all(one.done.called for one in joint.shares.values() if one is not share):
            joint.running.cancel()

    def _send(self, key: object, joint: JointQuery, timeout: float) -> None:
        if self._waiting.get(key) is joint:
            del self._waiting[key]
        if joint.shares:
            pool = self.logs if joint.asked.log else self.pool
            joint.running = Deferred.fromCoroutine(_in_turn(pool, joint.requests(), timeout))
            joint.running.addCallbacks(
                self._answered, self._failed, callbackArgs=(joint,), errbackArgs=(joint,)
            )

    def _answered(self, rows: WrappedRows, joint: JointQuery) -> None:
        for site, share in joint.shares.items():
            if share.done.called:
                continue
            if site in rows.failed:
                share.begin()
                share.done.errback(BehindLmdError(rows.failed[site]))
            else:
                share.done.callback(share.rows)

    def _failed(self, failure: Failure, joint: JointQuery) -> None:
        if failure.check(CancelledError):
            return
        error = failure.value
        if isinstance(error, NoHeaderError):
            # This is how it refuses a request.
            failure = Failure(RefusedError(_BAD_REQUEST, error.text))
        elif isinstance(error, BrokenConnectionError):
            self.on_lost()
        for share in joint.shares.values():
            if not share.done.called:
                share.done.errback(failure)
