"""In which order a claim searches the queues. Pure."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from math import floor
from operator import attrgetter

from jobq.model import Claimed

FLOOD = 1.5  # times its share of a claim, and so many jobs besides: fewer take no time that matters
FLOOD_JOBS = 50
_QUEUE_OF = attrgetter("queue")


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


def in_turns(jobs: Sequence[Claimed], weights: Mapping[str, int]) -> Sequence[Claimed]:
    """The order for claimed jobs to start in, where one queue has far more of them than its weight says: by priority,
    and in each the queues by turns. Else as they are. The jobs of a lane stay in their order."""
    numbers = Counter(map(_QUEUE_OF, jobs))
    if not _is_flooded(numbers, weights):
        return jobs
    places: defaultdict[tuple[str, int], count[int]] = defaultdict(lambda: count(1))
    return sorted(
        jobs, key=lambda job: (job.priority, next(places[job.queue, job.priority]) / weights.get(job.queue, 1))
    )


def _is_flooded(numbers: Mapping[str, int], weights: Mapping[str, int]) -> bool:
    """Whether a queue has more than its share, and others are there."""
    if len(numbers) < 2:
        return False
    share = sum(numbers.values()) / sum(weights.get(queue, 1) for queue in numbers)
    return any(n > FLOOD * share * weights.get(queue, 1) + FLOOD_JOBS for queue, n in numbers.items())
