"""Databases that a plan may go wrong on, filled by the server itself."""

from __future__ import annotations

import sqlalchemy as sa
from store_rows import LOST, ME

QUEUES = 40  # q38 is a FIFO one, q39 has a limit of 4
TABLES = ("jobs", "finished_jobs", "queues", "workers", "slots", "sums", "leader", "kinds")
FILL = """
    -- no autovacuum: it would analyse in the middle of a test
    ALTER TABLE jobq.jobs SET (autovacuum_enabled = off);
    ALTER TABLE jobq.finished_jobs SET (autovacuum_enabled = off);
    ALTER TABLE jobq.sums SET (autovacuum_enabled = off);

    INSERT INTO jobq.queues (name, weight, fifo, concurrency)
    SELECT 'q' || n, 1 + n % 4, n = 38, CASE n WHEN 39 THEN 4 END FROM generate_series(0, 39) n;
    INSERT INTO jobq.slots (queue, n) VALUES ('q38', 1), ('q39', 1), ('q39', 2), ('q39', 3), ('q39', 4);
    INSERT INTO jobq.kinds (kind, queue, max_attempts, priority)
    SELECT 'k' || n, 'q' || n, 5, n % 4 FROM generate_series(0, 19) n;
    INSERT INTO jobq.workers (id, name, kinds, lease, lease_until)
    VALUES (:me, 'here', '{k0}', '1 hour', now() + interval '1 hour'),
           (:lost, 'lost', '{k0}', '1 ms', now() - interval '1 hour');
    INSERT INTO jobq.leader (name, summed_until)
    VALUES ('maintenance', date_trunc('minute', now()) - interval '15 s')
    ON CONFLICT (name) DO UPDATE SET summed_until = excluded.summed_until;
    INSERT INTO jobq.sums (minutes, starts_at, queue, kind, state, word, finished, longest, buckets, counts)
    SELECT length, start, 'q' || q, 'k' || q % 20, 'done', 'ok', 9, '1 s', '{40}', '{9}'
    FROM generate_series(0, 39) q, (
        SELECT 1 AS length, minute AS start
        FROM generate_series(date_trunc('hour', now()) - interval '3 hours', now(), '1 minute') minute
        UNION ALL
        SELECT 60, hour FROM generate_series(date_trunc('hour', now()) - interval '30 days', now(), '1 hour') hour
    ) spans;

    -- a day's jobs, evenly, of which one in a thousand is dead; enqueued before what is open now, as their ids say
    INSERT INTO jobq.finished_jobs (
        id, queue, kind, args, priority, run_at, attempt, failures, created_at, attempted_at, meta, errors, state,
        outcome, finished_at, expires_at
    )
    SELECT nextval('jobq.jobs_id_seq'), 'q' || n % 40, 'k' || n % 20, jsonb_build_object('n', n), n % 4, began, 1, 0,
        began, began, '{}', '[]', CASE n % 1000 WHEN 7 THEN 'dead' ELSE 'done' END, 'ok', began + interval '1 s',
        began + interval '1 day'
    FROM (SELECT n, now() - (:finished - n) * (interval '1 day' / :finished) AS began
          FROM generate_series(1, :finished) n) past;
    -- which an autovacuum does, if it may
    SELECT brin_summarize_new_values('jobq.finished_jobs_finished');

    -- scheduled, due, running here, and left by a worker that is lost
    INSERT INTO jobq.jobs (queue, kind, args, priority, run_at)
    SELECT 'q' || n % 40, 'k' || n % 20, jsonb_build_object('n', n), n % 4,
        now() + interval '1 day' + n * interval '1 s'
    FROM generate_series(1, :future) n;
    INSERT INTO jobq.jobs (queue, kind, args, priority, run_at)
    SELECT 'q' || n % 40, 'k' || n % 20, jsonb_build_object('n', n), n / 40 % 4,
        now() - interval '1 hour' + n * interval '1 ms'
    FROM generate_series(1, 10000) n;
    INSERT INTO jobq.jobs (queue, kind, args, run_at, worker_id, attempt)
    SELECT 'q' || n % 40, 'k' || n % 20, jsonb_build_object('n', n), now() - interval '2 hours', worker, 1
    FROM unnest(CAST(ARRAY[:me, :lost] AS bigint[])) worker, generate_series(1, 1000) n
"""


def fill(connection: sa.Connection, *, finished: int, future: int) -> None:
    """Forty queues with so many jobs that have ended and are scheduled, 10 000 due ones, and 2 000 that run."""
    values = {"me": ME, "lost": LOST, "finished": finished, "future": future}
    for statement in FILL.split(";\n"):
        used = {name: value for name, value in values.items() if f":{name}" in statement}
        connection.execute(sa.text(statement), used)


def analyse(connection: sa.Connection) -> None:
    """Have the planner know what is there."""
    for table in TABLES:
        connection.execute(sa.text(f"ANALYZE jobq.{table}"))
