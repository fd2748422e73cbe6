"""What a measure gives: figures, and what they have to be. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

WORSE = 1.10  # a tenth worse than before is marked


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit ("x" is a ratio). `must` and `aim` None: it only informs. `samples`: one of each round."""

    measure: str
    name: str
    samples: tuple[float, ...]
    unit: str
    must: float | None = None
    aim: float | None = None
    more_is_better: bool = True

    @property
    def value(self) -> float:
        return median(self.samples)

    @property
    def key(self) -> str:
        """What it is found by in the figures of another run."""
        return f"{self.measure}: {self.name}"

    @property
    def is_missed(self) -> bool:
        """Whether it is not what it must be."""
        if self.must is None:
            return False
        return self.value < self.must if self.more_is_better else self.value > self.must


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure beside that of an earlier run. `ratio` None: that run has it not, or has it as 0."""

    figure: Figure
    before: float | None
    ratio: float | None

    @property
    def is_worse(self) -> bool:
        """By more than a tenth."""
        if self.ratio is None:
            return False
        return self.ratio < 1 / WORSE if self.figure.more_is_better else self.ratio > WORSE


def compared(figures: Sequence[Figure], before: Mapping[str, float]) -> list[Compared]:
    """Each figure with what it was."""
    found = []
    for figure in figures:
        old = before.get(figure.key)
        found.append(Compared(figure, old, figure.value / old if old else None))
    return found


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, ...]:
    """Round by round."""
    return tuple(one / other for one, other in zip(over, under, strict=True))


def as_json(figure: Figure) -> dict[str, Any]:
    """A figure as the file has it."""
    return {
        "measure": figure.measure, "name": figure.name, "value": figure.value, "unit": figure.unit,
        "must": figure.must, "aim": figure.aim, "more_is_better": figure.more_is_better,
        "samples": list(figure.samples), "missed": figure.is_missed,
    }  # fmt: skip


def read(document: Any) -> dict[str, float]:
    """The values of an earlier run, by their keys. Raises: ValueError, when it is not such a document."""
    try:
        return {f"{each['measure']}: {each['name']}": float(each["value"]) for each in document["figures"]}
    except (TypeError, KeyError, ValueError):
        raise ValueError("it is not what `jobq bench --json FILE` writes") from None
