"""What a look of `jobq top` costs the database, beside those of `jobq stats` and `jobq workers`.

    python tests/bench/look.py DATABASE_URL [jobs]

The database is one that has been migrated and is empty; so many due jobs are left in it, in 4 queues, 200 of them run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import sqlalchemy as sa

from jobq import admin, overview
from jobq.statements import running
from jobq.urls import normalize

ROUNDS = 15
FILL = (
    "INSERT INTO jobq.workers (id, name, lease, lease_until, concurrency, kinds) "
    "SELECT i, 'w' || i, interval '1 hour', now() + interval '1 hour', 20, '{a}' FROM generate_series(1, 10) i",
    "INSERT INTO jobq.jobs (queue, kind, run_at, args, worker_id, attempt, attempted_at, meta) "
    "SELECT 'q' || mod(i, 4), 'a', now() - interval '1 hour' + i * interval '1 ms', "
    "jsonb_build_object('n', i, 'text', repeat('x', 100)), CASE WHEN i <= 200 THEN 1 + mod(i, 10) END, "
    "CASE WHEN i <= 200 THEN 1 ELSE 0 END, CASE WHEN i <= 200 THEN now() END, "
    '\'{"progress": {"fraction": 0.4, "message": "page 4 of 10", "attempt": 1}}\' FROM generate_series(1, %(jobs)s) i',
    "VACUUM ANALYZE jobq.jobs",
)


def fill(engine: sa.Engine, jobs: int) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in FILL:
            connection.exec_driver_sql(statement, {"jobs": jobs} if "%(jobs)s" in statement else None)


def median_ms(connection: sa.Connection, look: Callable[[sa.Connection], object]) -> float:
    spent: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        look(connection)
        spent.append(time.perf_counter() - began)
        connection.rollback()
    return statistics.median(spent) * 1000


def of_running(connection: sa.Connection) -> object:
    return connection.execute(running.running(), {"most": 10_500, "only_queue": None, "shown": 500}).all()


def main() -> None:
    engine = sa.create_engine(normalize(sys.argv[1]))
    fill(engine, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
    looks: dict[str, Callable[[sa.Connection], object]] = {
        "jobq top, all of it": overview.overview,
        "of it, what runs": of_running,
        "jobq stats": admin.stats,
        "jobq workers": admin.workers,
    }
    with engine.connect() as connection:
        for name, look in looks.items():
            print(f"{name:<20} {median_ms(connection, look):7.1f} ms")


if __name__ == "__main__":
    main()
