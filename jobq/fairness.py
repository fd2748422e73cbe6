"""In which order a claim searches the queues. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import floor


def shuffled(weights: Mapping[str, int], source: random.Random) -> list[str]:
    """The queues in a random order in which each comes first as often as its weight says.

    Sorting by u^(1/weight), u uniform, is weighted sampling without replacement (Efraimidis and Spirakis, 2006).
    """
    return sorted(weights, key=lambda queue: source.random() ** (1 / weights[queue]), reverse=True)


def part_of(room: int, mine: int, others: int, source: random.Random | None = None) -> int:
    """The part of `room` for a weight of `mine` beside `others`; its fraction is drawn: right on average."""
    if not mine:
        return 0
    part = room * mine / (mine + others)
    return floor(part + (source or random).random())


def allot(room: int, weights: Mapping[str, int], source: random.Random) -> dict[str, int]:
    """`room` divided by weight: each share rounded up or down, so that they add up and are right on average.

    Systematic sampling: one draw for all, so no share is ever off by one or more.
    """
    total, start = sum(weights.values()), source.random()
    allotted, before = {}, 0
    for queue, weight in weights.items():
        after = before + weight
        allotted[queue] = floor(room * after / total + start) - floor(room * before / total + start)
        before = after
    return allotted
