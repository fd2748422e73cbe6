"""One connection through the proxy: two directions, each in order, as slow as the network is told to be."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import anyio
from anyio.abc import ObjectReceiveStream, SocketAttribute, SocketStream

BLOCK = 65_536
TICK_SECONDS = 0.01
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close with a RST


class Fate(Enum):
    """What becomes of some bytes."""

    PASS = "pass"
    CUT = "cut"  # they are lost, and the connection with them


@dataclass
class Weather:
    """What the network does to all lines at the moment; set at any time, from any thread.

    `latency_seconds`: each piece arrives so much later, whatever is under way before it. `drip`: so many bytes each
    hundredth of a second, at most. `is_still`: replies are kept, and go nowhere. `on_request` and `on_reply` see all
    bytes and decide about them.
    """

    latency_seconds: float = 0.0
    drip: int | None = None
    is_still: bool = False
    on_request: Callable[[bytes], Fate] = field(default=lambda _: Fate.PASS)
    on_reply: Callable[[bytes], Fate] = field(default=lambda _: Fate.PASS)


class Line:
    """Ends when the client's side does, or the server's, unless that one was left half-open."""

    def __init__(self, weather: Weather, client: SocketStream, server: SocketStream) -> None:
        self._weather = weather
        self._client = client
        self._server = server
        self._is_half_open = False
        self._scope = anyio.CancelScope()

    @property
    def client_socket(self) -> socket.socket:
        return self._client.extra(SocketAttribute.raw_socket)

    def cut(self) -> None:
        """Reset both sides."""
        for each in (self._client, self._server):
            with suppress(OSError):
                each.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self._scope.cancel()

    async def lose_server(self) -> None:
        """The server's side is gone; what the client sends is acknowledged, and goes nowhere."""
        self._is_half_open = True
        await self._server.aclose()

    async def run(self) -> None:
        try:
            with self._scope:
                async with anyio.create_task_group() as both:
                    both.start_soon(self._replies, both.cancel_scope)
                    await self._carry(self._client, self._server, lambda data: self._weather.on_request(data))
                    both.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):  # also what cannot be delivered any more is let go of
                await self._client.aclose()
                await self._server.aclose()

    async def _replies(self, both: anyio.CancelScope) -> None:
        await self._carry(self._server, self._client, lambda data: self._weather.on_reply(data))
        if not self._is_half_open:
            both.cancel()

    async def _carry(self, source: SocketStream, sink: SocketStream, decide: Callable[[bytes], Fate]) -> None:
        under_way, arriving = anyio.create_memory_object_stream[tuple[float, bytes]](1000)
        async with anyio.create_task_group() as group:
            group.start_soon(self._deliver, arriving, sink)
            with under_way, suppress(*GONE):
                while True:
                    data = await source.receive(BLOCK)
                    if decide(data) is Fate.CUT:
                        return self.cut()
                    await under_way.send((anyio.current_time() + self._weather.latency_seconds, data))

    async def _deliver(self, arriving: ObjectReceiveStream[tuple[float, bytes]], sink: SocketStream) -> None:
        async with arriving:
            async for due_at, data in arriving:
                await anyio.sleep_until(due_at)
                if not self._is_half_open:
                    with suppress(*GONE):
                        await self._send(data, sink)

    async def _send(self, data: bytes, sink: SocketStream) -> None:
        while sink is self._client and self._weather.is_still:  # noqa: ASYNC110  # it is set from other threads
            await anyio.sleep(TICK_SECONDS)
        while (drip := self._weather.drip) and data:
            await sink.send(data[:drip])
            data = data[drip:]
            await anyio.sleep(TICK_SECONDS)
        if data:
            await sink.send(data)
