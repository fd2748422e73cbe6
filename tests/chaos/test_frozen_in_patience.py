"""Workers stopped by SIGSTOP for longer than a handler has that was told to stop: it had no time to, and gets it."""

from __future__ import annotations

import signal

import pytest
from board import Board
from fleet import Fleet, Member, wait_out
from patience_apps import OVERDUE, attentive, in_loop, in_loop_for_long, in_thread, in_thread_for_long

import jobq
from jobq.model import State
from jobq.worker import shutdown, stopper

LONGER_SECONDS = max(stopper.PATIENCE_SECONDS, shutdown.STOP_SECONDS) + 0.5
APP = {"app": "patience_apps:app", "max_left_behind": 0}
LEFT_BEHIND = "left behind"


@pytest.mark.parametrize("kind", [in_thread, in_loop], ids=["thread", "loop"])
def test_a_handler_told_to_stop_before_its_worker_stood_still_is_not_left_behind(
    board: Board, fleet: Fleet, kind: jobq.Kind[[]]
) -> None:
    worker = fleet.start(**APP)
    job = board.enqueue(kind)
    stand_still(worker)

    assert [failure.error for failure in board.until_state(job, State.DEAD).errors] == ["TimeoutError"]
    assert worker.stats()["left_behind"] == 0
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert LEFT_BEHIND not in worker.said


@pytest.mark.parametrize("kind", [in_thread_for_long, in_loop_for_long], ids=["thread", "loop"])
def test_a_handler_of_a_worker_that_stood_still_while_it_ended_may_end_and_its_job_is_given_back(
    board: Board, fleet: Fleet, kind: jobq.Kind[[]]
) -> None:
    worker = fleet.start(grace=0, **APP)
    job = board.enqueue(kind)
    board.until_begun([job])
    worker.send(signal.SIGTERM)
    stand_still(worker)

    assert worker.ends() == 0
    assert (board.job(job).state, board.job(job).failures) == (State.PENDING, 0)
    assert LEFT_BEHIND not in worker.said


def test_a_worker_that_stood_still_past_the_timeout_of_a_job_does_not_take_its_loop_for_stuck(
    board: Board, fleet: Fleet
) -> None:
    worker = fleet.start(lease=12, env={OVERDUE: "1.5"}, **APP)
    job = board.enqueue(attentive)
    board.until_begun([job])
    worker.freeze()
    wait_out(5)  # past its timeout by more than that, and past the pause of the heartbeat, which looks at it at once
    worker.thaw()

    assert [failure.error for failure in board.until_state(job, State.DEAD).errors] == ["TimeoutError"]
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0


def stand_still(worker: Member) -> None:
    """Once a handler has stopped its process, let more time pass than it has."""
    worker.until_frozen()
    wait_out(LONGER_SECONDS)
    worker.thaw()
