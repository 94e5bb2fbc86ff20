"""How many examples a property is tried with."""

import os

SHARE = float(os.environ.get("MONREST_EXAMPLES", "0.1"))


def examples(count, least=10):
    """A tenth of ``count`` in each run of the suite; MONREST_EXAMPLES=1 (or more) tries them all."""
    return max(least, round(count * SHARE))
