"""The end of a worker: by one signal, by two, and against handlers and servers that do not let it go."""

from __future__ import annotations

import signal

import pytest
from apps import hang_at_first, in_thread, long_at_first, nap, swallow
from board import Board
from fleet import Fleet, until

from jobq.model import State


def test_what_a_stopped_worker_gives_back_runs_elsewhere_within_a_second(board: Board, fleet: Fleet) -> None:
    grace = 1.0
    stopped = fleet.start(grace=grace, concurrency=10)
    held = board.enqueue_many(long_at_first, [{}] * 10)
    board.until_begun(held)
    other = fleet.start(poll_interval=30)  # only a notification can make it look in time
    until(lambda: board.sessions("query LIKE 'LISTEN%'") == 2, "both listening")

    told_at = board.one("SELECT clock_timestamp()")
    stopped.send(signal.SIGTERM)
    code = stopped.ends()
    board.until_ended(held)

    last = board.one("SELECT max(at) FROM effects WHERE attempt = 2")
    print(f"\n10 jobs given back; the last one began {(last - told_at).total_seconds() - grace:.3f} s after the grace")
    assert code == 0
    assert (last - told_at).total_seconds() < grace + 1
    assert {(row.state, row.failures, row.attempt) for row in board.ended(held)} == {("done", 0, 2)}
    assert {pid for job in held for attempt, pid in board.runs(job) if attempt == 2} == {other.pid}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_f29_a_second_signal_gives_back_at_once(board: Board, fleet: Fleet, number: signal.Signals) -> None:
    worker = fleet.start(grace=60)
    job = board.enqueue(long_at_first)
    board.until_begun([job])

    worker.send(number)
    worker.until_said("no more claims")
    later = board.enqueue(nap, seconds=0)
    assert worker.is_alive
    worker.send(number)
    code = worker.ends(within=2)

    assert code == 128 + number
    assert (board.job(job).state, board.job(job).failures) == (State.PENDING, 0)
    assert board.runs(later) == []
    assert "Traceback" not in worker.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_f29_an_idle_worker_ends_at_the_first_signal(fleet: Fleet, number: signal.Signals) -> None:
    worker = fleet.start()

    worker.send(number)

    assert worker.ends(within=2) == 0
    assert "Traceback" not in worker.said


def test_f30_a_handler_that_swallows_its_cancellation_does_not_keep_the_process(board: Board, fleet: Fleet) -> None:
    grace = 1.0
    worker = fleet.start(grace=grace)
    job = board.enqueue(swallow)
    board.until_begun([job])
    used = worker.cpu_seconds

    worker.send(signal.SIGTERM)
    used = worker.cpu_seconds_at_end(within=grace + 2) - used

    print(f"\n{used:.2f} s of CPU from the signal to the end")
    assert worker.ends() == 70
    assert (board.job(job).state, board.job(job).failures) == (State.PENDING, 0)
    assert used < 0.8


def test_f31_a_thread_that_does_not_end_does_not_keep_the_process(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(grace=1)
    job = board.enqueue(in_thread, seconds=60)
    board.until_begun([job])

    worker.send(signal.SIGTERM)

    assert worker.ends(within=3) == 70
    assert (board.job(job).state, board.job(job).failures) == (State.PENDING, 0)


def test_f46_a_locked_table_does_not_keep_the_process(board: Board, fleet: Fleet) -> None:
    grace = 1.0
    worker = fleet.start(grace=grace, poll_interval=0.05)
    job = board.enqueue(long_at_first)
    board.until_begun([job])

    with board.holding("LOCK TABLE jobq.jobs IN ACCESS EXCLUSIVE MODE"):
        until(lambda: board.sessions("wait_event_type = 'Lock'") > 0, "a claim that hangs")
        worker.send(signal.SIGTERM)
        code = worker.ends(within=grace + 2)

    assert code == 1  # whether the claim was made is not known: nothing is claimed to be given back
    assert "Traceback" not in worker.said
    assert board.job(job).failures == 0


def test_a6_a_worker_whose_loop_hangs_ends_itself_and_says_where(board: Board, fleet: Fleet) -> None:
    lease, stall = 2.0, 2.0
    hung = fleet.start(lease=lease, stall=stall)
    others = board.enqueue_many(long_at_first, [{}] * 10)
    board.until_begun(others)
    hanging = board.enqueue(hang_at_first)
    board.until_begun([hanging])

    other = fleet.start(lease=lease)
    board.until_begun([*others, hanging], attempt=2, within=stall + lease + 4)

    assert hung.ends() == 70
    assert "the event loop has not turned" in hung.said
    assert "in hang_at_first" in hung.said
    assert "jobq/worker/heartbeat.py" in hung.said
    board.until_ended([*others, hanging])
    assert {pid for job in others for attempt, pid in board.runs(job) if attempt == 2} == {other.pid}
