"""Attacks that need more than one worker in their places: one dies in a claim, one in a rescue, one loses an answer.

Each returns the violations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from arena import RESCUED_SECONDS, Arena
from fleet import Member, until, wait_out
from traps import Trap, is_claim, set_up

JOBS = 5
CLAIMING = "wait_event = 'advisory' AND query LIKE '%claimed%'"


def killed_in_a_claim(arena: Arena) -> list[str]:
    """The server still works at the claim when its worker is declared dead."""
    rescuer = arena.start(queues="none")
    victim = arena.start(queues="hold")
    with _claims_held(arena, "hold"):
        jobs = arena.enqueue("work", JOBS, "hold", seconds=0)
        until(lambda: arena.board.sessions(CLAIMING) == 1, "a claim in flight")
        victim.kill()
        wait_out(RESCUED_SECONDS)
    until(lambda: arena.board.sessions(CLAIMING) == 0, "the end of the claim")
    arena.note(victim, "killed")
    return arena.violations(is_on_time=_ends_on_time(arena, jobs, rescuer))


def killed_in_a_rescue(arena: Arena, how: str = "SIGKILL") -> list[str]:
    """A worker dies, and the one that rescues its jobs dies, or stands still, in the middle of that."""
    rescuer = arena.start(queues="none", point="inside a rescue", how=how)
    victim = arena.start(queues="q")
    jobs = arena.enqueue("work", JOBS, "q", seconds=30)
    arena.until_begun(jobs)
    victim.kill()
    if how == "SIGKILL":
        arena.until_dead(rescuer)
    else:
        rescuer.until_frozen()
        arena.note(rescuer, "frozen")
    arena.board.rows("UPDATE jobq.jobs SET args = '{\"seconds\": 0}'")
    other = arena.start(queues="none")
    arena.note(victim, "killed")
    return arena.violations(is_on_time=_ends_on_time(arena, jobs, other))


def lost_an_answer(arena: Arena) -> list[str]:
    """The connection of a worker that lives is cut between the claim's commit and its reply."""
    with set_up(Trap(reply=is_claim, kills=False), arena.board.url) as trap:
        victim = arena.start(queues="q", url=trap.url)
        trap.victim = victim
        jobs = arena.enqueue("work", JOBS, "q", seconds=0)
        assert trap.sprung.wait(RESCUED_SECONDS), "no claim was answered"
        is_on_time = arena.all_end(jobs, within=RESCUED_SECONDS) and victim.is_alive
        return arena.violations(is_on_time=is_on_time)


def _ends_on_time(arena: Arena, jobs: list[int], rescuer: Member) -> bool:
    """Once they are claimable again, another worker ends them."""
    held = "SELECT count(*) FROM jobq.jobs WHERE worker_id IS NOT NULL AND id = ANY(:ids)"
    wait = RESCUED_SECONDS + 1
    try:
        until(lambda: arena.board.one(held, ids=jobs) == 0, "a rescue", within=wait, also=rescuer)
    except AssertionError:
        return False
    arena.start(queues="q,hold")
    return arena.all_end(jobs)


@contextmanager
def _claims_held(arena: Arena, queue: str) -> Iterator[None]:
    """Claims of this queue stand still in the server, after they have locked and changed their rows."""
    with arena.board.engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_advisory_lock(hashtext(:queue))"), {"queue": queue})
        yield
        connection.execute(sa.text("SELECT pg_advisory_unlock_all()"))
        connection.rollback()
