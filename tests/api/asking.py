"""Requests as the web room makes them, straight to the handlers; what they wait for is done."""

from functools import partial
from unittest.mock import patch

from attrs import evolve

from monrest.api.endpoint import RequestCache
from monrest.base.values import Identity, RestRequest
from monrest.query.plan import plan
from monrest.rows import question
from monrest.rows.fetch import fetch
from tests.fakes.keystore import result

ROOT = Identity(user="root", superuser=True)


def request(path, *parameters, identity=ROOT, method="GET", sites=()):
    return RestRequest(
        method=method,
        path=path,
        segments=tuple(path.strip("/").split("/")) if path != "/" else (),
        parameters=parameters,
        identity=identity,
        sites=sites,
    )


def answer(context, path, *parameters, **more):
    return result(context.dispatch(context, request(path, *parameters, **more)))


async def fetched_whole(context, asked, schema):
    """What ``fetch`` gives where cores are asked for whole tables and all else is done here."""
    with patch.object(question, "plan", partial(plan, push_down=False)):
        return await fetch(evolve(context, request_cache=RequestCache()), asked, schema)


def records(found):
    """Rows as dictionaries."""
    return [dict(zip([c.name for c in found.columns], row, strict=False)) for row in found.rows]
