"""Hears that jobs are due, were taken or are waited for. It only saves a wait: what it misses is found by looking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any

import anyio
import psycopg
from anyio.abc import TaskStatus
from psycopg import sql
from psycopg.pq import PGnotify
from psycopg.pq.abc import PGconn

from jobq.faults import can_wait_out
from jobq.model import Position
from jobq.notify import parse, word_in
from jobq.source import Source
from jobq.worker.link import Link
from jobq.worker.loops import wait_for

SILENCE_SECONDS = 20.0  # after so long without a word the listener asks whether the server is still there
ANSWER_SECONDS = 5.0


class Listener:
    """One connection that does nothing but LISTEN: in autocommit, since a listener in a transaction hears nothing."""

    def __init__(
        self,
        source: Source,
        link: Link,
        *,
        name: str,
        channel: str,
        tell: Callable[[Position | None], None],
        words: Mapping[str, Callable[[int], None]],
        stop: anyio.Event,
    ) -> None:
        self._source = source
        self._name = name
        self._link = link
        self._channel = channel
        self._tell = tell
        self._words = words
        self._stop = stop
        self._hearing = anyio.CancelScope()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen until told to stop; after each new connection say that notifications may have been missed."""
        task_status.started()
        async with anyio.create_task_group() as group:
            group.start_soon(self._stop_hearing)
            await self._keep_listening()
            group.cancel_scope.cancel()

    async def _stop_hearing(self) -> None:
        await self._stop.wait()
        self._hearing.cancel()

    async def _keep_listening(self) -> None:
        while not self._stop.is_set():
            try:
                await self.run_once()
            except Exception as error:
                if not can_wait_out(error):
                    raise
                await wait_for(self._stop, self._link.failed("listener", error))

    async def run_once(self) -> None:
        """Connect and listen until the connection fails or the worker stops."""
        with anyio.fail_after(ANSWER_SECONDS * 2):
            connection = await self._source.connect_alone(self._name)
        try:
            with anyio.CancelScope() as self._hearing:
                await self._listen(connection)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await connection.close()

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if self._stop.is_set():
            return
        hear = partial(self._hear, encoding=connection.info.encoding)
        connection.pgconn.notify_handler = hear  # what a statement meets
        with anyio.fail_after(ANSWER_SECONDS):
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._link.worked("listener")
        self._tell(None)
        while not self._stop.is_set():
            await _Ear(connection.pgconn, hear).until_silent()
            with anyio.fail_after(ANSWER_SECONDS):
                await connection.execute("SELECT 1")

    def _hear(self, notification: PGnotify, *, encoding: str) -> None:
        payload = notification.extra.decode(encoding, errors="replace")  # anybody may NOTIFY
        if position := parse(payload):
            self._tell(position)
        elif (word := word_in(payload)) and (listen := self._words.get(word.what)):
            listen(word.id)


class _Ear:
    """Reads from libpq itself what the server says, in the loop's own callback.

    psycopg's wait for notifications wakes up ten times a second, a good part of what an idle worker costs, and
    registers the socket with the loop for each look; a task that reads costs one more turn of the loop. Both would be
    on the way from a commit to its handler.
    """

    def __init__(self, connection: PGconn, hear: Callable[[PGnotify], None]) -> None:
        self._connection = connection
        self._hear = hear
        self._heard_at = monotonic()
        self._failed = anyio.Event()
        self._error: Exception | None = None
        self._socket: int | None = None  # while it is registered: libpq closes it by itself, and another may get it

    async def until_silent(self) -> None:
        """Until the server has said nothing for SILENCE_SECONDS. Raises what reading has raised."""
        self._socket = self._connection.socket
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        try:
            self._read()
            while (left := self._heard_at + SILENCE_SECONDS - monotonic()) > 0 and self._error is None:
                await wait_for(self._failed, left)
        finally:
            self._close()
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        self._heard_at = monotonic()
        try:
            self._connection.consume_input()
            while notification := self._connection.notifies():
                self._hear(notification)
        except Exception as error:
            self._close()
            self._error = error
            self._failed.set()

    def _close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket = None
