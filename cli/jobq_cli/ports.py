"""A worker's ports for probes and scrapers: a few fixed pages over HTTP, and nothing else.

Not a web server: GET and HEAD, one request a connection, no part of a request in an answer.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from jobq_cli.failures import Failed

logger = logging.getLogger("jobq.run")
LONGEST_REQUEST = 8_192  # bytes, its headers included
REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 15.0
PAUSE_SECONDS = 1.0  # after a connection that could not be taken
MOST_CONNECTIONS = 32  # at a time: a probe and a scraper need one each
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN


Page: TypeAlias = Callable[[], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Port:
    """An address, and the pages that are there by their paths. Port 0: any that is free."""

    host: str
    number: int
    pages: Mapping[str, Page]


@asynccontextmanager
async def listening(ports: Iterable[Port]) -> AsyncIterator[list[int]]:
    """Answer on all of these for as long as the block lasts; the numbers of the ports. Raises: Failed."""
    async with AsyncExitStack() as stack:
        bound = [(port, await stack.enter_async_context(await _bound(port))) for port in ports]
        async with anyio.create_task_group() as group:
            for port, listener in bound:
                group.start_soon(_serve, listener, _Site(port.pages), group)
            yield [listener.extra(SocketAttribute.local_port) for _, listener in bound]
            group.cancel_scope.cancel()


async def _bound(port: Port) -> Listener[SocketStream]:
    try:
        return await anyio.create_tcp_listener(local_host=port.host, local_port=port.number)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failed(f"cannot listen on {port.host} port {port.number}: {reason}") from error


async def _serve(listener: Listener[SocketStream], site: _Site, group: TaskGroup) -> None:
    """Without end: what a connect can meet (no file descriptor left, a peer that is gone) must not end a worker."""
    while True:
        try:
            await listener.serve(site.serve, group)
        except Exception as error:
            logger.warning("a port of the worker could not take a connection: %s; going on", _first_of(error))
            await anyio.sleep(PAUSE_SECONDS)


def _first_of(error: BaseException) -> BaseException:
    return _first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class _Site:
    """The pages of one port."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._connections = 0

    async def serve(self, stream: SocketStream) -> None:
        """One connection, to its end."""
        try:
            async with stream:
                if self._connections < MOST_CONNECTIONS:
                    await self._counted(stream)
        except Exception as error:  # the peer went away, most of the time
            logger.debug("a connection to a port of the worker broke off: %s", type(error).__name__)

    async def _counted(self, stream: SocketStream) -> None:
        self._connections += 1
        try:
            await self._converse(stream)
        finally:
            self._connections -= 1

    async def _converse(self, stream: SocketStream) -> None:
        request = b""
        with anyio.move_on_after(REQUEST_SECONDS):
            request = await _request(stream)
        if not request:
            return
        with anyio.move_on_after(ANSWER_SECONDS):
            answer, with_body = await self._answer(request)
            await stream.send(_as_http(answer, with_body=with_body))
            await stream.send_eof()

    async def _answer(self, request: bytes) -> tuple[Answer, bool]:
        """The answer, and whether its body is wanted."""
        method, path = _asked(request)
        if method is None or path is None:
            return _said(HTTPStatus.BAD_REQUEST), True
        if method not in (b"GET", b"HEAD"):
            return _said(HTTPStatus.METHOD_NOT_ALLOWED), True
        page = self._pages.get(path.partition(b"?")[0].decode("latin-1"))
        answer = _said(HTTPStatus.NOT_FOUND) if page is None else await _made(page)
        return answer, method == b"GET"


async def _made(page: Page) -> Answer:
    try:
        return await page()
    except Exception:  # of the application's own metrics, say: the worker goes on
        logger.exception("a page of the worker's port failed")
        return _said(HTTPStatus.INTERNAL_SERVER_ERROR)


async def _request(stream: SocketStream) -> bytes:
    """The first line and the headers; nothing where they do not end."""
    received = b""
    while b"\r\n\r\n" not in received:
        if len(received) >= LONGEST_REQUEST:
            return b"\r\n"  # too long: a bad request
        received += await stream.receive(LONGEST_REQUEST)
    return received


def _asked(request: bytes) -> tuple[bytes | None, bytes | None]:
    """Method and path of the first line, None for what is none."""
    parts = request.partition(b"\r\n")[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1.") or not parts[1].startswith(b"/"):
        return None, None
    return parts[0], parts[1]


def _said(status: HTTPStatus) -> Answer:
    return Answer(f"{status.phrase.lower()}\n".encode(), status)


def _as_http(answer: Answer, *, with_body: bool) -> bytes:
    allow = ("Allow: GET, HEAD",) if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ()
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *allow,
    )
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (answer.body if with_body else b"")
