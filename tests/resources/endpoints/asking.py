"""Requests to every handler, with the road to the cores replaced by a recorder."""

from monrest.query.model import Condition
from monrest.resources.dispatch import dispatch
from monrest.values import Identity, RestRequest
from tests.fakes.keystore import result

ROOT = Identity(user="root", superuser=True)
ANN = Identity(user="ann")
NOW = 1_000_000
DAY = Condition("time", ">=", str(NOW - 86_400), "path")


def request(path, *parameters, identity=ROOT, method="GET"):
    segments = tuple(path.strip("/").split("/")) if path != "/" else ()
    return RestRequest(
        method=method, path=path, segments=segments, parameters=parameters, identity=identity
    )


def answer(context, path, *parameters, **more):
    return result(dispatch(context, request(path, *parameters, **more)))


def equal(column, value):
    return Condition(column, "=", value, "path")
