"""How long the demo's handlers take, and which of them fail: the same for the same seed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

SEED, FACTOR = "JOBQ_DEMO_SEED", "JOBQ_DEMO_FACTOR"
USUAL_JOBS = 300  # so many take about a quarter of a minute; more are done faster, each


@dataclass(frozen=True, slots=True)
class Pace:
    """A job's chances hang on the seed and its own id, whichever worker runs it and however often."""

    seed: int = 1
    factor: float = 1.0

    @classmethod
    def of(cls, jobs: int, seed: int) -> Pace:
        return cls(seed, min(1.0, USUAL_JOBS / jobs))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Pace:
        return cls(int(environment.get(SEED, "1")), float(environment.get(FACTOR, "1")))

    def environment(self) -> dict[str, str]:
        return {SEED: str(self.seed), FACTOR: str(self.factor)}

    def seconds(self, job_id: int, least: float, most: float) -> float:
        return self._chance(job_id, "time").uniform(least, most) * self.factor

    def failures(self, job_id: int) -> int:
        """How often an unreliable service fails before it answers."""
        return self._chance(job_id, "failures").choice((0, 0, 1, 1, 2))

    def is_fresh(self, job_id: int) -> bool:
        """Whether there is nothing to do."""
        return self._chance(job_id, "fresh").random() < 0.15

    def _chance(self, job_id: int, what: str) -> Random:
        return Random(f"{self.seed} {job_id} {what}")
