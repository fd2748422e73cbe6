"""What the tests of the store's functions share: claims, whole rows, and waiting until a statement waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker

from jobq.store.claiming import Claim, LaneAsk, claim
from jobq.store.ending import Fence
from jobq.store.rescuing import Rescue, rescue
from jobq.tables import all_jobs, jobs, slots, workers

R = TypeVar("R")
ME, OTHER, LOST = 11, 22, 33
KINDS = ["email.send"]
MOMENT = timedelta(milliseconds=1)
LONG = timedelta(days=3650)
START = datetime.min.replace(tzinfo=UTC)


def lane(
    queue: str = "default", priority: int = 1, *, limit: int = 100, after: tuple[datetime, int] | None = None
) -> LaneAsk:
    """A lane, read from its start or from behind a cursor."""
    run_at, id_ = after or (START, 0)
    return LaneAsk(queue, priority, run_at, id_, limit)


def claim_from(
    connection: sa.Connection, *lanes: LaneAsk, most: int = 100, worker_id: int = ME, kinds: list[str] | None = None
) -> Claim:
    """A claim of these lanes, of the default one without any."""
    return claim(
        connection, lanes or (lane(),), worker_id=worker_id, kinds=KINDS if kinds is None else kinds, most=most
    )


def ids_of(claimed: Claim) -> list[int]:
    return [job.id for job in claimed.jobs]


def add_running(connection: sa.Connection, worker_id: int = ME, **values: Any) -> Fence:
    """A job in its first attempt; the fence of that."""
    attempt = values.setdefault("attempt", 1)
    return Fence(add_job(connection, worker_id=worker_id, attempted_at=NOW, **values), attempt, worker_id)


def stale(fence: Fence) -> list[Fence]:
    """What a worker believes that has lost the job: each part of the fence wrong by itself."""
    return [
        replace(fence, attempt=fence.attempt - 1),
        replace(fence, attempt=fence.attempt + 1),
        replace(fence, worker_id=OTHER),
    ]


def add_lost_worker(connection: sa.Connection, worker_id: int = LOST, **values: Any) -> int:
    """A worker whose lease ran out; the lease is so short that the server has run for longer."""
    return add_worker(connection, worker_id, **{"lease": MOMENT, "lease_until": NOW - timedelta(hours=1), **values})


def rescued(
    connection: sa.Connection, *, everywhere: bool = False, connected: timedelta = LONG, channel: str | None = None
) -> Rescue:
    """A pass of a rescuer that has been connected for long."""
    return rescue(connection, connected_for=connected, look_everywhere=everywhere, channel=channel)


def rescued_ids(found: Rescue) -> set[int]:
    return {job.id for job in found.jobs}


def workers_left(connection: sa.Connection) -> set[int]:
    return set(connection.scalars(sa.select(workers.c.id)))


def add_slot(connection: sa.Connection, queue: str, worker_id: int | None) -> None:
    """The right to run a job of a limited queue, and who has it."""
    connection.execute(sa.insert(slots).values(queue=queue, n=1, worker_id=worker_id))


def slot_holders(connection: sa.Connection) -> dict[str, int | None]:
    return dict(connection.execute(sa.select(slots.c.queue, slots.c.worker_id)).all())


def row(connection: sa.Connection, id_: int) -> dict[str, Any]:
    """A job's row of `all_jobs`, whole."""
    found = connection.execute(sa.select(*all_jobs.c).where(all_jobs.c.id == id_)).mappings().one()
    return dict(found)


def running_on(connection: sa.Connection, worker_id: int) -> list[int]:
    return list(connection.scalars(sa.select(jobs.c.id).where(jobs.c.worker_id == worker_id).order_by(jobs.c.id)))


def wait_until_blocked(engine: sa.Engine, future: Future[Any]) -> None:
    """Until a transaction of this database waits for another, asked of the server; it ought to be the future's."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(waiting).scalar_one():
            assert not future.done(), "it did not wait"
            connection.execute(sa.text("SELECT pg_sleep(0.01)"))


@contextmanager
def in_thread(engine: sa.Engine, function: Callable[[sa.Connection], R]) -> Iterator[Future[R]]:
    """The function in a transaction of its own, in a thread; entered once it waits for a lock."""

    def run() -> R:
        with engine.begin() as connection:
            return function(connection)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        wait_until_blocked(engine, future)
        yield future


@contextmanager
def listening(engine: sa.Engine) -> Iterator[Callable[[], list[str]]]:
    """Gives what was notified since, sorted: all that was committed before it is called."""
    with psycopg.connect(engine.url.set(drivername="postgresql").render_as_string(False), autocommit=True) as heard:
        heard.execute("LISTEN jobq")

        def told() -> list[str]:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(sa.text("NOTIFY jobq, 'the end'"))
            texts: list[str] = []
            for notification in heard.notifies(timeout=30):
                if notification.payload == "the end":
                    return sorted(texts)
                texts.append(notification.payload)
            raise AssertionError("the notification that ends the list did not arrive")

        yield told
