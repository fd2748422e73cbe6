"""The connection to a Dask cluster: made anew when its scheduler is back, so that no worker has to be restarted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import anyio
from distributed import Client

from jobq.errors import WorkerError
from jobq.executors.dask.local import LocalSize, start_local

logger = logging.getLogger("jobq.worker")

CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 2.0
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)  # between tries to reach a scheduler; the last one again and again
EVERYBODY = "all"  # the topic where the scheduler says which workers come and go


class Cluster:
    """`on_event` is called in the event loop with what the scheduler tells: of workers, and of functions by `topic`."""

    def __init__(self, scheduler: str | None, size: LocalSize, *, name: str) -> None:
        self.topic = f"jobq-{name}-{uuid4().hex}"
        self.on_event: Callable[[Any], Awaitable[None]] = _ignore
        self._scheduler = scheduler
        self._size = size
        self._local: Any = None
        self._client: Any = None
        self._mark: Any = None  # a future that is cancelled with the connection
        self._is_away = False
        self._connecting = asyncio.Lock()

    @property
    def where(self) -> str:
        return self._scheduler or "on this machine"

    @property
    def is_connected(self) -> bool:
        return self._client is not None and not self.is_lost(self._client)

    async def start(self) -> None:
        """Raises: WorkerError, when no scheduler answers."""
        self._connecting = asyncio.Lock()  # of this run's event loop
        try:
            await self._connect()
        except RuntimeError as error:
            raise WorkerError(
                f"no Dask cluster can be started on this machine: {_first_line(error)} (its processes import the script"
                ' that starts it, which must run its worker under `if __name__ == "__main__":`)'
            ) from error
        except (OSError, ValueError) as error:
            raise WorkerError(
                f"no Dask scheduler answers at {self.where}: is it started, and is this its address, such as"
                f" tcp://host:8786? ({_first_line(error)})"
            ) from error

    async def client(self) -> Client:
        """A connected one; waits as long as the scheduler is away."""
        async with self._connecting:
            if not self.is_connected:
                await self._reconnect()
            client: Client = self._client
            return client

    def is_lost(self, client: Client) -> bool:
        """Whether its connection broke at any time: then it has forgotten every future, and its subscriptions.

        The mark tells of one that has come back by itself meanwhile.
        """
        return client is not self._client or client.status != "running" or bool(self._mark.cancelled())

    async def close(self) -> None:
        """Also in a cancelled task."""
        await self._drop()
        if self._local is not None:
            local, self._local = self._local, None
            with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Exception):
                await local.close()

    async def _reconnect(self) -> None:
        await self._drop()
        if not self._is_away:
            self._is_away = True
            logger.warning("the Dask scheduler %s is out of reach: its jobs wait until it is back", self.where)
        pauses = list(PAUSES)
        while True:
            try:
                await self._connect()
            except OSError as error:
                logger.debug("still out of reach: %s", _first_line(error))
                await asyncio.sleep(pauses.pop(0) if len(pauses) > 1 else pauses[0])
            else:
                self._is_away = False
                logger.info("the Dask scheduler %s is back", self.where)
                return

    async def _connect(self) -> None:
        if self._scheduler is None and self._local is None:
            self._local = await start_local(self._size)
        address: Any = self._scheduler or self._local
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, asynchronous=True, set_as_default=False, timeout=CONNECT_SECONDS
        )
        try:
            await client
        except BaseException:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Exception):
                await client.close()
            raise
        client.subscribe_topic(EVERYBODY, self._hear)
        client.subscribe_topic(self.topic, self._hear)
        self._mark = client.submit(int, key=f"{self.topic}-mark-{uuid4().hex}", pure=False)
        self._client = client

    async def _drop(self) -> None:
        client, self._client, self._mark = self._client, None, None
        if client is not None:
            if client.status == "running":
                client.unsubscribe_topic(EVERYBODY)  # else the scheduler tells it of its own leaving
            with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Exception):
                await client.close()

    async def _hear(self, event: tuple[float, Any]) -> None:
        await self.on_event(event[1])


async def _ignore(_: Any) -> None:
    return None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
