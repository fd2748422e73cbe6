"""What a worker has done and is doing, as plain numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from jobq.diagnosis import WorkerFacts

if TYPE_CHECKING:
    from jobq.worker.assembly import Assembly

LEAST_PATIENCE = timedelta(seconds=3)  # more than a failed claim waits before the next try


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """A snapshot. Counters count from the start of the process; one is never set back.

    refused: writes that the fence refused, since the job was taken from this worker meanwhile. lost: attempts stopped
    for that reason; cancelled: those of them that were cancelled by hand. left_behind: handlers that could not be
    stopped and still run. away_for: how long the database has been out of reach, None when it is not. reconciled: jobs
    given back whose claim's answer had been lost.
    not_given_back: what was held when leaving failed; a claim whose answer is not known counts as one. is_leader: this
    is the worker that cleans and sums up. loop_blocks: how often a handler has kept the event loop from turning for a
    second or more; longest_block of them.
    """

    worker_id: int | None
    name: str
    running: int
    held: int
    claims: int
    claimed: int
    ok: int
    fail: int
    skip: int
    retry: int
    dead: int
    snooze: int
    pause: int
    given_back: int
    not_given_back: int
    refused: int
    lost: int
    cancelled: int
    rescued: int
    reconciled: int
    left_behind: int
    leases_lost: int
    loop_blocks: int
    longest_block: timedelta
    is_leader: bool
    away_for: timedelta | None


@dataclass(slots=True)
class Counters:
    """The counters behind a snapshot. Written by the loop's thread only."""

    claims: int = 0
    claimed: int = 0
    ok: int = 0
    fail: int = 0
    skip: int = 0
    retry: int = 0
    dead: int = 0
    snooze: int = 0
    pause: int = 0
    given_back: int = 0
    not_given_back: int = 0
    refused: int = 0
    lost: int = 0
    cancelled: int = 0
    rescued: int = 0
    reconciled: int = 0
    leases_lost: int = 0

    def count(self, word: str, number: int = 1) -> None:
        """One more of a verdict's word: ok, fail, skip, retry, dead, snooze, pause."""
        setattr(self, word, getattr(self, word) + number)


def facts_of(assembly: Assembly, *, is_told_to_stop: bool, poll_interval: timedelta) -> WorkerFacts:
    """What a running worker's readiness depends on."""
    lease, claimer = assembly.lease, assembly.claimer
    return WorkerFacts(
        is_running=True,
        is_stopping=is_told_to_stop,
        lease_left=None if lease.worker_id is None else timedelta(seconds=lease.seconds_left),
        has_claimed=claimer.has_looked,
        behind_for=claimer.behind_for,
        patience=max(LEAST_PATIENCE, 3 * poll_interval),
    )


def snapshot(assembly: Assembly, name: str) -> WorkerStats:
    """The numbers of a worker at this moment."""
    return WorkerStats(
        worker_id=assembly.lease.worker_id,
        name=name,
        running=assembly.runner.running,
        held=len(assembly.held),
        left_behind=len(assembly.left_behind.ids),
        loop_blocks=assembly.loop_watch.blocks,
        longest_block=assembly.loop_watch.longest,
        is_leader=assembly.election.office is not None,
        away_for=assembly.link.away_for,
        **asdict(assembly.counters),
    )
