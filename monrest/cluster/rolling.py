"""Restarting all nodes one after another (docs/spec/cluster.md, "Restart").

The steps are rows of the database. The node that holds the duty drives them; another one does when
it is the driver's own turn, or when the driver dies. The state of its row orders a node to restart;
it takes the order once, in a transaction. The next one comes only after this one answers
again as another run; when it does not, the rest is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from attrs import define, field
from twisted.logger import Logger

from monrest.base.audit import audit
from monrest.base.concurrency import Outcome
from monrest.cluster import store as statements
from monrest.cluster.model import (
    DONE,
    FAILED,
    LEAVING,
    OPEN,
    ORDERED,
    SKIPPED,
    WAITING,
    Member,
    Pong,
    RestartStep,
)
from monrest.store.duties import Token

if TYPE_CHECKING:
    from monrest.cluster.service import Cluster

DUTY = "cluster restart"

_PATIENCE = 120.0
"""Seconds that a node has for each part of it, beside its notice and the end of its requests."""


@define(eq=False)
class Rolling:
    """The part of ``cluster`` in a restart of all nodes."""

    log: ClassVar[Logger] = Logger()

    cluster: Cluster
    _watched: tuple[RestartStep | None, float] = field(default=(None, 0.0), init=False)

    async def look(self, steps: Sequence[RestartStep], members: Mapping[int, Member]) -> None:
        """Take an order for this node, and drive the others if that is this daemon's duty.

        Raises Unavailable and DutyLostError.
        """
        own, duties = self.cluster.own, self.cluster.duties
        for step in steps:
            if step.state == ORDERED and (step.node, step.run) == (own.id, own.run):
                await self._obey(step)
                return
        token = duties.held(DUTY)
        if token is not None:
            await self._drive(token, steps, members)

    async def _obey(self, step: RestartStep) -> None:
        problem = await self.cluster.check()
        if problem:
            await self._to(step, FAILED, problem)
            self._audit(step, problem)
        elif await self._to(step, LEAVING, ""):
            self.cluster.leave_all()

    async def _to(self, step: RestartStep, state: str, message: str) -> bool:
        work = statements.advance(step, state, message, self.cluster.wall.now())
        return await self.cluster.database.change(work)

    async def _drive(
        self, token: Token, steps: Sequence[RestartStep], members: Mapping[int, Member]
    ) -> None:
        current = next((step for step in steps if step.state in OPEN), None)
        if current is None:
            return
        failed = next((step for step in steps if step.state == FAILED), None)
        if failed is not None:
            text = f"the node before it failed: {failed.url}"
            work = statements.give_up(text, self.cluster.wall.now())
            await self.cluster.duties.change(token, work)
            return
        asked = await self.cluster.ask([step.url for step in steps])
        answers = {answer.asked: answer for answer in asked}
        others = [answers[step.url] for step in steps if step.node != self.cluster.own.id]
        if all(other.value is None for other in others):
            # It may be this node that is cut off: another one should try.
            if self._too_late(current):
                await self._fail(token, current, "no other node answers")
            await self.cluster.duties.leave(DUTY)
            return
        member, itself = members.get(current.node), answers[current.url]
        if member is not None and member.run != current.run:
            await self._came_back(token, current, member, itself)
        elif current.state == WAITING:
            rest = [answers[step.url] for step in steps if step.url != current.url]
            await self._order(token, current, itself, rest)
        elif self._too_late(current):
            await self._fail(token, current, "it did not restart in time")

    async def _came_back(
        self, token: Token, step: RestartStep, member: Member, answer: Outcome[str, Pong]
    ) -> None:
        pong = answer.value
        if pong is not None and pong.run == member.run and (pong.ready or pong.maintenance):
            if await self._drives(token, step, DONE, ""):
                self._audit(step, "ok")
        elif self._too_late(step):
            reason = str(answer.problem) if pong is None else "it is not ready"
            await self._fail(token, step, f"it does not answer again: {reason}")

    async def _order(
        self,
        token: Token,
        step: RestartStep,
        answer: Outcome[str, Pong],
        rest: Sequence[Outcome[str, Pong]],
    ) -> None:
        if answer.value is None:
            await self._drives(token, step, SKIPPED, f"it does not answer: {answer.problem}")
        elif any(other.value is not None and other.value.ready for other in rest):
            await self._drives(token, step, ORDERED, "")
        elif self._too_late(step):
            await self._fail(token, step, "no other node is ready")

    async def _fail(self, token: Token, step: RestartStep, message: str) -> None:
        if await self._drives(token, step, FAILED, message):
            self._audit(step, message)

    async def _drives(self, token: Token, step: RestartStep, state: str, message: str) -> bool:
        work = statements.advance(step, state, message, self.cluster.wall.now())
        return await self.cluster.duties.change(token, work)

    def _too_late(self, step: RestartStep) -> bool:
        """Whether a step has stayed as it is for too long, as far as this driver has watched it."""
        cluster = self.cluster
        if self._watched[0] != step:
            self._watched = (step, cluster.timer())
        patience = _PATIENCE + cluster.config.restart_notice + 2 * cluster.drain
        return cluster.timer() - self._watched[1] > patience

    def _audit(self, step: RestartStep, result: str) -> None:
        audit("(daemon)", None, "cluster node restart", target=step.url, result=result)
