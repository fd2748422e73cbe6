"""A service of forty queues, one job at a time each, whose workers are killed every few seconds."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from apps import nap
from board import Board
from fifo_apps import QUEUES
from fleet import Fleet, wait_out

import jobq

PER_QUEUE = 40
EVERY_SECONDS = 3.0
MOST_CONNECTIONS = 6  # of jobq's own, in each worker
OPTIONS = {"app": "fifo_apps:app", "lease": 2, "concurrency": 40, "poll_interval": 0.5}
CONNECTIONS = """
SELECT split_part(application_name, ' ', 2) AS worker, count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE 'jobq %' GROUP BY 1
"""
STARTS = "SELECT job_id, pid FROM effects WHERE job_id = ANY(:ids) ORDER BY at"
RESCUES = """
SELECT id, failures, state,
       (SELECT count(*) FROM jsonb_array_elements(errors) e WHERE e->>'error' = 'WorkerLost') AS times
  FROM jobq.finished_jobs
"""
RUNNING = "SELECT queue, count(*) FROM jobq.jobs WHERE worker_id IS NOT NULL GROUP BY queue HAVING count(*) > 1"


@pytest.mark.timeout(300)
def test_forty_fifo_queues_keep_their_order_while_workers_are_killed(board: Board, fleet: Fleet) -> None:
    fleet.start_many(2, **OPTIONS)
    jobs = enqueue(board, random.Random(40))
    connections: Counter[str] = Counter()
    killed: set[int] = set()
    victims = random.Random(3)
    began = time.monotonic()

    while board.one("SELECT count(*) FROM jobq.jobs"):
        assert board.rows(RUNNING) == []
        for row in board.rows(CONNECTIONS):
            connections[row.worker] = max(connections[row.worker], row.count)
        if time.monotonic() - began >= EVERY_SECONDS:
            began = time.monotonic()
            victim = victims.choice(list(fleet.living.values()))
            victim.kill()
            killed.add(victim.pid)
            fleet.start(is_ready=False, **OPTIONS)
        wait_out(0.05)

    rescued = {row.id: row.times for row in board.rows(RESCUES)}
    print(
        f"\n{len(rescued)} jobs, {len(killed)} kills, {sum(rescued.values())} rescues, most connections {connections}"
    )
    assert len(killed) >= 4
    assert sum(rescued.values()) >= 20
    assert {(row.state, row.failures - row.times) for row in board.rows(RESCUES)} == {("done", 0)}
    assert max(connections.values()) <= MOST_CONNECTIONS
    for queue, ids in jobs.items():
        starts = [(row.job_id, row.pid) for row in board.rows(STARTS, ids=ids)]
        assert in_order(starts, killed) == ids, queue
        assert all(times <= 1 + rescued[id_] for id_, times in Counter(id_ for id_, _ in starts).items())


def enqueue(board: Board, seconds: random.Random) -> dict[str, list[int]]:
    """The jobs of each queue; all queues grow together."""
    jobs: dict[str, list[int]] = {queue: [] for queue in QUEUES}
    with board.engine.begin() as connection:
        for _ in range(PER_QUEUE):
            for queue, ids in jobs.items():
                job = jobq.enqueue(connection, nap.options(queue=queue), seconds.uniform(0.05, 0.4))
                ids.append(job.id)
    return jobs


def in_order(starts: list[tuple[int, int]], killed: set[int]) -> list[int]:
    """The jobs started, without the direct repetitions of those whose worker was killed."""
    kept: list[tuple[int, int]] = []
    for id_, pid in starts:
        if kept and kept[-1][0] == id_ and kept[-1][1] in killed:
            kept.pop()
        kept.append((id_, pid))
    return [id_ for id_, _ in kept]
