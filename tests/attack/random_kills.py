"""Attack 1 at random: SIGKILL of workers under load."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from arena import RESCUED_SECONDS, TICKING, Arena
from fleet import AT_WORK, Member, until, wait_out
from rivals import rivals

WAVE = 60  # jobs that are enqueued together
KINDS = {"work": 12, "book": 4, "plain": 2, "fail": 1, "once": 1}  # in 20


@dataclass
class Killing:
    """So many kills, so long apart on the average, and `jobs` in all, evenly between them; sooner where too few wait.

    One worker is never killed: who would there be else, to be on time?
    """

    arena: Arena
    kills: int
    mean_seconds: float
    jobs: int
    members: int = 3
    moments: random.Random = field(default_factory=lambda: random.Random(11))
    options: dict[str, Any] = field(default_factory=lambda: {"concurrency": 16, "env": TICKING})

    def run(self) -> list[int]:
        """The jobs that were enqueued, all of which have ended."""
        steady = self.arena.start(is_ready=False, **self.options)
        victims = [self.arena.start(is_ready=False, **self.options) for _ in range(self.members)]
        steady.until_said(AT_WORK)
        with rivals(self.arena):
            jobs = self._kill_all(victims)
        assert self.arena.all_end(within=RESCUED_SECONDS + 30 + len(jobs) / 200), "some jobs do not end"
        return jobs

    def _kill_all(self, victims: list[Member]) -> list[int]:
        """One after the other, each with its successor; the jobs that were enqueued meanwhile."""
        jobs: list[int] = []
        for n in range(self.kills):
            jobs += self._load(len(jobs), due=self.jobs * (n + 1) // self.kills)
            wait_out(self.moments.uniform(0, 2 * self.mean_seconds))
            victim = self._choose(victims)
            self.arena.kill(victim)
            victims.remove(victim)
            victims.append(self.arena.start(is_ready=False, **self.options))
        return jobs

    def _load(self, so_far: int, due: int) -> list[int]:
        """What is due by now, however slow the machine is; more, if else there were no work until the next kill."""
        most = min(self.jobs - so_far, self.jobs // self.kills * 2)
        waiting = self.arena.board.one("SELECT count(*) FROM jobq.jobs WHERE worker_id IS NULL")
        number = max(due - so_far, most if waiting < most else 0)
        jobs: list[int] = []
        for start in range(0, number, WAVE):
            jobs += self._wave(min(WAVE, number - start))
        return jobs

    def _wave(self, number: int) -> list[int]:
        found = self.arena.enqueue_limited(1, round(self.moments.uniform(0, 0.1), 3))
        for kind, share in KINDS.items():
            args = {} if kind == "fail" else {"seconds": round(self.moments.uniform(0, 0.4), 3)}
            found += self.arena.enqueue(kind, max(1, number * share // 20), **args)
        return found

    def _choose(self, victims: list[Member]) -> Member:
        """One that is at work; each other one in ten while it still starts."""
        awake = [victim for victim in victims if victim.count(AT_WORK)]
        if not awake and self.moments.random() < 0.9:
            until(lambda: any(victim.count(AT_WORK) for victim in victims), "a worker at work")
            return self._choose(victims)
        return self.moments.choice(awake or victims)
