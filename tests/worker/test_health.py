"""Whether a worker takes jobs, by its own account: `worker.health()`, and over HTTP as `jobq run` answers."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import Bench, Gate, assembly_of, eventually, more_claims
from lock import locked

import jobq
from jobq_cli.connect import Target
from jobq_cli.pages import Address, ports_of
from jobq_cli.ports import listening

pytestmark = pytest.mark.anyio
NOWHERE = Address("127.0.0.1", None)
ANY = Address("127.0.0.1", 0)


async def get(number: int, path: str) -> tuple[int, str]:
    """Status and body."""
    with anyio.fail_after(10):
        async with await anyio.connect_tcp("127.0.0.1", number) as stream:
            await stream.send(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            answer = b"".join([each async for each in stream]).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def until_ready(worker: jobq.Worker) -> None:
    await eventually(lambda: worker.is_ready, "a worker that is ready")


async def until_not_ready(worker: jobq.Worker) -> str:
    """What it says then."""
    await eventually(lambda: not worker.is_ready, "a worker that is not ready")
    (problem,) = worker.health().problems
    return problem


async def test_a_worker_is_ready_from_its_first_claim_until_it_is_told_to_stop(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    before = jobq.Worker(app, bench.url)

    async with bench.working(app) as worker:
        await until_ready(worker)
        bench.enqueue(handler)
        await gate.until_waiting()
        worker.stop()
        assert worker.health().problems == ("the worker is stopping",)
        gate.open()

    assert before.health().problems == ("the worker does not run",)
    assert worker.health().problems == ("the worker does not run",)


async def test_a_worker_that_is_full_is_ready_however_long(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)

    async with bench.working(app, concurrency=1) as worker:
        bench.enqueue_many(handler, 2)
        await gate.until_waiting()
        await eventually(lambda: assembly_of(worker).claimer.behind_for == timedelta(0), "a claimer that waits")
        assert worker.is_ready
        gate.open()
        await bench.until_all_ended()


async def test_a_claim_that_waits_for_a_lock_makes_it_unready_until_it_is_through(bench: Bench, app: jobq.App) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app) as worker:
        await until_ready(worker)
        async with locked(bench):
            said = await until_not_ready(worker)
        await until_ready(worker)
        await bench.until(bench.enqueue(handler))

    assert said.startswith("no claim has succeeded for 3 s")


async def test_a_server_that_refuses_connections_makes_it_unready_until_it_takes_them_again(
    bench: Bench, app: jobq.App
) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    database = sa.make_url(bench.url).database
    elsewhere = sa.create_engine(bench.engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    refuse = sa.text(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
    take = sa.text(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
    end = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")

    async with bench.working(app) as worker:
        await until_ready(worker)
        with elsewhere.connect() as connection:
            connection.execute(refuse)
            connection.execute(end, {"name": database})
            said = await until_not_ready(worker)
            connection.execute(take)
        await until_ready(worker)
        await bench.until(bench.enqueue(handler))
    elsewhere.dispose()

    assert said.startswith("no claim has succeeded for 3 s")


async def test_a_worker_whose_lease_was_taken_is_ready_again_under_a_new_id(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)

    async with bench.working(app, lease=timedelta(seconds=1)) as worker:
        await until_ready(worker)
        first = worker.stats().worker_id
        bench.execute("DELETE FROM jobq.workers")
        await eventually(lambda: worker.stats().worker_id not in (None, first), "a new id")
        await until_ready(worker)


async def test_it_may_be_asked_from_any_thread(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    said: list[bool] = []

    async with bench.working(app) as worker:
        await until_ready(worker)
        thread = threading.Thread(target=lambda: said.append(worker.is_ready))
        thread.start()
        thread.join()

    assert said == [True]


async def test_the_probes_answer_as_the_worker_is(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    worker = jobq.Worker(app, bench.url, poll_interval=timedelta(milliseconds=50))
    ports = ports_of(worker, Target(sa.make_url(bench.url), "test"), ANY, NOWHERE)

    async with listening(ports) as (number,), anyio.create_task_group() as group:
        early = await get(number, "/healthz"), await get(number, "/readyz")
        await group.start(worker.run)
        await until_ready(worker)
        await more_claims(worker, 1)
        at_work = await get(number, "/healthz"), await get(number, "/readyz"), await get(number, "/metrics")
        worker.stop()
        late = await get(number, "/healthz"), await get(number, "/readyz")

    assert early == ((200, "ok\n"), (503, "FAILED: the worker does not run\n"))
    assert at_work == ((200, "ok\n"), (200, "ok\n"), (404, "not found\n"))
    assert (late[0], late[1][0]) == ((200, "ok\n"), 503)
