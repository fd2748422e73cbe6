"""The guarantees that one look at the tables can refute, as SQL: each gives what breaks it."""

from __future__ import annotations

import sqlalchemy as sa

LAWS = {
    "G3 a job is open or it has ended": "SELECT id FROM jobq.jobs JOIN jobq.finished_jobs USING (id)",
    "G6 never before run_at": "SELECT id FROM jobq.jobs WHERE worker_id IS NOT NULL AND attempted_at < run_at",
    "G7 failures stay within max_attempts": "SELECT id FROM jobq.all_jobs WHERE failures > max_attempts"
    " UNION ALL SELECT id FROM jobq.jobs WHERE worker_id IS NOT NULL AND failures >= max_attempts",
    "G7 the dead letter has every error": "SELECT id FROM jobq.all_jobs"
    " WHERE jsonb_array_length(errors) < least(failures, 25)",
    "G8 one open job a key": "SELECT unique_key FROM jobq.jobs WHERE unique_key IS NOT NULL"
    " GROUP BY unique_key HAVING count(*) > 1",
    "G9 within the limit": "SELECT queue FROM jobq.jobs JOIN jobq.queues ON queue = name WHERE worker_id IS NOT NULL"
    " GROUP BY queue, concurrency, fifo HAVING count(*) > CASE WHEN fifo THEN 1 ELSE concurrency END",
}
ALL = " UNION ALL ".join(f"SELECT '{law}', array_agg(x::text) FROM ({sql}) _ (x)" for law, sql in LAWS.items())  # noqa: S608


def broken(connection: sa.Connection) -> dict[str, list[object]]:
    """The laws that do not hold, with what breaks each."""
    found = connection.exec_driver_sql(ALL)
    return {law: breaking for law, breaking in found if breaking}
