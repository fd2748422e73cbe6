"""Whether what was measured over a while is flat. Values in, verdict out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What was measured at one moment, in seconds: by its name, such as "worker 1: memory"."""

    at: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class Limit:
    """By how much a series may grow over the whole time: so much, or this share of where it began."""

    much: float
    share: float = 0.0


# By the last word of the name.
LIMITS = {
    "memory": Limit(16 * MIB),
    "threads": Limit(2),
    "descriptors": Limit(4),
    "connections": Limit(2),
    "size": Limit(MIB, share=0.5),
}


def growing(samples: Sequence[Sample], *, warm_up: float) -> dict[str, float]:
    """What grows more than it may, and by how much. `warm_up`: seconds from the first sample that do not count.

    Raises: ValueError, for fewer than nine samples: they would say nothing.
    """
    counted = [sample for sample in samples if sample.at >= samples[0].at + warm_up]
    if len(counted) < 9:
        raise ValueError(f"{len(counted)} samples after {warm_up} s of warming up: at least nine are needed")
    found = {name: growth(counted, name) for name in counted[0].values}
    return {name: much for name, much in found.items() if much > allowed(name, counted)}


def growth(samples: Sequence[Sample], name: str) -> float:
    """By how much a series has grown, from the medians of its first and last third: they are two thirds apart.

    Neither an outlier nor the teeth of a table that is vacuumed again and again is growth.
    """
    begin, end = _level(samples[: len(samples) // 3], name), _level(samples[-(len(samples) // 3) :], name)
    return (end - begin) * 1.5


def allowed(name: str, samples: Sequence[Sample]) -> float:
    """By how much it may grow."""
    limit = LIMITS[name.rsplit(" ", 1)[-1]]
    return max(limit.much, _level(samples[: len(samples) // 3], name) * limit.share)


def _level(samples: Sequence[Sample], name: str) -> float:
    return median(sample.values[name] for sample in samples)
