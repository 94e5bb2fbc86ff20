"""Who asks when for what."""

from monrest.query.model import Condition
from monrest.values import Identity

ANN = Identity(user="ann")
NOW = 1_000_000
DAY = Condition("time", ">=", str(NOW - 86_400), "path")


def equal(column, value):
    return Condition(column, "=", value, "path")
