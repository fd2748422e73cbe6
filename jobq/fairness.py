"""In which order a claim searches the queues. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping


def shuffled(weights: Mapping[str, int], source: random.Random) -> list[str]:
    """The queues in a random order in which each comes first as often as its weight says.

    Sorting by u^(1/weight), u uniform, is weighted sampling without replacement (Efraimidis and Spirakis, 2006).
    """
    return sorted(weights, key=lambda queue: source.random() ** (1 / weights[queue]), reverse=True)
