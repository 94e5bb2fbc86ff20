"""How many examples a property is tried with, and how many combinations of a table."""

import math
import os
import random

SHARE = float(os.environ.get("MONREST_EXAMPLES", "0.1"))


def examples(count, least=10):
    """A tenth of ``count`` in each run of the suite; MONREST_EXAMPLES=1 (or more) tries them all."""
    return max(least, round(count * SHARE))


def some(items, share=0.25, seed=""):
    """A quarter of combinations, the same in each run; MONREST_EXAMPLES=1 tries them all.

    Another ``seed`` gives other ones.
    """
    items = list(items)
    count = len(items) if SHARE >= 1 else math.ceil(len(items) * share)
    return random.Random(f"{seed}{len(items)}").sample(items, count)
