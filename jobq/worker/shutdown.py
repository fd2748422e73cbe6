"""How a worker ends: each step bounded, so that a locked table or a dead server costs seconds and no job."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

import anyio

from jobq.executors.patience import awake_timeout
from jobq.faults import can_wait_out, said_briefly
from jobq.worker.assembly import Assembly, Setting
from jobq.worker.held import Stop
from jobq.worker.loops import until

logger = logging.getLogger("jobq.worker")
CLAIM_SECONDS = 0.5  # what a claim in flight has to come back once the worker is told to stop
STOP_SECONDS = 1.2  # what stopped handlers have: a little more than the stopper's patience
RECORD_SECONDS = 1.0
CLOSE_SECONDS = 0.5  # for services to end by themselves: a connect that is cancelled leaves its socket open for a while
LEAVE_SECONDS = 1.0  # a little more than `leave` waits for a lock


async def claim_until_told(assembly: Assembly) -> None:
    """Claim until the word to stop; a claim that hangs then (a locked table) is cut off half a second later."""

    async def cut_off() -> None:
        await assembly.stop.claim.wait()
        await anyio.sleep(CLAIM_SECONDS)

    await until(cut_off, assembly.claimer.run)


async def drain(assembly: Assembly, grace: timedelta) -> None:
    """Let end what runs, for the grace time or until the word to hurry, and have all that ended recorded."""
    assembly.runner.close()
    if assembly.runner.running:
        logger.info("stopping: %s for running jobs to end (%d)", grace, assembly.runner.running)
    told_at = assembly.stop.told_at or anyio.current_time()
    with anyio.move_on_after(told_at + grace.total_seconds() - anyio.current_time()):
        await until(assembly.stop.hurry.wait, assembly.runner.ended)
    await stop_handlers(assembly)
    with anyio.move_on_after(RECORD_SECONDS):
        await assembly.completer.drained()
    assembly.stop.close.set()


async def stop_handlers(assembly: Assembly) -> None:
    """What still runs is cancelled; its jobs stay held, to be given back."""
    assembly.runner.stop_all(Stop.SHUTDOWN)
    with suppress(TimeoutError):
        async with awake_timeout(STOP_SECONDS):
            await assembly.runner.ended()


async def leave(assembly: Assembly) -> None:
    """The last write: give back what is held. If it fails, that is said and counted, and the lease runs out."""
    assembly.heartbeat.stop()
    assembly.loop_watch.stop()
    held, may_be_more = len(assembly.held), assembly.claims.may_have_unknown
    problem = "no answer in time"
    with anyio.move_on_after(LEAVE_SECONDS):
        try:
            given = await assembly.membership.leave(everything=may_be_more)
        except Exception as error:
            if not can_wait_out(error):
                raise
            problem = said_briefly(error)
        else:
            assembly.counters.given_back += given
            logger.info("worker left; jobs given back: %d", given)
            return
    assembly.counters.not_given_back += held + may_be_more
    logger.warning("could not leave (%s): %d jobs wait until the lease runs out", problem, held)


async def close(assembly: Assembly, setting: Setting) -> None:
    """Let go of threads and connections."""
    for executor in setting.executors.values():
        await executor.close()
    await assembly.database.close()
    await assembly.engines.close()
