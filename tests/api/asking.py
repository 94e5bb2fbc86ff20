"""Requests as the web room makes them, straight to the handlers; what they wait for is done."""

from monrest.base.values import Identity, RestRequest
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


def records(found):
    """Rows as dictionaries."""
    return [dict(zip([c.name for c in found.columns], row, strict=False)) for row in found.rows]
