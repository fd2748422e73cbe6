"""The test's own look at the database of a fleet, and its hand in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from apps import OPTIONS, TABLES
from fleet import PATIENCE_SECONDS, Member, until

import jobq
from jobq.model import State
from jobq.tables import finished_jobs, jobs, workers

WORKERS = "datname = current_database() AND application_name LIKE 'jobq %'"


class Board:
    """Jobs are enqueued here, and looked at; each call is a transaction of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url, pool_pre_ping=True, connect_args={"options": OPTIONS})

    def prepare(self) -> None:
        """Make the tables that the handlers write."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql(TABLES)

    def rows(self, statement: sa.Executable | str, **binds: Any) -> Sequence[sa.Row[Any]]:
        with self.engine.begin() as connection:
            result = connection.execute(sa.text(statement) if isinstance(statement, str) else statement, binds)
            return result.all() if result.returns_rows else []

    def one(self, statement: str, **binds: Any) -> Any:
        return self.rows(statement, **binds)[0][0]

    @contextmanager
    def holding(self, statement: str, **binds: Any) -> Iterator[None]:
        """In a transaction that holds the locks of a statement for the block."""
        with self.engine.connect() as connection:
            connection.execute(sa.text(statement), binds)
            yield
            connection.rollback()

    def enqueue(self, handler: jobq.Kind[Any], *args: Any, **kwargs: Any) -> int:
        with self.engine.begin() as connection:
            return jobq.enqueue(connection, handler, *args, **kwargs).id

    def enqueue_many(self, handler: jobq.Kind[Any], many: Sequence[dict[str, Any]]) -> list[int]:
        with self.engine.begin() as connection:
            return [each.id for each in jobq.enqueue_many(connection, handler, many)]

    def job(self, id_: int) -> jobq.Job:
        with self.engine.begin() as connection:
            job = jobq.get(connection, id_)
        assert job is not None, f"job {id_} is lost"
        return job

    def runs(self, id_: int) -> list[tuple[int, int]]:
        """(attempt, pid) of each run that has begun, the first one first."""
        found = self.rows("SELECT attempt, pid FROM effects WHERE job_id = :id ORDER BY at", id=id_)
        return [(row.attempt, row.pid) for row in found]

    def runs_of(self, ids: Sequence[int]) -> dict[int, int]:
        """How often each job was begun."""
        found = self.rows("SELECT job_id, count(*) FROM effects WHERE job_id = ANY(:ids) GROUP BY 1", ids=list(ids))
        return {**dict.fromkeys(ids, 0), **{row[0]: row[1] for row in found}}

    def ended(self, ids: Sequence[int]) -> list[sa.Row[Any]]:
        """(state, failures, attempt) of those that have ended."""
        columns = finished_jobs.c
        wanted = sa.select(columns.state, columns.failures, columns.attempt).where(columns.id.in_(ids))
        return list(self.rows(wanted))

    def worker_of(self, member: Member) -> int:
        """The id that a process has now. Raises, when it has none."""
        return int(self.rows(sa.select(workers.c.id).where(workers.c.pid == member.pid))[0][0])

    def sessions(self, of: str = "true") -> int:
        """How many connections the workers have, of which this condition on pg_stat_activity is true."""
        return int(self.one(f"SELECT count(*) FROM pg_stat_activity WHERE {WORKERS} AND {of}"))  # noqa: S608

    def terminate_workers(self, of: str = "true") -> int:
        """End the connections of every worker of which this is true; how many there were."""
        sql = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WORKERS} AND {of}"  # noqa: S608
        return len(self.rows(sql))

    def until_begun(self, ids: Sequence[int], attempt: int = 1, within: float = PATIENCE_SECONDS) -> None:
        """Wait until a run of this attempt has begun, of each."""
        begun = "SELECT count(DISTINCT job_id) FROM effects WHERE job_id = ANY(:ids) AND attempt = :attempt"
        until(
            lambda: self.one(begun, ids=list(ids), attempt=attempt) == len(set(ids)),
            f"attempt {attempt} of {len(ids)} jobs",
            within=within,
        )

    def until_ended(self, ids: Sequence[int], within: float = PATIENCE_SECONDS) -> None:
        """Wait until none of them is pending or running."""
        still_open = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.id.in_(ids))
        until(lambda: self.rows(still_open)[0][0] == 0, f"the end of {len(ids)} jobs", within=within)

    def until_state(self, id_: int, state: State, within: float = PATIENCE_SECONDS) -> jobq.Job:
        return until(
            lambda: job if (job := self.job(id_)).state is state else None, f"job {id_} being {state}", within=within
        )
