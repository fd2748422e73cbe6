"""The named checks of guarantees.py, asked of what an attack has left behind when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import guarantees
import sqlalchemy as sa
from board import Board
from guarantees import Violation

# The record's runs in the words of `effects`: from the beginning to the end that a handler wrote, if it came so far.
RUNS = """
SELECT b.n AS run, b.job_id, b.attempt, b.pid, b.at, min(o.at) AS ended_at
  FROM runs b LEFT JOIN runs o ON o.job_id = b.job_id AND o.attempt = b.attempt AND o.what <> 'began'
 WHERE b.what = 'began' GROUP BY b.n, b.job_id, b.attempt, b.pid, b.at
"""
Ask = Callable[[sa.Connection], Iterator[Violation]]


def of_the_tables(connection: sa.Connection) -> Iterator[Violation]:
    """What needs nothing but jobq's own tables, once every lost lease had its time to be seen."""
    yield from guarantees.at_any_time(connection)
    yield from guarantees.orphans(connection)


def of_the_record(connection: sa.Connection) -> Iterator[Violation]:
    """All that a record (record.py) with its journal can answer.

    Not `stale_ends`: these handlers return the number of their attempt, so that audited.py's G4 reads the same from it.
    Its G5, and crowds.py for G8 and G9, know when a process stood still; `overlaps` excuses all that ever did.
    """
    runs = _runs()
    promised = connection.exec_driver_sql("SELECT job_id FROM promised").scalars().all()
    at_fault = connection.exec_driver_sql("SELECT DISTINCT pid FROM faults").scalars().all()
    yield from of_the_tables(connection)
    yield from guarantees.lost(connection, promised)
    yield from guarantees.by_the_journal(connection)
    yield from guarantees.overlaps(connection, runs, excused=at_fault)
    yield from guarantees.early(connection, runs)
    yield from guarantees.out_of_order(connection, runs)
    for kind in ("book", "plain_book"):
        yield from guarantees.halves(connection, kind)


def named(board: Board, ask: Ask = of_the_record) -> list[str]:
    """The violations, each with its guarantee and the jobs that show it."""
    found: dict[tuple[str, str], list[int | None]] = {}
    with board.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:  # one snapshot
        for violation in ask(connection):
            found.setdefault((violation.guarantee, violation.what), []).append(violation.job_id)
    return [f"{guarantee}: {what}, {len(jobs)} times, {jobs[:5]}" for (guarantee, what), jobs in found.items()]


def _runs() -> sa.FromClause:
    names = ("run", "job_id", "attempt", "pid", "at", "ended_at")
    return sa.text(RUNS).columns(*map(sa.column, names)).subquery("effects")
