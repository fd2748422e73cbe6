"""A child process as the worker sees it: started, spoken with, ended, and reaped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from jobq.executors.patience import awake_timeout
from jobq.executors.process import wire
from jobq.executors.process.output import Output
from jobq.executors.process.wire import Message

LOOK_SECONDS = 0.25  # between two looks whether it lives, where the kernel cannot tell by itself
READ_SECONDS = 0.2  # what is left to read of a dead one, while a process that it started holds its socket open
QUIT_SECONDS = 3.0  # what an idle one has to end by itself


class Child:
    """A process of its own group, so that what a handler has started ends with it."""

    def __init__(self, popen: subprocess.Popen[bytes], stream: asyncio.StreamReader, writer: asyncio.StreamWriter,
                 output: Output) -> None:  # fmt: skip
        self.popen = popen
        self.output = output
        self.jobs = 0
        self.dead = asyncio.Event()
        self.on_death: Callable[[Child], None] = lambda _: None
        self.on_close: Callable[[Child], None] = lambda _: None
        self._stream = stream
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._watch()

    @classmethod
    async def spawn(cls) -> Self:
        """A new interpreter, never a fork: threads, locks and connections stay here."""
        ours, theirs = socket.socketpair()
        try:
            popen, pipe = _popen(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        try:
            stream, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            popen.kill()
            popen.wait()
            os.close(pipe)
            ours.close()
            raise
        return cls(popen, stream, writer, Output(pipe, f"child process {popen.pid}"))

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_alive(self) -> bool:
        return not self.dead.is_set() and not _is_zombie(self.popen)

    def send(self, message: Message) -> None:
        self._writer.write(wire.pack(message))

    async def receive(self) -> Message:
        """The next message that is not a line for the log. Raises: wire.Ended."""
        while (message := await wire.receive(self._stream))["is"] == "log":
            self.output.relay(message)
        return message

    def signal(self, number: signal.Signals) -> None:
        """To it and to what it has started. A pid of a process that was reaped may be somebody else's."""
        if self.popen.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def retire(self) -> None:
        """Have it end by itself, without waiting for that."""
        self._writer.close()
        self._loop.call_later(QUIT_SECONDS, self.signal, signal.SIGKILL)

    async def stop(self, patience_seconds: float, *, is_lost: bool, hear: Callable[[Message], None]) -> None:
        """Tell it to stop, TERM; after so many seconds KILL. Returns when it is dead, or cannot even be killed.

        `is_lost`: its attempt counts no more. `hear`: gets what its function still reports.
        """
        self.output.drain()
        with suppress(OSError):
            self.send({"is": "cancel", "is_lost": is_lost})
        self.signal(signal.SIGTERM)
        try:
            async with awake_timeout(patience_seconds):
                while (message := await self.receive())["is"] != "ended":
                    if message["is"] == "ask":
                        self.send({"is": "answer", "lost": "the job was stopped"})
                    elif message["is"] == "report":
                        hear(message)
        except (TimeoutError, wire.Ended):
            pass
        finally:
            self.signal(signal.SIGKILL)  # also when this wait is itself cut off
        await self.kill()

    async def dies(self, within_seconds: float) -> bool:
        """Whether it ends by itself, and is reaped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self.dead.wait()
        return self.dead.is_set()

    async def kill(self, within_seconds: float = 0.4) -> None:
        """At once. Returns when it is reaped, which may take a moment for one with much memory."""
        self.signal(signal.SIGKILL)
        await self.dies(within_seconds)

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)  # Linux 5.3
        except (AttributeError, OSError):
            self._pidfd = -1
            self._look()
        else:
            self._loop.add_reader(self._pidfd, self._look)

    def _look(self) -> None:
        if not _is_zombie(self.popen):
            if self._pidfd < 0:
                self._loop.call_later(LOOK_SECONDS, self._look)
            return
        self.signal(signal.SIGKILL)  # what it has started; its own id is not free before it is reaped
        self.popen.wait()
        self._reap_orphans()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._loop.call_later(READ_SECONDS, self.close)
        self.dead.set()
        self.on_death(self)

    def close(self) -> None:
        """Let go of its pipe and its socket; once it is dead."""
        self._reap_orphans()
        self.output.close()
        self._writer.transport.abort()
        self.on_close(self)

    def _reap_orphans(self) -> None:
        """As process 1 of a container the worker is the heir of what its children leave."""
        with suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass


def _popen(theirs: socket.socket) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the end of the pipe where its output can be read."""
    reading, writing = os.pipe()
    try:
        popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "jobq.child", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            pass_fds=[theirs.fileno()],
            process_group=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return popen, reading


def _is_zombie(popen: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended. It is not reaped by the question, where the system can be asked so."""
    if popen.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return popen.poll() is not None
    return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
