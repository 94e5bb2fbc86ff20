"""Arguments of commands as they are read."""

from datetime import UTC

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest
from monrest.commands.arguments import Defaults, parse
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import find

NOW = 1795000000
PLAIN = Defaults(user="omar", now=NOW + 0.7, zone=UTC, config=CommandsConfig())


def configured(**settings):
    return evolve(PLAIN, config=CommandsConfig(**settings))


def values_of(given):
    """Parameters as a request has them: each with all of its values."""
    return {
        name: (sent,) if isinstance(sent, str) else sent
        for name, sent in given.items()
        if sent is not None
    }


def read(kind, name, defaults=PLAIN, **given):
    return dict(parse(find(kind, name), values_of(given), defaults))


def refused(kind, name, defaults=PLAIN, **given):
    with pytest.raises(BadRequest) as raised:
        parse(find(kind, name), values_of(given), defaults)
    return raised.value.message, raised.value.description


def argument(kind, name, argument_name, value, **others):
    return read(kind, name, **{argument_name: value}, **others)[argument_name]
