"""A network that swallows packets: nothing arrives, nothing is acknowledged, nobody is told by a RST or a FIN."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys

import pytest

SO_ATTACH_FILTER = 26  # <asm-generic/socket.h>
SO_DETACH_FILTER = 27
RETURN = 0x06  # a classic BPF program of one instruction: keep no byte of any packet
PROGRAM = ctypes.create_string_buffer(struct.pack("HBBI", RETURN, 0, 0, 0))

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="packets are dropped by a socket filter of Linux")


def swallow(sock: socket.socket) -> None:
    """The kernel drops each packet that comes for this socket, before TCP sees it."""
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(PROGRAM)))


def let_through(sock: socket.socket) -> None:
    """As before; what was swallowed is sent again by the TCP of the other side."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
