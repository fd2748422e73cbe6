"""Workers killed in the middle of what they do: no job is lost, none is run once too often."""

from __future__ import annotations

import random
import time

import pytest
from apps import nap
from board import Board
from fleet import Fleet, Member, until, wait_out

JOBS = 5_000
EVERY_SECONDS = 2.0
HELD = 10  # what a worker has at least when it is killed
WAVE, WAVES = 72, 3  # jobs that become due together, and how often between two kills
HELD_AND_BEGUN = """
SELECT w.pid, count(*) AS held, count(e.run) AS begun
  FROM jobq.jobs j LEFT JOIN jobq.workers w ON w.id = j.worker_id
  LEFT JOIN effects e ON e.job_id = j.id AND e.attempt = j.attempt
 GROUP BY w.pid ORDER BY held DESC
"""
HISTORY = """
SELECT f.state, f.attempt, f.failures, f.max_attempts,
       (SELECT count(*) FROM jsonb_array_elements(f.errors) e WHERE e->>'error' = 'WorkerLost') AS rescues,
       jsonb_array_length(f.errors) AS errors,
       (SELECT array_agg(attempt ORDER BY attempt) FROM effects WHERE job_id = f.id) AS runs
  FROM jobq.finished_jobs f
"""


@pytest.mark.timeout(300)
def test_five_thousand_jobs_survive_a_fleet_whose_workers_are_killed_every_two_seconds(
    board: Board, fleet: Fleet
) -> None:
    seconds = random.Random(42)
    options = {"lease": 3, "concurrency": 16, "poll_interval": 0.5}
    fleet.start_many(4, **options)
    left = [{"seconds": seconds.uniform(0.005, 0.05)} for _ in range(JOBS)]
    kills = 0

    while left:
        began = time.monotonic()
        was_killed = False
        for _ in range(WAVES):
            wave, left = left[:WAVE], left[WAVE:]
            board.enqueue_many(nap, wave)
            was_killed = was_killed or kill_one_that_holds_jobs(board, fleet)
        if was_killed:
            kills += 1
            fleet.start(is_ready=False, **options)
        until(lambda began=began: time.monotonic() - began >= EVERY_SECONDS, "the next kill")
    until(lambda: board.one("SELECT count(*) FROM jobq.jobs") == 0, "the end of all jobs", within=60)

    ended = board.rows(HISTORY)
    rescues = sum(row.rescues for row in ended)
    print(f"\n{len(ended)} jobs, {kills} kills, {rescues} rescues of {sum(row.rescues > 0 for row in ended)} jobs")
    assert [row.state for row in ended] == ["done"] * JOBS
    assert kills >= 20
    assert rescues >= 200
    assert [row for row in ended if len(row.runs) > 1 + row.rescues] == []
    assert [row for row in ended if len(set(row.runs)) != len(row.runs) or row.runs[-1] != row.attempt] == []
    never_begun = sum(1 + row.rescues - len(row.runs) for row in ended)  # the claim was in flight at the kill
    assert never_begun < rescues / 10
    assert [row for row in ended if not row.failures == row.errors == row.rescues] == []


def kill_one_that_holds_jobs(board: Board, fleet: Fleet) -> bool:
    """Kill a worker at a moment when it holds many jobs and all of them have begun; False when the jobs ran out.

    It is stopped first, so that what it holds cannot change between the look and the kill.
    """
    living = fleet.living
    while found := [row for row in board.rows(HELD_AND_BEGUN) if row.pid in living or row.pid is None]:
        of_workers = [row for row in found if row.pid is not None]  # the others wait, some of them rescued
        for victim in [living[row.pid] for row in of_workers if row.held >= HELD and row.begun == row.held][:1]:
            victim.freeze()
            if is_to_be_killed(board, victim):
                victim.kill()
                return True
            victim.thaw()
    return False


def is_to_be_killed(board: Board, frozen: Member) -> bool:
    held = {row.pid: row for row in board.rows(HELD_AND_BEGUN)}.get(frozen.pid)
    return held is not None and held.held >= HELD and held.begun == held.held


def test_kills_at_any_moment_cost_each_job_no_more_than_its_rescues(board: Board, fleet: Fleet) -> None:
    moments = random.Random(7)
    options = {"lease": 1, "concurrency": 8, "poll_interval": 0.1}
    fleet.start_many(2, **options)
    jobs: list[int] = []
    for _ in range(12):
        jobs += board.enqueue_many(nap, [{"seconds": 0.02}] * 40)
        wait_out(moments.uniform(0, 0.4))
        victim = moments.choice(list(fleet.living.values()))
        victim.kill()  # while it starts, claims, runs, records or sleeps
        fleet.start(is_ready=False, **options)
    board.until_ended(jobs)

    ended = board.rows(HISTORY)
    rescues = sum(row.rescues for row in ended)
    print(f"\n{len(ended)} jobs, 12 kills, {rescues} rescues, {sum(len(row.runs) for row in ended)} runs")
    assert [row.state for row in ended] == ["done"] * len(jobs)
    # An attempt more than that is a job that was given back unbegun: by a worker too slow to come to it.
    assert [row for row in ended if not row.attempt - 1 >= row.failures == row.rescues] == []
    assert [row for row in ended if len(row.runs) > 1 + row.rescues] == []
    assert [row for row in ended if len(set(row.runs)) != len(row.runs) or row.runs[-1] != row.attempt] == []
