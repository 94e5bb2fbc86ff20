"""Reading what a request asks to be sent (docs/spec/commands.md, "Targets")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, field, frozen

from monrest.api.endpoint import Context
from monrest.api.fields import AS_IT_IS, Field, Flag, ParameterType, Reading
from monrest.base.errors import BadRequest, RestError
from monrest.base.truth import truth
from monrest.commands.arguments import Given
from monrest.config import ServerConfig
from monrest.livestatus.command import Target
from monrest.objectconfig.site_commands import FORCE
from monrest.sites.site import Site

OBJECTS = {
    "host": "hosts",
    "hostgroup": "hostgroups",
    "servicegroup": "servicegroups",
    "contact": "contacts",
    "contactgroup": "contactgroups",
}
"""Parameters of ``/cmd`` that name an object, in the order in which the last one decides."""

TEST_ONLY = Flag("test_only", "1: check everything, answer the command lines and send nothing")
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_USUAL_WAIT = 10.0


@frozen(kw_only=True)
class EffectWait(Field):
    """For how many seconds an effect is looked for; None for no, a word for yes is the usual time.

    ``server`` says for how long requests may last at all.
    """

    type: ParameterType = "number"
    limit = "a second less than `server.request_timeout`"

    server: ServerConfig = field(factory=ServerConfig)

    def read(self, value: Any, at: Reading = AS_IT_IS) -> float | None:
        longest, wanted = self.server.longest_wait, truth(value)
        if wanted is not None:
            return min(_USUAL_WAIT, longest) if wanted else None
        if not isinstance(value, str) or not _SECONDS.fullmatch(value):
            raise self.wrong(at, "1 or a number of seconds")
        if float(value) > longest:
            after = f"{self.server.request_timeout:g}"
            raise self.wrong(at, f"at most {longest:g} seconds, because requests end after {after}")
        return float(value) or None


WAIT = EffectWait("wait", "1, or a number of seconds: answer when the effect shows in the core")


@frozen(kw_only=True)
class AskedCommand:
    """One command as a client asks for it; ``index`` is its place in a list.

    ``given`` are its arguments, ``sites`` those that the request means, and ``named`` whether it
    names them.
    """

    index: int = 0
    command: str
    target: Target
    given: Given
    sites: tuple[Site, ...]
    named: bool = False


@frozen(kw_only=True)
class Manner:
    """Options of sending: ``wait`` are the seconds to look for the effect, None for not at all.

    ``test_only``: everything is checked and nothing is sent. ``force``: a core is restarted
    without a check of its object files.
    """

    wait: float | None = None
    test_only: bool = False
    force: bool = False


def collected(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Parameters by name; those that repeat with all of their values."""
    texts: dict[str, list[str]] = {}
    for name, value in pairs:
        texts.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in texts.items()}


def manner(given: Given, server: ServerConfig) -> Manner:
    """Read ``wait`` and ``test_only``. Raise BadRequest if either makes no sense."""
    return Manner(
        wait=evolve(WAIT, server=server).read(one_of(given, WAIT.name)),
        test_only=bool(TEST_ONLY.read(one_of(given, TEST_ONLY.name))),
        force=bool(FORCE.read(one_of(given, FORCE.name))),
    )


def one_of(given: Given, name: str) -> str:
    """The value of a parameter, empty when there is none; BadRequest for a list."""
    values = given.get(name, ())
    if len(values) > 1:
        raise BadRequest(f"invalid {name}", f"{name}: expected one value, got {len(values)}")
    return values[0].strip() if values else ""


def target_of(given: Given) -> tuple[Target, dict[str, tuple[str, ...]]]:
    """The object that the parameters of ``/cmd`` name, and what is left of them.

    Without any object the command is one for whole cores. A name that is there must not be
    empty: an empty variable in a script must not make a command global.
    """
    left = dict(given)
    names = {word: name(left, word) for word in (*OBJECTS, "service") if word in left}
    for word in names:
        del left[word]
    if "service" in names:
        if "host" not in names:
            raise BadRequest("missing argument: host", "host is a required argument of a service")
        return Target("services", names["host"], names["service"]), left
    if not names:
        return Target("sites"), left
    word = [word for word in OBJECTS if word in names][-1]
    return Target(OBJECTS[word], names[word]), left


def name(given: Given, word: str) -> str:
    """The name of an object in a parameter."""
    values = given[word]
    if len(values) != 1 or not values[0]:
        raise BadRequest(f"invalid {word}", f"{word}: expected one name that is not empty")
    return values[0]


def command_of(given: dict[str, tuple[str, ...]]) -> str:
    """Take ``cmd`` out of the parameters; BadRequest if it is missing."""
    if "cmd" not in given:
        raise BadRequest("missing argument: cmd", "cmd is a required argument")
    text = one_of(given, "cmd")
    del given["cmd"]
    if not text:
        raise BadRequest("missing argument: cmd", "cmd is a required argument")
    return text


def sites_of(context: Context, prefix: Sequence[str], given: Given) -> tuple[Site, ...]:
    """The sites that are meant: of the path, else of the parameters, else all shown ones.

    Raise BadRequest for an unknown site and RestError when there is none at all.
    """
    sites = context.sites.select(named_sites(prefix, given))
    if not sites:
        raise RestError(
            "error during request",
            "backend error, no backends available: no configured site is selected",
        )
    return sites


def named_sites(prefix: Sequence[str], given: Given) -> Sequence[str]:
    """The selection of the path, else of the parameters; empty: all that are not hidden."""
    return prefix or _list(given, "backend") or _list(given, "backends")


def _list(given: Given, name: str) -> tuple[str, ...]:
    parts = (part.strip() for value in given.get(name, ()) for part in value.split(","))
    return tuple(part for part in parts if part)
