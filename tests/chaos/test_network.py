"""What lies between worker and server loses answers, holds things up, or swallows everything."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from apps import long_at_first, nap
from board import Board
from fleet import Fleet, until
from proxy import Fate, Proxy, is_claim_of, proxy_to

from jobq.model import State

CUTS = 40


@pytest.fixture
def proxy(board: Board) -> Iterator[Proxy]:
    with proxy_to(board.url) as proxy:
        yield proxy


def test_a1_a_claim_whose_answer_is_lost_costs_its_jobs_nothing(board: Board, fleet: Fleet, proxy: Proxy) -> None:
    cuts = 0
    is_due = False

    def lose_the_first_answer(data: bytes) -> Fate:
        nonlocal cuts, is_due
        if not is_due or not is_claim_of("nap", data):
            return Fate.PASS
        cuts, is_due = cuts + 1, False
        return Fate.CUT

    proxy.on_reply = lose_the_first_answer
    worker = fleet.start(url=proxy.url, poll_interval=0.2)
    jobs: list[int] = []
    for _ in range(CUTS):
        is_due = True
        some = board.enqueue_many(nap, [{"seconds": 0}] * 3)
        board.until_ended(some, within=5)
        jobs += some

    reconciled = worker.stats()["reconciled"]
    print(f"\n{cuts} answers lost, {reconciled} jobs given back, {len(jobs)} jobs done")
    assert cuts == CUTS
    assert reconciled >= CUTS
    assert set(board.runs_of(jobs).values()) == {1}
    assert {(row.state, row.failures) for row in board.ended(jobs)} == {("done", 0)}
    assert worker.is_alive


def test_a3_a_claim_that_commits_after_its_worker_was_told_to_stop_strands_no_job(
    board: Board, fleet: Fleet, proxy: Proxy
) -> None:
    jobs = board.enqueue_many(nap, [{"seconds": 0}] * 5)
    proxy.on_reply = lambda data: Fate.HOLD if is_claim_of("nap", data) and not proxy.held.is_set() else Fate.PASS
    stopped = fleet.start(url=proxy.url, grace=1)
    assert proxy.held.wait(10)
    assert {board.job(job).state for job in jobs} == {State.RUNNING}
    other = fleet.start(poll_interval=30)

    stopped.send(signal.SIGTERM)
    board.until_ended(jobs, within=2)

    assert stopped.ends(within=5) == 0
    assert {board.runs(job)[0][1] for job in jobs} == {other.pid}
    assert {(row.state, row.failures) for row in board.ended(jobs)} == {("done", 0)}


def test_a3_a_claim_that_arrives_after_its_worker_has_left_takes_nothing(
    board: Board, fleet: Fleet, proxy: Proxy
) -> None:
    jobs = board.enqueue_many(nap, [{"seconds": 0}] * 5)
    proxy.on_request = lambda data: Fate.HOLD if b"KEY SHARE" in data and not proxy.held.is_set() else Fate.PASS
    stopped = fleet.start(url=proxy.url, grace=1)
    assert proxy.held.wait(10)

    stopped.send(signal.SIGTERM)
    assert stopped.ends(within=5) == 0
    proxy.release()
    until(lambda: board.sessions() == 0, "the end of the late claim")

    assert {(board.job(job).state, board.job(job).attempt) for job in jobs} == {(State.PENDING, 0)}
    assert board.rows("SELECT FROM jobq.workers") == []


def test_a_network_that_swallows_everything_costs_the_lease_and_nothing_else(
    board: Board, fleet: Fleet, proxy: Proxy
) -> None:
    quick = {"lease": 2, "poll_interval": 0.2}
    cut_off = fleet.start(url=proxy.url, **quick)
    jobs = board.enqueue_many(long_at_first, [{}] * 3)
    board.until_begun(jobs)
    other = fleet.start(**quick)

    proxy.swallow()
    used = cut_off.cpu_seconds
    board.until_ended(jobs)
    cut_off.until_said("lease lost")
    until(lambda: cut_off.stats()["lost"] == 3, "its jobs being stopped")
    assert cut_off.cpu_seconds - used < 1
    proxy.heal()
    other.kill()
    later = board.enqueue(nap, seconds=0)
    board.until_state(later, State.DONE)

    assert {board.runs(job)[-1] for job in jobs} == {(2, other.pid)}
    assert board.runs(later) == [(1, cut_off.pid)]
    assert {(row.state, row.failures) for row in board.ended(jobs)} == {("done", 1)}


def test_f46_a_server_that_does_not_answer_does_not_keep_the_process(board: Board, fleet: Fleet, proxy: Proxy) -> None:
    grace = 1.0
    worker = fleet.start(url=proxy.url, grace=grace, poll_interval=0.1)
    job = board.enqueue(long_at_first)
    board.until_begun([job])

    proxy.swallow()
    assert proxy.has_swallowed.wait(10)  # a claim
    told_at = worker.send(signal.SIGTERM)
    code = worker.ends(within=grace + 3)
    print(f"\nended {time.monotonic() - told_at - grace:.2f} s after the grace")

    assert code == 1  # what it held could not be given back
    assert "Traceback" not in worker.said
    assert board.job(job).failures == 0
