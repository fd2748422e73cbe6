"""What passes between a worker and a child process: JSON objects, each behind its length in 4 bytes.

Never a pickle: what comes from a child can be read, not executed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

LENGTH = struct.Struct("!I")
MOST_BYTES = 64 << 20  # a job's args are 1 MiB at most, texts of a handler are cut before they are sent


class Ended(Exception):
    """The other side is gone, or does not speak this language: then it has a text."""


def pack(message: Message) -> bytes:
    """A message as bytes. ASCII, so that a lone surrogate in a text of a handler's passes too."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


async def receive(stream: asyncio.StreamReader) -> Message:
    """The next message, for the worker. Raises: Ended."""
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        return _unpack(await stream.readexactly(_checked(length)))
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Ended from error


def receive_in_thread(link: socket.socket) -> Message:
    """The same, for a child. Raises: Ended."""
    (length,) = LENGTH.unpack(_exactly(link, LENGTH.size))
    return _unpack(_exactly(link, _checked(length)))


def _exactly(link: socket.socket, length: int) -> bytes:
    parts, missing = list[bytes](), length
    while missing:
        try:
            part = link.recv(min(missing, 1 << 20))
        except OSError as error:
            raise Ended from error
        if not part:
            raise Ended
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _checked(length: int) -> int:
    if length > MOST_BYTES:
        raise Ended(f"a message of {length} bytes")
    return length


def _unpack(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Ended("a message that is no JSON") from error
    if not isinstance(message, dict):
        raise Ended("a message that is no object")
    return message
