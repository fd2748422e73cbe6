"""Attack 2: workers stopped by SIGSTOP for longer than their lease, anywhere, and woken again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from arena import LEASE, RESCUED_SECONDS, TICKING, Arena
from fleet import AT_WORK, Member, until, wait_out
from rivals import rivals

REFUSED = "the lease was lost, another hand has the job"
WORN_OUT = "handlers left behind and still running"
FROZEN_SECONDS = LEASE + 1.0
LONGER_SECONDS = RESCUED_SECONDS + 1.0 - FROZEN_SECONDS  # in all it is long enough to see that a rescue is late
LONG = 3.0  # a second attempt: it runs when the first one wakes up


@dataclass
class Frozen:
    """A worker with one job, which it was stopped in."""

    member: Member
    jobs: list[int]


@dataclass
class LateWrites:
    """Four workers are stopped in a job past their lease, two of them inside of transaction(), and one before COMMIT.

    Another one is killed meanwhile. All wake up while the next attempts run.
    """

    arena: Arena
    frozen: list[Frozen] = field(default_factory=list)
    killed_jobs: list[int] = field(default_factory=list)

    def run(self) -> list[str]:
        """The violations."""
        blocked = [self._start(f"block{n}") for n in range(2)]
        inside = [self._start(f"book{n}", point="inside the transaction", how="SIGSTOP") for n in range(2)]
        committing = self._start("commit", point="before the COMMIT", how="SIGSTOP")
        loser = self._start("loser")
        for member in [*blocked, *inside, committing, loser]:
            member.until_said(AT_WORK)
        self.frozen = [
            *(self._stop(member, "block", f"block{n}", seconds=2.0) for n, member in enumerate(blocked)),
            *(self._stopped(member, f"book{n}") for n, member in enumerate(inside)),
        ]
        last = self._stopped(committing, "commit")
        on_time = self._kill(loser)
        self._wake([*self.frozen, last], while_others_run=on_time)
        has_ended = self.arena.all_end([job for each in [*self.frozen, last] for job in each.jobs])
        return self.arena.violations(is_on_time=on_time and has_ended)

    def _start(self, queue: str, **point: str) -> Member:
        return self.arena.start(queues=queue, concurrency=1, is_ready=False, **point)

    def _stop(self, member: Member, kind: str, queue: str, **args: float) -> Frozen:
        jobs = self.arena.enqueue(kind, 1, queue, again=LONG, **args)
        self.arena.until_begun(jobs)
        self.arena.freeze(member)
        return Frozen(member, jobs)

    def _stopped(self, member: Member, queue: str) -> Frozen:
        """It stops itself."""
        kind = "plain_book" if queue == "book1" else "book"
        jobs = self.arena.enqueue(kind, 1, queue, seconds=0, again=LONG)
        member.until_frozen()
        self.arena.note(member, "frozen")
        return Frozen(member, jobs)

    def _kill(self, loser: Member) -> bool:
        """Whether what it held was claimed by another one in time, while all the others stand still."""
        self.killed_jobs = self.arena.enqueue("work", 1, "loser", seconds=60, again=0)
        self.arena.until_begun(self.killed_jobs)
        self.arena.start(queues="block0,block1,book0,book1,loser")
        self.arena.kill(loser)
        return self.arena.all_end(self.killed_jobs, within=RESCUED_SECONDS + 1)

    def _wake(self, frozen: Sequence[Frozen], *, while_others_run: bool) -> None:
        """While the second attempt runs, of all that could be taken away."""
        if while_others_run:
            self.arena.until_begun([job for each in self.frozen for job in each.jobs], attempt=2)
        for each in frozen:
            self.arena.thaw(each.member)

    def counted(self) -> list[tuple[int, int]]:
        """Of each worker that was late: how many writes it counts as refused, how many attempts as lost.

        A handler that blocks the loop has ended before the loss is seen: its end is written, and refused. One inside of
        transaction() is stopped, or its completion is refused, and nothing else is written: it is lost. Or it
        has failed before anybody knew of the loss: that is written, and refused.
        """
        stats = [each.member.stats() for each in self.frozen]
        return [(each["refused"], each["lost"]) for each in stats]

    def said(self) -> list[int]:
        """How many refused writes each says."""
        return [each.member.count(REFUSED) for each in self.frozen]


@dataclass
class Freezing:
    """Stop two of four workers past their lease, again and again, under load; in a round of four one of them longer."""

    arena: Arena
    rounds: int
    jobs: int
    moments: random.Random = field(default_factory=lambda: random.Random(5))
    worn_out: int = 0

    def run(self) -> list[Member]:
        """The workers that were stopped, those that live; all jobs have ended."""
        members = [self._start(is_ready=False) for _ in range(4)]
        for member in members:
            member.until_said(AT_WORK)
        jobs: list[int] = []
        with rivals(self.arena):
            for n in range(self.rounds):
                jobs += self._load(self.jobs // self.rounds)
                wait_out(self.moments.uniform(0, 0.6))
                members = [self._replaced(member) for member in members]
                self._stop(self.moments.sample(members[1:], 2), longer=n % 4 == 0)
        assert self.arena.all_end(within=RESCUED_SECONDS + 30 + len(jobs) / 100), "some jobs do not end"
        return [member for member in members[1:] if member.is_alive]

    def _stop(self, chosen: Sequence[Member], *, longer: bool) -> None:
        for member in chosen:
            self.arena.freeze(member)
        wait_out(FROZEN_SECONDS)
        self.arena.thaw(chosen[0])
        wait_out(LONGER_SECONDS if longer else 0)
        self.arena.thaw(chosen[1])

    def _replaced(self, member: Member) -> Member:
        """As a supervisor does, where a worker has ended since too many of its threads could not be stopped in time."""
        if member.is_alive:
            return member
        assert WORN_OUT in member.said, member.said
        self.worn_out += 1
        return self._start()

    def _start(self, **options: Any) -> Member:
        return self.arena.start(concurrency=8, env=TICKING, **options)

    def _load(self, number: int) -> list[int]:
        found = self.arena.enqueue_limited(max(1, number // 80), round(self.moments.uniform(0, 0.1), 3))
        for kind in ("work", "block", "plain", "book"):
            most = 0.1 if kind == "block" else 0.5
            for _ in range(4):
                seconds = round(self.moments.uniform(0, most), 3)
                found += self.arena.enqueue(kind, max(1, number // 16), seconds=seconds)
        return found


def refused(members: Sequence[Member]) -> int:
    """How many writes these have counted as refused."""
    until(lambda: all(member.count(AT_WORK) for member in members), "them at work")
    return sum(int(member.stats()["refused"]) for member in members)
