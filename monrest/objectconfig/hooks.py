"""The commands before and after a save (docs/spec/objectconfig.md, "Saving")."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from monrest.objectconfig import commands
from monrest.objectconfig.commands import CommandResult


@frozen(kw_only=True)
class Hooks:
    """``before`` and ``after`` are shell commands, empty for none; ``seconds`` limits each.

    ``hint``: what to tell about a command that took too long.
    """

    before: str = ""
    after: str = ""
    seconds: float = commands.LONGEST
    hint: str = ""
    environment: Mapping[str, str] = field(factory=dict)

    async def run(self, reactor: Any, when: str, root: str) -> CommandResult:
        """Run the hook of ``pre`` or ``post`` for the object root; without one all is well."""
        command = self.before if when == "pre" else self.after
        if not command:
            return CommandResult(status=0, output="")
        line = f"{command} {when} {shlex.quote(root)} 2>&1"
        return await commands.run(reactor, line, self.environment, self.seconds, hint=self.hint)


def environment(
    *,
    site: str,
    name: str,
    user: str,
    groups: Sequence[str] = (),
    alias: str = "",
    email: str = "",
    url: str = "",
) -> dict[str, str]:
    """Give what hooks, checks and reloads find in their environment; ``url``: of the request."""
    found = {
        "MON_BACKEND_ID": site,
        "MON_BACKEND_NAME": name,
        "MON_SUMMARY_MESSAGE": "",
        "MON_SUMMARY_DETAILS": "",
        "MON_REQ_URL": url,
        "REMOTE_USER": user,
        "REMOTE_USER_GROUPS": ";".join(groups),
        "REMOTE_USER_ALIAS": alias,
        "REMOTE_USER_EMAIL": email,
    }
    return {key: text.replace("\0", "") for key, text in found.items()}
