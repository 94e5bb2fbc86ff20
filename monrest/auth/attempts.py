"""One attempt with a name and a password, by a login or by basic authentication."""

from __future__ import annotations

from monrest.audit import audit
from monrest.auth.passwords import Passwords
from monrest.auth.slowdown import Slowdown
from monrest.auth.users import Users
from monrest.values import Caller

WRONG = "no or invalid credentials used."
"""What is said of every wrong attempt, whether there is such a user or not."""


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

    Whether the user is locked is another question, which only who knows the password may ask.
    Raises TooManyRequests and Unavailable.
    """
    async with slowdown.attempt(caller.client, user) as attempt:
        right = await passwords.check(user, password)
        if right:
            attempt.succeeded()
            await users.passed(user)
        else:
            # In here, so that the time it takes is hidden in the delay.
            audit(user, caller, "login failed", result=WRONG)
            await users.failed(user, caller, known=await passwords.knows(user))
    return right
