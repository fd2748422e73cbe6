"""Workers that die in the middle of a job, and what becomes of it."""

from __future__ import annotations

from datetime import timedelta

from apps import book, die, long_at_first
from board import Board
from fleet import Fleet, until

from jobq.model import State

QUICK = {"lease": 1, "poll_interval": 0.2}


def test_f14_a_job_that_kills_its_worker_is_started_as_often_as_it_may_be(board: Board, fleet: Fleet) -> None:
    thrice = board.enqueue(die.options(max_attempts=3))
    once = board.enqueue(die.options(max_attempts=1, delay=timedelta(seconds=1)))

    deaths = 0
    while len(board.ended([thrice, once])) < 2:  # as a supervisor does: a new one whenever one has died
        worker = fleet.start(concurrency=1, **QUICK)
        until(lambda worker=worker: not worker.is_alive or len(board.ended([thrice, once])) == 2, "a death or the end")
        deaths += not worker.is_alive

    print(f"\n{deaths} workers died")
    assert deaths == 4
    for job, starts in ((thrice, 3), (once, 1)):
        dead = board.job(job)
        assert [attempt for attempt, _ in board.runs(job)] == list(range(1, starts + 1))
        assert (dead.state, dead.failures, dead.outcome) == (State.DEAD, starts, "err: WorkerLost: worker lost")
        assert [(failure.error, failure.attempt) for failure in dead.errors] == [
            ("WorkerLost", attempt) for attempt in range(1, starts + 1)
        ]


def test_f26_a_worker_that_is_started_again_under_its_name_is_another_worker(board: Board, fleet: Fleet) -> None:
    lease = 2.0
    killed = fleet.start(name="w1", lease=lease)
    job = board.enqueue(long_at_first)
    board.until_begun([job])
    former = board.worker_of(killed)

    killed.kill()
    heir = fleet.start(name="w1", lease=lease)
    done = board.until_state(job, State.DONE, within=lease + 3)

    assert done.worker_id == board.worker_of(heir) != former
    assert board.runs(job) == [(1, killed.pid), (2, heir.pid)]


def test_f26_an_orphan_whose_workers_row_is_gone_is_found_by_the_next_worker(board: Board, fleet: Fleet) -> None:
    killed = fleet.start(name="w1")
    job = board.enqueue(long_at_first)
    board.until_begun([job])
    killed.kill()
    board.rows("DELETE FROM jobq.workers")

    heir = fleet.start(name="w1")
    board.until_state(job, State.DONE, within=5)

    assert board.runs(job) == [(1, killed.pid), (2, heir.pid)]


def test_f26_a_living_worker_whose_row_is_deleted_goes_on_under_a_new_id(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(lease=3)
    job = board.enqueue(long_at_first)
    board.until_begun([job])
    former = board.worker_of(worker)

    board.rows("DELETE FROM jobq.workers")
    done = board.until_state(job, State.DONE, within=5)

    assert done.worker_id == board.worker_of(worker) != former
    assert board.runs(job) == [(1, worker.pid), (2, worker.pid)]


def test_a_worker_that_dies_inside_of_transaction_leaves_nothing_of_its_work(board: Board, fleet: Fleet) -> None:
    killed = fleet.start(**QUICK)
    job = board.enqueue(book, at_first="die")
    killed.ends()
    heir = fleet.start(**QUICK)

    done = board.until_state(job, State.DONE)

    assert (done.attempt, done.failures) == (2, 1)
    assert board.runs(job) == [(1, killed.pid), (2, heir.pid)]
    assert [tuple(row) for row in board.rows("SELECT job_id, attempt FROM books")] == [(job, 2)]


def test_f27_a_worker_killed_in_the_middle_of_a_rescue_does_not_keep_others_from_theirs(
    board: Board, fleet: Fleet
) -> None:
    lease = QUICK["lease"]
    lost, killed = fleet.start(**QUICK), fleet.start(queues="another", **QUICK)
    job = board.enqueue(long_at_first)
    board.until_begun([job])
    in_the_middle = "query LIKE 'WITH%UPDATE jobq.jobs%' OR query LIKE 'UPDATE jobq.jobs%'"
    with board.holding("LOCK TABLE jobq.kinds IN ACCESS EXCLUSIVE MODE"):  # a rescue reads it with the lost jobs locked
        lost.kill()
        until(lambda: board.sessions(f"wait_event_type = 'Lock' AND ({in_the_middle})") == 1, "a rescue that waits")
        killed.kill()

    other = fleet.start(**QUICK)
    board.until_begun([job], attempt=2, within=lease + 2)

    assert board.runs(job) == [(1, lost.pid), (2, other.pid)]
