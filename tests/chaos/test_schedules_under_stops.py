"""Workers that hold the same schedules, stopped and woken at any moment. JOBQ_CHAOS_SECONDS: for how long (40)."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest
import sqlalchemy as sa
from board import Board
from fleet import Fleet, Member, until, wait_out
from scheduled import app

from jobq.tables import all_jobs, schedules

SECONDS = float(os.environ.get("JOBQ_CHAOS_SECONDS", "40"))
STOPS = (0.05, 0.5, 1.1, 3.0)
QUICK = {"lease": 2, "poll_interval": 0.2, "app": "scheduled:app"}


@pytest.mark.timeout(SECONDS + 120)
def test_f41_two_workers_stopped_and_woken_settle_each_tick_once(board: Board, fleet: Fleet) -> None:
    members = fleet.start_many(2, **QUICK)
    stops = stop_and_wake(members, SECONDS)
    settled = {name: sum(counts(board, name)) for name in app.schedules}
    until(lambda: all(sum(counts(board, name)) > settled[name] + 1 for name in app.schedules), "ticks of all of them")

    for member in members:
        member.freeze()  # or ticks go on while they are counted
    found = {name: counts(board, name) for name in app.schedules}
    for name in app.schedules:
        assert_each_tick_has_one_fate(board, name)
    assert found["once"][1] > 0, "no tick was skipped"
    assert found["once"][2] > 0, "no tick was missed"
    assert found["all"][1:] == (0, 0)
    for member in members:
        member.thaw()
        assert member.count("ERROR") == 0
    print(f"{stops} stops; enqueued, skipped and missed: {found}")


def stop_and_wake(members: list[Member], seconds: float) -> int:
    """Stop one of them or all, for less or for more than their lease, again and again; how often.

    Each way comes once before any comes twice: what a stop has to show is not left to chance.
    """
    ways = [(chosen, span) for chosen in ([members[0]], [members[1]], members) for span in STOPS]
    deadline = time.monotonic() + seconds
    stops = 0
    while time.monotonic() < deadline:
        for chosen, span in random.sample(ways, len(ways)):
            stop(chosen, span)
            stops += len(chosen)
    return stops


def stop(chosen: list[Member], seconds: float) -> None:
    for member in chosen:
        member.freeze()
    wait_out(seconds)
    for member in chosen:
        member.thaw()
    wait_out(random.uniform(0.0, 0.7))


def counts(board: Board, name: str) -> tuple[int, int, int]:
    """(enqueued, skipped, missed)"""
    row = row_of(board, name)
    return (row.enqueued, row.skipped, row.missed)


def row_of(board: Board, name: str) -> sa.Row[Any]:
    (row,) = board.rows(sa.select(schedules).where(schedules.c.name == name))
    return row


def assert_each_tick_has_one_fate(board: Board, name: str) -> None:
    row = row_of(board, name)
    passed = app.schedules[name].schedule.passed(row.first_seen_at, row.last_tick)
    assert sum(counts(board, name)) == passed.count
    tick = all_jobs.c.meta["tick"].astext
    ticks = board.rows(sa.select(tick).where(all_jobs.c.meta["schedule"].astext == name))
    assert len({tick for (tick,) in ticks}) == len(ticks) == row.enqueued
    assert passed.last[-1] == row.last_tick
