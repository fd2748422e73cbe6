"""What the server is told for the sessions of a worker, against clients that vanish and crashes of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from bench import Bench, assembly_of
from own_transactions import both

import jobq
from jobq import urls
from jobq.database import Database
from jobq.session_settings import SERVER_KEEPALIVE
from jobq.source import source_of
from jobq.worker.handler_engines import HandlerEngines

pytestmark = pytest.mark.anyio
SHOWN = sa.text("SELECT name, current_setting(name) AS value FROM unnest(CAST(:names AS text[])) AS name")
T = TypeVar("T")


def shown(connection: sa.Connection) -> dict[str, str]:
    """As the server's kernel says."""
    return {row.name: row.value for row in connection.execute(SHOWN, {"names": list(SERVER_KEEPALIVE)})}


def commits(connection: sa.Connection) -> str:
    return str(connection.execute(sa.text("SHOW synchronous_commit")).scalar_one())


async def of_handlers(url: Any, where: str, *, pooler: bool = False) -> dict[str, str]:
    """The keepalives of a connection that a handler gets."""
    return await asked(shown, url, where, pooler=pooler)


async def asked(what: Callable[[sa.Connection], T], url: Any, where: str, *, pooler: bool = False) -> T:
    engines = HandlerEngines(source_of(url, pooler=pooler), name="test", size=1)
    try:
        if where == "loop":
            async with engines.asynchronous.connect() as other:
                return await other.run_sync(what)
        with engines.sync.connect() as connection:
            return what(connection)
    finally:
        await engines.close()


@both
async def test_the_server_is_told_to_look_after_a_handlers_connection(bench: Bench, where: str) -> None:
    assert await of_handlers(bench.url, where) == SERVER_KEEPALIVE


async def test_and_after_the_workers_own(bench: Bench, app: jobq.App) -> None:
    async with bench.working(app, bench.url) as worker:
        assert await assembly_of(worker).database.run(shown) == SERVER_KEEPALIVE


@both
@pytest.mark.parametrize("by", ["url", "role", "database"])
async def test_what_was_said_for_this_client_wins(bench: Bench, where: str, by: str) -> None:
    url = sa.make_url(bench.url)
    if by == "url":
        url = url.update_query_dict({"options": "-c tcp_keepalives_idle=60"})
    else:
        name = url.username if by == "role" else url.database
        within = f' IN DATABASE "{url.database}"' if by == "role" else ""
        bench.execute(f'ALTER {by} "{name}"{within} SET tcp_keepalives_idle = 60')

    assert await of_handlers(url, where) == {**SERVER_KEEPALIVE, "tcp_keepalives_idle": "60"}


@both
async def test_behind_a_pooler_nothing_is_set(bench: Bench, where: str) -> None:
    assert await of_handlers(bench.url, where, pooler=True) != SERVER_KEEPALIVE


async def test_over_a_unix_socket_nothing_is_to_be_told(bench: Bench) -> None:
    [(directories,)] = bench.execute("SHOW unix_socket_directories")
    url = sa.make_url(bench.url)
    if not (Path(directories.split(",")[0]) / f".s.PGSQL.{url.port or 5432}").exists():
        pytest.skip("the server of this run has no Unix socket")
    url = url.set(host=None, port=None, query={"host": directories.split(",")[0], "port": str(url.port or 5432)})

    assert set((await of_handlers(url, "loop")).values()) == {"0"}
    database = Database(source_of(url), name="test", size=1)
    assert set((await database.run(shown)).values()) == {"0"}
    await database.close()


@both
@pytest.mark.parametrize(("said", "holds"), [("off", "local"), ("on", "on"), ("remote_apply", "remote_apply")])
async def test_no_claim_and_no_end_is_taken_back_by_a_crash(
    bench: Bench, app: jobq.App, where: str, said: str, holds: str
) -> None:
    bench.execute(f'ALTER DATABASE "{sa.make_url(bench.url).database}" SET synchronous_commit = {said}')

    assert await asked(commits, bench.url, where) == holds
    async with bench.working(app, bench.url) as worker:
        assert await assembly_of(worker).database.run(commits) == holds


def test_both_sides_wait_equally_long() -> None:
    theirs = {name.replace("tcp_keepalives", "keepalives"): int(value) for name, value in SERVER_KEEPALIVE.items()}
    assert theirs == {name: urls.KEEPALIVE[name] for name in theirs}
