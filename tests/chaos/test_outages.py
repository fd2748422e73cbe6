"""The server goes away, ends connections, has no room, or takes no writes; the workers stay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
import sqlalchemy as sa
from apps import nap
from board import Board
from fleet import BACK, LOST, Fleet, Member, until, wait_out
from places import FAST, Server

SETTLES_SECONDS = 1.5  # each service notices by itself, and tries often at first


def assert_quiet(worker: Member, used_before: float, seconds: float) -> None:
    used = worker.cpu_seconds - used_before
    print(f"worker {worker.pid}: {used:.2f} s of CPU in {seconds:.0f} s without a database")
    assert used < seconds / 10


def assert_one_record(worker: Member, outages: int = 1) -> None:
    worker.until_said(BACK, times=outages)
    assert (worker.count(LOST), worker.count(BACK)) == (outages, outages), worker.said


def test_a_fleet_outlives_a_server_that_is_away_for_twenty_seconds(
    server: Server, own_board: Board, own_fleet: Fleet
) -> None:
    workers = own_fleet.start_many(2, concurrency=4)
    jobs = own_board.enqueue_many(nap, [{"seconds": 0.1}] * 200)
    until(lambda: len(own_board.ended(jobs)) >= 40, "load")

    server.stop()
    used = [worker.cpu_seconds for worker in workers]
    wait_out(20)
    for worker, before in zip(workers, used, strict=True):
        assert_quiet(worker, before, 20)
        assert worker.is_alive
    server.start()
    own_board.until_ended(jobs, within=30)

    runs = own_board.runs_of(jobs)
    print(f"{len(jobs)} jobs, {sum(runs.values())} runs")
    assert {(row.state, row.failures) for row in own_board.ended(jobs)} == {("done", 0)}
    assert set(runs.values()) == {1}
    for worker in workers:
        assert worker.is_alive
        assert_one_record(worker)


def test_a4_an_outage_of_twice_the_lease_costs_no_job_an_attempt(
    server: Server, own_board: Board, own_fleet: Fleet
) -> None:
    lease = 2.0
    workers = own_fleet.start_many(2, concurrency=4, lease=lease)
    once = nap.options(max_attempts=1)
    jobs = own_board.enqueue_many(once.options(priority=0), [{"seconds": 4}] * 4)
    jobs += own_board.enqueue_many(once, [{"seconds": 0.2}] * 40)
    own_board.until_begun(jobs[:4])
    until(lambda: len(own_board.ended(jobs)) >= 6, "load")

    server.stop()
    wait_out(2 * lease)
    server.start()
    own_board.until_ended(jobs, within=30)

    again = sum(1 for runs in own_board.runs_of(jobs).values() if runs > 1)
    print(f"\n{len(jobs)} jobs of one attempt, {again} of them were stopped and begun again")
    assert again >= 4
    assert {(row.state, row.failures) for row in own_board.ended(jobs)} == {("done", 0)}
    for worker in workers:
        assert worker.is_alive
        assert_one_record(worker)


def test_f42_jobs_survive_the_end_of_every_connection_and_a_restart(
    server: Server, own_board: Board, own_fleet: Fleet
) -> None:
    worker = own_fleet.start(concurrency=4, poll_interval=0.2)
    jobs = own_board.enqueue_many(nap, [{"seconds": 3}] * 4)
    own_board.until_begun(jobs)
    ended = [own_board.terminate_workers()]
    for outages in (1, 2):
        worker.until_said(BACK, times=outages)
        ended.append(own_board.terminate_workers())
    worker.until_said(BACK, times=3)

    server.stop()
    wait_out(5)
    server.start()
    back_at = time.monotonic()
    later = own_board.enqueue(nap, seconds=0)
    own_board.until_begun([later], within=5)
    print(f"\n{ended} connections ended; a new job began {time.monotonic() - back_at:.2f} s after the server's return")
    own_board.until_ended([*jobs, later])

    assert {(row.state, row.failures) for row in own_board.ended(jobs)} == {("done", 0)}
    assert set(own_board.runs_of(jobs).values()) == {1}
    assert min(ended) >= 1
    assert worker.is_alive
    assert_one_record(worker, outages=4)


def test_f42_connections_that_died_unused_are_no_second_outage(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(lease=3)
    board.until_ended(board.enqueue_many(nap, [{"seconds": 0.1}] * 5))
    lease = "SELECT lease_until FROM jobq.workers"

    board.terminate_workers()
    worker.until_said(BACK)  # the listener hears of it at once
    before = board.one(lease)
    board.until_ended(board.enqueue_many(nap, [{"seconds": 0.1}] * 5))  # claimed and recorded over the others
    until(lambda: board.one(lease) > before, "a beat")

    assert_one_record(worker)


def test_f47_a_listener_that_is_cut_again_and_again_costs_little_and_jobs_start_by_the_poll(
    board: Board, fleet: Fleet
) -> None:
    worker = fleet.start(poll_interval=0.5)
    listener = "query LIKE 'LISTEN%'"
    until(lambda: board.sessions(listener) == 1, "a listener")
    cuts, used, began = board.terminate_workers(listener), worker.cpu_seconds, time.monotonic()
    job = board.enqueue(nap, seconds=0)
    while time.monotonic() - began < 3:
        cuts += board.terminate_workers(listener)
        wait_out(0.02)
    assert_quiet(worker, used, time.monotonic() - began)
    assert 1 < cuts < 20
    assert [row.state for row in board.ended([job])] == ["done"]

    until(lambda: board.sessions(listener) == 1, "a listener that stays")


def test_a_server_that_takes_no_writes_is_waited_out(board: Board, fleet: Fleet) -> None:
    worker = fleet.start(poll_interval=0.2)
    set_read_only(board, True)
    board.terminate_workers()
    worker.until_said(LOST)
    job = board.enqueue(nap, seconds=0)
    wait_out(SETTLES_SECONDS)
    used = worker.cpu_seconds
    wait_out(2)
    assert_quiet(worker, used, 2)
    assert board.runs(job) == []

    set_read_only(board, False)
    board.until_ended([job], within=10)

    assert worker.is_alive
    worker.until_said(BACK)


def set_read_only(board: Board, on: bool) -> None:
    name = sa.make_url(board.url).database
    board.rows(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {on}')


@pytest.fixture
def small_server(server: Server) -> Server:
    """With room for few connections."""
    server.stop()
    server.settings = {**FAST, "max_connections": "20"}
    server.start()
    return server


@contextmanager
def crowd(url: str, board: Board) -> Iterator[None]:
    """Take every connection that the server has, those of the workers too."""
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(psycopg.connect(url.replace("+psycopg", ""), autocommit=True))
            except psycopg.OperationalError:
                if board.sessions() == 0:
                    break
                board.terminate_workers()
        yield


def test_a_server_without_room_is_waited_out(small_server: Server, own_board: Board, own_fleet: Fleet) -> None:
    worker = own_fleet.start(poll_interval=0.2)
    job = own_board.enqueue(nap.options(delay=None), seconds=0)
    own_board.until_ended([job])

    with crowd(small_server.url, own_board):
        worker.until_said(LOST)
        job = own_board.enqueue(nap, seconds=0)
        used = worker.cpu_seconds
        late = own_fleet.start(is_ready=False)
        late.until_said("too many clients")
        wait_out(2)
        assert_quiet(worker, used, 2)
        assert own_board.runs(job) == []
    own_board.until_ended([job], within=10)
    late.until_said("is at work as")

    assert worker.is_alive
    worker.until_said(BACK)
