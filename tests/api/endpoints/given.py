"""Who asks when for what."""

from monrest.base.values import Identity
from monrest.query.model import Condition

ANN = Identity(user="ann")
NOW = 1_000_000
DAY = Condition("time", ">=", str(NOW - 86_400), "path")
