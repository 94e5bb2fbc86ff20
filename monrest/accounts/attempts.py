"""One attempt with a name and a password, by a login or by basic authentication.

The answer to a failed one follows docs/spec/accounts.md, "Authentication".
"""

from __future__ import annotations

from monrest.accounts.passwords import Passwords
from monrest.accounts.slowdown import Slowdown
from monrest.accounts.users import Users
from monrest.base.audit import audit
from monrest.base.errors import NotAuthenticated
from monrest.base.names import Names
from monrest.base.values import Caller

WRONG = "no or invalid credentials used."
"""The answer to every wrong attempt, whether there is such a user or not."""


async def is_right(
    user: str,
    password: str,
    caller: Caller,
    *,
    passwords: Passwords,
    slowdown: Slowdown,
    users: Users,
) -> bool:
    """Whether ``password`` is that of ``user``; a wrong one is counted, noted and slowed down.

    After too many wrong ones the right one is answered like them. Whether an administrator has
    locked the user is another question, answered only after the right password. Raises
    TooManyRequests and Unavailable.
    """
    async with slowdown.attempt(caller.client, user) as attempt:
        right = await passwords.check(user, password)
        most = users.config.lock_after_failed_logins
        if right and attempt.refused(most, in_all=await users.is_guessed(user)):
            audit(user, caller, "login failed", result="too many wrong passwords before")
            right = False
        elif right:
            attempt.succeeded()
            await users.passed(user)
        else:
            # In here, so that the time it takes is hidden in the delay.
            audit(user, caller, "login failed", result=WRONG)
            await users.failed(user, caller, known=await passwords.knows(user))
    return right


def not_authenticated(
    message: str, description: str, caller: Caller, names: Names, *, passwords: bool
) -> NotAuthenticated:
    """Make the error for a caller of whom nothing is known; it says how to come in.

    By key always; by password where there are ``passwords``, but not to a script of a page: its
    browser would ask the person in front of it for a password that the script cannot use.
    """
    challenges = [f'Bearer realm="{names.app}"']
    # As far as browsers and libraries for scripts tell.
    mode = caller.headers.get("sec-fetch-mode", "navigate").strip().lower()
    by = caller.headers.get("x-requested-with", "").strip().lower()
    if passwords and mode == "navigate" and by != "xmlhttprequest":
        challenges.append(f'Basic realm="{names.app}", charset="UTF-8"')
    return NotAuthenticated(message, description, challenges)
