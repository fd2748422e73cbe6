"""A TCP proxy between worker and server, and what a network can do to them. Its loop runs in a thread of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import sqlalchemy as sa
from anyio.abc import SocketAttribute, SocketStream, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal
from holes import let_through, swallow
from lines import Line, Weather

ACKNOWLEDGED_SECONDS = 0.3  # Linux acknowledges within 0.2


class Network:
    """Forwards connections to a server, at `url`. `weather` decides about the bytes of all of them."""

    def __init__(self, url: str, portal: BlockingPortal) -> None:
        self._server = sa.make_url(url)
        self._portal = portal
        self._lines: set[Line] = set()
        self._is_dark = False
        self._listening: socket.socket | None = None
        self.weather = Weather()
        self.url = ""

    def cut(self) -> int:
        """Reset every connection; how many there were."""
        return self._portal.call(self._with_each, _cut)

    def leave_half_open(self) -> int:
        """Every connection there is loses its server, and no client is told; new ones find it. How many there were."""
        return self._portal.call(self._with_each, Line.lose_server)

    def go_dark(self) -> None:
        """No packet arrives any more, of old connections or new ones."""
        self._portal.call(self._be_dark, True)

    def light_up(self) -> None:
        self._portal.call(self._be_dark, False)

    @contextmanager
    def weathered(self, **changes: object) -> Iterator[None]:
        """Other weather for the block."""
        before, self.weather.__dict__ = dict(vars(self.weather)), {**vars(self.weather), **changes}
        yield
        self.weather.__dict__ = before

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self._listening = listener.extra(SocketAttribute.raw_socket)
        port = listener.extra(SocketAttribute.local_port)
        self.url = self._server.set(port=port).render_as_string(hide_password=False)
        async with listener:
            task_status.started()
            await listener.serve(self._forward)

    async def _forward(self, client: SocketStream) -> None:
        async with client:
            try:
                server = await anyio.connect_tcp(str(self._server.host), int(self._server.port or 5432))
            except OSError:
                return
            await self._carry(Line(self.weather, client, server))

    async def _carry(self, line: Line) -> None:
        self._lines.add(line)
        if self._is_dark:  # the handshake was over before the filter was there
            swallow(line.client_socket)
        await line.run()
        self._lines.discard(line)

    async def _with_each(self, act: Callable[[Line], object]) -> int:
        lines = list(self._lines)
        for line in lines:
            if (waiting := act(line)) is not None:
                await waiting  # type: ignore[misc]
        return len(lines)

    async def _be_dark(self, is_dark: bool) -> None:
        self.weather.is_still = is_dark
        if is_dark:  # bytes without an acknowledgement would be sent again and again, and be heard
            await anyio.sleep(ACKNOWLEDGED_SECONDS)
        self._is_dark = is_dark
        assert self._listening is not None
        for each in [self._listening, *(line.client_socket for line in self._lines)]:
            (swallow if is_dark else let_through)(each)


def _cut(line: Line) -> None:
    line.cut()


@contextmanager
def network_to(url: str) -> Iterator[Network]:
    with start_blocking_portal() as portal:
        network = Network(url, portal)
        serving, _ = portal.start_task(network.serve)
        try:
            yield network
        finally:
            serving.cancel()
