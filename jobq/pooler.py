"""Statements behind a transaction pooler, where a SET would go to whoever uses the server's connection next.

The settings travel with the statement in one message, which the server runs as one transaction (PostgreSQL, "Multiple
Statements in a Simple Query"): one round trip, as in autocommit, and nothing to freeze in between. Nothing is prepared.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

Cursor = TypeVar("Cursor", bound="psycopg.ClientCursor[Any] | psycopg.AsyncClientCursor[Any]")


class LocalCursor(psycopg.ClientCursor[Any]):
    """Sends `settings` in front of the first statement of each transaction."""

    def __init__(self, connection: psycopg.Connection[Any], *, settings: bytes, **options: Any) -> None:
        super().__init__(connection, **options)
        self._settings = settings

    def execute(self, query: Any, params: Any = None, **options: Any) -> LocalCursor:
        if _is_within_transaction(self):
            super().execute(query, params, **options)
            return self
        super().execute(self._settings + self.mogrify(query, params).encode(self.connection.info.encoding))
        return _at_last_result(self)


class AsyncLocalCursor(psycopg.AsyncClientCursor[Any]):
    """The same for the event loop."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, settings: bytes, **options: Any) -> None:
        super().__init__(connection, **options)
        self._settings = settings

    async def execute(self, query: Any, params: Any = None, **options: Any) -> AsyncLocalCursor:
        if _is_within_transaction(self):
            await super().execute(query, params, **options)
            return self
        await super().execute(self._settings + self.mogrify(query, params).encode(self.connection.info.encoding))
        return _at_last_result(self)


def use_local_settings(connection: Any, settings: Mapping[str, str]) -> None:
    """Have each transaction of a psycopg connection begin with these settings, READ COMMITTED."""
    local = sql.SQL("; ").join(
        [
            sql.SQL("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
            *[sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), value) for name, value in settings.items()],
            sql.SQL(""),
        ]
    )
    is_async = isinstance(connection, psycopg.AsyncConnection)
    cursor: Any = AsyncLocalCursor if is_async else LocalCursor
    connection.cursor_factory = partial(cursor, settings=local.as_bytes(connection))
    connection.prepare_threshold = None


def _is_within_transaction(cursor: Any) -> bool:
    return bool(cursor.connection.info.transaction_status != TransactionStatus.IDLE)


def _at_last_result(cursor: Cursor) -> Cursor:
    while cursor.nextset():
        pass
    return cursor
