"""The outcome of a command, and its answer (docs/spec/commands.md, "What a core answers")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from monrest.base.errors import BadRequest, RestError, SitesFailed, SitesTimedOut
from monrest.base.values import Capabilities, Document, SiteProblem
from monrest.commands.orders import PreparedCommand, failed_sites

SUBMITTED = "Command successfully submitted"
TESTED = "Command is valid, nothing was sent because of test_only"
NOTHING = "Nothing matched, no command was sent"
REFUSED = "sending command failed"
UNCERTAIN = "it is not known whether the command was executed"
UNREACHED = "no backend available"
PARTLY = "not all sites took the command"

SEEN = "seen"
NOTHING_MATCHED = "nothing matched"


@define(eq=False, kw_only=True)
class CommandOutcome:
    """One command on all of its sites.

    ``lines`` as the cores got them, or may have got them on the sites in ``uncertain``.
    ``accepted`` are the sites whose core took some of them.
    ``refused``: texts of cores with the site's name. ``effects``: site to what was read back.
    """

    job: PreparedCommand
    tested: bool = False
    lines: list[str] = field(factory=list)
    accepted: set[str] = field(factory=set)
    refused: list[str] = field(factory=list)
    failed: list[SiteProblem] = field(factory=list)
    uncertain: set[str] = field(factory=set)
    effects: dict[str, str] = field(factory=dict)

    def fail(self, problem: SiteProblem, *, uncertain: bool = False) -> None:
        """Note that a site did not take it, or perhaps did (``uncertain``)."""
        if problem.site not in {other.site for other in self.failed}:
            self.failed.append(problem)
        if uncertain:
            self.uncertain.add(problem.site)

    @property
    def code(self) -> int:
        """The HTTP status of this command alone: one refusing core makes 400 of it."""
        if self.refused:
            return 400
        if not (missed := self.missed):
            return 200
        return 504 if all(problem.timed_out for problem in missed) else 502

    @property
    def missed(self) -> list[SiteProblem]:
        """The failed sites that make the command fail.

        A site that could not say whether it has the object is none of them if the request does not
        name it and another one took the command: else one dead site would spoil all commands.
        """
        if self.tested:
            return []
        if self.job.asked.named or not (self.accepted or self.idle):
            return self.failed
        unasked = {problem.site for problem in self.job.failed}
        return [problem for problem in self.failed if problem.site not in unasked]

    @property
    def idle(self) -> bool:
        """Whether nothing was sent because nothing had to be, on some site at least."""
        failed = {problem.site for problem in self.failed}
        return not self.uncertain and any(site.id not in failed for site in self.job.sites)

    @property
    def message(self) -> str:
        if self.refused:
            return REFUSED
        if self.missed:
            if self.accepted or self.idle:
                return PARTLY
            return UNCERTAIN if self.uncertain else UNREACHED
        if self.accepted:
            return SUBMITTED
        return TESTED if self.lines else NOTHING

    @property
    def commands(self) -> str:
        return "\n".join(self.lines)

    @property
    def effect(self) -> str:
        """The effect over all sites: what is the least good of them; empty if none was wanted."""
        kinds = list(self.effects.values())
        return next((kind for kind in kinds if kind != SEEN), SEEN) if kinds else ""

    def members(self) -> dict[str, Any]:
        """Members of the answer, of a success and of a failure."""
        more: dict[str, Any] = {"commands": self.commands}
        if self.effects:
            more |= {"effect": self.effect, "effects": self.effects}
        if self.job.warnings:
            more["warnings"] = self.job.warnings
        if self.failed:
            more["failed_sites"] = [
                failed_site | ({"uncertain": True} if failed_site["site"] in self.uncertain else {})
                for failed_site in failed_sites(self.failed)
            ]
            if self.accepted:
                more["accepted_sites"] = sorted(self.accepted)
        return more

    @property
    def error(self) -> str:
        """Errors of cores, each on a line of its own with the name of the site."""
        return "\n".join(self.refused)

    def answer(self) -> Document:
        """The document of a single command; raise the error of a failure."""
        if self.refused:
            refusal = BadRequest(
                REFUSED,
                f"{REFUSED}: {self.error}",
                extra={**self.members(), "error": self.error, "help": self.job.help},
            )
            refusal.problems = tuple(self.failed)
            raise refusal
        if self.code != 200:
            kind = SitesTimedOut if self.code == SitesTimedOut.code else SitesFailed
            error: RestError = kind(self.failed)
            error.message = self.message
            error.extra = self.members()
            raise error
        return Document(
            value={"message": self.message, **self.members()},
            order=("message", "commands"),
            failed_sites=tuple(self.failed),
            warnings=tuple(self.job.warnings),
        )

    def result(self) -> dict[str, Any]:
        """The entry of a list of results."""
        more = {"error": self.error} if self.refused else {}
        return {
            "index": self.job.asked.index,
            "code": self.code,
            "message": self.message,
            **self.members(),
            **more,
        }


def capabilities_of(outcomes: Sequence[CommandOutcome]) -> dict[str, Capabilities | None]:
    """The present capabilities of each site, by id."""
    groups = {outcome.job.sites for outcome in outcomes}
    return {site.id: site.capabilities for sites in groups for site in sites}
