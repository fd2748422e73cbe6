"""The process executor: a pool of child processes that heals."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import anyio

from jobq.errors import ChildDiedError, WorkerError
from jobq.executors.base import Attempt, Call
from jobq.executors.process import wire
from jobq.executors.process.child import Child
from jobq.executors.process.conversation import Conversation
from jobq.executors.process.place import needs_kinds
from jobq.executors.process.wire import Message
from jobq.executors.setup import Setup
from jobq.verdict import Ended

logger = logging.getLogger("jobq.worker")

PATIENCE_SECONDS = 0.5  # what a function has to end once it is told to, before it is killed
TRIES = 3  # children that may die before a job has begun in one
CLOSE_SECONDS = 1.0
START_SECONDS = 120.0  # what the import of an application may take


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """`processes`: so many children; None: as many as cores. The limits are for each child: jobs, MiB of memory."""

    processes: int | None = None
    max_jobs_per_child: int | None = None
    max_memory_per_child: int | None = None


class ProcessExecutor:
    """Runs functions in child processes, started when they are needed and kept."""

    def __init__(self, setup: Setup, options: ProcessOptions) -> None:
        self._kinds = list(setup.handlers)
        self._place = setup.place()
        self._source = setup.source
        self._options = options
        self._name = setup.worker
        self._room = asyncio.Semaphore(0)
        self._idle: list[Child] = []
        self._children: set[Child] = set()
        self._stopped: dict[Child, int] = {}

    @property
    def places(self) -> int:
        return self._options.processes or os.cpu_count() or 1

    @property
    def left_behind(self) -> Collection[int]:
        """Of jobs whose process has been killed and is not gone yet."""
        return self._stopped.values()

    async def start(self) -> None:
        """Start the first child, which imports the application. Raises: WorkerError, when it has not the handlers."""
        self._room = asyncio.Semaphore(self.places)  # of this run's event loop
        self._idle.append(await self._new_child())

    async def run(self, call: Call) -> Ended:
        assert call.attempt is not None
        call.attempt.waits()
        async with self._room:
            try:
                return await self._run(call, call.attempt)
            except (WorkerError, OSError) as error:  # a child that cannot be started
                return Ended(error=error)

    async def close(self) -> None:
        """Idle children end by themselves; what is still there a second later is killed. Also in a cancelled task."""
        children = list(self._children)
        for child in children:
            child.retire()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            for child in children:
                await child.dead.wait()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            for child in children:
                await child.kill()
        for child in children:
            child.close()
        self._idle.clear()
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(0)  # for transports to let go of their sockets

    async def _run(self, call: Call, attempt: Attempt) -> Ended:
        for _ in range(TRIES):
            child = await self._child()
            talk = Conversation(child, attempt, self._source, self._options.max_memory_per_child)
            try:
                ended = await talk.run()
            except BaseException:
                try:
                    await child.stop(PATIENCE_SECONDS, is_lost=call.context.is_lost, hear=talk.hear)
                finally:
                    if not child.dead.is_set():
                        self._stopped[child] = attempt.job.id
                raise
            self._put_back(child, is_tired=talk.is_over_limit)
            if ended is not None:
                return ended
        return Ended(error=ChildDiedError(f"{TRIES} child processes ended one after the other before the job began"))

    async def _child(self) -> Child:
        while self._idle:
            if (child := self._idle.pop()).is_alive:
                return child
        return await self._new_child()

    def _put_back(self, child: Child, *, is_tired: bool) -> None:
        child.output.about(None)
        child.jobs += 1
        most = self._options.max_jobs_per_child
        if is_tired or (most is not None and child.jobs >= most):
            child.retire()
        elif child.is_alive:
            self._idle.append(child)

    async def _new_child(self) -> Child:
        child = await Child.spawn()
        self._children.add(child)
        child.on_death, child.on_close = self._gone, self._children.discard
        try:
            child.send(self._hello())
            async with asyncio.timeout(START_SECONDS):
                kinds = await self._introduced(child)
            needs_kinds(self._place, self._kinds, kinds)
        except BaseException as error:
            await child.kill()
            if isinstance(error, TimeoutError):
                raise WorkerError(f"a child process has not imported {self._place} in {START_SECONDS:.0f} s") from None
            raise
        logger.debug("child process %d is ready", child.pid)
        return child

    async def _introduced(self, child: Child) -> list[str]:
        """The kinds that it has handlers for. Raises: WorkerError."""
        try:
            message = await child.receive()
        except wire.Ended:
            await child.kill()
            raise WorkerError(
                f"a child process ended while it imported {self._place} (exit code {child.popen.returncode})"
            ) from None
        if message["is"] == "failed":
            raise WorkerError(f"a child process cannot import {self._place}: {message['text']}")
        kinds: list[str] = message["kinds"]
        return kinds

    def _hello(self) -> Message:
        translated = self._source.options.get("schema_translate_map") or {}
        return {
            "name": self._name,
            "module": self._place.module,
            "attribute": self._place.attribute,
            "others": self._place.others,
            "level": logging.getLogger().getEffectiveLevel(),
            "url": self._source.url.render_as_string(hide_password=False),
            "translated": list(translated.items()),
            "pooler": self._source.pooler,
            "path": sys.path,
            "pythonpath": os.environ.get("PYTHONPATH"),
        }

    def _gone(self, child: Child) -> None:
        self._stopped.pop(child, None)
        with suppress(ValueError):
            self._idle.remove(child)
