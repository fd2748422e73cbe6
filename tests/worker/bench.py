"""What the tests of the worker work with: a database, workers on it, and what their handlers leave behind."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
import sqlalchemy as sa
from roles_of_tests import give_rights

import jobq
from jobq.database import Database
from jobq.tables import SCHEMA, finished_jobs, jobs, workers
from jobq.worker.assembly import Assembly

PATIENCE_SECONDS = 10.0  # what a test waits for an event: far more than it takes, the machine may be busy
LOOK_SECONDS = 0.005
TINY = {
    "poll_interval": timedelta(milliseconds=50),
    "grace": timedelta(seconds=5),
    "lease": timedelta(seconds=30),
    "concurrency": 4,
}
HOUR = timedelta(hours=1)
NEVER = HOUR  # a poll interval so long that only a notification can start a job


@dataclass
class Bench:
    """A migrated database, and the test's own connections to it. `pooled_url`: the workers' way, with --pooler."""

    url: str
    engine: sa.Engine
    pooled_url: str | None = None

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A connection in a transaction that is committed at the end of the block."""
        with self.engine.begin() as connection:
            yield connection

    def execute(self, statement: sa.Executable | str, **binds: Any) -> list[sa.Row[Any]]:
        """One statement, committed; its rows."""
        with self.connect() as connection:
            result = connection.execute(sa.text(statement) if isinstance(statement, str) else statement, binds)
            return list(result.all()) if result.returns_rows else []

    def enqueue(self, handler: jobq.Kind[Any], *args: Any, **kwargs: Any) -> int:
        """A job of its own transaction; its id."""
        with self.connect() as connection:
            return jobq.enqueue(connection, handler, *args, **kwargs).id

    def enqueue_many(self, handler: jobq.Kind[Any], number: int) -> list[int]:
        """So many jobs without arguments, in one transaction."""
        with self.connect() as connection:
            return [one.id for one in jobq.enqueue_many(connection, handler, [{}] * number)]

    def add(self, kind: str, **columns: Any) -> int:
        """A row as SQL of somebody's own would write it; its id. Nobody is notified."""
        return int(self.execute(sa.insert(jobs).values(kind=kind, **columns).returning(jobs.c.id))[0][0])

    def add_worker(self, id_: int, lease: timedelta, *, ran_out: timedelta) -> int:
        """The row of a worker that does not beat; its lease ran out so long ago, or is still good for minus that."""
        row = {"id": id_, "name": f"host:{id_}", "lease": lease, "lease_until": sa.func.now() - ran_out}
        self.execute(sa.insert(workers).values(row))
        return id_

    def move_tables(self, schema: str) -> None:
        """jobq's tables are in another schema alone, with the rights of each role."""
        jobq.migrate(self.engine.execution_options(schema_translate_map={SCHEMA: schema}))
        self.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        with self.connect() as connection:
            give_rights(connection.connection.driver_connection, schema)

    def change(self, id_: int, **columns: Any) -> None:
        """Change an open job by hand."""
        self.execute(sa.update(jobs).where(jobs.c.id == id_).values(**columns))

    def make_due(self, id_: int) -> None:
        """A job that waits for its time is due now."""
        self.change(id_, run_at=sa.func.now())

    def job(self, id_: int) -> jobq.Job:
        with self.connect() as connection:
            job = jobq.get(connection, id_)
        assert job is not None, f"job {id_} is gone"
        return job

    def states(self) -> dict[int, jobq.State]:
        with self.connect() as connection:
            return {job.id: job.state for job in jobq.jobs(connection, limit=None)}

    async def until_listening(self, number: int = 1) -> list[sa.Row[Any]]:
        """Wait until so many workers hear notifications; their connections as pg_stat_activity shows them."""
        listening = (
            "SELECT * FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'idle' AND (query LIKE 'LISTEN%' OR query = 'SELECT 1') AND application_name LIKE 'jobq %'"
        )
        return await eventually(lambda: len(rows := self.execute(listening)) >= number and rows, "a listener")

    def workers(self) -> list[sa.Row[Any]]:
        return self.execute(sa.select(workers))

    async def until(
        self, id_: int, *states: jobq.State, attempt: int | None = None, within: float = PATIENCE_SECONDS
    ) -> jobq.Job:
        """Wait until a job is in one of these states (by default: has ended), in this attempt if one is named."""
        wanted = states or (jobq.State.DONE, jobq.State.DEAD, jobq.State.CANCELLED)

        def there() -> jobq.Job | None:
            job = self.job(id_)
            return job if job.state in wanted and attempt in (None, job.attempt) else None

        return await eventually(there, f"job {id_} being {' or '.join(wanted)}", within=within)

    async def until_retried(self, id_: int) -> jobq.Job:
        """Wait until a job that failed is pending again."""
        return await eventually(
            lambda: job if (job := self.job(id_)).state is jobq.State.PENDING and job.failures else None,
            f"job {id_} being put back",
        )

    async def until_all_ended(self) -> dict[int, jobq.State]:
        """Wait until nothing is pending or running; how all ended."""
        await eventually(lambda: not self.execute(sa.select(jobs.c.id).limit(1)), "no job being open")
        return {
            row.id: jobq.State(row.state) for row in self.execute(sa.select(finished_jobs.c.id, finished_jobs.c.state))
        }

    @asynccontextmanager
    async def working(self, app: jobq.App, engine: Any = None, **options: Any) -> AsyncIterator[jobq.Worker]:
        """A worker at work in this process for as long as the block lasts, then stopped as by SIGTERM."""
        if engine is None and self.pooled_url is not None:
            engine, options = self.pooled_url, {"pooler": True, "listen_url": self.url, **options}
        worker = jobq.Worker(app, engine if engine is not None else self.url, **{**TINY, **options})
        with unwrapped():
            async with anyio.create_task_group() as group:
                with anyio.fail_after(PATIENCE_SECONDS):
                    await group.start(worker.run)
                yield worker
                worker.stop()


@dataclass
class Effects:
    """What handlers did, in the order of doing it; they may run in threads."""

    seen: list[Any] = field(default_factory=list)

    def add(self, effect: Any) -> None:
        self.seen.append(effect)

    def __len__(self) -> int:
        return len(self.seen)

    async def until(self, number: int) -> list[Any]:
        """Wait for so many effects."""
        await eventually(lambda: len(self.seen) >= number, f"{number} effects")
        return self.seen


class Gate:
    """Handlers wait in front of it, in the loop or in a thread, until the test opens it."""

    def __init__(self) -> None:
        self.waiting = 0
        self._open = threading.Event()

    @property
    def is_shut(self) -> bool:
        return not self._open.is_set()

    def open(self) -> None:
        self._open.set()

    def wait_in_thread(self, seconds: float) -> None:
        """Wait in front of it for that long at most."""
        self._open.wait(seconds)

    def pass_in_thread(self) -> None:
        self.waiting += 1
        assert self._open.wait(PATIENCE_SECONDS)

    async def pass_(self) -> None:
        self.waiting += 1
        await eventually(self._open.is_set, "the gate being opened")

    async def until_waiting(self, number: int = 1) -> None:
        """Wait until so many handlers have come."""
        await eventually(lambda: self.waiting >= number, f"{number} handlers at the gate")


async def eventually(look: Callable[[], Any], what: str, *, within: float = PATIENCE_SECONDS) -> Any:
    """The first true answer of `look`."""
    with anyio.move_on_after(within):
        while not (answer := look()):  # noqa: ASYNC110  # what it looks at is in the database or in a thread
            await anyio.sleep(LOOK_SECONDS)
        return answer
    raise AssertionError(f"waited {within:.0f} s in vain for {what}")


async def more_claims(worker: jobq.Worker, number: int) -> None:
    """Wait for so many more claims of a worker."""
    wanted = worker.stats().claims + number
    await eventually(lambda: worker.stats().claims >= wanted, f"{number} more claims")


class Run:
    """A worker's run, so that a test can wait for its end and look at its exit code."""

    code: int | None = None

    def __init__(self, worker: jobq.Worker) -> None:
        self.worker = worker

    async def __call__(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        self.code = await self.worker.run(task_status=task_status)

    async def end(self) -> int:
        await eventually(lambda: self.code is not None, "the end of the run")
        assert self.code is not None
        return self.code


def assembly_of(worker: jobq.Worker) -> Assembly:
    """The services of a worker that runs."""
    assert worker._assembly is not None
    return worker._assembly


def break_statements(database: Database, monkeypatch: Any, breaks: Callable[[str], BaseException | None]) -> None:
    """Have `breaks(name of the store function)` say what is raised after that function's work is committed."""

    def broken(run: Any) -> Any:
        async def wrapper(function: Any, *args: Any, **kwargs: Any) -> Any:
            result = await run(function, *args, **kwargs)
            if error := breaks(function.__name__):
                raise error
            return result

        return wrapper

    monkeypatch.setattr(database, "run", broken(database.run))
    monkeypatch.setattr(database, "transaction", broken(database.transaction))


@contextmanager
def unwrapped() -> Iterator[None]:
    """The one exception in a task group's, as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise only(group) from None


def only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
