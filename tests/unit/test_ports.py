"""The ports of a worker's process, as sockets see them."""

from __future__ import annotations

import gc
import socket
import struct
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import anyio
import pytest

from jobq_cli import ports
from jobq_cli.failures import Failed
from jobq_cli.ports import Answer, Page, Port, listening

pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 10


def page(text: str, status: HTTPStatus = HTTPStatus.OK) -> Page:
    async def answer() -> Answer:
        return Answer(text.encode(), status)

    return answer


async def converse(number: int, request: bytes) -> bytes:
    """All that comes back until the other side closes."""
    with anyio.fail_after(PATIENCE_SECONDS):
        async with await anyio.connect_tcp("127.0.0.1", number) as stream:
            await stream.send(request)
            answer = b""
            try:
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return answer


async def ask(request: bytes, pages: dict[str, Page]) -> bytes:
    async with listening([Port("127.0.0.1", 0, pages)]) as (number,):
        return await converse(number, request)


def get(path: bytes, method: bytes = b"GET", version: bytes = b"HTTP/1.1") -> bytes:
    return method + b" " + path + b" " + version + b"\r\nHost: localhost\r\n\r\n"


async def test_a_page_is_answered_with_its_length_and_the_connection_closed() -> None:
    answer = await ask(get(b"/healthz"), {"/healthz": page("ok\n")})

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 200 OK"
    assert {b"Content-Length: 3", b"Connection: close", b"Content-Type: text/plain; charset=utf-8"} <= set(
        head.splitlines()
    )
    assert body == b"ok\n"


async def test_head_gets_no_body_and_a_query_is_no_part_of_the_path() -> None:
    answer = await ask(get(b"/healthz?x=1", b"HEAD"), {"/healthz": page("ok\n")})

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"Content-Length: 3" in answer


async def test_a_page_says_its_own_status() -> None:
    assert (await ask(get(b"/"), {"/": page("no", HTTPStatus.SERVICE_UNAVAILABLE)})).startswith(b"HTTP/1.1 503 ")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(b"/<script>alert(1)</script>"), b"404"),
        (get(b"/../healthz"), b"404"),
        (get(b"/\xff\xfe"), b"404"),
        (get(b"/healthz", b"POST"), b"405"),
        (get(b"/healthz", b"DELETE"), b"405"),
        (get(b"http://elsewhere/healthz"), b"400"),
        (get(b"/healthz", version=b"FTP/1.0"), b"400"),
        (get(b"/health z"), b"400"),
        (b"\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET /healthz\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 20_000, b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000, b"400"),
    ],
)
async def test_f70_what_is_no_page_is_refused_and_never_repeated(request_: bytes, status: bytes) -> None:
    answer = await ask(request_, {"/healthz": page("ok\n")})

    is_cut_off = answer == b"" and len(request_) > ports.LONGEST_REQUEST  # its answer may be lost
    assert is_cut_off or answer.startswith(b"HTTP/1.1 " + status)
    assert b"script" not in answer
    assert b"ok\n" not in answer


async def test_a_page_that_fails_is_a_500_and_the_port_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> Answer:
        raise ValueError("hunter2")

    async with listening([Port("127.0.0.1", 0, {"/": broken, "/healthz": page("ok\n")})]) as (number,):
        first = await converse(number, get(b"/"))
        second = await converse(number, get(b"/healthz"))

    assert first.startswith(b"HTTP/1.1 500 ")
    assert b"hunter2" not in first
    assert second.endswith(b"ok\n")
    assert "a page of the worker's port failed" in caplog.text


async def test_a_client_that_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "REQUEST_SECONDS", 0.05)

    assert await ask(b"GET /healthz HT", {"/healthz": page("ok\n")}) == b""


async def test_more_connections_than_anyone_needs_are_closed_at_once() -> None:
    async with listening([Port("127.0.0.1", 0, {"/": page("ok\n")})]) as (number,):
        idle = [await anyio.connect_tcp("127.0.0.1", number) for _ in range(ports.MOST_CONNECTIONS)]
        with anyio.fail_after(PATIENCE_SECONDS):
            async with await anyio.connect_tcp("127.0.0.1", number) as one_more:
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await one_more.receive()
        for each in idle:
            await each.aclose()
        await eventually(lambda: converse(number, get(b"/")), b"ok\n")


async def eventually(ask_: Callable[[], Awaitable[bytes]], end: bytes) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not (await ask_()).endswith(end):
            await anyio.lowlevel.checkpoint()


class Scarce:
    """A listener that finds no file descriptor left, at first."""

    def __init__(self) -> None:
        self.tries = 0
        self.has_served = anyio.Event()

    async def serve(self, handler: object, group: object) -> None:
        self.tries += 1
        if self.tries < 3:
            raise ExceptionGroup("of several", [OSError(24, "Too many open files")])
        self.has_served.set()
        await anyio.sleep_forever()


async def test_a_connection_that_cannot_be_taken_does_not_end_the_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ports, "PAUSE_SECONDS", 0.0)
    listener: Any = Scarce()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(ports._serve, listener, ports._Site({}), group)
            await listener.has_served.wait()
            group.cancel_scope.cancel()

    assert listener.tries == 3
    assert "Too many open files; going on" in caplog.text


async def test_a_peer_that_resets_its_connection_leaves_the_port_as_it_was() -> None:
    async with listening([Port("127.0.0.1", 0, {"/": page("ok\n" * 500_000), "/healthz": page("ok\n")})]) as (number,):
        for _ in range(3):
            client = socket.create_connection(("127.0.0.1", number))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(get(b"/"))
            client.close()

        assert (await converse(number, get(b"/healthz"))).endswith(b"ok\n")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # anyio 4.8 does not close that socket
async def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(Failed, match=rf"^cannot listen on 127\.0\.0\.1 port {number}: "):
            async with listening([Port("127.0.0.1", number, {})]):
                pass
    gc.collect()


async def test_the_ports_are_free_again_after_the_block() -> None:
    async with listening([Port("127.0.0.1", 0, {}), Port("127.0.0.1", 0, {})]) as numbers:
        assert len(set(numbers)) == 2

    async with listening([Port("127.0.0.1", number, {}) for number in numbers]) as again:
        assert again == numbers
