"""What has to be right before a worker claims: a database in reach, its schema, room for the connections."""

from __future__ import annotations

import logging

import sqlalchemy as sa

from jobq import schema
from jobq.errors import WorkerError
from jobq.faults import can_wait_out, is_refusal, said_briefly
from jobq.registry import App
from jobq.store import leasing as store
from jobq.store.leasing import Published, PublishedQueue
from jobq.worker.assembly import OWN_POOL, Assembly, Setting
from jobq.worker.loops import until, wait_for
from jobq.worker.placing import start_executors

logger = logging.getLogger("jobq.worker")


async def start(assembly: Assembly, setting: Setting) -> bool:
    """Look, publish what the code says, and join the fleet; waits for a database that is out of reach.

    False: told to stop meanwhile. Raises: SchemaError; WorkerError, when the database refuses this role, or an executor
    cannot run its handlers.
    """
    await _start_executors(assembly, setting)
    while not assembly.stop.claim.is_set():
        try:
            await _try(assembly, setting)
        except Exception as error:
            if is_refusal(error):
                raise WorkerError(f"the database refuses the worker: {said_briefly(error)}") from error
            if not can_wait_out(error):
                raise
            await wait_for(assembly.stop.claim, assembly.link.failed("worker", error))
        else:
            assembly.link.worked("worker")
            return True
    return False


async def _start_executors(assembly: Assembly, setting: Setting) -> None:
    """No longer than until the word to stop: a child process imports the whole application."""
    try:
        await until(assembly.stop.claim.wait, lambda: start_executors(setting.executors))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def _try(assembly: Assembly, setting: Setting) -> None:
    most, used = await assembly.database.run(_look)
    _say_connections(setting, most, used)
    await assembly.membership.publish(map(Published.of, setting.app.handlers.values()), _published_queues(setting.app))
    await assembly.surveyor.run_once()
    await assembly.membership.join()


def _look(connection: sa.Connection) -> tuple[int, int]:
    schema.check_schema(connection)
    return store.capacity(connection)


def _say_connections(setting: Setting, most: int, used: int) -> None:
    own = OWN_POOL + 1 + setting.options.listens
    needed = own + setting.options.concurrency
    level = logging.INFO if used + needed <= most else logging.WARNING
    logger.log(
        level,
        "needs %d connections, and up to %d more for handlers inside of transaction(); the server allows %d, %d in use",
        own,
        setting.options.concurrency,
        most,
        used,
    )


def _published_queues(app: App) -> list[PublishedQueue]:
    """The queues that the code says something of; a limit only where it has one to say."""
    return [
        PublishedQueue(name, each.weight, each.fifo if each.is_limited else None, each.concurrency)
        for name, each in app.queues.items()
    ]
