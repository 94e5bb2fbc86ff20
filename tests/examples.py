"""How many examples a property is tried with."""

import os

SHARE = float(os.environ.get("MONREST_EXAMPLES", "0.25"))


def examples(count):
    """A quarter of ``count`` in each run of the suite; MONREST_EXAMPLES=1 (or more) tries them all."""
    return max(10, round(count * SHARE))
