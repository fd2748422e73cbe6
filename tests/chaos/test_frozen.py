"""Workers stopped by SIGSTOP until their lease has run out, and woken again."""

from __future__ import annotations

from apps import block_at_first, book, long_at_first, nap
from board import Board
from fleet import Fleet, Member, until

from jobq.model import State

REFUSED = "the lease was lost, another hand has the job"
QUICK = {"lease": 2, "poll_interval": 0.2}
SOON_LOST = """
    INSERT INTO jobq.workers (id, name, kinds, lease, lease_until)
    VALUES (1, 'lost', '{}', '1 ms', now() + interval '1 s')
"""


def test_f25_a_job_that_another_worker_has_ended_stays_as_that_one_left_it(board: Board, fleet: Fleet) -> None:
    frozen = fleet.start(**QUICK)
    job = board.enqueue(block_at_first, seconds=2, then=0, fails=True)
    board.until_begun([job])
    frozen.freeze()
    other = fleet.start(**QUICK)
    board.until_state(job, State.DONE)
    taker = board.worker_of(other)

    frozen.thaw()
    until_refused(frozen)

    ended = board.job(job)
    assert (ended.state, ended.attempt, ended.worker_id, ended.failures) == (State.DONE, 2, taker, 1)
    assert [failure.error for failure in ended.errors] == ["WorkerLost"]
    assert board.runs(job) == [(1, frozen.pid), (2, other.pid)]
    assert_goes_on_working(board, frozen, other)


def test_f25_a_job_that_another_worker_still_runs_is_left_to_it(board: Board, fleet: Fleet) -> None:
    frozen = fleet.start(**QUICK)
    job = board.enqueue(block_at_first, seconds=2, then=3, fails=False)
    board.until_begun([job])
    frozen.freeze()
    other = fleet.start(**QUICK)
    board.until_begun([job], attempt=2)
    taker = board.worker_of(other)

    frozen.thaw()
    until_refused(frozen)

    running = board.job(job)
    assert (running.state, running.attempt, running.worker_id) == (State.RUNNING, 2, taker)
    ended = board.until_state(job, State.DONE)
    assert (ended.attempt, ended.worker_id, ended.outcome) == (2, taker, "ok: later")
    assert_goes_on_working(board, frozen, other)


def test_f25_a_job_that_the_same_process_has_claimed_anew_is_not_ended_by_its_former_attempt(
    board: Board, fleet: Fleet
) -> None:
    worker = fleet.start(**QUICK)
    former = board.worker_of(worker)
    fleet.start(queues="another", **QUICK)  # it rescues, and does not serve this queue
    job = board.enqueue(block_at_first, seconds=2, then=0, fails=False)
    board.until_begun([job])
    worker.freeze()
    board.until_state(job, State.PENDING)

    with board.holding("LOCK TABLE jobq.finished_jobs IN SHARE MODE"):  # the former attempt's end has to wait
        worker.thaw()
        board.until_begun([job], attempt=2)
        assert board.worker_of(worker) != former
    until_refused(worker)

    ended = board.until_state(job, State.DONE)
    assert (ended.attempt, ended.worker_id, ended.outcome) == (2, board.worker_of(worker), "ok: later")
    assert [failure.error for failure in ended.errors] == ["WorkerLost"]
    assert board.runs(job) == [(1, worker.pid), (2, worker.pid)]
    assert worker.stats()["refused"] == worker.count(REFUSED) == 1


def test_a2_a_worker_frozen_before_its_commit_does_not_keep_others_from_being_rescued(
    board: Board, fleet: Fleet
) -> None:
    lease = 2.0
    frozen = fleet.start(**QUICK)
    booked = board.enqueue(book, at_first="freeze")
    frozen.until_frozen()
    killed = fleet.start(concurrency=10, **QUICK)
    lost = board.enqueue_many(long_at_first, [{}] * 10)
    board.until_begun(lost)
    fleet.start(**QUICK)

    killed.kill()
    board.until_begun(lost, attempt=2, within=lease + 2)

    assert board.job(booked).attempt == 1
    frozen.thaw()
    board.until_ended([booked, *lost])
    assert board.job(booked).state is State.DONE
    assert board.one("SELECT count(*) FROM books") == 1


def test_f27_a_worker_frozen_in_the_middle_of_a_rescue_does_not_keep_others_from_theirs(
    board: Board, fleet: Fleet
) -> None:
    lease = 2.0
    frozen = fleet.start(**QUICK)
    job = board.enqueue(long_at_first)
    board.until_begun([job])
    in_the_middle = "query LIKE 'DELETE FROM jobq.workers%' AND wait_event_type = 'Lock'"
    board.rows(SOON_LOST)
    with board.holding("LOCK TABLE jobq.workers IN SHARE MODE"):  # which may be read
        until(lambda: board.sessions(in_the_middle) == 1, "a rescue that waits")
        frozen.freeze()

    other = fleet.start(**QUICK)
    board.until_begun([job], attempt=2, within=lease + 2)

    assert board.runs(job) == [(1, frozen.pid), (2, other.pid)]


def until_refused(woken: Member) -> None:
    """Wait until its one late write has been refused, counted and said."""
    woken.until_said(REFUSED)
    assert woken.stats()["refused"] == woken.count(REFUSED) == 1


def assert_goes_on_working(board: Board, woken: Member, other: Member) -> None:
    other.kill()
    later = board.enqueue(nap, seconds=0)
    board.until_state(later, State.DONE)
    assert board.runs(later) == [(1, woken.pid)]
    assert woken.stats()["leases_lost"] == 1
