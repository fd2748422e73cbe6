"""The leader killed, frozen and woken: there is one at a time, and maintenance goes on."""

from __future__ import annotations

import time

from board import Board
from fleet import Fleet, Member, until

LEADS = " is the leader, in term "
QUICK = {"lease": 2, "poll_interval": 0.2}
OFFICE = "SELECT pid, leader.term FROM jobq.leader JOIN jobq.workers ON id = worker_id WHERE leader.lease_until > now()"
EXPIRED = """
    INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                    errors, state, finished_at, expires_at)
    SELECT n, 'q', 'k', '{}', 1, at, 1, 0, at, '{}', '[]', 'done', at, at
    FROM generate_series(1, 1000) n, (SELECT now() - interval '2 days' AS at) AS old
"""
LEFT = "SELECT count(*) FROM jobq.finished_jobs"


def leader_of(board: Board, fleet: Fleet) -> Member | None:
    rows = board.rows(OFFICE)
    return fleet.living.get(rows[0].pid) if rows else None


def until_led(board: Board, fleet: Fleet, *, within: float = 20.0, former: Member | None = None) -> Member:
    def another() -> Member | None:
        found = leader_of(board, fleet)
        return None if found is former else found

    return until(another, "a leader", within=within)


def test_a_leader_that_was_killed_is_followed_within_15_seconds(board: Board, fleet: Fleet) -> None:
    fleet.start_many(3, **QUICK)
    first = until_led(board, fleet)

    board.rows(EXPIRED)
    killed_at = time.monotonic()
    first.kill()
    second = until_led(board, fleet, within=15, former=first)
    print(f"{time.monotonic() - killed_at:.1f} s without a leader")

    until(lambda: board.one(LEFT) == 0, "the end of what has been kept for its time")
    assert board.one("SELECT term FROM jobq.leader") == 2
    assert [member.pid for member in fleet.members if member.is_alive and member.stats()["is_leader"]] == [second.pid]


def test_a_leader_that_was_stopped_is_followed_at_once(board: Board, fleet: Fleet) -> None:
    fleet.start_many(2, **QUICK)
    first = until_led(board, fleet)

    first.process.terminate()
    assert first.ends() == 0
    stopped_at = time.monotonic()
    until_led(board, fleet, former=first)

    print(f"{time.monotonic() - stopped_at:.1f} s without a leader")
    assert board.one("SELECT term FROM jobq.leader") == 2


def test_a_leader_that_was_frozen_and_wakes_up_does_nothing(board: Board, fleet: Fleet) -> None:
    fleet.start_many(2, **QUICK)
    first = until_led(board, fleet)
    first.freeze()
    second = until_led(board, fleet, former=first)
    second.freeze()  # so that nobody but the first could do anything now
    board.rows("UPDATE jobq.leader SET lease_until = now() + interval '1 hour'")
    board.rows(EXPIRED)

    first.thaw()
    first.until_said("going on under a new id")
    claims = first.stats()["claims"]
    until(lambda: first.stats()["claims"] > claims + 20, "the first being at work again for seconds", also=first)

    assert not first.stats()["is_leader"]
    assert (first.count(LEADS), board.one(LEFT)) == (1, 1000)
    assert board.one("SELECT term FROM jobq.leader") == 2
    second.thaw()
