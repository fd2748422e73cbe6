"""Running a worker as a process: what signals mean to it, and its exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

import anyio
from anyio.abc import TaskStatus
from sqlalchemy.exc import DBAPIError

from jobq import Worker, admin
from jobq.errors import JobqError, WorkerError
from jobq_cli.connect import Target, engine_for
from jobq_cli.failures import FAILURE, report
from jobq_cli.ports import Port, listening

logger = logging.getLogger("jobq.run")
LEFT_BEHIND = 70
HURRY_SECONDS = 10.0  # after a second signal: twice what a worker takes to give back where the server does not answer
ENDING_SECONDS = 3.0  # what is left of the process has to end: error reporters send what they hold for 2 s


@dataclass(slots=True)
class _Told:
    """The signals that have come, and whether the worker has joined the fleet (it calls `started` then)."""

    signals: list[signal.Signals] = field(default_factory=list)
    is_at_work: anyio.Event = field(default_factory=anyio.Event)

    def started(self, value: None = None) -> None:
        self.is_at_work.set()


async def serve(worker: Worker, target: Target, doubtful: Collection[str], ports: Sequence[Port] = ()) -> int:
    """Run until a signal, SIGTERM or SIGINT: the first lets running jobs end, the second gives them back at once.

    Returns the exit code. Does not return when a handler was left behind: the event loop would wait for it, so the
    process ends here. `doubtful`: queues that were asked for and that no handler names. Raises: Failed, when one of the
    ports cannot be listened on.
    """
    told, code = _Told(), 0
    async with listening(ports) as numbers, anyio.create_task_group() as group:
        _say_ports(ports, numbers)
        await group.start(_obey, worker, told)
        if doubtful:
            group.start_soon(_warn, told, target, doubtful)
        code = await _work(worker, told)
        group.cancel_scope.cancel()
    return code


def _say_ports(ports: Sequence[Port], numbers: Sequence[int]) -> None:
    for port, number in zip(ports, numbers, strict=True):
        logger.info("answers %s on %s port %d", ", ".join(port.pages), port.host, number)


async def _work(worker: Worker, told: _Told) -> int:
    try:
        code = await worker.run(task_status=told)
    except (JobqError, DBAPIError) as error:
        code = report(error)
    except Exception as error:  # the application's lifespan, say: whoever wrote it needs the place
        logger.critical("the worker ended: %s: %s", type(error).__name__, error, exc_info=True)
        code = FAILURE
    _end_in_time(ENDING_SECONDS)
    if _has_left_behind(worker):
        _end_process(LEFT_BEHIND)
    if code == 0 and len(told.signals) > 1:
        return 128 + told.signals[1]
    return code


async def _obey(worker: Worker, told: _Told, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for each in signals:
            told.signals.append(each)
            if len(told.signals) == 1:
                logger.info("%s: no more claims; once more to give back what runs at once", each.name)
                worker.stop()
            elif len(told.signals) == 2:
                logger.info("%s again: giving back what runs", each.name)
                worker.stop(now=True)
                _end_in_time(HURRY_SECONDS)  # the application's lifespan may hang


async def _warn(told: _Told, target: Target, doubtful: Collection[str]) -> None:
    """A mistyped queue would be served in silence for ever: say which ones there are."""
    await told.is_at_work.wait()
    with suppress(Exception):  # a hint only: trouble with the database is the worker's to tell
        known = await anyio.to_thread.run_sync(_known_queues, target, abandon_on_cancel=True)
        for queue in sorted(set(doubtful) - set(known)):
            names = ", ".join(known)
            logger.warning("queue %s: no handler and no job uses it (known: %s); is it mistyped?", queue, names)


def _known_queues(target: Target) -> list[str]:
    with engine_for(target).connect() as connection:
        return admin.queue_names(connection)


def _has_left_behind(worker: Worker) -> bool:
    try:
        return worker.stats().left_behind > 0
    except WorkerError:  # it never ran
        return False


def _end_in_time(seconds: float) -> None:
    """The event loop and the interpreter wait, without end, for threads that handlers started (`asyncio.to_thread`)."""
    signal.signal(signal.SIGALRM, _cut_off)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _cut_off(_number: int, _frame: FrameType | None) -> None:
    names = [each.name for each in threading.enumerate() if not (each.daemon or each is threading.main_thread())]
    logger.warning("left behind, still running: %s", ", ".join(["the main thread", *names]))
    _end_process(LEFT_BEHIND)


def _end_process(code: int) -> None:
    """At once: neither the event loop nor the interpreter waits for what cannot be stopped."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
