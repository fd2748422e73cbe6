"""Running a worker as a process: what signals mean to it, and its exit code."""

from __future__ import annotations

import faulthandler
import logging
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus
from sqlalchemy.exc import DBAPIError

from jobq import Worker, admin
from jobq.errors import JobqError, WorkerError
from jobq.worker.collector import spare_what_stays
from jobq.worker.exiting import end_process
from jobq_cli.connect import Target, engine_for
from jobq_cli.failures import FAILURE, report, trace
from jobq_cli.guards import LEFT_BEHIND, end_in_time, keep_signals, mend_streams, watching_interpreter
from jobq_cli.leaving import leaving
from jobq_cli.ports import Port, listening

logger = logging.getLogger("jobq.run")
SIGNALS = (signal.SIGTERM, signal.SIGINT)
HURRY_SECONDS = 10.0  # after a second signal: twice what a worker takes to give back where the server does not answer
ENDING_SECONDS = 3.0  # what is left of the process has to end: error reporters send what they hold for 2 s


@dataclass(slots=True)
class _Told:
    """The signals that have come, and whether the worker has joined the fleet (it calls `started` then)."""

    signals: list[signal.Signals] = field(default_factory=list)
    is_at_work: anyio.Event = field(default_factory=anyio.Event)

    def started(self, value: None = None) -> None:
        self.is_at_work.set()


def run_process(
    worker: Worker, target: Target, doubtful: Collection[str], ports: Sequence[Port] = (), *, uvloop: bool = False
) -> int:
    """`serve` in an event loop of its own; from its end on the process has 3 s to end. Returns the exit code."""
    with suppress(OSError, ValueError, RuntimeError):  # without a stderr
        faulthandler.enable()  # a crash in C says where
    try:
        with watching_interpreter(worker.stall):
            return anyio.run(serve, worker, target, doubtful, ports, backend_options={"use_uvloop": uvloop})
    except (OSError, RuntimeError) as error:  # a handler has closed the loop's own descriptors, say
        logger.critical("the event loop broke: %s: %s", type(error).__name__, error, exc_info=True)
        return FAILURE
    finally:
        leaving.at_once = True
        end_in_time(ENDING_SECONDS)
        mend_streams()


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
        group.start_soon(keep_signals, SIGNALS)
        group.start_soon(_settle_in, told)
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
        trace(error)
        code = report(error)
    except Exception as error:  # the application's lifespan, say: whoever wrote it needs the place
        logger.critical("the worker ended: %s: %s", type(error).__name__, error, exc_info=True)
        code = FAILURE
    end_in_time(ENDING_SECONDS)
    if _has_left_behind(worker):
        end_process(LEFT_BEHIND)
    if code == 0 and len(told.signals) > 1:
        return 128 + told.signals[1]
    return code


async def _obey(worker: Worker, told: _Told, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        task_status.started()
        async for each in signals:
            told.signals.append(each)
            if len(told.signals) == 1:
                logger.info("%s: no more claims; once more to give back what runs at once", each.name)
                worker.stop()
            elif len(told.signals) == 2:
                logger.info("%s again: giving back what runs", each.name)
                worker.stop(now=True)
                end_in_time(HURRY_SECONDS)  # the application's lifespan may hang


async def _settle_in(told: _Told) -> None:
    await told.is_at_work.wait()
    spare_what_stays()


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
