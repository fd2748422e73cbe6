"""Store functions of one statement, past SQLAlchemy's greenlets and cursors: a third of what such a statement costs."""

from __future__ import annotations

from typing import Any, ParamSpec, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from jobq.store.rows import OneStatement, Rows, refuse, sent_as

P = ParamSpec("P")
R = TypeVar("R")


async def ask(connection: AsyncConnection, function: OneStatement[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """What the function gives, on a connection of psycopg; raises what it raises."""
    query = function.query(*args, **kwargs)
    sync = connection.sync_connection
    assert sync is not None
    text, values = sent_as(sync, query.statement, query.binds)
    driver: Any = sync.connection.driver_connection
    cursor = driver.cursor()
    try:
        await cursor.execute(text, values)
        rows: Rows = await cursor.fetchall()
    except BaseException as error:
        return await connection.run_sync(refuse, text, error)
    return query.read(rows)
