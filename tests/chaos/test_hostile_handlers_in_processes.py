"""Handlers that do something to the whole process of their worker: it lives on, or ends with a code and in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

import psutil
import pytest
from apps import in_thread
from board import Board
from fleet import HERE, Fleet, Member, until
from hostile_apps import act_in_loop, act_in_thread, fine

import jobq
from jobq.model import State

APP = "hostile_apps:app"
IN: dict[str, jobq.Handler[Any, Any]] = {"loop": act_in_loop, "thread": act_in_thread}
DEATHS = [
    pytest.param("loop", "exit", 7, id="os._exit in the loop"),
    pytest.param("thread", "abort", -signal.SIGABRT, id="os.abort in a thread"),
    pytest.param("thread", "close_descriptors", 1, id="every descriptor closed in a thread"),
    pytest.param("loop", "hold_the_lock", 1, id="the interpreter's lock held"),
]


def copies_of(worker: Member) -> list[psutil.Process]:
    """Processes that were forked there and run; dead ones are for the handler to wait for."""
    found = psutil.Process(worker.pid).children()
    return [each for each in found if each.status() != psutil.STATUS_ZOMBIE]


def ends_in(board: Board, job: int, state: State, worker: Member) -> jobq.Job:
    return until(
        lambda: found if (found := board.job(job)).state is state else None, f"job {job} being {state}", also=worker
    )


def test_a_worker_lives_on_whatever_its_handlers_do_to_their_process(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(app=APP)
    me = f"ok: {worker.pid}"

    for where, act in (("loop", "fork"), ("thread", "fork"), ("thread", "close_streams")):
        job = ends_in(board, board.enqueue(IN[where], act), State.DONE, worker)
        assert (where, act, job.outcome, job.attempt) == (where, act, me, 1)
    until(lambda: not copies_of(worker), "the end of the copies", also=worker)

    greedy = board.enqueue(act_in_thread.options(max_attempts=1), "take_descriptors")
    assert "Too many open files" in str(ends_in(board, greedy, State.DEAD, worker).outcome)
    assert ends_in(board, board.enqueue(fine), State.DONE, worker).outcome == me
    ends_in(board, board.enqueue(act_in_thread, "give_descriptors_back"), State.DONE, worker)

    ends_in(board, board.enqueue(act_in_loop, "take_signals"), State.DONE, worker)
    worker.until_said("SIGTERM was taken over by a handler")
    worker.until_said("SIGINT was taken over by a handler")
    assert ends_in(board, board.enqueue(fine), State.DONE, worker).outcome == me
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert "worker left" in worker.said  # also after a handler has closed its stderr


@pytest.mark.parametrize(("where", "act", "code"), DEATHS)
def test_f14_a_worker_that_its_handler_ends_is_rescued_by_another(
    board: Board, fleet: Fleet, where: str, act: str, code: int
) -> None:
    lease = 1.0
    hit = fleet.start(app=APP, lease=lease, stall=2)
    job = board.enqueue(IN[where], act)
    assert hit.ends() == code

    other = fleet.start(app=APP, lease=lease)
    done = board.until_state(job, State.DONE)

    assert (done.outcome, done.attempt, done.failures) == (f"ok: {other.pid}", 2, 1)
    if act in ("abort", "hold_the_lock"):
        assert "hostile_apps.py" in hit.said  # where it was


@pytest.mark.parametrize("act", ["start_a_thread", "block_atexit", "leave_a_task"])
def test_f31_what_handlers_leave_to_the_end_of_the_interpreter_does_not_keep_the_process(
    board: Board, fleet: Fleet, act: str
) -> None:
    worker = fleet.start(app=APP)
    ends_in(board, board.enqueue(act_in_loop, act), State.DONE, worker)

    worker.send(signal.SIGTERM)

    assert worker.ends(within=8) == 70
    assert "left behind, still running: the main thread" in worker.said
    assert "worker left" in worker.said


def test_f31_a_worker_with_too_many_handlers_left_behind_ends_by_itself_with_70(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(max_left_behind=0, grace=1)
    job = board.enqueue(in_thread.options(timeout=timedelta(seconds=0.1), max_attempts=1), seconds=60)

    assert worker.ends() == 70
    assert "handlers left behind and still running: 1, more than max_left_behind (0): the worker ends" in worker.said
    assert board.job(job).state is State.DEAD


def test_a6_a_log_that_nobody_reads_does_not_keep_a_process_whose_loop_it_blocks(board: Board) -> None:
    environment = {
        **os.environ,
        "JOBQ_DATABASE_URL": board.url,
        "CHAOS_LEDGER_URL": board.url.replace("+psycopg", ""),
        "CHAOS_STATS": os.devnull,
    }
    command = [sys.executable, "process.py", "run", APP, "--lease=1", "--stall=2"]
    with subprocess.Popen(command, cwd=HERE, env=environment, stderr=subprocess.PIPE) as process:
        try:
            job = board.enqueue(act_in_loop, "flood_the_log")
            board.until_begun([job])
            assert process.wait(20) == 70
        finally:
            process.kill()
